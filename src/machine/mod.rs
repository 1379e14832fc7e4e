//! What this host is, and how to hold it still.

mod processor;

pub use processor::{current_cpu, permitted_cpus, pin};
