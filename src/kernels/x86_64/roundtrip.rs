//! 64 bytes loaded and stored again: with source and target in one place, each load reads what the
//! store before it wrote.

use std::arch::{asm, is_x86_feature_detected};
use std::fmt;

/// By which instructions 64 bytes are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// One 64-byte load and store (AVX-512F).
    Zmm,
    /// Two 32-byte loads and stores (AVX).
    YmmPair,
    /// Four 16-byte loads and stores (SSE2).
    Xmm,
}

impl RoundTrip {
    /// From the widest to the narrowest.
    pub const ALL: &'static [RoundTrip] = &[RoundTrip::Zmm, RoundTrip::YmmPair, RoundTrip::Xmm];

    /// Whether this machine can execute it.
    pub fn available(self) -> bool {
        match self {
            RoundTrip::Zmm => is_x86_feature_detected!("avx512f"),
            RoundTrip::YmmPair => is_x86_feature_detected!("avx"),
            RoundTrip::Xmm => true,
        }
    }

    /// The widest that this machine can execute.
    pub fn widest() -> Self {
        Self::ALL.iter().copied().find(|kind| kind.available()).unwrap_or(RoundTrip::Xmm)
    }
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RoundTrip::Zmm => "zmm",
            RoundTrip::YmmPair => "ymm pair",
            RoundTrip::Xmm => "xmm",
        })
    }
}

/// Loads 64 bytes from `from` and stores them at `to`. `kind` must be available.
#[inline(always)]
pub fn round_trip(kind: RoundTrip, from: &[u8; 64], to: &mut [u8; 64]) {
    // SAFETY: both are 64 bytes long, and one is readable, the other writable.
    unsafe { move_block(kind, from.as_ptr(), to.as_mut_ptr()) }
}

/// Loads 64 bytes from `block` and stores them where they came from: chained through memory, since
/// the next load reads this store. `kind` must be available.
#[inline(always)]
pub fn round_trip_in_place(kind: RoundTrip, block: &mut [u8; 64]) {
    // SAFETY: 64 readable and writable bytes.
    unsafe { move_block(kind, block.as_ptr(), block.as_mut_ptr()) }
}

/// # Safety
/// 64 readable bytes at `from`, 64 writable ones at `to` (they may be the same), and `kind`
/// available on this machine.
#[inline(always)]
unsafe fn move_block(kind: RoundTrip, from: *const u8, to: *mut u8) {
    // SAFETY: the caller's; all vector registers used are declared.
    unsafe {
        match kind {
            RoundTrip::Zmm => asm!(
                "vmovdqu64 zmm16, [{from}]",
                "vmovdqu64 [{to}], zmm16",
                from = in(reg) from, to = in(reg) to, out("zmm16") _,
                options(nostack, preserves_flags),
            ),
            RoundTrip::YmmPair => asm!(
                "vmovdqu ymm0, [{from}]",
                "vmovdqu ymm1, [{from} + 32]",
                "vmovdqu [{to}], ymm0",
                "vmovdqu [{to} + 32], ymm1",
                from = in(reg) from, to = in(reg) to, out("xmm0") _, out("xmm1") _,
                options(nostack, preserves_flags),
            ),
            RoundTrip::Xmm => asm!(
                "movdqu xmm0, [{from}]",
                "movdqu xmm1, [{from} + 16]",
                "movdqu xmm2, [{from} + 32]",
                "movdqu xmm3, [{from} + 48]",
                "movdqu [{to}], xmm0",
                "movdqu [{to} + 16], xmm1",
                "movdqu [{to} + 32], xmm2",
                "movdqu [{to} + 48], xmm3",
                from = in(reg) from, to = in(reg) to,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                options(nostack, preserves_flags),
            ),
        }
    }
}
