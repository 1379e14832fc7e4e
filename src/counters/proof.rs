//! The self-tests: loops with a known number of what a counter counts, and their opposites.
//!
//! Counting something is not enough: a counter of failing forwards that also counts the
//! succeeding ones is another counter. So each has a loop in which the event happens once a step
//! and, where there can be one, a loop alike in which it never happens.
//!
//! The bounds are wide where hardware is known to count an attempt more than once (a blocked load
//! that is issued again), and narrow where it is not (retired instructions).

use super::absence;
use super::environment::Environment;
use super::event::{Encoding, Event, Software};
use super::reading::Counted;
use super::set::Set;
use super::survey::Standing;
use crate::kernels::{self, CHAIN_INSTRUCTIONS, CHAIN_STEP, SelfTestArea, self_test};

/// What runs while the counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loop {
    Registers,
    Blocked,
    Forwarded,
    Aliased,
    Unaliased,
    SplitLoads,
    InlineLoads,
    SplitStores,
    InlineStores,
    PageStores,
    FreshPages,
}

/// Events a step that a loop must show.
#[derive(Clone, Copy, Debug)]
struct Expectation {
    run: Loop,
    low: f64,
    high: f64,
    /// A clause that can follow "where".
    clause: &'static str,
}

/// Enough that a few hundred events between enabling and the loop are noise; far below a
/// millisecond.
const STEPS: u64 = 20_000;
/// Each write through a breakpoint is an exception of a microsecond or more.
const TRAPS: u64 = 100;
/// Pages touched for the first time.
const PAGES: u64 = 64;
/// A disturbance can only add events, so one clean attempt proves.
const ATTEMPTS: usize = 3;

/// "Never": what leaks in from entering and leaving the loop.
const NEVER: f64 = 0.05;

fn once(run: Loop, low: f64, high: f64, clause: &'static str) -> Expectation {
    Expectation { run, low, high, clause }
}

fn never(run: Loop, clause: &'static str) -> Expectation {
    Expectation { run, low: 0.0, high: NEVER, clause }
}

/// The self-test of a counter by its name; empty where none is known.
fn expectations(event: &Event) -> Vec<Expectation> {
    let instructions = CHAIN_INSTRUCTIONS as f64;
    let chain = CHAIN_STEP as f64;
    match event.name.as_str() {
        "instructions" => vec![once(
            Loop::Registers,
            instructions * 0.999,
            instructions * 1.01,
            "18 instructions a step were retired",
        )],
        "cycles" => vec![once(
            // Sixteen dependent multiplications of 2 to 5 cycles.
            Loop::Registers,
            chain * 1.5,
            chain * 10.0,
            "16 dependent multiplications a step take 32 to 80 cycles",
        )],
        "store_forward_failures" => vec![
            once(Loop::Blocked, 0.5, 8.0, "one load a step spans two in-flight stores"),
            never(Loop::Forwarded, "every load is forwarded"),
        ],
        "store_forwards" => vec![
            once(Loop::Forwarded, 0.5, 4.0, "one load a step is forwarded"),
            never(Loop::Registers, "nothing is loaded"),
        ],
        "address_aliases" => vec![
            once(Loop::Aliased, 0.1, 8.0, "one load a step aliases the store before it"),
            never(Loop::Unaliased, "no load aliases a store"),
        ],
        "split_loads" => vec![
            once(Loop::SplitLoads, 0.9, 4.0, "one load a step crosses a line"),
            never(Loop::InlineLoads, "no load crosses a line"),
        ],
        "split_stores" => vec![
            once(Loop::SplitStores, 0.9, 4.0, "one store a step crosses a line"),
            never(Loop::InlineStores, "no store crosses a line"),
        ],
        "store_queue_stalls" => vec![
            once(Loop::PageStores, 0.5, 2000.0, "stores across pages fill the store queue"),
            never(Loop::Registers, "nothing is stored"),
        ],
        _ => by_encoding(event),
    }
}

fn by_encoding(event: &Event) -> Vec<Expectation> {
    match event.encoding {
        Encoding::Software(Software::TaskClock) => {
            // Nanoseconds: 16 multiplications at 0.5 to 10 GHz, and a preemption besides.
            vec![once(Loop::Registers, 3.0, 1e6, "the thread was on a processor")]
        }
        Encoding::Software(Software::PageFaults) => {
            // The kernel may map several pages at one fault.
            vec![once(Loop::FreshPages, 1.0 / PAGES as f64, 2.0, "64 fresh pages were touched")]
        }
        _ => Vec::new(),
    }
}

