//! Retired instructions without a counter: one operation stepped at the placements of a verdict.
//!
//! *Hypothesis*: bands come from how instructions execute, not from how many there are. *Control*:
//! the count is exact and taken at every band. *Cannot show*: anything of time; a stepped operation
//! takes a thousand times longer.

use std::str::FromStr;

use stack_trampoline::Alignment;

use crate::Failure;
use crate::analysis::{InstructionSource, InstructionsPerOp, Verdict, VerdictDocument};
use crate::block::Place;
use crate::placement::line_shifts;
use crate::sample::Placement;
use crate::trace::{TraceError, count_instructions};
use crate::workloads::{Name, SinkKind, Spec, Variant};

/// Steps of one operation beyond which it is not counted: a few seconds.
const LONGEST: u64 = 100_000;
/// Steps for one verdict in all; a long operation is counted at fewer placements.
const BUDGET: u64 = 150_000;

/// Counts the instructions of one operation for every verdict of a built-in workload over shifts
/// that has no count yet, at up to `most` of its placements, and fills `instructions_per_op` in.
/// Returns why nothing could be counted, where the system forbids it.
pub fn count_into(document: &mut VerdictDocument, most: usize) -> Option<Failure> {
    for verdict in &mut document.verdicts {
        let Some((spec, alignment)) = spec_of(verdict) else { continue };
        if verdict.instructions_per_op.is_some() {
            continue;
        }
        match counts(&spec, alignment, &shifts_of(verdict, most)) {
            Ok(counts) => conclude(verdict, &counts),
            Err(TraceError::TooLong(steps)) => verdict.reasons.push(format!(
                "retired instructions were not counted: an operation takes more than {steps} \
                 steps; use a smaller length"
            )),
            Err(error) => return Some(error.at("counting retired instructions")),
        }
    }
    None
}

/// The workload that a verdict is about, where it is one of ours as it stands.
fn spec_of(verdict: &Verdict) -> Option<(Spec, Alignment)> {
    if verdict.placement != Placement::Shift {
        return None;
    }
    let name = Name::from_str(&verdict.workload).ok()?;
    let params = &verdict.params;
    let sink = params.get("sink").map_or(Some(SinkKind::BlackBox), |s| s.parse().ok())?;
    let frame_offset = params.get("frame_offset").map_or(Some(0), |offset| offset.parse().ok())?;
    let alignment = params.get("align").map_or(Some(Alignment::Page), |a| a.parse().ok())?;
    let len = verdict.len.unwrap_or(0) as usize;
    let spec = Spec { sink, frame_offset, ..Spec::new(name, len) };
    let spec = spec.variant(Variant::from_str(&verdict.arm).ok()?);
    spec.check().ok().map(|()| (spec, alignment))
}

/// Placements of every band, the slow ones first, and the line grid's where there are none.
fn shifts_of(verdict: &Verdict, most: usize) -> Vec<usize> {
    let each = most.div_ceil(verdict.bands.len().max(1));
    let mut shifts: Vec<usize> = Vec::new();
    for band in verdict.bands.iter().rev() {
        let step = band.placements.len().div_ceil(each).max(1);
        shifts
            .extend(band.placements.iter().step_by(step).filter_map(|&s| usize::try_from(s).ok()));
    }
    if shifts.is_empty() {
        shifts = line_shifts();
    }
    shifts.truncate(most.max(1));
    shifts
}

fn counts(spec: &Spec, alignment: Alignment, shifts: &[usize]) -> Result<Vec<u64>, TraceError> {
    let places: Vec<Place> = shifts.iter().map(|shift| Place::Shifted(alignment, *shift)).collect();
    let first = count_instructions(spec, &places[..1], LONGEST)?[0];
    // Each placement takes one operation and then two.
    let affordable = (BUDGET / (3 * first.steps.max(1))).max(1) as usize;
    let rest = &places[1..places.len().min(affordable).max(1)];
    let rest = if rest.is_empty() { Vec::new() } else { count_instructions(spec, rest, LONGEST)? };
    Ok(std::iter::once(first).chain(rest).map(|count| count.instructions).collect())
}

fn conclude(verdict: &mut Verdict, counts: &[u64]) {
    let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else { return };
    let value = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    verdict.instructions_per_op =
        Some(InstructionsPerOp { value, source: InstructionSource::SingleStep });
    if least != most {
        verdict.reasons.push(format!(
            "retired instructions differ between placements, {least} to {most} an operation: part \
             of the difference may be a difference in work"
        ));
    } else if verdict.bands.len() > 1 {
        verdict.reasons.push(format!(
            "the same {least} instructions retire at each of {} placements counted in all bands: \
             the bands are not a difference in work",
            counts.len()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Band, Finding};
    use crate::sample::{Grid, Params, Role};

    fn verdict(workload: &str, bands: Vec<Band>) -> Verdict {
        Verdict {
            probe: "phase".to_owned(),
            workload: workload.to_owned(),
            role: Role::Exhibit,
            len: Some(64),
            arm: "default".to_owned(),
            routine: None,
            placement: Placement::Shift,
            grid: Some(Grid::Line),
            params: Params::new(),
            verdict: Finding::Affected,
            effect_percent: None,
            effect_low_percent: None,
            effect_high_percent: None,
            min_effect_percent: 2.0,
            bands,
            period_bytes: None,
            residues_visited: Vec::new(),
            rules: Vec::new(),
            interval_method: String::new(),
            instructions_per_op: None,
            unit: "ns".to_owned(),
            launches: None,
            reasons: Vec::new(),
        }
    }

    fn band(placements: &[i64]) -> Band {
        Band {
            ns_per_op: 1.0,
            percent_above_fast: 0.0,
            residues: Vec::new(),
            placements: placements.to_vec(),
        }
    }

    #[test]
    fn bands_of_equal_work_are_said_to_be_so() {
        let bands = vec![band(&[0, 32, 64]), band(&[16, 48])];
        let mut document = VerdictDocument::new(vec![verdict("copychain", bands)]);
        if let Some(why) = count_into(&mut document, 8) {
            eprintln!("skipped: {why}");
            return;
        }
        let verdict = &document.verdicts[0];
        let counted = verdict.instructions_per_op.expect("counted");
        assert_eq!(counted.source, InstructionSource::SingleStep);
        assert!(counted.value > 10.0 && counted.value.fract() == 0.0, "{counted:?}");
        assert!(verdict.reasons[0].contains("at each of 5 placements"), "{:?}", verdict.reasons);
    }

    #[test]
    fn foreign_code_and_what_was_counted_already_are_left_alone() {
        let counted = InstructionsPerOp { value: 7.0, source: InstructionSource::Pmu };
        let mut known = verdict("copychain", Vec::new());
        known.instructions_per_op = Some(counted);
        let mut document = VerdictDocument::new(vec![known, verdict("closure", Vec::new())]);
        assert_eq!(count_into(&mut document, 4), None);
        assert_eq!(document.verdicts[0].instructions_per_op, Some(counted));
        assert_eq!(document.verdicts[1].instructions_per_op, None);
    }

    #[test]
    fn every_band_is_visited_however_few_placements_there_may_be() {
        let bands = vec![band(&(0..100).map(|i| i * 16).collect::<Vec<_>>()), band(&[1600])];
        let shifts = shifts_of(&verdict("blake3", bands), 4);
        assert_eq!(shifts.len(), 3);
        assert!(shifts.contains(&1600) && shifts.contains(&0));
    }
}
