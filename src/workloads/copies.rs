//! The copy family: `memcpy` into stack buffers of our own, through the C library's routine.
//!
//! Buffers are 16-byte aligned, as a compiler would align them, and begin `offset` bytes (0 to 15)
//! further on: a buffer at 8 modulo 16 meets other alignments than a 16-aligned one, so a `clear`
//! speaks only of the offsets that were visited.

use std::hint::black_box;

use super::Workload;
use crate::sys::copy::CopyRoutine;

/// `N` bytes in the frame, 16-byte aligned and no more.
#[repr(C, align(16))]
pub struct Buffer<const N: usize>([u8; N]);

impl<const N: usize> Buffer<N> {
    fn zeroed() -> Self {
        Buffer([0; N])
    }
}

/// What all copies have in common.
pub struct CopySetup {
    /// The routine.
    pub routine: CopyRoutine,
    /// Bytes a copy.
    pub len: usize,
    /// Where in its buffer a copy begins, 0 to 15.
    pub offset: usize,
    /// The input, on the heap.
    pub input: Vec<u8>,
}

impl CopySetup {
    /// A setup whose input is zero until it is renewed.
    pub fn new(routine: CopyRoutine, len: usize, offset: usize) -> Self {
        CopySetup { routine, len, offset, input: vec![0; len] }
    }

    #[inline(always)]
    fn copy(&self, to: &mut [u8], from: &[u8]) {
        self.routine.copy(&mut to[self.offset..], from, self.len);
    }
}

/// Copies the input into a stack buffer that nothing reads: stores alone.
pub struct Memcpy<const N: usize>(pub CopySetup);

impl<const N: usize> Workload for Memcpy<N> {
    type Frame = Buffer<N>;

    fn frame(&self) -> Self::Frame {
        Buffer::zeroed()
    }

    #[inline(always)]
    fn call(&mut self, frame: &mut Self::Frame) {
        self.0.copy(&mut frame.0, black_box(&self.0.input));
        black_box(frame);
    }

    fn own_buffer(&self, frame: &Self::Frame) -> Option<usize> {
        Some(frame.0.as_ptr() as usize + self.0.offset)
    }

    fn renew(&mut self, random: &mut fastrand::Rng) {
        random.fill(&mut self.0.input);
    }

    fn input_address(&self) -> Option<usize> {
        Some(self.0.input.as_ptr() as usize)
    }
}

/// The buffer that is written and the one that the store-only twin reads instead.
#[repr(C)]
pub struct ChainFrame<const N: usize> {
    written: Buffer<N>,
    other: Buffer<N>,
}

/// A copy of a copy: input → stack buffer → heap. With `TWIN` the second copy reads another stack
/// buffer of the same residue: the same stores, and no load that depends on them.
pub struct CopyChain<const N: usize, const TWIN: bool> {
    setup: CopySetup,
    target: Vec<u8>,
}

impl<const N: usize, const TWIN: bool> CopyChain<N, TWIN> {
    /// A chain with its heap target, which lies at one address whatever the stack's phase.
    pub fn new(setup: CopySetup) -> Self {
        let target = vec![0; setup.len + setup.offset];
        CopyChain { setup, target }
    }
}

impl<const N: usize, const TWIN: bool> Workload for CopyChain<N, TWIN> {
    type Frame = ChainFrame<N>;

    fn frame(&self) -> Self::Frame {
        ChainFrame { written: Buffer::zeroed(), other: Buffer::zeroed() }
    }

    #[inline(always)]
    fn call(&mut self, frame: &mut Self::Frame) {
        let setup = &self.setup;
        setup.copy(&mut frame.written.0, black_box(&setup.input));
        let source = if TWIN { &frame.other } else { &frame.written };
        setup.copy(&mut self.target, &black_box(source).0[setup.offset..]);
        black_box((frame, &mut self.target));
    }

    fn own_buffer(&self, frame: &Self::Frame) -> Option<usize> {
        Some(frame.written.0.as_ptr() as usize + self.setup.offset)
    }

    fn renew(&mut self, random: &mut fastrand::Rng) {
        random.fill(&mut self.setup.input);
    }

    fn input_address(&self) -> Option<usize> {
        Some(self.setup.input.as_ptr() as usize)
    }
}

/// The two buffers of a ring and the one that the store-only twin reads instead.
#[repr(C)]
pub struct RingFrame<const N: usize> {
    first: Buffer<N>,
    second: Buffer<N>,
    other: Buffer<N>,
}

/// Two stack buffers, each copied to the other in turn: every copy reads what the one before it
/// wrote. With `TWIN` both copies read a third buffer of the same residue.
pub struct CopyRing<const N: usize, const TWIN: bool>(pub CopySetup);

impl<const N: usize, const TWIN: bool> Workload for CopyRing<N, TWIN> {
    type Frame = RingFrame<N>;

    fn frame(&self) -> Self::Frame {
        RingFrame { first: Buffer::zeroed(), second: Buffer::zeroed(), other: Buffer::zeroed() }
    }

    #[inline(always)]
    fn call(&mut self, frame: &mut Self::Frame) {
        let offset = self.0.offset;
        let source = if TWIN { &frame.other } else { &frame.first };
        self.0.copy(&mut frame.second.0, &black_box(source).0[offset..]);
        let source = if TWIN { &frame.other } else { &frame.second };
        self.0.copy(&mut frame.first.0, &black_box(source).0[offset..]);
        black_box(frame);
    }

    fn own_buffer(&self, frame: &Self::Frame) -> Option<usize> {
        Some(frame.first.0.as_ptr() as usize + self.0.offset)
    }
}
