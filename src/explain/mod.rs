//! Why placements differ: the traced pairs of one operation, laid on the forwarding map at every
//! placement, against what was measured.
//!
//! A pair *may be* blocked; which placements have more such pairs is predicted, never a time: what
//! a stall costs depends on what else is in flight. Agreement is judged on sets and order.

mod agreement;
mod document;
mod gather;
mod moved;
mod predict;

pub use agreement::{Agreement, Conclusion, Measured, agree};
pub use document::{Explanation, GridAgreement, PairFate, PlacementGroup, SCHEMA, StoreFate};
pub use gather::{
    OWN_MAP, Subject, explain, explain_verdicts, map_for, measured_in, shifts_of, trace_subject,
};
pub use moved::{Shape, needed};
pub use predict::{Load, predict};
