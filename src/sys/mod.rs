//! Every use of `unsafe` that is not assembly: what the operating system and the C library give
//! only through raw calls. Small functions, each with its safety argument, safe to the outside.

// See the module documentation: the rest of the library forbids it.
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod breakpoint;
pub mod copy;
#[cfg(target_os = "linux")]
pub mod descriptor;
#[cfg(target_os = "linux")]
pub mod exec;
#[cfg(target_os = "linux")]
pub mod filter;
pub mod fresh_pages;
#[cfg(target_os = "linux")]
pub mod image;
#[cfg(target_os = "linux")]
pub mod perf;
#[cfg(target_os = "linux")]
mod perf_ring;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod ptrace;
#[cfg(target_os = "linux")]
pub mod realtime;
#[cfg(unix)]
pub mod signals;
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod simulated_pmu;
#[cfg(target_os = "linux")]
pub mod spawn;

/// Bytes in a page of this system.
#[cfg(target_os = "linux")]
pub fn page_size() -> u64 {
    // SAFETY: reads a constant of the system, which POSIX requires to be there.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}
