//! What this host is, and how to hold it still.
//!
//! Everything here is optional: a container may hide `/proc` or `/sys`, and what is hidden is
//! `null`, not an error.

mod c_library;
mod description;
mod disturbance;
mod processor;
mod system_files;

pub use c_library::CLibrary;
pub use description::{Blake3Layout, Machine, Processor, SCHEMA};
pub use disturbance::disturbances;
pub use processor::{Affinity, ChosenCpu, CpuError, choose_cpu, current_cpu, permitted_cpus, pin};
