//! What the counters say beside a verdict: whether the bands run the same instructions, and what
//! else differs between them.
//!
//! A count never stands without the time beside it: where a count moves and the time does not, the
//! verdict says so in as many words.

use std::collections::BTreeMap;

use super::robust;
use super::{Finding, InstructionSource, InstructionsPerOp, SeriesKey, Verdict, VerdictDocument};
use crate::sample::{Sample, Status};

/// Retired instructions are flat up to this, in percent of the smallest figure, or up to one
/// instruction: interrupts add a few to a block, and on Zen so does speculative lock elision.
pub const FLAT_PERCENT: f64 = 0.1;

/// A count moves when its largest figure is above its smallest by a tenth and by a tenth of an
/// event an operation.
const MOVES: f64 = 0.1;

/// Adds to every verdict what the counters of its samples say; nothing where there are none.
pub fn annotate(document: &mut VerdictDocument, samples: &[Sample]) {
    for verdict in &mut document.verdicts {
        let own = |sample: &&Sample| {
            sample.status == Status::Ok
                && sample.disturbed != Some(true)
                && !sample.events.is_empty()
                && belongs(&SeriesKey::of(sample), verdict)
        };
        let samples: Vec<&Sample> = samples.iter().filter(own).collect();
        annotate_one(verdict, &samples);
    }
}

fn belongs(key: &SeriesKey, verdict: &Verdict) -> bool {
    key.probe == verdict.probe
        && key.workload == verdict.workload
        && key.len == verdict.len
        && key.arm == verdict.arm
        && key.routine == verdict.routine
        && key.placement == verdict.placement
        && key.grid == verdict.grid
        && key.params == verdict.params
}

fn annotate_one(verdict: &mut Verdict, samples: &[&Sample]) {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in samples.iter().flat_map(|sample| &sample.events) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let figures: Vec<(&Sample, f64)> = samples
            .iter()
            .filter_map(|sample| {
                let (_, figure) = sample.events.iter().find(|(event, _)| event == name)?;
                figure.map(|figure| (*sample, figure))
            })
            .collect();
        if figures.is_empty() {
            continue;
        }
        let bands = by_band(verdict, &figures);
        if name == "instructions" {
            let all: Vec<f64> = figures.iter().map(|(_, figure)| *figure).collect();
            let value = median(all);
            verdict.instructions_per_op =
                Some(InstructionsPerOp { value, source: InstructionSource::Pmu });
            verdict.reasons.extend(instructions(&bands));
        } else {
            verdict.reasons.extend(sentence(name, &bands, &figures, verdict.verdict));
        }
    }
}

/// The median of each band that has figures, from the fastest band to the slowest.
fn by_band(verdict: &Verdict, figures: &[(&Sample, f64)]) -> Vec<f64> {
    let one_band = verdict.bands.len() == 1;
    let of_band = |band: &super::Band| -> Option<f64> {
        let own: Vec<f64> = figures
            .iter()
            .filter(|(sample, _)| one_band || band.placements.contains(&sample.placement_value))
            .map(|(_, figure)| *figure)
            .collect();
        (!own.is_empty()).then(|| median(own))
    };
    verdict.bands.iter().filter_map(of_band).collect()
}

fn median(mut figures: Vec<f64>) -> f64 {
    robust::median(&mut figures)
}

