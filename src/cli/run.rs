//! What every measuring subcommand does around its probe: the run directory, the plan, the talk,
//! and the orderly stop.

use std::collections::HashSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Exit, Output, RunArgs};
use crate::Failure;
use crate::launch::LaunchError;
use crate::machine::{Machine, choose_cpu};
use crate::probes::{Held, Talk};
use crate::record::{CsvSink, MACHINE, PLAN, RunDirectory};
use crate::sample::SampleKey;
use crate::sys::signals::{Stop, remember_stop_requests};

/// A run directory that is being filled.
pub struct Run<P> {
    /// Where.
    pub directory: RunDirectory,
    /// Keeps the samples.
    pub sink: CsvSink,
    /// The plan: the one given, or the one that is resumed.
    pub plan: P,
    /// What a resumed run already has.
    pub finished: HashSet<SampleKey>,
    /// The host.
    pub machine: Machine,
}

/// Defaults that depend on `--quick`.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Rounds a launch.
    pub rounds: u32,
    /// Launches.
    pub launches: u32,
}

impl RunArgs {
    /// Rounds and launches: what was asked for, else `quick` or `full`.
    pub fn counts(&self, full: Counts, quick: Counts) -> Counts {
        let defaults = if self.quick { quick } else { full };
        Counts {
            rounds: self.rounds.unwrap_or(defaults.rounds),
            launches: self.launches.unwrap_or(defaults.launches),
        }
    }

    /// The seed: what was asked for, else from the clock. Below 2^53, so that every reader of JSON
    /// keeps it exactly.
    pub fn resolved_seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |time| time.as_nanos() as u64) % (1 << 53)
        })
    }

    /// The processor to pin to.
    ///
    /// # Errors
    /// When the one asked for is not permitted.
    pub fn resolved_cpu(&self) -> Result<Option<usize>, Failure> {
        Ok(choose_cpu(self.cpu)?.0)
    }
}

impl<P: Serialize + DeserializeOwned> Run<P> {
    /// Opens the run directory: a new one with `plan`, or the one to resume with its own plan.
    ///
    /// # Errors
    /// When the directory or its plan cannot be read or written.
    pub fn open(args: &RunArgs, events: &[String], plan: P) -> Result<Self, Failure> {
        let machine = Machine::describe();
        remember_stop_requests().map_err(|error| {
            Failure::new(format!("cannot catch signals: {error}"), "process", "report this")
        })?;
        if let Some(path) = &args.resume {
            let resumed = RunDirectory::resume(path)?;
            let plan = serde_json::from_value(resumed.plan["plan"].clone()).map_err(|error| {
                Failure::new(
                    format!("cannot resume: the plan is of another command or version ({error})"),
                    path.join(PLAN).display().to_string(),
                    "resume with the command that made it, or start a new run",
                )
            })?;
            let sink = resumed.samples(resumed.events.as_deref().unwrap_or(events))?;
            return Ok(Run {
                directory: resumed.directory,
                sink,
                plan,
                finished: resumed.finished,
                machine,
            });
        }
        let directory = RunDirectory::create(args.out.as_deref(), &machine.processor.name)?;
        directory.write_document(PLAN, &plan_document(&plan))?;
        directory.write_document(MACHINE, &machine)?;
        let sink = directory.samples(events)?;
        Ok(Run { directory, sink, plan, finished: HashSet::new(), machine })
    }

    /// Turns a stop into its exit status after saying how to go on; passes other errors on.
    ///
    /// # Errors
    /// Whatever was not a stop.
    pub fn stopped(&self, error: LaunchError, output: &Output) -> Result<Exit, Failure> {
        let LaunchError::Stopped(stop) = error else { return Err(error.into()) };
        output.warn(&format!(
            "stopped; every finished row is kept: go on with --resume {}",
            self.directory.path().display()
        ));
        Ok(match stop {
            Stop::Interrupted => Exit::Interrupted,
            Stop::Terminated => Exit::Terminated,
        })
    }
}

/// A plan as it is printed by `--plan` and kept in `plan.json`.
pub fn plan_document(plan: &impl Serialize) -> serde_json::Value {
    serde_json::json!({
        "schema": "stackphase/plan/1",
        "version": env!("CARGO_PKG_VERSION"),
        "command_line": command_line(),
        "plan": plan,
    })
}

/// What was typed, with this program by its name: the exact way to repeat a run. A foreign command
/// stands there by its program's name alone, unless its arguments are to be kept.
fn command_line() -> String {
    let arguments = std::env::args_os().skip(1);
    let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (ours, command) = words.split_at(end);
    let mut shown = vec!["stackphase".to_owned()];
    shown.extend_from_slice(ours);
    if ours.iter().any(|word| word == "--no-redact") {
        shown.extend_from_slice(command);
    } else if let [dashes, program, arguments @ ..] = command {
        let name = program.rsplit('/').next().unwrap_or(program);
        shown.extend([dashes.clone(), name.to_owned()]);
        shown.extend((!arguments.is_empty()).then(|| "…".to_owned()));
    }
    shown.join(" ")
}

/// Warnings and progress on stderr.
pub struct StderrTalk<'a> {
    /// Writes the warnings.
    pub output: &'a Output,
}

impl Talk for StderrTalk<'_> {
    fn warning(&mut self, text: &str) {
        self.output.warn(text);
    }

    fn progress(&mut self, _done: u64, _total: u64) {}
}

impl<P> Run<P> {
    /// Writes `machine.json` again, now with what was held still.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_machine(&self, held: &Held) -> Result<(), Failure> {
        let failed = |error: serde_json::Error| {
            Failure::new(format!("cannot make JSON: {error}"), MACHINE, "report this as a fault")
        };
        let mut document = serde_json::to_value(&self.machine).map_err(failed)?;
        document["held"] = serde_json::to_value(held).map_err(failed)?;
        self.directory.write_document(MACHINE, &document)?;
        Ok(())
    }
}
