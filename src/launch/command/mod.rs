//! A foreign command as a launch: found beforehand, started at a known stack phase, watched while it
//! runs, and ended with everything it started.
//!
//! One launch is one row: its wall time from the program's first instruction to its end, or one
//! figure read from what it printed. The phase is what the kernel says of the child before its
//! first instruction, never what was asked for.

mod failure;
mod metric;
mod output;
mod program;
mod run;
mod tasks;
mod tree;

pub use failure::LaunchFailure;
pub use metric::{Figure, Metric, MetricError};
pub use program::{CommandError, Found};
pub use run::{CommandOptions, Ended, PLACEHOLDER, Runner, inherited, search_path};
pub use tasks::TasksSeen;
