//! One call of a function, instruction by instruction.
//!
//! A child is stepped under ptrace; every instruction is decoded and its memory accesses computed
//! from the registers, and each load is paired with the stores that its bytes come from.

mod access;
mod pairing;

pub use access::{Access, AccessKind, Step};
pub use pairing::{Pair, Pairing, Relation, StoreSite};
