//! The padding sweep: the stack as the kernel places it, moved from outside the process.
//!
//! *Hypothesis*: the time of a program, or of one operation in it, depends on where `execve` put its
//! stack, which the length of its environment (or arguments, or path) decides in steps of 16 bytes.
//! *Control*: the heap and the text stay where they are while the stack moves; their residues are
//! recorded and shown not to explain the bands; a workload in registers must come out flat. Launches
//! are the unit, every padding is visited once a pass, in a fresh shuffle. *Cannot show*: anything
//! of threads, whose stacks no padding moves; and of a foreign command, which of its buffers it is.

mod command;
mod plan;
mod settle;
mod sweep;

pub use command::{CommandCampaign, FailedLaunch, Sweep};
pub use plan::{
    Arm, Axis, CommandPlan, OwnPlan, PadPlan, PlannedLaunch, RANDOMISED_PADDING, default_paddings,
};
pub use settle::settle;
pub use sweep::{OwnSweep, SweepError, sweep};
