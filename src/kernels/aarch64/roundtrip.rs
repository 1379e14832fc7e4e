//! 64 bytes loaded and stored again: with source and target in one place, each load reads what the
//! store before it wrote.

use std::arch::asm;
use std::fmt;

/// By which instructions 64 bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// Two pairs of 16-byte registers (`ldp`/`stp`), 32 bytes an instruction.
    QPair,
}

impl RoundTrip {
    /// From the widest to the narrowest.
    pub const ALL: &'static [RoundTrip] = &[RoundTrip::QPair];

    /// Whether this machine can execute it: always.
    pub fn available(self) -> bool {
        true
    }

    /// The widest that this machine can execute.
    pub fn widest() -> Self {
        RoundTrip::QPair
    }
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("q pair")
    }
}

/// Loads 64 bytes from `from` and stores them at `to`.
#[inline(always)]
pub fn round_trip(_kind: RoundTrip, from: &[u8; 64], to: &mut [u8; 64]) {
    // SAFETY: both are 64 bytes long, and one is readable, the other writable.
    unsafe { move_block(from.as_ptr(), to.as_mut_ptr()) }
}

/// Loads 64 bytes from `block` and stores them where they came from: chained through memory, since
/// the next load reads this store.
#[inline(always)]
pub fn round_trip_in_place(_kind: RoundTrip, block: &mut [u8; 64]) {
    // SAFETY: 64 readable and writable bytes.
    unsafe { move_block(block.as_ptr(), block.as_mut_ptr()) }
}

/// # Safety
/// 64 readable bytes at `from`, 64 writable ones at `to`; they may be the same.
#[inline(always)]
unsafe fn move_block(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's; all vector registers used are declared.
    unsafe {
        asm!(
            "ldp q0, q1, [{from}]",
            "ldp q2, q3, [{from}, #32]",
            "stp q0, q1, [{to}]",
            "stp q2, q3, [{to}, #32]",
            from = in(reg) from, to = in(reg) to,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            options(nostack, preserves_flags),
        );
    }
}
