//! The positive control: a stall that this machine is known to have must be seen.
//!
//! *Hypothesis*: the block, the clock and the guard would show a store-to-load forwarding failure
//! if there were one. *Control*: accesses that most cores cannot forward (a load of more bytes than
//! any one store wrote, or one that begins inside a store) against a load of exactly what one store
//! wrote. *Cannot show*: anything about the code in question. Some cores forward from two stores;
//! where no case stalls, that is said, and a `clear` verdict then rests on the null controls alone.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::block::{Clock, iterations_for};
use crate::kernels::pairs::{Access, Arena, Form, Gap, PairError, Stores};

/// Rounds; in each the reference and every case once, in a fresh order.
const ROUNDS: usize = 15;
/// A case stalls when it is slower than the reference in all rounds but one at most: by chance
/// alone that happens in 16 of 2^15 tries.
const SLOWER_ROUNDS: usize = ROUNDS - 1;
/// … and by this much, the smallest effect that counts anywhere.
const LEAST_PERCENT: f64 = 2.0;
/// Where the accesses lie in the arena: not near the end of a line.
const AT: usize = 256;

/// One access pattern against the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SensitivityCase {
    /// What is stored and loaded.
    pub stall: String,
    /// Median, ns an iteration.
    pub ns: f64,
    /// Above the reference, in percent.
    pub percent_above_reference: f64,
    /// Rounds in which it was slower than the reference.
    pub slower_rounds: u32,
    /// Whether that is a stall.
    pub stalls: bool,
}

/// What the positive control found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// A 16-byte store and a 16-byte load of the same bytes: median, ns an iteration.
    pub against_ns: f64,
    /// Rounds.
    pub rounds: u32,
    /// The cases, the largest stall first.
    pub cases: Vec<SensitivityCase>,
    /// Whether any of them stalls.
    pub passed: bool,
}

/// What is stored, what is loaded, and where the load begins above the store.
const CASES: [(&str, Stores, u8, usize); 4] = [
    ("two 8-byte stores, one 16-byte load", Stores::pair(8, 8, 8), 16, 0),
    ("a 4-byte store, an 8-byte load", Stores::single(4), 8, 0),
    (
        "an 8-byte store and a 4-byte store over its last byte, an 8-byte load",
        Stores::pair(8, 4, 7),
        8,
        0,
    ),
    ("a 16-byte store, an 8-byte load from its fifth byte", Stores::single(16), 8, 5),
];

fn access(stores: Stores, load_bytes: u8, above: usize) -> Access {
    Access {
        stores,
        store_at: AT,
        load_bytes,
        load_at: AT + above,
        form: Form::Chained,
        gap: Gap::None,
        older: 0,
    }
}

/// Measures the control on the calling thread; takes some 15 ms.
///
/// # Errors
/// When a width has no kernel on this machine.
pub fn measure(seed: u64) -> Result<Sensitivity, PairError> {
    let mut arena = Arena::new(1);
    let reference = access(Stores::single(16), 16, 0);
    let all: Vec<Access> = std::iter::once(reference)
        .chain(CASES.iter().map(|&(_, stores, load, above)| access(stores, load, above)))
        .collect();
    let target = Clock::measure().shortest_block();
    let mut time = |access: &Access, iterations: u64| {
        let start = Instant::now();
        arena.run(access, iterations)?;
        Ok::<_, PairError>(start.elapsed())
    };
    let mut iterations = Vec::new();
    for access in &all {
        iterations.push(iterations_for(target, |n| time(access, n))?);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut figures = vec![Vec::with_capacity(ROUNDS); all.len()];
    for _ in 0..ROUNDS {
        let mut order: Vec<usize> = (0..all.len()).collect();
        random.shuffle(&mut order);
        for which in order {
            let elapsed = time(&all[which], iterations[which])?;
            figures[which].push(elapsed.as_secs_f64() * 1e9 / iterations[which] as f64);
        }
    }
    Ok(conclude(&figures[0], &figures[1..]))
}

/// From figures by round to what they show; `cases` in the order of [`CASES`].
fn conclude(reference: &[f64], cases: &[Vec<f64>]) -> Sensitivity {
    let against_ns = median(reference);
    let mut cases: Vec<SensitivityCase> = CASES
        .iter()
        .zip(cases)
        .map(|(&(stall, ..), figures)| {
            let slower = figures.iter().zip(reference).filter(|(case, base)| case > base).count();
            let ns = median(figures);
            let percent_above_reference = (ns / against_ns - 1.0) * 100.0;
            SensitivityCase {
                stall: stall.to_owned(),
                ns,
                percent_above_reference,
                slower_rounds: slower as u32,
                stalls: slower >= SLOWER_ROUNDS && percent_above_reference > LEAST_PERCENT,
            }
        })
        .collect();
    cases.sort_by(|a, b| b.percent_above_reference.total_cmp(&a.percent_above_reference));
    let passed = cases.iter().any(|case| case.stalls);
    Sensitivity { against_ns, rounds: reference.len() as u32, cases, passed }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    // An odd number of rounds: the middle one.
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(ns: f64) -> Vec<f64> {
        (0..ROUNDS).map(|round| ns * (1.0 + 0.001 * (round % 3) as f64)).collect()
    }

    #[test]
    fn a_slow_case_is_a_stall_and_comes_first() {
        let found = conclude(&level(4.0), &[level(4.0), level(6.5), level(4.0), level(4.01)]);
        assert!(found.passed);
        assert_eq!(found.cases[0].stall, CASES[1].0);
        assert_eq!(found.cases.iter().filter(|case| case.stalls).count(), 1);
        assert!((found.cases[0].percent_above_reference - 62.5).abs() < 0.1);
    }

    #[test]
    fn noise_is_no_stall() {
        let mut noisy = level(4.0);
        noisy.iter_mut().step_by(2).for_each(|ns| *ns *= 2.0);
        let found = conclude(&level(4.0), &[noisy, level(4.0), level(4.0), level(4.02)]);
        assert!(!found.passed, "slow in half of the rounds only: {found:?}");
    }

    #[test]
    fn every_case_runs_here() -> Result<(), PairError> {
        let found = measure(1)?;
        assert_eq!(found.cases.len(), CASES.len());
        assert!(found.against_ns > 0.0 && found.cases.iter().all(|case| case.ns > 0.0));
        Ok(())
    }
}
