//! `stackphase analyze`: the verdict of anything recorded.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Exit, Output};
use crate::Failure;
use crate::analysis::{
    Finding, Options, Series, Verdict, VerdictDocument, is_unplaced, judge, judge_launches,
    launch_figures,
};
use crate::import::{self, Foreign};
use crate::record::{ReadError, Recording, RunDirectory, SAMPLES, read_series, series_of};
use crate::report::text;
use crate::sample::{Placement, Role};

/// Judge recorded samples, or the result files of other benchmarks
///
/// A run directory, a CSV file with `placement_value` (or a residue column `buf_mod64` or
/// `residue`) and `ns_per_op` (or `value`), the result files of bench-hashes, or hyperfine's JSON;
/// the format is found by content. Several result files of one machine are several launches: do
/// they fall into speeds, and how many launches are in each?
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stackphase analyze results/20260828T103456Z-amd-epyc-9r45
  stackphase analyze sweeps/published/copies.csv --json
  stackphase analyze bench-hashes/results/*.txt
  stackphase analyze hyperfine.json --gate --gate-on command")]
pub struct AnalyzeArgs {
    /// Run directories, CSV files or result files
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Smallest effect that counts, in percent
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    min_effect: f64,
    /// Seed of the permutations behind the intervals
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Exit with 3 when a subject is affected, 4 when that is not settled
    #[arg(long)]
    gate: bool,
    /// Workload that gates [default: blake3 where recorded, else every subject]
    #[arg(long, value_name = "NAME", requires = "gate")]
    gate_on: Vec<String>,
}

/// Reads, judges and prints.
///
/// # Errors
/// When an input cannot be read or holds no figure.
pub fn run(args: &AnalyzeArgs, output: &mut Output) -> Result<Exit, Failure> {
    let options =
        Options { min_effect_percent: args.min_effect, seed: args.seed, ..Options::default() };
    let inputs = read_all(&args.paths, output)?;
    let document = VerdictDocument::new(inputs.judge(&options));
    if document.verdicts.is_empty() {
        return Err(Failure::new(
            "there is no row with a figure to judge",
            args.paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "),
            "record at least one block at each of several placements",
        ));
    }
    // The gate comes first: a name that is not there must not pass for a result.
    let exit = if args.gate { gate(&document, &args.gate_on)? } else { Exit::Done };
    if output.json() {
        output.document(&document)?;
    } else {
        let options = text::TextOptions { color: output.color(), ..text::TextOptions::default() };
        output.text(&text::verdicts(&document, &options))?;
    }
    Ok(exit)
}

/// A percentage above 0, with or without its sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>();
    match number {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err("a number above 0 and up to 100 is needed".to_owned()),
    }
}

/// Everything that was read.
#[derive(Default)]
struct Inputs {
    /// Recordings of placements, each with where it came from.
    recordings: Vec<(String, Recording)>,
    /// Result files of one machine.
    foreign: Vec<Foreign>,
}

fn read_all(paths: &[PathBuf], output: &Output) -> Result<Inputs, Failure> {
    let mut inputs = Inputs::default();
    for path in paths {
        if path.is_dir() {
            inputs.read_directory(path)?;
        } else {
            inputs.read_file(path)?;
        }
    }
    for (name, recording) in &inputs.recordings {
        if let Some(row) = recording.torn {
            output.warn(&format!(
                "{name}: row {row} was in flight when the run was stopped and is left out; \
                 go on with --resume"
            ));
        }
        if recording.without_figure > 0 {
            output.warn(&format!(
                "{name}: {} of {} rows have no figure and are left out; the column status says why",
                recording.without_figure, recording.rows
            ));
        }
    }
    Ok(inputs)
}

impl Inputs {
    /// A run directory, or a directory of result files.
    fn read_directory(&mut self, path: &Path) -> Result<(), Failure> {
        let run = RunDirectory::open(path)?;
        if run.samples_path().exists() {
            let name = run.samples_path().display().to_string();
            self.recordings.push((name, run.read_series()?));
            return Ok(());
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(
            |error| {
                Failure::new(
                    format!("cannot read: {error}"),
                    path.display().to_string(),
                    "change the permissions of the directory",
                )
            },
        )?;
        let mut files: Vec<PathBuf> =
            entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        let before = self.foreign.len() + self.recordings.len();
        for file in files {
            match import::read(&file)? {
                Some(foreign) => self.foreign.push(foreign),
                None if file.extension().is_some_and(|extension| extension == "csv") => {
                    self.read_file(&file)?;
                }
                // A note or a log beside the results.
                None => {}
            }
        }
        if self.foreign.len() + self.recordings.len() == before {
            return Err(ReadError::file(
                path.display().to_string(),
                format!("the directory holds neither {SAMPLES} nor a result file"),
                "name a run directory, or the directory of a benchmark's results",
            )
            .into());
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Failure> {
        match import::read(path)? {
            Some(foreign) => self.foreign.push(foreign),
            None => self.recordings.push((path.display().to_string(), read_series(path)?)),
        }
        Ok(())
    }

    fn judge(&self, options: &Options) -> Vec<Verdict> {
        let sources = self.recordings.len() + usize::from(!self.foreign.is_empty());
        let mut verdicts = Vec::new();
        for (name, recording) in &self.recordings {
            let from = verdicts.len();
            verdicts.extend(recording.series.iter().map(|series| judge_one(series, options)));
            if sources > 1 {
                for verdict in &mut verdicts[from..] {
                    verdict.reasons.insert(0, format!("recorded in {name}"));
                }
            }
        }
        verdicts.extend(self.judge_foreign(options));
        verdicts
    }

    /// Result files: a hyperfine sweep is judged by its placements, everything else by launch.
    fn judge_foreign(&self, options: &Options) -> Vec<Verdict> {
        let placed: Vec<_> = import::samples(&self.foreign)
            .into_iter()
            .filter(|sample| sample.placement != Placement::Aslr)
            .collect();
        let mut verdicts: Vec<Verdict> =
            series_of(&placed).iter().map(|series| judge(series, options)).collect();
        for launches in import::launches(&self.foreign) {
            if launches.key.placement == Placement::Aslr {
                let role = Role::of(&launches.key.workload, &launches.key.arm);
                let minimum = options.min_effect_percent;
                verdicts.push(judge_launches(
                    &launches.key,
                    role,
                    false,
                    &launches.figures,
                    minimum,
                ));
            }
        }
        let notes = self.foreign.iter().flat_map(|file| file.notes.iter().cloned());
        let notes: Vec<String> = notes.collect();
        for verdict in &mut verdicts {
            verdict.reasons.extend(notes.iter().cloned());
        }
        verdicts
    }
}

fn judge_one(series: &Series, options: &Options) -> Verdict {
    if !is_unplaced(series) {
        return judge(series, options);
    }
    let minimum = options.min_effect_percent;
    let figures = launch_figures(series);
    judge_launches(&series.key, series.role, series.higher_is_better, &figures, minimum)
}

/// What the gate says: affected before inconclusive before clear.
fn gate(document: &VerdictDocument, names: &[String]) -> Result<Exit, Failure> {
    let verdicts = &document.verdicts;
    let recorded = || {
        let mut all: Vec<&str> = verdicts.iter().map(|v| v.workload.as_str()).collect();
        all.dedup();
        format!("gate on one of those recorded: {}", all.join(", "))
    };
    if let Some(name) = names.iter().find(|name| verdicts.iter().all(|v| v.workload != **name)) {
        let what = "no verdict is about the workload that is to gate";
        return Err(Failure::usage(what, format!("--gate-on {name}"), recorded()));
    }
    let has_blake3 = verdicts.iter().any(|verdict| verdict.workload == "blake3");
    let gates = |verdict: &&Verdict| match names {
        [] => verdict.role == Role::Subject && (!has_blake3 || verdict.workload == "blake3"),
        names => names.contains(&verdict.workload),
    };
    let findings: Vec<Finding> = verdicts.iter().filter(gates).map(|v| v.verdict).collect();
    if findings.is_empty() {
        return Err(Failure::usage("no subject was recorded", "--gate", recorded()));
    }
    Ok(if findings.contains(&Finding::Affected) {
        Exit::GateAffected
    } else if findings.contains(&Finding::Inconclusive) {
        Exit::GateInconclusive
    } else {
        Exit::Done
    })
}
