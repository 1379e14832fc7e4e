//! The whole sweep over own workloads in one call, for other experiments to take along.

use std::collections::HashSet;

use super::plan::PadPlan;
use super::settle::settle;
use crate::analysis::{Options, Verdict, judge};
use crate::launch::LaunchError;
use crate::probes::{Campaign, Held, Talk};
use crate::record::series_of;
use crate::sample::{Sample, SampleKey, Sink, SinkError};
use crate::{Failure, launch::ExecutableError};

/// What a sweep of own workloads came to.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnSweep {
    /// One verdict a workload and arm, in the order of the plan.
    pub verdicts: Vec<Verdict>,
    /// What was held still.
    pub held: Held,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// No file is this program.
    #[error(transparent)]
    Executable(#[from] ExecutableError),
    /// A launch failed, or a stop was asked for.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Executable(error) => error.into(),
            SweepError::Launch(error) => error.into(),
        }
    }
}

/// Passes samples on and keeps them.
struct Tee<'a> {
    sink: &'a mut dyn Sink,
    kept: Vec<Sample>,
}

impl Sink for Tee<'_> {
    fn accept(&mut self, sample: &Sample) -> Result<(), SinkError> {
        self.sink.accept(sample)?;
        self.kept.push(sample.clone());
        Ok(())
    }
}

/// Makes every launch of `plan` that `finished` does not hold, passes its samples to `sink`, and
/// judges them. Some seconds for [`PadPlan::quick`].
///
/// # Errors
/// When a worker cannot be started or fails, or when a stop was asked for.
pub fn sweep(
    plan: &PadPlan,
    finished: &HashSet<SampleKey>,
    sink: &mut dyn Sink,
    talk: &mut dyn Talk,
) -> Result<OwnSweep, SweepError> {
    let mut tee = Tee { sink, kept: Vec::new() };
    let mut campaign = Campaign::new(&mut tee, talk)?;
    let measured = campaign.run(&plan.own_launches(finished));
    let held = campaign.held();
    measured?;
    settle(&mut tee.kept);
    let options = Options { seed: plan.seed, ..Options::default() };
    let verdicts = series_of(&tee.kept).iter().map(|series| judge(series, &options)).collect();
    Ok(OwnSweep { verdicts, held })
}
