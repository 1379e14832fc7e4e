//! Samples in, verdict out: pure functions that know nothing of hardware, files or processes.

mod series;
mod speeds;
mod verdict;

pub use series::{Observation, Series, SeriesKey};
pub use speeds::{LaunchFigure, Speed, Speeds, judge_launches, launch_figures, speeds};
pub use verdict::{
    Band, Finding, InstructionSource, InstructionsPerOp, RuleOutcome, SCHEMA, Verdict,
    VerdictDocument,
};
