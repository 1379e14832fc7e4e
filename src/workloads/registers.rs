//! The null control: no memory at all.

use super::Workload;
use crate::kernels::dependent_chain;

/// A chain of dependent multiplications in registers.
pub struct Registers;

/// Steps of the chain in one operation: some sixty-four multiplications, about as long as a hash of
/// a short message.
const STEPS: u64 = 4;

impl Workload for Registers {
    type Frame = ();

    fn frame(&self) -> Self::Frame {}

    #[inline(always)]
    fn call(&mut self, (): &mut ()) {
        dependent_chain(STEPS);
    }
}
