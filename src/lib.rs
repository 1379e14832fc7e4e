//! Does this code's speed depend on where the operating system put its stack, why, and what fixes it?
//!
//! The modules follow the data from placement to verdict: [`sample`] is what is known of one timed
//! block, [`analysis`] turns recorded samples into a verdict.

#![deny(unsafe_code)]

pub mod analysis;
#[cfg(feature = "cli")]
pub mod cli;
mod failure;
pub mod sample;
pub mod sys;
pub mod trace;

pub use failure::Failure;
