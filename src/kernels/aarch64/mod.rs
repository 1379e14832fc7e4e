//! AArch64: AAPCS64 registers.

pub mod chains;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod pairs;
pub mod roundtrip;
pub mod self_test;
