//! Hardware counters that are proven, and absent with a reason.
//!
//! # What a count means here
//!
//! Counters count the pinned thread in user mode only. They are enabled before the clock is read
//! and disabled after it was read again, so that reading them costs no time inside a block; the
//! price is that the count includes the few hundred instructions between. In a block of 100 µs
//! that is below one in a thousand.
//!
//! Counts gain a few instructions from every interrupt (the return to user mode retires one on
//! some cores) and, on Zen, from speculative lock elision: equal to a few in ten thousand is flat.
//!
//! # What can go wrong, and does
//!
//! A counter that opens need not count. Hypervisors let events open that stay 0; a hybrid
//! processor opens an event on cores that the thread never visits; a watchdog takes a register, and
//! the group that needs it never runs. So every counter is [proven](survey) by loops with a known
//! number of what it counts, and where it fails its [`Absence`](crate::sample::Absence) says why.
//! `perf list` proves nothing.
//!
//! A group runs at the same time or not at all, and has at most [`GROUP`] members. Where the groups
//! do not fit together, a [`Set`] measures one group a block, in turn: a block is shorter than the
//! kernel's multiplexing period, so that sharing within it would extrapolate from nothing.

mod absence;
mod environment;
mod event;
mod identify;
mod open;
mod proof;
mod reading;
mod request;
mod set;
mod survey;
mod table;

pub use environment::{Context, Environment, Pmu, core_types};
pub use event::{
    Encoding, Event, FieldTooLarge, Fields, Hardware, Layout, STANDARD, Software, perf_command,
};
pub use identify::{Core, CoreType, CpuId, identify};
pub use open::OpenError;
pub use reading::{Counted, ReadError, Reading};
pub use request::BadEvent;
pub use set::Set;
pub use survey::{Standing, Surveyed, survey, survey_one, survey_software};
pub use table::lookup;

/// The largest number of counters in one group: what the narrowest core (four registers) can run.
pub const GROUP: usize = 4;

/// A number as vendors and perf write it: decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` would accept a sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}
