//! Samples in, verdict out: pure functions that know nothing of hardware, files or processes.

mod series;
mod verdict;

pub use series::{Observation, Series, SeriesKey};
pub use verdict::{
    Band, Finding, InstructionSource, InstructionsPerOp, RuleOutcome, SCHEMA, Verdict,
    VerdictDocument,
};
