//! One timed block: the loop, where it runs, how long it must be, and what watches over it.
//!
//! The clock is read outside the trampoline and the loop holds nothing but the call, so that what
//! is timed at one placement is, to the instruction, what is timed at any other.

mod calibration;
mod guard;
mod locate;
mod timed;

pub use calibration::{Clock, MIN_BLOCK, iterations_for};
pub use guard::{DISTURBED_ABOVE, Guard, GuardReading, Levels, Occupancy};
pub use locate::{Decider, Found, Located, Locator, first_written};
pub use timed::{Entry, Loop, Place, PlaceError, Timed, run_at};
