//! The round trip: 64 bytes stored and loaded again by the widest instructions that this machine
//! has, each load reading what the store before it wrote.

use super::Workload;
use crate::kernels::{RoundTrip, round_trip, round_trip_in_place};

/// Where the bytes are stored, and where the store-only twin loads from.
#[repr(C, align(16))]
pub struct Frame([u8; 64 + 64 + 64 + 16]);

/// What the round trip is a control or an exhibit of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// At the address that the frame dictates.
    AsPlaced,
    /// Realigned to 64 bytes inside the callee: it cannot depend on the stack's phase.
    Realigned,
    /// The same stores, loads from another line: what placement costs a store by itself.
    StoreOnly,
}

/// The workload in one of its forms. `KIND` is the index in [`RoundTrip::ALL`], fixed at compile
/// time so that the loop does not decide on its instructions.
pub struct RoundTripWorkload<const KIND: usize> {
    form: Form,
    offset: usize,
}

impl<const KIND: usize> RoundTripWorkload<KIND> {
    // The modulus only keeps a kind that this target lacks from failing to compile.
    const INSTRUCTIONS: RoundTrip = RoundTrip::ALL[KIND % RoundTrip::ALL.len()];

    /// A round trip `offset` bytes (0 to 15) into its 16-byte aligned frame.
    pub fn new(form: Form, offset: usize) -> Self {
        RoundTripWorkload { form, offset }
    }

    #[inline(always)]
    fn start(&self, frame: &Frame) -> usize {
        match self.form {
            Form::Realigned => frame.0.as_ptr().align_offset(64),
            Form::AsPlaced | Form::StoreOnly => self.offset,
        }
    }
}

impl<const KIND: usize> Workload for RoundTripWorkload<KIND> {
    type Frame = Frame;

    fn frame(&self) -> Self::Frame {
        Frame([0; 208])
    }

    #[inline(always)]
    fn call(&mut self, frame: &mut Self::Frame) {
        let start = self.start(frame);
        let (near, far) = frame.0[start..].split_at_mut(64);
        // `split_at_mut` and the frame's size make both 64 bytes: at most 63 precede them.
        if let (Ok(near), Some(far)) = (near.try_into(), far.first_chunk()) {
            match self.form {
                Form::StoreOnly => round_trip(Self::INSTRUCTIONS, far, near),
                Form::AsPlaced | Form::Realigned => round_trip_in_place(Self::INSTRUCTIONS, near),
            }
        }
    }

    fn own_buffer(&self, frame: &Self::Frame) -> Option<usize> {
        Some(frame.0.as_ptr() as usize + self.start(frame))
    }
}
