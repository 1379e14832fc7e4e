//! Samples in, verdict out: pure functions that know nothing of hardware, files or processes.
//!
//! [`judge`] goes from figures to cells (one unit at one placement), from cells to classes of
//! placements, and from the simultaneous interval of all differences between classes to a verdict.
//! `docs/method.md` describes each step and its source.

mod agreement;
mod average;
mod bands;
mod cells;
mod confounding;
pub mod counts;
mod departure;
mod judge;
mod launches;
mod location;
mod periods;
mod placed;
mod polish;
mod reasons;
mod robust;
mod rules;
mod series;
#[doc(hidden)]
pub mod simulate;
mod simultaneous;
mod speeds;
mod twins;
mod verdict;
mod visits;

pub use agreement::{Agreement, agreement};
pub use average::{Factor, LayoutAverage, factor, layout_average};
pub use judge::{Options, judge, judge_all};
pub use placed::{
    PlacedLaunch, ResidueControl, placed_launches, residue_control, unexplained_speeds,
};
pub use series::{Observation, Series, SeriesKey};
pub use speeds::{
    LaunchFigure, Speed, Speeds, chance, is_unplaced, judge_launches, launch_figures, speeds,
};
pub use twins::name_store_placement;
pub use verdict::{
    Band, Finding, InstructionSource, InstructionsPerOp, LaunchException, Launches, RuleOutcome,
    SCHEMA, Verdict, VerdictDocument,
};
