//! What watches over a block: two short loops before and after it, and the scheduler's own account.
//!
//! A dependent chain gives the clock. It is nearly blind to a sibling hardware thread, which takes
//! issue slots and not latency; a loop that saturates issue feels it at once. The block's own time
//! never decides whether it was disturbed: that would select the fast rows.

use std::time::Instant;

use crate::kernels::{dependent_chain, saturating_loop};

/// A block is disturbed when either loop is this much above the run's best.
pub const DISTURBED_ABOVE: f64 = 1.04;

/// Steps of the two loops: some 5 and 2 µs, a thousandth of the way to hiding an interrupt.
const CHAIN_STEPS: u64 = 256;
const SATURATING_STEPS: u64 = 512;

/// A reading is the best of as many runs of a loop. What disturbs a block (a sibling's load, a
/// lower clock) slows all of them; so short a loop by itself also comes out a quarter slower one
/// time in eight on a quiet guest, which says nothing about the block beside it.
const REPEATS: usize = 3;

/// One reading of both loops, ns a step.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GuardReading {
    /// The dependent chain: sixteen dependent multiplications a step.
    pub chain_ns: f64,
    /// The issue-saturating loop: 32 independent additions a step.
    pub saturating_ns: f64,
}

impl GuardReading {
    /// Runs both loops.
    pub fn take() -> Self {
        let time = |run: fn(u64), steps: u64| {
            let once = || {
                let start = Instant::now();
                run(steps);
                start.elapsed().as_secs_f64() * 1e9 / steps as f64
            };
            std::iter::repeat_with(once).take(REPEATS).fold(f64::INFINITY, f64::min)
        };
        GuardReading {
            chain_ns: time(dependent_chain, CHAIN_STEPS),
            saturating_ns: time(saturating_loop, SATURATING_STEPS),
        }
    }

    fn combine(self, other: Self, pick: fn(f64, f64) -> f64) -> Self {
        GuardReading {
            chain_ns: pick(self.chain_ns, other.chain_ns),
            saturating_ns: pick(self.saturating_ns, other.saturating_ns),
        }
    }
}

/// The best reading of a run so far, against which every block is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    best: GuardReading,
}

impl Guard {
    /// Finds the best over `readings` (at least one), before anything is timed. `known` is the best
    /// of earlier launches of the same arm.
    pub fn calibrate(readings: usize, known: Option<GuardReading>) -> Self {
        let first = known.unwrap_or_else(GuardReading::take);
        let best =
            (0..readings).fold(first, |best, _| best.combine(GuardReading::take(), f64::min));
        Guard { best }
    }

    /// The best so far.
    pub fn best(&self) -> GuardReading {
        self.best
    }

    /// Judges the readings before and after a block, and learns from them. Returns the chain's mean
    /// (`guard_ns`) and whether the block was disturbed.
    pub fn judge(&mut self, before: GuardReading, after: GuardReading) -> (f64, bool) {
        self.best = self.best.combine(before, f64::min).combine(after, f64::min);
        let worst = before.combine(after, f64::max);
        let disturbed = worst.chain_ns > self.best.chain_ns * DISTURBED_ABOVE
            || worst.saturating_ns > self.best.saturating_ns * DISTURBED_ABOVE;
        ((before.chain_ns + after.chain_ns) / 2.0, disturbed)
    }
}

/// What the scheduler accounts to this thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    wall: Instant,
    cpu_seconds: Option<f64>,
    involuntary: Option<i64>,
}

impl Occupancy {
    /// A block that lost more of its wall time than this was switched out.
    const LOST: f64 = 0.02;

    /// Reads the account now.
    #[cfg(target_os = "linux")]
    pub fn now() -> Self {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::time::{ClockId, clock_gettime};
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok();
        Occupancy {
            involuntary: getrusage(UsageWho::RUSAGE_THREAD)
                .ok()
                .map(|usage| usage.involuntary_context_switches()),
            cpu_seconds: cpu.map(|time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9),
            wall: Instant::now(),
        }
    }

    /// Only the wall clock is known here.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Self {
        Occupancy { involuntary: None, cpu_seconds: None, wall: Instant::now() }
    }

    /// Whether the thread was switched out between `self` and `later`.
    pub fn switched_out(&self, later: &Occupancy) -> bool {
        let switches = match (self.involuntary, later.involuntary) {
            (Some(before), Some(after)) => after > before,
            _ => false,
        };
        let lost = match (self.cpu_seconds, later.cpu_seconds) {
            (Some(before), Some(after)) => {
                let wall = later.wall.duration_since(self.wall).as_secs_f64();
                wall - (after - before) > wall * Self::LOST
            }
            _ => false,
        };
        switches || lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(chain_ns: f64, saturating_ns: f64) -> GuardReading {
        GuardReading { chain_ns, saturating_ns }
    }

    fn guard() -> Guard {
        Guard { best: reading(10.0, 5.0) }
    }

    #[test]
    fn either_loop_alone_marks_a_block() {
        assert_eq!(guard().judge(reading(10.0, 5.0), reading(10.2, 5.1)), (10.1, false));
        assert!(guard().judge(reading(10.0, 5.0), reading(10.5, 5.0)).1, "the chain");
        assert!(guard().judge(reading(10.0, 8.75), reading(10.0, 5.0)).1, "a sibling's load");
    }

    #[test]
    fn a_better_reading_becomes_the_best() {
        let mut guard = guard();
        guard.judge(reading(9.0, 4.0), reading(9.0, 4.0));
        assert_eq!(guard.best(), reading(9.0, 4.0));
        assert!(guard.judge(reading(10.0, 4.0), reading(10.0, 4.0)).1);
    }

    #[test]
    fn the_loops_take_time() {
        let reading = GuardReading::take();
        assert!(reading.chain_ns > 0.0 && reading.saturating_ns > 0.0, "{reading:?}");
    }

    #[test]
    fn a_thread_that_slept_was_switched_out() {
        let before = Occupancy::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = Occupancy::now();
        if after.cpu_seconds.is_none() {
            eprintln!("skipped: no thread clock here");
            return;
        }
        assert!(before.switched_out(&after));
    }
}
