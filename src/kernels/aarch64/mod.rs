//! AArch64: AAPCS64 registers.

pub mod chains;
pub mod frame;
pub mod roundtrip;