fn range(figures: &[f64]) -> (f64, f64) {
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

fn instructions(bands: &[f64]) -> Option<String> {
    let (low, high) = range(bands);
    if bands.len() < 2 || low <= 0.0 {
        return None;
    }
    let percent = (high / low - 1.0) * 100.0;
    Some(if percent <= FLAT_PERCENT || high - low <= 1.0 {
        format!(
            "retired instructions are flat across the bands: {low:.1} to {high:.1} an operation \
             ({percent:.2} %)"
        )
    } else {
        format!(
            "the bands do not run the same instructions: {low:.1} to {high:.1} an operation \
             ({percent:.1} %); compare placements with equal instructions before blaming memory"
        )
    })
}

fn sentence(
    name: &str,
    bands: &[f64],
    figures: &[(&Sample, f64)],
    finding: Finding,
) -> Option<String> {
    if bands.len() > 1 {
        let list: Vec<String> = bands.iter().map(|figure| format!("{figure:.3}")).collect();
        return Some(format!(
            "{name}: {} an operation, from the fastest band to the slowest",
            list.join(", ")
        ));
    }
    let mut placements: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (sample, figure) in figures {
        placements.entry(sample.placement_value).or_default().push(*figure);
    }
    let medians: Vec<f64> = placements.into_values().map(median).collect();
    let (low, high) = range(&medians);
    let moves = high - low > MOVES && high > low * (1.0 + MOVES);
    // Cycles are the time.
    (finding == Finding::Clear && moves && name != "cycles").then(|| {
        format!(
            "{name} moves from {low:.3} to {high:.3} an operation between placements while the \
             time does not: a count is not a cost"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Options, judge_all};
    use crate::record::series_of;
    use crate::sample::Placement;

    /// Twelve rounds in three launches over four residues, at `ns` and with `events` of each.
    fn run(ns: [f64; 4], name: &str, events: [f64; 4]) -> Vec<Sample> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut samples = Vec::new();
        for launch in 0..3 {
            let mut order = 0;
            for round in 0..12 {
                let mut shifts = [0usize, 1, 2, 3];
                random.shuffle(&mut shifts);
                for shift in shifts {
                    let value = 16 * shift as i64;
                    let mut sample =
                        Sample::new("phase", "blake3", Placement::Shift, value, launch, round);
                    sample.order = Some(order);
                    sample.buf = Some(0x7fff_0000_0000 + value as u64);
                    sample.ns_per_op = Some(ns[shift] * (1.0 + 0.002 * (random.f64() - 0.5)));
                    sample.events =
                        vec![(name.to_owned(), Some(events[shift])), ("gone".into(), None)];
                    samples.push(sample);
                    order += 1;
                }
            }
        }
        samples
    }

    fn judged(samples: &[Sample]) -> Verdict {
        let options = Options { permutations: 199, ..Options::default() };
        let mut document = judge_all(&series_of(samples), &options);
        annotate(&mut document, samples);
        document.verdicts.remove(0)
    }

    #[test]
    fn a_few_instructions_more_are_flat_and_a_hundred_are_not() {
        let ns = [59.0, 79.7, 59.3, 86.2];
        let verdict = judged(&run(ns, "instructions", [496.0, 496.1, 496.0, 496.2]));
        let flat = "retired instructions are flat across the bands";
        assert!(verdict.reasons.iter().any(|r| r.starts_with(flat)), "{:?}", verdict.reasons);
        let per_op = verdict.instructions_per_op.expect("was counted");
        assert_eq!(per_op.source, InstructionSource::Pmu);
        assert!((per_op.value - 496.0).abs() < 0.2);
        let verdict = judged(&run(ns, "instructions", [496.0, 596.0, 496.0, 596.0]));
        let other = "the bands do not run the same instructions";
        assert!(verdict.reasons.iter().any(|r| r.starts_with(other)), "{:?}", verdict.reasons);
    }

    #[test]
    fn a_count_that_moves_without_the_time_is_called_no_cost() {
        let verdict = judged(&run([59.0; 4], "store_forward_failures", [2.0, 4.0, 2.0, 5.0]));
        assert_eq!(verdict.verdict, Finding::Clear);
        let sentence = verdict.reasons.iter().find(|r| r.contains("a count is not a cost"));
        assert!(
            sentence.is_some_and(|s| s.contains("from 2.000 to 5.000")),
            "{:?}",
            verdict.reasons
        );
    }

    #[test]
    fn flat_counts_and_absent_ones_say_nothing() {
        let verdict = judged(&run([59.0; 4], "store_forward_failures", [2.0; 4]));
        assert!(!verdict.reasons.iter().any(|r| r.contains("store_forward") || r.contains("gone")));
        assert_eq!(verdict.instructions_per_op, None);
    }
}
