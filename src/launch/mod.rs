//! The worker process: every figure is taken in one, so that a launch is a launch.
//!
//! A worker is this same program, started by one function with a fixed path, fixed arguments and an
//! environment of known length, because each of them moves the stack. It speaks JSON lines on an
//! inherited descriptor; its standard output stays free. The parent ends the whole process group
//! when a worker falls silent.

pub mod command;
mod environment;
mod executable;
mod grid;
mod job;
mod parent;
mod protocol;
mod worker;

pub use environment::Environment;
pub use executable::{Executable, ExecutableError};
pub use grid::{Told, run_with};
pub use job::{GridJob, Order};
pub use parent::{LaunchError, LaunchOptions, Worker};
pub use protocol::{Hello, Job, PROTOCOL, Reply};
pub use worker::{WORKER_COMMAND, serve};
