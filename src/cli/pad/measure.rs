//! Carrying out the sweep.

use crate::Failure;
use crate::analysis::Finding;
use crate::cli::Output;
use crate::cli::run::{Run, StderrTalk};
use crate::counters::Set;
use crate::launch::LaunchError;
use crate::launch::command::Runner;
use crate::probes::pad::{CommandCampaign, PadPlan, Sweep};
use crate::probes::{Campaign, Held};

/// What came of it.
pub struct Measured {
    /// What was held still.
    pub held: Held,
    /// A command's launches; `None` for own workloads.
    pub sweep: Option<Sweep>,
    /// Why it was stopped before its end.
    pub stopped: Option<LaunchError>,
}

/// The counters that a command's rows will have, in the order of their columns.
pub fn events(runner: &Runner) -> Vec<String> {
    let Some(context) = &runner.options().counters else { return Vec::new() };
    let (set, _) = Set::open_for_thread(context, &[]);
    set.names().into_iter().map(str::to_owned).collect()
}

/// Own workloads, each launch a worker.
///
/// # Errors
/// When no launch could be made.
pub fn own(run: &mut Run<PadPlan>, realtime: bool, output: &Output) -> Result<Measured, Failure> {
    let launches = run.plan.own_launches(&run.finished);
    let mut talk = StderrTalk { output };
    let mut campaign = Campaign::new(&mut run.sink, &mut talk)?;
    campaign.at_realtime_priority(realtime);
    let measured = campaign.run(&launches);
    let held = campaign.held();
    let stopped = stop_of(measured)?;
    Ok(Measured { held, sweep: None, stopped })
}

/// A foreign command, each launch a row.
///
/// # Errors
/// When every launch failed, or a sample could not be kept.
pub fn command(
    run: &mut Run<PadPlan>,
    runner: &Runner,
    output: &Output,
) -> Result<Measured, Failure> {
    let mut talk = StderrTalk { output };
    let mut campaign = CommandCampaign::new(&run.plan, runner, &mut run.sink, &mut talk);
    let measured = campaign.run(&run.finished);
    let (sweep, held) = campaign.finish();
    let stopped = stop_of(measured)?;
    if let Some((place, failure)) = sweep.first_failure.as_ref().filter(|_| sweep.hopeless) {
        let what = format!("no launch of the command came to a figure: {failure}");
        return Err(Failure::new(what, place.clone(), failure.remedy()));
    }
    Ok(Measured { held, sweep: Some(sweep), stopped })
}

/// A stop is not a failure here: what was measured is kept.
fn stop_of(measured: Result<(), LaunchError>) -> Result<Option<LaunchError>, Failure> {
    match measured {
        Ok(()) => Ok(None),
        Err(error @ LaunchError::Stopped(_)) => Ok(Some(error)),
        Err(error) => Err(error.into()),
    }
}

/// What threads make of a verdict: one that padding cannot give is not given.
pub fn without_threads(finding: Finding, sweep: &Sweep) -> Option<String> {
    if sweep.off_the_main_stack == 0 || finding == Finding::Affected {
        return None;
    }
    let share = sweep.tasks.share.map_or(String::new(), |share| {
        format!(" with {:.0} % of its processor time", 100.0 * share)
    });
    Some(format!(
        "this axis does not move thread stacks, and the command runs {} thread(s) beside its main \
         one{share}: call the code through the trampoline in its thread \
         (stack_trampoline::call_at_shift), or try own workloads on a thread with \
         `stackphase check --thread`",
        sweep.tasks.threads
    ))
}
