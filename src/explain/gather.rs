//! From a workload to its explanation: trace, map, prediction, comparison.

use std::collections::{BTreeMap, BTreeSet};

use stack_trampoline::Alignment;

use super::agreement::{Measured, agree};
use super::document::{Explanation, GridAgreement, PairFate, PlacementGroup, SCHEMA, StoreFate};
use super::moved::{needed, wide_stores};
use super::predict::{Load, predict};
use crate::Failure;
use crate::analysis::Verdict;
use crate::block::{Locator, Place, first_written};
use crate::placement::{line_shifts, page_shifts};
use crate::probes::forwarding::{Class, Map, measure};
use crate::sample::{Grid, Placement};
use crate::sys::copy::CopyRoutine;
use crate::trace::{Limits, Pair, Relation, Trace, trace_workload};
use crate::workloads::{Spec, Variant};

/// A traced workload.
pub struct Subject {
    /// What it is.
    pub spec: Spec,
    /// One operation, traced at shift 0.
    pub trace: Trace,
    /// Address of its buffer modulo 4096 at shift 0; `None` where it has none or it is not found.
    pub buffer: Option<u64>,
    /// What limits the trace.
    pub notes: Vec<String>,
}

/// Traces one operation of `spec`, at two shifts to see that it is the same.
///
/// # Errors
/// Where the workload cannot be built or traced.
pub fn trace_subject(spec: &Spec) -> Result<Subject, Failure> {
    let at = |shift| {
        trace_workload(spec, Place::Shifted(Alignment::Page, shift), Limits::default(), None)
            .map_err(|error| error.at(spec.name.as_str()))
    };
    let (trace, other) = (at(0)?, at(16)?);
    let mut notes = trace.walked.partial.clone();
    if kinds(&trace) != kinds(&other) {
        notes.push(
            "the operation makes other pairs at another shift; the prediction is that of shift 0"
                .to_owned(),
        );
    }
    let mut timed = spec.build(CopyRoutine::of_c_library())?;
    let place = Place::Shifted(Alignment::Page, 0);
    let mut random = fastrand::Rng::new();
    let located =
        Locator::default().locate(place, timed.as_mut(), &mut random, &mut first_written)?;
    let buffer = located.address().map(|address| address % 4096);
    Ok(Subject { spec: spec.clone(), trace, buffer, notes })
}

/// What identifies the pairs wherever the stack is.
fn kinds(trace: &Trace) -> BTreeSet<(u64, i64, u32, Vec<u64>)> {
    let stores = |pair: &Pair| pair.stores.iter().map(|store| store.ip).collect();
    trace.pairs.iter().map(|p| (p.load_ip, p.offset, p.load_bytes, stores(p))).collect()
}

/// Measures just the cells that explain `subject` at `shifts`, on processor `cpu`.
///
/// # Errors
/// Where no thread can be started or the map not be measured.
pub fn map_for(
    subject: &Subject,
    shifts: &[usize],
    cpu: Option<usize>,
    seed: u64,
) -> Result<Map, Failure> {
    let plan = needed(&subject.trace, 0, shifts);
    let failed = |what: String| Failure::new(what, "explain", "raise the limit on threads");
    // A thread of its own, so that the caller's stays unpinned.
    let pinned = move || {
        let _ = cpu.and_then(crate::machine::pin);
        measure(&plan, seed, |_, _| true)
    };
    let measured = std::thread::Builder::new()
        .spawn(pinned)
        .map_err(|error| failed(format!("cannot start a thread: {error}")))?
        .join()
        .map_err(|_| failed("the map's thread panicked".to_owned()))?;
    Ok(measured?.map)
}

/// The bands of `spec` among `verdicts`, by grid.
pub fn measured_in(verdicts: &[Verdict], spec: &Spec) -> Vec<(Option<Grid>, Measured)> {
    let ours = |verdict: &&Verdict| {
        verdict.workload == spec.name.as_str()
            && verdict.len == spec.sample_len()
            && verdict.arm == Variant::Default.as_str()
            && verdict.placement == Placement::Shift
    };
    verdicts.iter().filter(ours).map(|verdict| (verdict.grid, Measured::of(verdict))).collect()
}

