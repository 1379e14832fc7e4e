//! `stackphase explain`: which placements should differ, against what was measured.

use std::path::{Path, PathBuf};

use super::run::{Counts, Run, StderrTalk, plan_document};
use super::{Exit, Output, RunArgs};
use crate::Failure;
use crate::analysis::{Verdict, VerdictDocument, name_store_placement};
use crate::explain::{
    Explanation, OWN_MAP, PairFate, PlacementGroup, explain, explain_verdicts, map_for,
    measured_in, shifts_of, trace_subject,
};
use crate::launch::Order;
use crate::probes::Campaign;
use crate::probes::forwarding::Map;
use crate::probes::phase::{GridPlan, PhasePlan};
use crate::record::VERDICT;
use crate::sample::Grid;
use crate::workloads::{Name, Spec, Variant};

const FULL: Counts = Counts { rounds: 12, launches: 3 };
const QUICK: Counts = Counts { rounds: 6, launches: 3 };

/// Trace × forwarding map: which placements should differ and why, against what was measured
#[derive(clap::Args)]
#[command(
    after_help = "One operation is single-stepped, this core's forwarding map is measured for \
its store-load pairs, and the prediction is checked against the line and page grids.\n\n\
Defaults: 3 launches of 12 rounds; --quick: 3 launches of 6 rounds.\n\n\
Examples:
  stackphase explain                       blake3 at 64 bytes: trace, map, measure, compare
  stackphase explain --verdict RUN         compare with a run of phase or check
  stackphase explain --map zen5.json       predict for another core; nothing is measured"
)]
pub struct ExplainArgs {
    #[command(flatten)]
    run: RunArgs,
    /// What to explain
    #[arg(long, value_name = "NAME", default_value = "blake3", value_parser = super::workload_name)]
    workload: Name,
    /// Bytes an operation
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    len: usize,
    /// Predict by this map (of stackphase forwarding --json) instead of this core's
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Compare with this verdict.json, or that of this run directory, instead of measuring
    #[arg(long, value_name = "PATH")]
    verdict: Option<PathBuf>,
    /// Predict only; measure no bands
    #[arg(long, conflicts_with = "verdict")]
    predict: bool,
}

/// Explains and prints.
///
/// # Errors
/// Where the workload cannot be traced, or the map or the verdict cannot be read.
pub fn run(args: &ExplainArgs, output: &mut Output) -> Result<Exit, Failure> {
    let spec = Spec::new(args.workload, args.len);
    spec.check()?;
    let seed = args.run.resolved_seed();
    let cpu = args.run.resolved_cpu()?;
    if args.run.plan {
        return output.document(&plan_document(&plan(args, &spec, seed, cpu))).map(|()| Exit::Done);
    }
    // What can be wrong with files is said before anything takes time.
    let map = args.map.as_deref().map(Map::read).transpose()?;
    let recorded = args.verdict.as_deref().map(read_verdicts).transpose()?;
    let subject = trace_subject(&spec)?;
    let verdicts = match recorded {
        Some(verdicts) => verdicts,
        None if args.predict || map.is_some() => Vec::new(),
        None => match measured(args, &spec, seed, cpu, output)? {
            Ok(verdicts) => verdicts,
            Err(stopped) => return Ok(stopped),
        },
    };
    let measured = measured_in(&verdicts, &spec);
    if args.verdict.is_some() && measured.is_empty() {
        output.warn(&format!(
            "the verdict has no shifts of {} at {} bytes: run stackphase phase --workload {}",
            spec.name, spec.len, spec.name
        ));
    }
    let shifts = shifts_of(&measured);
    let (map, source) = match map {
        Some(map) => (map, "a recorded map".to_owned()),
        None => (map_for(&subject, &shifts, cpu, seed)?, OWN_MAP.to_owned()),
    };
    let mut explanation = explain(&subject, &map, &source, &shifts, &measured);
    explanation.notes.extend(twin(&verdicts, &spec));
    if output.json() {
        output.document(&explanation)?;
    } else {
        output.text(&text(&explanation))?;
    }
    Ok(Exit::Done)
}

/// The explanation of BLAKE3 that ends a check; `None`, with a warning, where there can be none.
pub fn for_check(
    verdicts: &[Verdict],
    cpu: Option<usize>,
    seed: u64,
    output: &Output,
) -> Option<serde_json::Value> {
    let spec = Spec::new(Name::Blake3, crate::probes::check::LEN);
    match explain_verdicts(&spec, verdicts, cpu, seed) {
        // A document of plain fields can always be JSON.
        Ok(explanation) => serde_json::to_value(explanation).ok(),
        Err(failure) => {
            output.warn(&format!("no explanation: {failure}"));
            None
        }
    }
}

