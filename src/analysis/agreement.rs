//! Do two experiments that move the stack in different ways say the same of one workload?

use serde::{Deserialize, Serialize};

use super::{Finding, Verdict};

/// What two verdicts on one workload have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// The workload.
    pub workload: String,
    /// The arm.
    pub arm: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// Whether they agree; `null` where one of them is not settled, or nothing can be compared.
    pub agree: Option<bool>,
    /// In a sentence.
    pub says: String,
}

/// Compares what the padding sweep and the trampoline's grid found: both the same conclusion, and,
/// where both are affected, slow at the same residues modulo 64.
pub fn agreement(sweep: &Verdict, grid: &Verdict) -> Agreement {
    let (agree, says) = compare(sweep, grid);
    Agreement {
        workload: sweep.workload.clone(),
        arm: sweep.arm.clone(),
        len: sweep.len,
        agree,
        says,
    }
}

fn compare(sweep: &Verdict, grid: &Verdict) -> (Option<bool>, String) {
    let names = (sweep.verdict, grid.verdict);
    match names {
        (Finding::Inconclusive, _) | (_, Finding::Inconclusive) => {
            (None, format!("sweep {} and trampoline {}: not comparable", names.0, names.1))
        }
        (Finding::Affected, Finding::Affected) => same_residues(sweep, grid),
        (Finding::Clear, Finding::Clear) => {
            (Some(true), "sweep and trampoline are both clear".to_owned())
        }
        _ => (
            Some(false),
            format!(
                "sweep {} but trampoline {}: they visited other residues or frames; compare \
                 `residues_visited`",
                names.0, names.1
            ),
        ),
    }
}

/// Which residues modulo 64 each calls slow.
fn same_residues(sweep: &Verdict, grid: &Verdict) -> (Option<bool>, String) {
    let slow = |verdict: &Verdict| {
        (verdict.period_bytes.unwrap_or(64) == 64).then(|| {
            let of = |fast: bool| {
                let bands = verdict.bands.iter().enumerate();
                let kept = bands.filter(move |(at, _)| (*at == 0) == fast);
                kept.flat_map(|(_, band)| band.residues.iter().copied()).collect::<Vec<u64>>()
            };
            (of(true), of(false))
        })
    };
    let (Some((fast_a, slow_a)), Some((fast_b, slow_b))) = (slow(sweep), slow(grid)) else {
        return (
            None,
            "sweep and trampoline are both affected, by periods that cannot be compared".to_owned(),
        );
    };
    let conflict: Vec<String> = fast_a
        .iter()
        .filter(|residue| slow_b.contains(residue))
        .chain(slow_a.iter().filter(|residue| fast_b.contains(residue)))
        .map(u64::to_string)
        .collect();
    let common = fast_a.iter().chain(&slow_a).any(|r| fast_b.contains(r) || slow_b.contains(r));
    match (conflict.is_empty(), common) {
        (_, false) => (
            None,
            "sweep and trampoline are both affected, at residues that have none in common"
                .to_owned(),
        ),
        (true, true) => {
            (Some(true), "sweep and trampoline are slow at the same residues".to_owned())
        }
        (false, true) => (
            Some(false),
            format!("sweep and trampoline differ at the residues {}", conflict.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::simulate::{observation, series_of};
    use crate::analysis::{Observation, Options, judge};

    /// A grid of 16 shifts that is slow where `slow` says.
    fn grid(slow: fn(u64) -> bool) -> Verdict {
        let mut rng = fastrand::Rng::with_seed(2);
        let mut rows = Vec::new();
        for launch in 0..3 {
            for round in 0..6 {
                let mut shifts: Vec<i64> = (0..16).map(|shift| 16 * shift).collect();
                rng.shuffle(&mut shifts);
                for (order, shift) in shifts.into_iter().enumerate() {
                    let buf = 0x7fff_0000_u64 - shift as u64;
                    let ns = if slow(buf) { 80.0 } else { 60.0 } * (1.0 + 0.002 * rng.f64());
                    rows.push(Observation {
                        buf: Some(buf),
                        order: Some(order as u32),
                        ..observation(launch, round, shift, ns)
                    });
                }
            }
        }
        judge(&series_of(rows), &Options::default())
    }

    #[test]
    fn slow_at_the_same_residues_agrees_and_at_others_does_not() {
        let one = grid(|buf| buf & 31 != 0);
        assert_eq!(agreement(&one, &grid(|buf| buf & 31 != 0)).agree, Some(true));
        let other = agreement(&one, &grid(|buf| buf & 31 == 0));
        assert_eq!(other.agree, Some(false));
        assert!(other.says.contains("0, 32, 16, 48"), "{}", other.says);
        let clear = grid(|_| false);
        assert_eq!(agreement(&one, &clear).agree, Some(false));
        assert_eq!(agreement(&clear, &clear).agree, Some(true));
        let unsettled = Verdict { verdict: Finding::Inconclusive, ..clear.clone() };
        assert_eq!(agreement(&one, &unsettled).agree, None);
    }
}
