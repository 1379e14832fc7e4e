//! Every use of `unsafe` that is not assembly: what the operating system and the C library give
//! only through raw calls. Small functions, each with its safety argument, safe to the outside.

// See the module documentation: the rest of the library forbids it.
#![allow(unsafe_code)]

pub mod copy;
#[cfg(target_os = "linux")]
pub mod descriptor;
#[cfg(target_os = "linux")]
pub mod image;
#[cfg(target_os = "linux")]
pub mod perf;
#[cfg(unix)]
pub mod signals;
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod simulated_pmu;
#[cfg(target_os = "linux")]
pub mod spawn;