/// Explains `subject` at `shifts` by `map` (which comes from `source`), and compares with what was
/// measured.
pub fn explain(
    subject: &Subject,
    map: &Map,
    source: &str,
    shifts: &[usize],
    measured: &[(Option<Grid>, Measured)],
) -> Explanation {
    let trace = &subject.trace;
    let loads = predict(trace, 0, map, shifts);
    let pairs = fates(trace, &loads);
    let stores = slow_stores(trace, &loads);
    let several = |index: &&usize| trace.pairs[**index].relation != Relation::Contained;
    let unknown = loads.first().map_or(0, |load| load.unknown.iter().filter(several).count());
    let agreement = if measured.is_empty() {
        vec![GridAgreement { grid: None, agreement: agree(&loads, None) }]
    } else {
        let on = |(grid, measured): &(Option<Grid>, Measured)| GridAgreement {
            grid: *grid,
            agreement: agree(&loads, Some(measured)),
        };
        measured.iter().map(on).collect()
    };
    let mut notes = subject.notes.clone();
    notes.extend(map.notes.iter().cloned());
    if unknown > 0 {
        notes.push(format!("the map holds nothing like {unknown} of the pairs of several stores"));
    }
    let mut explanation = Explanation {
        schema: SCHEMA,
        workload: subject.spec.name.to_string(),
        len: subject.spec.sample_len(),
        instructions: trace.walked.instructions,
        pairs_traced: trace.pairs.len(),
        map: source.to_owned(),
        groups: groups(subject, &loads, measured),
        hints: hints(subject, &pairs, &stores, &loads),
        pairs,
        stores,
        unknown_pairs: unknown,
        agreement,
        notes,
        sentences: Vec::new(),
    };
    explanation.summarise();
    explanation
}

/// Explains `spec` by this core's map and compares with what `verdicts` hold of it.
///
/// # Errors
/// Where the workload cannot be traced or the map not be measured.
pub fn explain_verdicts(
    spec: &Spec,
    verdicts: &[Verdict],
    cpu: Option<usize>,
    seed: u64,
) -> Result<Explanation, Failure> {
    let subject = trace_subject(spec)?;
    let measured = measured_in(verdicts, spec);
    let shifts = shifts_of(&measured);
    let map = map_for(&subject, &shifts, cpu, seed)?;
    Ok(explain(&subject, &map, OWN_MAP, &shifts, &measured))
}

/// Where a map made for the occasion comes from.
pub const OWN_MAP: &str = "measured on this core";

