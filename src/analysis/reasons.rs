//! The sentences that qualify a verdict. Each warning ends in its remedy.

use super::Series;
use super::cells::{Basis, Cells, Unit};
use super::confounding::Confounding;
use super::periods::{Classes, LINE};
use super::simultaneous::Interval;
use super::verdict::{Finding, LaunchException, Verdict};
use crate::sample::Role;

/// What the sentences are about.
pub(crate) struct Evidence<'a> {
    pub series: &'a Series,
    pub cells: &'a Cells,
    pub classes: &'a Classes,
    pub interval: Option<&'a Interval>,
}

/// As many exceptions are spelled out; the others stand in `launches.exceptions`.
const SPELLED_OUT: usize = 8;

/// Why there is no estimate at all.
pub(crate) fn nothing_undisturbed(series: &Series) -> String {
    if series.observations.is_empty() {
        return "there is no figure: measure first".to_owned();
    }
    "every block was disturbed: quiet the machine (stop other work, hold the clock) and measure again"
        .to_owned()
}

/// How the interval was made.
pub(crate) fn method(cells: &Cells) -> String {
    let unit = match (cells.unit, cells.grouped_from) {
        (Unit::Round, Some(from)) => {
            format!("residuals permuted within {} groups of {from} rounds", cells.blocks)
        }
        (_, Some(from)) => {
            format!("residuals permuted within {} groups of {from} launches", cells.blocks)
        }
        (Unit::Round, None) => "residuals permuted within rounds".to_owned(),
        (Unit::Launch, None) => "residuals permuted within launches".to_owned(),
        (Unit::LaunchAtPlacement, None) if cells.blocks > 1 => {
            "a launch a placement, residuals permuted within passes".to_owned()
        }
        (Unit::LaunchAtPlacement, None) => "residuals permuted between launches".to_owned(),
    };
    format!("simultaneous 99 % interval of 25 % trimmed means of ln, {unit}")
}

/// All sentences, the one that decides first.
pub(crate) fn reasons(
    verdict: &Verdict,
    evidence: &Evidence<'_>,
    confounded: Option<Confounding>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(confounded.map(|confounded| confounded.to_string()));
    reasons.extend(undecided(verdict, evidence, confounded.is_some()));
    reasons.extend(clear_of_what(verdict, evidence));
    reasons.extend(launch_count(evidence));
    reasons.extend(address(evidence));
    reasons.extend(order(evidence));
    reasons.extend(disturbed(evidence));
    reasons.extend(period(evidence));
    if let Some(launches) = &verdict.launches {
        reasons.extend(exceptions(&launches.exceptions, evidence, &verdict.unit));
    }
    reasons
}

fn undecided(verdict: &Verdict, evidence: &Evidence<'_>, confounded: bool) -> Option<String> {
    if verdict.verdict != Finding::Inconclusive || confounded {
        return None;
    }
    let (Some(_), Some(low), Some(high)) =
        (evidence.interval, verdict.effect_low_percent, verdict.effect_high_percent)
    else {
        return Some(if evidence.classes.partition.len() < 2 {
            "every figure belongs to one class of placements, so that nothing can be compared: \
             visit several placements"
                .to_owned()
        } else {
            "too few figures for an interval: add rounds or launches (--rounds, --launches)"
                .to_owned()
        });
    };
    let minimum = verdict.min_effect_percent;
    Some(format!(
        "the interval of the largest difference, {low:.2} to {high:.2} %, contains the minimum \
         effect of {minimum} %: quiet the machine, or add rounds and launches (--rounds, --launches)"
    ))
}

/// A `clear` is worth no more than the residues that were visited.
fn clear_of_what(verdict: &Verdict, evidence: &Evidence<'_>) -> Option<String> {
    // A control that realigns its buffer visits only what it means to.
    let control = verdict.role == Role::Control;
    if verdict.verdict != Finding::Clear || evidence.cells.basis == Basis::Value || control {
        return None;
    }
    let visited = &verdict.residues_visited;
    if visited.is_empty() {
        return None;
    }
    let list = visited.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    if visited.iter().all(|residue| residue % 32 != 0) {
        return Some(format!(
            "no 32-aligned buffer was visited (residues {list}), so that all may be slow alike: \
             vary the offset within the frame"
        ));
    }
    visited.iter().all(|residue| residue % 32 == 0).then(|| {
        format!(
            "only 32-aligned buffers were visited (residues {list}), so that all may be fast \
             alike: vary the offset within the frame"
        )
    })
}

