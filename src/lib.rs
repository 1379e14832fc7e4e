//! Does this code's speed depend on where the operating system put its stack, why, and what fixes it?
//!
//! The modules follow the data from placement to verdict: [`sample`] is what is known of one timed
//! block, [`analysis`] turns recorded samples into a verdict.

#![deny(unsafe_code)]

pub mod analysis;
pub mod block;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(target_os = "linux")]
pub mod counters;
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