/// Puts an open counter, alone in `set`, to its self-test.
pub(super) fn prove(set: &mut Set, event: &Event, environment: &Environment) -> Standing {
    let mut area = SelfTestArea::new();
    let expectations = expectations(event);
    if expectations.is_empty() {
        let counted = measure(set, Loop::Registers, STEPS, &mut area);
        return match counted.and_then(|counted| counted.count.err()) {
            Some(absence) => Standing::Absent(absence),
            None => Standing::Unproven("there is no self-test for an event of the user's".into()),
        };
    }
    for expectation in &expectations {
        let verdict = attempt(set, expectation, environment, &mut area);
        if let Some(absence) = verdict {
            return Standing::Absent(absence);
        }
    }
    Standing::Proven
}

fn attempt(
    set: &mut Set,
    expectation: &Expectation,
    environment: &Environment,
    area: &mut SelfTestArea,
) -> Option<crate::sample::Absence> {
    let mut last = None;
    let steps = if expectation.run == Loop::FreshPages { PAGES } else { STEPS };
    for _ in 0..ATTEMPTS {
        let counted = measure(set, expectation.run, steps, area)?;
        last = judge(&counted, expectation, steps, environment);
        last.as_ref()?;
    }
    last
}

fn judge(
    counted: &Counted,
    expectation: &Expectation,
    steps: u64,
    environment: &Environment,
) -> Option<crate::sample::Absence> {
    if let Err(absence) = &counted.count {
        return Some(absence.clone());
    }
    let total = counted.total()?;
    let per_step = total / steps as f64;
    if (expectation.low..=expectation.high).contains(&per_step) {
        return None;
    }
    let clause = expectation.clause;
    if total == 0.0 {
        return Some(absence::counts_nothing(clause, environment));
    }
    let found = format!("{per_step:.3} a step");
    Some(absence::counts_nonsense(&found, clause, environment))
}

/// `None` where the set has no counter, which its callers exclude.
fn measure(set: &mut Set, run: Loop, steps: u64, area: &mut SelfTestArea) -> Option<Counted> {
    // Once without counting: the first use of code and memory costs faults.
    if run != Loop::FreshPages {
        perform(run, 100, area);
    }
    set.start();
    perform(run, steps, area);
    set.stop();
    set.read().counters.into_iter().next()
}

fn perform(run: Loop, steps: u64, area: &mut SelfTestArea) {
    match run {
        Loop::Registers => kernels::dependent_chain(steps),
        Loop::Blocked => self_test::blocked_forwards(steps, area),
        Loop::Forwarded => self_test::successful_forwards(steps, area),
        Loop::Aliased => self_test::aliased_loads(steps, area),
        Loop::Unaliased => self_test::unaliased_loads(steps, area),
        Loop::SplitLoads => self_test::split_loads(steps, area),
        Loop::InlineLoads => self_test::inline_loads(steps, area),
        Loop::SplitStores => self_test::split_stores(steps, area),
        Loop::InlineStores => self_test::inline_stores(steps, area),
        Loop::PageStores => self_test::page_stores(steps, area),
        Loop::FreshPages => {
            // Where nothing can be mapped nothing is counted, which the judge says.
            crate::sys::fresh_pages::touch_fresh_pages(steps as usize);
        }
    }
}

/// Proves that a hardware breakpoint counts writes: exactly those of a loop that this makes.
pub(super) fn prove_breakpoint(context: &super::Context) -> (Event, Standing) {
    let mut area = SelfTestArea::new();
    let event = Event::writes(area.bytes().as_ptr() as u64 + 1, 1);
    let (mut set, absent) = Set::open(context, std::slice::from_ref(&event));
    if let Some((_, absence)) = absent.into_iter().next() {
        return (event, Standing::Absent(absence));
    }
    let expected = once(Loop::InlineStores, 1.0, 1.0, "one write a step hits the address");
    set.start();
    perform(expected.run, TRAPS, &mut area);
    set.stop();
    let counted = set.read().counters.into_iter().next();
    let judged = counted.and_then(|c| judge(&c, &expected, TRAPS, &context.environment));
    (event, judged.map_or(Standing::Proven, Standing::Absent))
}
