//! Why a call was not made.

use thiserror::Error;

/// Why [`call_at_shift`](crate::call_at_shift) did not call. The closure has then been dropped without
/// running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShiftError {
    /// The ABI keeps the stack pointer at multiples of 16 bytes, so no other shift can be had.
    #[error(
        "shift {shift}: not a multiple of 16; use one, as the ABI keeps the stack 16-byte aligned"
    )]
    NotMultipleOf16 {
        /// The shift asked for, in bytes.
        shift: usize,
    },
    /// The shift is above [`MAX_SHIFT`](crate::MAX_SHIFT).
    #[error("shift {shift}: too large; the largest is {max}")]
    TooLarge {
        /// The shift asked for, in bytes.
        shift: usize,
        /// The largest shift, in bytes.
        max: usize,
    },
    /// The thread's stack is too small, or too deeply used already.
    #[error(
        "shift {shift}: needs {needed} bytes of stack and {available} are left; \
         give the thread a larger stack, or raise `ulimit -s` for the main thread"
    )]
    NoRoom {
        /// The shift asked for, in bytes.
        shift: usize,
        /// The bytes that the move down and [`RESERVE`](crate::RESERVE) need.
        needed: usize,
        /// The bytes between the stack pointer and the end of the stack.
        available: usize,
    },
    /// There is no trampoline for this processor.
    #[error("shift {shift}: no trampoline for this processor; x86-64 and aarch64 have one")]
    Unsupported {
        /// The shift asked for, in bytes.
        shift: usize,
    },
}
