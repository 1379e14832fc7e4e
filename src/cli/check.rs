//! `stackphase check`: the one-evening check in one run.

use serde::Serialize;

#[cfg(target_arch = "x86_64")]
use super::explain::for_check;
use super::run::{Counts, Run, StderrTalk, plan_document};
#[cfg(not(target_arch = "x86_64"))]
use super::x86_only::for_check;
use super::{Exit, Output, RunArgs};
use crate::Failure;
use crate::analysis::{
    Agreement, Options, Verdict, VerdictDocument, agreement, judge_all, name_store_placement,
};
use crate::counters::{Context, Standing, survey};
use crate::machine::{Machine, pin};
use crate::probes::check::{CheckPlan, Extent};
use crate::probes::controls::Controls;
use crate::probes::pad::settle;
use crate::probes::retired::count_into;
use crate::probes::{Campaign, Held, check, sensitivity};
use crate::record::{RunDirectory, VERDICT, series_of};
use crate::report::text;
use crate::sample::{Grid, Placement};

/// The schema of what `check --json` prints.
const SCHEMA: &str = "stackphase/check/1";
/// The file that the controls are kept in.
const CONTROLS: &str = "controls.json";

const FULL: Counts = Counts { rounds: 12, launches: 3 };
const QUICK: Counts = Counts { rounds: 6, launches: 3 };

/// Arguments of `check`.
#[derive(clap::Args)]
#[command(
    after_help = "Defaults: 3 launches of 12 rounds; --quick: 3 launches of 6 rounds, without \
the placement of plain copies; the padding sweep with one launch a padding instead of 3.\n\n\
Examples:
  stackphase check                 measure, conclude, and keep report.md and report.html
  stackphase check --quick         a first answer within ten seconds
  stackphase check --gate          exit with 3 when blake3 is affected, 4 when that is not settled
  stackphase check --json | jq .verdicts[0].verdict"
)]
pub struct CheckArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Run the grids on a spawned thread's stack
    #[arg(long)]
    thread: bool,
    #[command(flatten)]
    gate: super::GateArgs,
}

/// What `check --json` prints, and `verdict.json` holds of it.
#[derive(Serialize)]
struct CheckDocument<'a> {
    schema: &'static str,
    machine: &'a Machine,
    held: &'a Held,
    controls: &'a Controls,
    /// Why there are no hardware counters, or which are proven.
    counters: CounterSummary,
    explanation: Option<serde_json::Value>,
    /// Whether padding and trampoline say the same.
    agreements: &'a [Agreement],
    verdicts: &'a [Verdict],
    /// Where the run is kept.
    directory: String,
}

/// The hardware counters in one sentence.
#[derive(Serialize)]
struct CounterSummary {
    /// Those that passed their self-test.
    proven: Vec<String>,
    sentence: String,
}

/// Runs the check.
///
/// # Errors
/// When the plan cannot be, or nothing could be measured.
pub fn run(args: &CheckArgs, output: &mut Output) -> Result<Exit, Failure> {
    let counts = args.run.counts(FULL, QUICK);
    let extent = Extent { rounds: counts.rounds, launches: counts.launches, quick: args.run.quick };
    let seed = args.run.resolved_seed();
    let plan = check::plan(extent, seed, args.run.resolved_cpu()?, args.thread);
    if args.run.plan {
        return output.document(&plan_document(&plan)).map(|()| Exit::Done);
    }
    let mut run = Run::open(&args.run, &[], plan)?;
    for disturbance in &run.machine.disturbances {
        output.warn(disturbance);
    }
    let (sensitivity, counters) = beside(run.plan.phase.cpu, run.plan.phase.seed)?;
    let launches = run.plan.launches(&run.finished);
    let mut talk = StderrTalk { output };
    let mut campaign = Campaign::new(&mut run.sink, &mut talk)?;
    campaign.at_realtime_priority(args.run.realtime);
    let measured = campaign.run(&launches);
    let held = campaign.held();
    if let Err(error) = measured {
        return run.stopped(error, output);
    }
    run.write_machine(&held)?;
    conclude(args, &run, &held, sensitivity, counters, output)
}

/// What is measured in this process: on a thread of its own, so that this one stays unpinned.
fn beside(
    cpu: Option<usize>,
    seed: u64,
) -> Result<(Result<sensitivity::Sensitivity, String>, CounterSummary), Failure> {
    let measure = move || {
        // That pinning failed is said by the workers, which must be pinned as well.
        let _ = cpu.and_then(pin);
        let found = sensitivity::measure(seed).map_err(|error| error.to_string());
        (found, CounterSummary::of_this_core())
    };
    let failed = |what: String| Failure::new(what, "check", "raise the limit on threads");
    std::thread::Builder::new()
        .spawn(measure)
        .map_err(|error| failed(format!("cannot start a thread: {error}")))?
        .join()
        .map_err(|_| failed("the control's thread panicked".to_owned()))
}