fn launch_count(evidence: &Evidence<'_>) -> Option<String> {
    match evidence.cells.launches {
        1 => Some(
            "a verdict from one launch, which says nothing of how processes differ: use three \
             (--launches 3)"
                .to_owned(),
        ),
        2 => Some(
            "from two launches the unit is the round, which says little of how processes differ: \
             use three (--launches 3)"
                .to_owned(),
        ),
        _ => None,
    }
}

fn address(evidence: &Evidence<'_>) -> Option<String> {
    let some =
        |known: fn(&super::Observation) -> bool| evidence.series.observations.iter().any(known);
    match evidence.cells.basis {
        // Registers have no buffer: nothing could be located.
        Basis::Stack if evidence.series.role == Role::Control => None,
        Basis::Buffer => None,
        Basis::Residue => Some(
            "only the buffer's residue modulo 64 is known, so that rules about pages were not tried \
             and longer periods are those of the placement's value: record `buf`"
                .to_owned(),
        ),
        Basis::Stack if some(|row| row.buf.is_some() || row.residue.is_some()) => Some(
            "the buffer was not located in every row, so that classes are those of the stack \
             pointer and no rule about the buffer was tried: locate the buffer (a watchpoint decides)"
                .to_owned(),
        ),
        Basis::Stack => Some(
            "the buffer was not located, so that classes are those of the stack pointer and no rule \
             about the buffer was tried: locate the buffer (a watchpoint decides)"
                .to_owned(),
        ),
        Basis::Value => Some(
            "no address is known, so that classes are those of the placement's value and no rule \
             about the buffer was tried: record `buf` or `buf_mod64`"
                .to_owned(),
        ),
    }
}

fn order(evidence: &Evidence<'_>) -> Option<String> {
    evidence.series.observations.iter().any(|row| row.order.is_none()).then(|| {
        "the order of visiting is unknown, so that a drift of the machine is not excluded: record \
         `order`"
            .to_owned()
    })
}

/// A share of disturbed blocks from which on it is worth a sentence, in percent.
const MANY_DISTURBED: f64 = 10.0;

fn disturbed(evidence: &Evidence<'_>) -> Option<String> {
    let (disturbed, all) =
        (evidence.cells.disturbed, evidence.cells.disturbed + evidence.cells.undisturbed);
    let percent = 100.0 * disturbed as f64 / all as f64;
    (percent > MANY_DISTURBED).then(|| {
        format!(
            "{disturbed} of {all} blocks ({percent:.0} %) were disturbed and left out: quiet the \
             machine for a narrower interval"
        )
    })
}

fn period(evidence: &Evidence<'_>) -> Option<String> {
    let Classes { modulus, accepted, rejected, partition } = evidence.classes;
    let rejected = rejected.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    match (modulus, accepted) {
        _ if partition.len() < 2 => None,
        (Some(_), true) if rejected.is_empty() => None,
        (Some(period), true) => {
            Some(format!("the period is {period} bytes: {rejected} would mix unlike placements"))
        }
        (Some(period), false) if *period > LINE || !rejected.is_empty() => Some(format!(
            "classes are positions modulo {period}; whether that is the period was not tried: visit \
             placements over twice as many bytes"
        )),
        (Some(_), false) => Some(
            "the period was not tried, since the placements span less than 128 bytes: visit more \
             placements"
                .to_owned(),
        ),
        (None, _) if rejected.is_empty() => None,
        (None, _) => Some(format!(
            "each placement is its own class: periods of {rejected} bytes would mix unlike ones"
        )),
    }
}

/// Which launches are not where their class says.
fn exceptions(
    exceptions: &[LaunchException],
    evidence: &Evidence<'_>,
    unit: &str,
) -> Option<String> {
    if exceptions.is_empty() {
        return None;
    }
    let spell = |e: &LaunchException| {
        format!(
            "launch {} at placement {} (residue {}) at {:.4} {unit} instead of {:.4}",
            e.launch, e.placement, e.residue, e.ns_per_op, e.predicted_ns_per_op
        )
    };
    let mut list: Vec<String> = exceptions.iter().take(SPELLED_OUT).map(spell).collect();
    if exceptions.len() > SPELLED_OUT {
        list.push(format!("and {} more", exceptions.len() - SPELLED_OUT));
    }
    Some(format!(
        "{} of {} launches are not in the band that their residue predicts: {}; repeat them to see \
         whether they recur",
        exceptions.len(),
        evidence.cells.cells.len(),
        list.join(", ")
    ))
}