/// The placements to predict for: those measured, else both grids.
pub fn shifts_of(measured: &[(Option<Grid>, Measured)]) -> Vec<usize> {
    let mut shifts: Vec<usize> =
        measured.iter().flat_map(|(_, measured)| measured.band.keys().copied()).collect();
    if shifts.is_empty() {
        shifts = page_shifts();
        shifts.extend(line_shifts());
    }
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

/// The buffer's residue at a shift.
fn residue(subject: &Subject, shift: usize) -> Option<u8> {
    subject.buffer.map(|buffer| ((buffer + 64 * 4096 - shift as u64) % 64) as u8)
}

fn groups(
    subject: &Subject,
    loads: &[Load],
    measured: &[(Option<Grid>, Measured)],
) -> Vec<PlacementGroup> {
    let mut groups: BTreeMap<[u64; 3], Vec<usize>> = BTreeMap::new();
    for load in loads {
        groups.entry(load.weight()).or_default().push(load.shift);
    }
    let percent = |shift: &usize| {
        let band = |m: &Measured| m.band.get(shift).and_then(|band| m.percent.get(*band)).copied();
        measured.iter().filter_map(|(_, m)| band(m)).max_by(f64::total_cmp)
    };
    groups
        .into_iter()
        .map(|([slow_stores, blocked, slow_forwards], placements)| PlacementGroup {
            residues: placements
                .iter()
                .filter_map(|shift| residue(subject, *shift))
                .collect::<BTreeSet<u8>>()
                .into_iter()
                .collect(),
            measured_percent_above_fast: placements
                .iter()
                .filter_map(percent)
                .max_by(f64::total_cmp),
            placements,
            slow_stores,
            blocked,
            slow_forwards,
        })
        .collect()
}

fn site(trace: &Trace, ip: u64) -> String {
    let text = trace.texts.get(&ip).map_or("?", String::as_str);
    match trace.places.get(&ip).and_then(|place| place.symbol.as_deref()) {
        Some(symbol) => format!("{text} [{symbol}]"),
        None => text.to_owned(),
    }
}

/// The pairs that are held up somewhere: blocked ones first, then those that are slow.
fn fates(trace: &Trace, loads: &[Load]) -> Vec<PairFate> {
    let mut fates = Vec::new();
    for class in [Class::Blocked, Class::SlowForward] {
        let of = |load: &Load| match class {
            Class::Blocked => load.blocked.clone(),
            _ => load.slow_forwards.clone(),
        };
        for (index, pair) in trace.pairs.iter().enumerate() {
            let at = loads.iter().filter(|load| of(load).contains(&index));
            let placements: Vec<usize> = at.map(|load| load.shift).collect();
            if placements.is_empty() {
                continue;
            }
            fates.push(PairFate {
                relation: pair.relation,
                count: pair.count,
                stores: pair.stores.iter().map(|store| site(trace, store.ip)).collect(),
                load: site(trace, pair.load_ip),
                store_bytes: pair.store_bytes(),
                load_bytes: pair.load_bytes,
                offset: pair.offset,
                distance: pair.distance,
                class: class.to_string(),
                everywhere: placements.len() == loads.len(),
                placements,
            });
        }
    }
    fates
}

fn slow_stores(trace: &Trace, loads: &[Load]) -> Vec<StoreFate> {
    let fate = |(index, touch): (usize, &crate::trace::Touch)| {
        let at = loads.iter().filter(|load| load.slow_stores.contains(&index));
        let placements: Vec<usize> = at.map(|load| load.shift).collect();
        (!placements.is_empty()).then(|| StoreFate {
            store: site(trace, touch.ip),
            bytes: touch.bytes,
            placements,
        })
    };
    wide_stores(trace).enumerate().filter_map(fate).collect()
}

/// What would take the banded pairs away.
fn hints(
    subject: &Subject,
    pairs: &[PairFate],
    stores: &[StoreFate],
    loads: &[Load],
) -> Vec<String> {
    let mut hints = BTreeSet::new();
    let fewest = loads.iter().map(|load| load.weight()).min();
    for pair in pairs.iter().filter(|pair| pair.class == "blocked") {
        if !pair.everywhere
            && let Some(fewest) = fewest
            && let Some(unit) = alignment(subject, loads, fewest)
        {
            hints.insert(format!("align the buffer to {unit} bytes"));
        }
        if pair.stores.iter().any(|store| store.contains("mem") || store.contains("cpy")) {
            hints.insert("let another copy routine write the buffer (see copies)".to_owned());
        }
        if pair.relation == Relation::Contained && pair.load_bytes < pair.store_bytes {
            hints.insert(format!("load in the {} bytes that were stored", pair.store_bytes));
        } else if pair.relation == Relation::Spans {
            hints.insert(format!("store the {} bytes that are loaded at once", pair.load_bytes));
        }
    }
    if !stores.is_empty() {
        let unit = stores.iter().map(|store| store.bytes).max().unwrap_or(64);
        hints.insert(format!(
            "align what that store writes to {unit} bytes: it then crosses no page"
        ));
    }
    hints.into_iter().map(|hint| format!("hint: {hint}; measure again to see")).collect()
}

/// The least alignment of the buffer at which every placement looked at is among the fastest.
fn alignment(subject: &Subject, loads: &[Load], fewest: [u64; 3]) -> Option<u8> {
    let buffer = subject.buffer?;
    [32u8, 64].into_iter().find(|unit| {
        let aligned = |load: &&Load| {
            (buffer + 64 * 4096 - load.shift as u64).is_multiple_of(u64::from(*unit))
        };
        let mut at = loads.iter().filter(aligned).peekable();
        at.peek().is_some() && at.all(|load| load.weight() == fewest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Name;

    /// The rule of the original investigation: a 16-byte load from a 64-byte store is blocked
    /// unless the store is 32-byte aligned. Written for whatever width the copy stores here.
    fn by_hand(trace: &Trace) -> Map {
        let mut cells = Vec::new();
        for pair in &trace.pairs {
            let Some(shape) = super::super::moved::Shape::of(pair) else { continue };
            for residue in (0..64).step_by(8) {
                let wide = pair.stores.len() == 1 && pair.store_bytes() >= 32;
                let blocked = wide && residue % 32 != 0;
                cells.push(serde_json::json!({
                    "store_bytes": shape.stores.span(), "load_bytes": shape.load_bytes,
                    "offset": shape.offset, "residue": residue, "crosses": null,
                    "stores": if shape.stores.second.is_some() { shape.parts() } else { Vec::new() },
                    "form": "chained", "ns": 5.0, "spread_percent": 0.4,
                    "class": if blocked { "blocked" } else { "forwards" },
                }));
            }
        }
        let (pairs, cells): (Vec<_>, Vec<_>) = cells
            .into_iter()
            .partition(|cell| cell["stores"].as_array().is_some_and(|stores| !stores.is_empty()));
        let document = serde_json::json!({"schema": "stackphase/forwarding/1", "cells": cells,
            "pairs": pairs, "rules": []});
        Map::from_slice("by hand", document.to_string().as_bytes()).expect("the schema's fields")
    }

    #[test]
    fn a_map_by_hand_predicts_the_residues_that_its_rule_says() {
        let subject = match trace_subject(&Spec::new(Name::CopyChain, 64)) {
            Ok(subject) => subject,
            Err(failure) if failure.what.contains("forbids") => {
                eprintln!("skipped: {failure}");
                return;
            }
            Err(failure) => panic!("{failure}"),
        };
        if !subject.trace.pairs.iter().any(|p| p.stores.len() == 1 && p.store_bytes() >= 32) {
            eprintln!("skipped: the copy routine here stores fewer than 32 bytes at once");
            return;
        }
        let map = by_hand(&subject.trace);
        let shifts = line_shifts();
        let explanation = explain(&subject, &map, "by hand", &shifts, &[]);
        let [fast, slow] = explanation.groups.as_slice() else {
            panic!("two groups: {:#?}", explanation.groups)
        };
        assert_eq!(
            (fast.residues.as_slice(), slow.residues.as_slice()),
            (&[0, 32][..], &[16, 48][..])
        );
        assert_eq!((fast.blocked, fast.placements.len()), (0, 8));
        assert!(slow.blocked > 0 && explanation.pairs.iter().all(|pair| !pair.everywhere));
        assert!(explanation.hints.iter().any(|hint| hint.contains("align the buffer to 32 bytes")));
        assert!(explanation.sentences.last().is_some_and(|s| s.contains("not measured")));

        // What is measured decides whether the prediction held.
        let measured = |slow_residue: usize| Measured {
            band: shifts.iter().map(|s| (*s, usize::from(s % 32 == slow_residue))).collect(),
            percent: vec![0.0, 60.0],
            settled: true,
        };
        let judged = |m| explain(&subject, &map, "by hand", &shifts, &[(Some(Grid::Line), m)]);
        let right = usize::from(slow.placements[0] % 32 == 16) * 16;
        let conclusion = |e: Explanation| e.agreement[0].agreement.conclusion;
        assert_eq!(conclusion(judged(measured(right))), super::super::Conclusion::Agrees);
        assert_eq!(conclusion(judged(measured(16 - right))), super::super::Conclusion::SetsDiffer);
    }
}
