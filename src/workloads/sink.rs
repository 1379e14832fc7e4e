//! What happens to a result, so that computing it cannot be optimised away.

use crate::sample::vocabulary;

vocabulary! {
    /// Which sink takes the results.
    SinkKind {
        /// [`std::hint::black_box`].
        BlackBox => "black-box",
        /// An XOR accumulator: a control that the bands do not come from `black_box` itself.
        Xor => "xor",
    }
}

/// Takes results.
pub trait ResultSink: Default {
    /// Takes the bytes of one result.
    fn take(&mut self, result: &[u8]);
}

/// Hands each result to [`std::hint::black_box`].
#[derive(Default)]
pub struct BlackBox;

impl ResultSink for BlackBox {
    #[inline(always)]
    fn take(&mut self, result: &[u8]) {
        std::hint::black_box(result);
    }
}

/// Folds the first eight bytes of each result into an accumulator that is used once, at the end.
#[derive(Default)]
pub struct Xor(u64);

impl ResultSink for Xor {
    #[inline(always)]
    fn take(&mut self, result: &[u8]) {
        if let Some(head) = result.first_chunk() {
            self.0 ^= u64::from_le_bytes(*head);
        }
    }
}

impl Drop for Xor {
    fn drop(&mut self) {
        std::hint::black_box(self.0);
    }
}
