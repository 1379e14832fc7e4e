//! x86-64: System V registers, AT&T-free (Intel) syntax.

pub mod chains;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod pairs;
pub mod roundtrip;
pub mod self_test;
