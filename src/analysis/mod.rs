//! Samples in, verdict out: pure functions that know nothing of hardware, files or processes.

mod judge;
mod series;
mod speeds;
mod verdict;

pub use judge::{Options, judge, judge_all};
pub use series::{Observation, Series, SeriesKey};
pub use speeds::{
    LaunchFigure, Speed, Speeds, chance, is_unplaced, judge_launches, launch_figures, speeds,
};
pub use verdict::{
    Band, Finding, InstructionSource, InstructionsPerOp, LaunchException, Launches, RuleOutcome,
    SCHEMA, Verdict, VerdictDocument,
};
