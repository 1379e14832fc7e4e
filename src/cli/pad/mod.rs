//! `stackphase pad`: the padding sweep, over own workloads or any command.

mod args;
mod measure;
mod summary;
mod text;

pub use args::PadArgs;
use summary::Summary;

use super::run::{Run, plan_document};
use super::{Exit, GateArgs, Output};
use crate::Failure;
use crate::analysis::{Finding, VerdictDocument};
use crate::record::{RunDirectory, VERDICT};

/// Runs the sweep and prints its verdicts.
///
/// # Errors
/// When the command cannot be launched, the plan cannot be, or nothing could be measured.
pub fn run(args: &PadArgs, output: &mut Output) -> Result<Exit, Failure> {
    // Before anything else, also before any warning: whether there is something to launch.
    let plan = args.plan(resumed_plan(args)?)?;
    let runner = args.runner(&plan)?;
    let kept = args.postable(&plan);
    if args.run.plan {
        return output.document(&plan_document(&kept)).map(|()| Exit::Done);
    }
    let events = runner.as_ref().map_or_else(Vec::new, measure::events);
    let mut run = Run::open(&args.run, &events, kept)?;
    // What is kept of a command may lack its arguments; they were given again.
    run.plan = plan;
    let measured = match &runner {
        None => measure::own(&mut run, args.run.realtime, output)?,
        Some(runner) => measure::command(&mut run, runner, output)?,
    };
    if let Some(error) = measured.stopped {
        let again = run.plan.command.as_ref().filter(|_| !args.run.no_redact);
        if again.is_some() {
            output.warn("the command's arguments are not kept: give it again after -- to resume");
        }
        return run.stopped(error, output);
    }
    run.write_machine(&measured.held)?;
    let summary = Summary::of(&run.directory, &run.plan, &measured)?;
    let document = summary.document()?;
    run.directory.write_document(VERDICT, &document)?;
    if output.json() {
        output.document(&document)?;
    } else {
        super::print_verdicts(&summary.verdicts, None, output)?;
        output.text(&summary.text(&output.text_options(), run.directory.path()))?;
    }
    Ok(args.gate().exit(&summary.verdicts))
}

/// The plan of the run that is to be resumed.
fn resumed_plan(args: &PadArgs) -> Result<Option<crate::probes::pad::PadPlan>, Failure> {
    let Some(path) = &args.run.resume else { return Ok(None) };
    let resumed = RunDirectory::resume(path)?;
    serde_json::from_value(resumed.plan["plan"].clone()).map(Some).map_err(|error| {
        Failure::new(
            format!("cannot resume: the plan is of another command or version ({error})"),
            path.display().to_string(),
            "resume with the command that made it, or start a new run",
        )
    })
}

/// Whether any verdict is one of `findings`.
fn any(document: &VerdictDocument, finding: Finding) -> bool {
    document.verdicts.iter().any(|verdict| verdict.verdict == finding)
}

impl PadArgs {
    /// A command is what it is asked about: it gates by itself.
    fn gate(&self) -> GateArgs {
        let mut gate = self.gate.clone();
        if gate.gate && gate.gate_on.is_empty() && !self.command.is_empty() {
            gate.gate_on.push("command".to_owned());
        }
        gate
    }
}