impl CounterSummary {
    fn of_this_core() -> Self {
        let surveyed = survey(&Context::detect(), &[]);
        let mut proven = Vec::new();
        let mut why = None;
        for counter in surveyed {
            match counter.standing {
                Standing::Proven => proven.push(counter.name),
                Standing::Unproven(_) => {}
                Standing::Absent(absence) => {
                    why.get_or_insert(absence);
                }
            }
        }
        let sentence = match (proven.is_empty(), why) {
            (false, _) => format!(
                "hardware counters proven here: {}; see stackphase counters",
                proven.join(", ")
            ),
            (true, Some(absence)) => format!(
                "no hardware counter, so that the verdict rests on times alone: {}; {}",
                absence.why, absence.remedy
            ),
            (true, None) => "no hardware counter is known for this core".to_owned(),
        };
        CounterSummary { proven, sentence }
    }
}

fn conclude(
    args: &CheckArgs,
    run: &Run<CheckPlan>,
    held: &Held,
    sensitivity: Result<sensitivity::Sensitivity, String>,
    counters: CounterSummary,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let mut verdicts = judged(&run.directory, run.plan.phase.seed)?;
    name_store_placement(&mut verdicts.verdicts);
    let agreements = agreements(&verdicts.verdicts);
    if let Some(why) = count_into(&mut verdicts, if args.run.quick { 4 } else { 16 }) {
        output.warn(&why.to_string());
    }
    let plan = &run.plan.phase;
    let explanation = for_check(&verdicts.verdicts, plan.cpu, plan.seed, output);
    let controls = Controls::gather(&verdicts.verdicts, sensitivity);
    run.directory.write_document(VERDICT, &verdicts)?;
    run.directory.write_document(CONTROLS, &controls)?;
    let path = run.directory.path();
    crate::report::write_beside(path, !args.run.no_redact)?;
    if output.json() {
        output.document(&CheckDocument {
            schema: SCHEMA,
            machine: &run.machine,
            held,
            controls: &controls,
            counters,
            explanation,
            agreements: &agreements,
            verdicts: &verdicts.verdicts,
            directory: path.display().to_string(),
        })?;
    } else {
        let sentences = explanation.as_ref().and_then(|document| document["sentences"].as_array());
        let sentences = sentences.into_iter().flatten().filter_map(serde_json::Value::as_str);
        let mut lines: Vec<String> = sentences.map(str::to_owned).collect();
        lines.extend(controls.sentences());
        lines.extend(agreements.iter().map(|agreement| {
            format!("padding beside trampoline, {}: {}", agreement.workload, agreement.says)
        }));
        lines.push(counters.sentence);
        output.text(&as_text(&verdicts, lines, run, output))?;
    }
    Ok(match args.gate.exit(&verdicts) {
        // Without a control that sees a stall, "clear" is not proven.
        Exit::Done if args.gate.gate && !controls.passed => Exit::GateInconclusive,
        exit => exit,
    })
}

/// Judges everything that was recorded; the guards of the sweep by the best of all of it.
fn judged(directory: &RunDirectory, seed: u64) -> Result<VerdictDocument, Failure> {
    let samples = directory.read_samples()?;
    let (mut swept, mut samples): (Vec<_>, Vec<_>) =
        samples.into_iter().partition(|sample| sample.placement == Placement::Pad);
    settle(&mut swept);
    samples.append(&mut swept);
    Ok(judge_all(&series_of(&samples), &Options { seed, ..Options::default() }))
}

/// The sweep of each workload beside its line grid.
fn agreements(verdicts: &[Verdict]) -> Vec<Agreement> {
    let sweeps = verdicts.iter().filter(|verdict| verdict.placement == Placement::Pad);
    sweeps
        .filter_map(|sweep| {
            let grid = verdicts.iter().find(|grid| {
                grid.placement == Placement::Shift
                    && grid.grid == Some(Grid::Line)
                    && (&grid.workload, grid.len) == (&sweep.workload, sweep.len)
                    && grid.arm == "default"
            })?;
            Some(agreement(sweep, grid))
        })
        .collect()
}

fn as_text(
    verdicts: &VerdictDocument,
    mut lines: Vec<String>,
    run: &Run<CheckPlan>,
    output: &Output,
) -> String {
    let options = output.text_options();
    let mut out = text::verdicts(verdicts, &options);
    for verdict in verdicts.verdicts.iter().filter(|v| v.bands.len() > 1).take(3) {
        out.push('\n');
        out.push_str(&text::band_plot(verdict, &options));
    }
    out.push('\n');
    let machine = format!("machine: {}", run.machine.line());
    let fix = run.machine.blake3.has_the_fix().then(|| {
        "this build's blake3 has 64-byte-aligned block buffers already: the fix is in".to_owned()
    });
    lines.extend(fix);
    lines.push(machine);
    for line in lines {
        out.push_str(&text::wrap(&crate::report::escape::plain(&line), options.width, "  "));
    }
    let path = run.directory.path().display();
    out.push_str(&format!("\nkept in {path}: report.html, report.md, samples.csv, …\n"));
    out
}