fn plan(args: &ExplainArgs, spec: &Spec, seed: u64, cpu: Option<usize>) -> PhasePlan {
    let counts = args.run.counts(FULL, QUICK);
    let mut grids = vec![
        GridPlan::new(spec.clone(), Grid::Line, counts.rounds),
        GridPlan::new(spec.clone(), Grid::Page, counts.rounds),
    ];
    if spec.has_twin() {
        let twin = spec.clone().variant(Variant::StoreOnly);
        grids.push(GridPlan::new(twin, Grid::Line, counts.rounds));
    }
    PhasePlan {
        probe: "phase".to_owned(),
        grids,
        launches: counts.launches,
        extra_rounds: 3,
        order: Order::Shuffled,
        seed,
        cpu,
        on_thread: false,
    }
}

/// Measures the grids; the inner error is a stop by a signal.
fn measured(
    args: &ExplainArgs,
    spec: &Spec,
    seed: u64,
    cpu: Option<usize>,
    output: &mut Output,
) -> Result<Result<Vec<Verdict>, Exit>, Failure> {
    let mut run = Run::open(&args.run, &[], plan(args, spec, seed, cpu))?;
    let launches = run.plan.launches(&run.finished);
    let mut talk = StderrTalk { output };
    let mut campaign = Campaign::new(&mut run.sink, &mut talk)?;
    campaign.at_realtime_priority(args.run.realtime);
    let measured = campaign.run(&launches);
    let held = campaign.held();
    if let Err(error) = measured {
        return run.stopped(error, output).map(Err);
    }
    run.write_machine(&held)?;
    let mut document = super::judge_directory(&run.directory, run.plan.seed)?;
    name_store_placement(&mut document.verdicts);
    run.directory.write_document(VERDICT, &document)?;
    Ok(Ok(document.verdicts))
}

fn read_verdicts(path: &Path) -> Result<Vec<Verdict>, Failure> {
    let file = if path.is_dir() { path.join(VERDICT) } else { path.to_owned() };
    let name = file.display().to_string();
    let remedy = "give a verdict.json, or a run directory that holds one";
    let bytes = std::fs::read(&file)
        .map_err(|error| Failure::new(format!("cannot read it: {error}"), &name, remedy))?;
    let document: VerdictDocument = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::new(format!("no verdict document: {error}"), &name, remedy))?;
    if document.schema != crate::analysis::SCHEMA {
        let what = format!("it has the schema `{}`", document.schema);
        return Err(Failure::new(what, name, remedy));
    }
    Ok(document.verdicts)
}

/// What the store-only twin shows: bands that it has too are store placement, not forwarding.
fn twin(verdicts: &[Verdict], spec: &Spec) -> Option<String> {
    let twin = verdicts.iter().find(|verdict| {
        verdict.workload == spec.name.as_str()
            && verdict.arm == Variant::StoreOnly.as_str()
            && verdict.grid == Some(Grid::Line)
    })?;
    let effect = twin.effect_percent?;
    Some(format!(
        "its store-only twin is {} ({effect:.1} %): so much is the stores' own placement and no \
         forwarding",
        twin.verdict
    ))
}

fn text(explanation: &Explanation) -> String {
    let mut text = String::new();
    for sentence in &explanation.sentences {
        text += &format!("{sentence}\n");
    }
    text += &format!("\nplacements by what is predicted (map: {}):\n", explanation.map);
    for group in &explanation.groups {
        text += &group_line(group);
    }
    let pairs: [(&str, Vec<&PairFate>); 2] = [
        (
            "held up at some placements",
            explanation.pairs.iter().filter(|p| !p.everywhere).collect(),
        ),
        (
            "held up everywhere (background)",
            explanation.pairs.iter().filter(|p| p.everywhere).collect(),
        ),
    ];
    for (title, pairs) in pairs.into_iter().filter(|(_, pairs)| !pairs.is_empty()) {
        text += &format!("\n{title}:\n");
        for pair in pairs {
            text += &pair_line(pair);
        }
    }
    for store in &explanation.stores {
        text += &format!(
            "\nslow by itself where it crosses a page, at {} placements: {}\n",
            store.placements.len(),
            store.store
        );
    }
    for line in explanation.hints.iter().chain(&explanation.notes) {
        text += &format!("\n{line}\n");
    }
    text
}

fn group_line(group: &PlacementGroup) -> String {
    let measured = group
        .measured_percent_above_fast
        .map_or_else(|| "not measured".to_owned(), |p| format!("measured up to +{p:.1} %"));
    format!(
        "  {:<40} {} may be blocked, {} forward slowly, {} slow stores; {measured}\n",
        group.in_words(),
        group.blocked,
        group.slow_forwards,
        group.slow_stores,
    )
}

fn pair_line(pair: &PairFate) -> String {
    format!(
        "  {}, {}×, {}→{} bytes at offset {}, {} instructions apart\n    store {}\n    load  {}\n",
        pair.class,
        pair.count,
        pair.store_bytes,
        pair.load_bytes,
        pair.offset,
        pair.distance,
        pair.stores.join("\n    store "),
        pair.load
    )
}
