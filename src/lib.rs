//! Does this code's speed depend on where the operating system put its stack, why, and what fixes it?
//!
//! ```
//! # #[cfg(target_os = "linux")]
//! fn main() -> Result<(), stackphase::Failure> {
//!     // Times the closure at sixteen phases of the stack and judges what came of it.
//!     let verdict = stackphase::phase(|| blake3::hash(&std::hint::black_box([7u8; 64])))?;
//!     println!("{}, largest difference up to {:?} %", verdict.verdict, verdict.effect_high_percent);
//!     for band in &verdict.bands {
//!         println!("{:.2} ns at residues {:?}", band.ns_per_op, band.residues);
//!     }
//!     Ok(())
//! }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! The modules follow the data from placement to verdict. A probe ([`probes`]) plans launches; a
//! worker process ([`launch`]) times blocks ([`block`]) of a workload ([`workloads`]) at exact
//! placements ([`placement`]) and emits samples ([`sample`]), which are kept ([`record`]).
//! [`analysis`] turns recorded samples, or those of others ([`import`]), into a verdict, and
//! [`report`] shows it. [`counters`] and [`trace`] say why.

#![deny(unsafe_code)]

pub mod analysis;
pub mod block;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(target_os = "linux")]
pub mod counters;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod explain;
mod failure;
pub mod import;
pub mod kernels;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod machine;
pub mod placement;
#[cfg(target_os = "linux")]
pub mod probes;
pub mod record;
#[cfg(feature = "cli")]
pub mod report;
pub mod sample;
pub mod sys;
pub mod trace;
pub mod workloads;

pub use failure::Failure;
#[cfg(target_os = "linux")]
pub use probes::in_process::{phase, phase_of};
