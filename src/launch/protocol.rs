//! What parent and worker say to each other: one JSON document a line.

use serde::{Deserialize, Serialize};

use super::job::GridJob;
use crate::block::GuardReading;
use crate::sample::Sample;

/// Version of the protocol; both sides are one binary, so any difference is a mistake.
pub const PROTOCOL: u32 = 1;

/// What a worker says first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The worker's process.
    pub pid: u32,
    /// Whether the kernel says that this process is not randomised; `None` where it does not say.
    pub randomisation_off: Option<bool>,
    /// Start of the stack at `exec`; `None` where `/proc` hides it.
    pub stack_start: Option<u64>,
    /// Bytes of the environment strings.
    pub env_bytes: Option<u64>,
    /// Bytes of the argument strings.
    pub argv_bytes: Option<u64>,
    /// Address of a function of the program: moves when the text is randomised.
    pub text: u64,
    /// Address of a first small heap allocation.
    pub heap: u64,
}

/// What the parent asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Job {
    /// Time a workload at every placement of a grid, or where it happens to be.
    Grid(Box<GridJob>),
    /// Do nothing and answer `Done`: the proof that a launch reached its phase needs no more.
    Nothing,
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Once, unasked.
    Hello(Hello),
    /// One finished block.
    Sample(Box<Sample>),
    /// Something that a person should know; its text ends with the remedy.
    Warning(String),
    /// The job is finished; the best guard reading so far goes to the next launch.
    Done(Option<GuardReading>),
    /// The job cannot be done.
    Failed {
        /// What.
        what: String,
        /// Where.
        place: String,
        /// What mends it.
        remedy: String,
    },
}
