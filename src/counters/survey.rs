//! Which counters this machine has: each opened alone and put to its self-test.

use super::environment::Context;
use super::event::Event;
use super::proof;
use super::set::Set;
use crate::sample::Absence;

/// How a counter stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It counted what its self-test knows.
    Proven,
    /// It opened and ran, but nothing is known to hold it against: why.
    Unproven(String),
    /// It cannot be used.
    Absent(Absence),
}

/// A counter and how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// The counter's name.
    pub name: String,
    /// The event; `None` where this core has none.
    pub event: Option<Event>,
    /// How it stands.
    pub standing: Standing,
}

/// Surveys the standard counters and `extra` on the core that the calling thread is pinned to.
pub fn survey(context: &Context, extra: &[Event]) -> Vec<Surveyed> {
    let (events, absent) = context.events(extra);
    let missing = absent.into_iter().map(|(name, absence)| Surveyed {
        name,
        event: None,
        standing: Standing::Absent(absence),
    });
    let present = events.into_iter().map(|event| {
        let standing = survey_one(context, &event);
        Surveyed { name: event.name.clone(), event: Some(event), standing }
    });
    let mut all: Vec<Surveyed> = present.chain(missing).collect();
    // In the order of the documentation, and the user's own after it.
    let place = |name: &str| super::STANDARD.iter().position(|(standard, _)| *standard == name);
    all.sort_by_key(|surveyed| place(&surveyed.name).unwrap_or(usize::MAX));
    all
}

/// Opens one event alone and puts it to its self-test.
pub fn survey_one(context: &Context, event: &Event) -> Standing {
    let (mut set, absent) = Set::open(context, std::slice::from_ref(event));
    if let Some((_, absence)) = absent.into_iter().next() {
        return Standing::Absent(absence);
    }
    proof::prove(&mut set, event, &context.environment)
}

/// Surveys what the kernel counts without a PMU: task clock, page faults, and writes through a
/// breakpoint. They stand beside the hardware counters and never in their place.
pub fn survey_software(context: &Context) -> Vec<Surveyed> {
    let software = [Event::task_clock(), Event::page_faults()].map(|event| {
        let standing = survey_one(context, &event);
        Surveyed { name: event.name.clone(), event: Some(event), standing }
    });
    let (event, standing) = proof::prove_breakpoint(context);
    let breakpoint = Surveyed { name: event.name.clone(), event: Some(event), standing };
    software.into_iter().chain([breakpoint]).collect()
}
