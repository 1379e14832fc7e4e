//! What is timed.
//!
//! A [`Workload`] is one operation and the stack frame that it works in. The frame lives in the
//! timed loop's own stack frame, so that wherever the loop is put, the workload's buffers go along.
//! [`Spec`] names one of the built-in workloads; [`Spec::build`] makes it ready to be timed.

mod copies;
mod hashes;
mod registers;
mod roundtrip;
mod sink;
mod spec;

pub use sink::{BlackBox, ResultSink, SinkKind, Xor};
pub use spec::{MAX_COPY_LEN, Name, Spec, SpecError, Variant};

/// One operation whose speed may depend on where its stack frame lies.
///
/// Implement it to time your own code at every phase; [`crate::phase()`] takes a closure where the
/// frame does not matter.
pub trait Workload {
    /// What the operation keeps in the timed loop's stack frame: its buffers, or `()`.
    type Frame;

    /// A fresh frame, made once a block, before the loop.
    fn frame(&self) -> Self::Frame;

    /// The operation. It must not be optimised away: pass its result to a [`ResultSink`] or to
    /// [`std::hint::black_box`].
    fn call(&mut self, frame: &mut Self::Frame);

    /// Address of the buffer that is written and read back, for workloads that own theirs.
    fn own_buffer(&self, _frame: &Self::Frame) -> Option<usize> {
        None
    }

    /// The input, where the buffer is to be found by searching the stack for a copy of it.
    fn message(&self) -> Option<&[u8]> {
        None
    }

    /// Replaces the input by fresh random bytes, so that no older copy can be mistaken for it.
    fn renew(&mut self, _random: &mut fastrand::Rng) {}

    /// Address of the input.
    fn input_address(&self) -> Option<usize> {
        self.message().map(|message| message.as_ptr() as usize)
    }
}

/// A closure as a workload without a frame of its own.
pub struct Closure<F>(pub F);

impl<F: FnMut()> Workload for Closure<F> {
    type Frame = ();

    fn frame(&self) -> Self::Frame {}

    #[inline(always)]
    fn call(&mut self, (): &mut ()) {
        (self.0)();
    }
}
