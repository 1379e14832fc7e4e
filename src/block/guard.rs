//! What watches over a block: two short loops before and after it, and the scheduler's own account.
//!
//! A dependent chain gives the clock. It is nearly blind to a sibling hardware thread, which takes
//! issue slots and not latency; a loop that saturates issue feels it at once. The block's own time
//! never decides whether it was disturbed: that would select the fast rows.

use std::collections::VecDeque;
use std::time::Instant;

use crate::kernels::{dependent_chain, saturating_loop};

/// A block is disturbed when either loop is this much above the run's usual best.
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
}

/// How often each level was read, in bins of half a percent.
///
/// The very best reading is no standard: a processor that boosts for a few milliseconds sets it, and
/// every block at its usual clock would be disturbed. The standard is the range of 4 % that holds
/// most of the readings, the faster one of equals; what lies above it is disturbed, and so is what
/// lies below: it ran at another clock than the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    /// Bins from `first` on.
    counts: VecDeque<u32>,
    first: i32,
}

impl Levels {
    const BIN: f64 = 1.005;

    /// The bin of a reading, in ns.
    pub fn bin(ns: f64) -> i32 {
        (ns.max(f64::MIN_POSITIVE).ln() / Self::BIN.ln()).floor() as i32
    }

    /// Counts a reading.
    pub fn add(&mut self, ns: f64, times: u32) {
        let bin = Self::bin(ns);
        // A reading a thousand times off says nothing of the standard, and would cost memory.
        let room = (1000f64.ln() / Self::BIN.ln()) as i32;
        if self.counts.is_empty() {
            self.first = bin;
        } else if (bin - self.first).abs() > room {
            return;
        }
        while bin < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let index = (bin - self.first) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += times;
    }

    /// Bins of the range that holds most readings, from its lowest occupied one on; `None` before
    /// any reading.
    pub fn standard(&self) -> Option<std::ops::RangeInclusive<i32>> {
        let width = (DISTURBED_ABOVE.ln() / Self::BIN.ln()).floor() as usize;
        let held = |start: usize| -> u32 { self.counts.iter().skip(start).take(width + 1).sum() };
        let occupied = (0..self.counts.len()).filter(|&start| self.counts[start] > 0);
        let best = occupied.fold(None, |best: Option<(usize, u32)>, start| {
            let count = held(start);
            if best.is_none_or(|(_, most)| count > most) { Some((start, count)) } else { best }
        });
        best.map(|(start, _)| {
            let start = self.first + start as i32;
            start..=start + width as i32
        })
    }

    fn is_usual(&self, ns: f64) -> bool {
        self.standard().is_none_or(|standard| standard.contains(&Self::bin(ns)))
    }
}

/// The usual readings of a run so far, against which every block is held.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    chain: Levels,
    saturating: Levels,
}

impl Guard {
    /// Reads the guard `readings` times, before anything is timed. `known` is the standard of
    /// earlier launches of the same arm, which counts as much.
    pub fn calibrate(readings: usize, known: Option<GuardReading>) -> Self {
        let mut guard = Guard { chain: Levels::default(), saturating: Levels::default() };
        if let Some(known) = known {
            guard.learn(known, u32::try_from(readings.max(1)).unwrap_or(u32::MAX));
        }
        (0..readings).for_each(|_| guard.learn(GuardReading::take(), 1));
        guard
    }

    fn learn(&mut self, reading: GuardReading, times: u32) {
        self.chain.add(reading.chain_ns, times);
        self.saturating.add(reading.saturating_ns, times);
    }

    /// The lower ends of what is usual so far; infinite before any reading.
    pub fn best(&self) -> GuardReading {
        let lowest = |levels: &Levels| {
            levels.standard().map_or(f64::INFINITY, |bins| {
                // The middle of the bin.
                Levels::BIN.powf(f64::from(*bins.start()) + 0.5)
            })
        };
        GuardReading { chain_ns: lowest(&self.chain), saturating_ns: lowest(&self.saturating) }
    }

    /// Judges the readings before and after a block, and learns from them. Returns the chain's mean
    /// (`guard_ns`) and whether the block was disturbed.
    pub fn judge(&mut self, before: GuardReading, after: GuardReading) -> (f64, bool) {
        for reading in [before, after] {
            self.learn(reading, 1);
        }
        let usual = [before, after].iter().all(|reading| {
            self.chain.is_usual(reading.chain_ns) && self.saturating.is_usual(reading.saturating_ns)
        });
        ((before.chain_ns + after.chain_ns) / 2.0, !usual)
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
        Guard::calibrate(0, None).after(&[reading(10.0, 5.0); 100])
    }

    impl Guard {
        fn after(mut self, readings: &[GuardReading]) -> Self {
            readings.iter().for_each(|&reading| self.learn(reading, 1));
            self
        }
    }

    #[test]
    fn either_loop_alone_marks_a_block() {
        assert_eq!(guard().judge(reading(10.0, 5.0), reading(10.2, 5.1)), (10.1, false));
        assert!(guard().judge(reading(10.0, 5.0), reading(10.6, 5.0)).1, "the chain");
        assert!(guard().judge(reading(10.0, 8.75), reading(10.0, 5.0)).1, "a sibling's load");
    }

    #[test]
    fn a_short_boost_sets_no_standard() {
        let mut guard = guard().after(&[reading(8.5, 4.2); 20]);
        assert!(!guard.judge(reading(10.0, 5.0), reading(10.0, 5.0)).1, "the usual clock");
        assert!(guard.judge(reading(8.5, 4.2), reading(8.5, 4.2)).1, "boosted");
        let best = guard.best();
        assert!((9.9..10.1).contains(&best.chain_ns) && (4.95..5.05).contains(&best.saturating_ns));
    }

    #[test]
    fn a_lasting_better_clock_becomes_the_standard() {
        let mut guard = guard().after(&[reading(8.5, 4.2); 110]);
        assert!(guard.judge(reading(10.0, 5.0), reading(10.0, 5.0)).1);
        assert!(!guard.judge(reading(8.5, 4.2), reading(8.5, 4.2)).1);
    }

    #[test]
    fn absurd_readings_are_left_out() {
        let mut guard = guard().after(&[reading(1e9, 1e-9), reading(0.0, f64::INFINITY)]);
        assert!(!guard.judge(reading(10.0, 5.0), reading(10.0, 5.0)).1);
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
