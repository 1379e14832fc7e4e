//! Carrying out the launches of a foreign command.

use std::collections::HashSet;

use serde::Serialize;

use super::plan::{Arm, PadPlan, PlannedLaunch};
use crate::launch::LaunchError;
use crate::launch::command::{Ended, Figure, LaunchFailure, Runner, TasksSeen};
use crate::probes::{Held, Randomisation, Talk};
use crate::sample::{Params, Placement, Sample, SampleKey, Sink, Status};

/// So many failures, and no success, end a sweep: the command does not work here.
const HOPELESS: usize = 3;
/// So many failures are told one by one.
const TOLD: usize = 20;
/// What the stack's address is taken modulo where it is the placement itself.
const TWO_PAGES: u64 = 8192;
/// The name of a foreign command in the column `workload`.
const WORKLOAD: &str = "command";

/// A launch that has no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedLaunch {
    /// The launch.
    pub launch: u32,
    /// Its placement; `null` where randomisation chose it.
    pub placement: Option<i64>,
    /// Why, without anything that the command printed.
    pub why: String,
}

/// What a sweep of a command came to, beside its samples.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The launches that have no figure.
    pub failed: Vec<FailedLaunch>,
    /// The first failure of this run, in full.
    pub first_failure: Option<(String, LaunchFailure)>,
    /// Whether it was given up, since every launch failed.
    pub hopeless: bool,
    /// Of all launches, that with most to say on threads.
    pub tasks: TasksSeen,
    /// Launches whose hot code may be off the main stack.
    pub off_the_main_stack: u64,
    /// Launches made.
    pub launches: u64,
}

/// Launches of a command, one after the other.
pub struct CommandCampaign<'a> {
    plan: &'a PadPlan,
    runner: &'a Runner,
    sink: &'a mut dyn Sink,
    talk: &'a mut dyn Talk,
    sweep: Sweep,
    unit: Option<String>,
    succeeded: u64,
    /// Padding, arm, start of the stack and whether randomisation was off, of each launch.
    stacks: Vec<(usize, Option<u64>, Option<bool>)>,
    warnings: Vec<String>,
}

impl<'a> CommandCampaign<'a> {
    /// Gets ready; nothing is launched yet.
    pub fn new(
        plan: &'a PadPlan,
        runner: &'a Runner,
        sink: &'a mut dyn Sink,
        talk: &'a mut dyn Talk,
    ) -> Self {
        CommandCampaign {
            plan,
            runner,
            sink,
            talk,
            sweep: Sweep::default(),
            unit: None,
            succeeded: 0,
            stacks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Makes every launch that `finished` does not hold.
    ///
    /// # Errors
    /// When a stop was asked for, or a sample cannot be kept. Launches that fail are not errors:
    /// they are recorded as such.
    pub fn run(&mut self, finished: &HashSet<SampleKey>) -> Result<(), LaunchError> {
        let done: HashSet<(String, u32, Option<i64>)> = finished
            .iter()
            .map(|key| (key.arm.clone(), key.launch, self.known(key.placement_value)))
            .collect();
        let planned = self.plan.planned();
        let total = planned.len() as u64;
        for (at, launch) in planned.iter().enumerate() {
            let value = self.plan.placement_value(launch.padding);
            let arm = self.plan.arm_name(launch.arm).to_owned();
            if !done.contains(&(arm, launch.launch, self.known(value))) {
                self.launch(launch)?;
            }
            self.talk.progress(at as u64 + 1, total);
            if self.succeeded == 0 && self.sweep.failed.len() >= HOPELESS && done.is_empty() {
                self.sweep.hopeless = true;
                break;
            }
        }
        Ok(())
    }

    /// The placement, unless randomisation chooses it.
    fn known(&self, value: i64) -> Option<i64> {
        (self.plan.placement() != Placement::Aslr).then_some(value)
    }

    fn launch(&mut self, planned: &PlannedLaunch) -> Result<(), LaunchError> {
        let surroundings = self.plan.surroundings(planned.padding);
        let cpu = self.plan.cpu.filter(|_| planned.arm == Arm::Pinned);
        let mut ended = self.runner.launch(&surroundings, cpu).map_err(LaunchError::Stopped)?;
        self.sweep.launches += 1;
        let start = ended.stack.map(|stack| stack.start);
        self.stacks.push((planned.padding, start, ended.randomisation_off));
        self.look_at_tasks(&ended.tasks);
        if let Ok(Some(figure)) = &ended.figure
            && let Some(failure) = self.other_unit(figure)
        {
            ended.figure = Err(failure);
        }
        let sample = self.sample(planned, &ended);
        match &ended.figure {
            Ok(_) => self.succeeded += 1,
            Err(failure) => self.failed(planned, failure),
        }
        Ok(self.sink.accept(&sample)?)
    }

    fn look_at_tasks(&mut self, tasks: &TasksSeen) {
        self.sweep.off_the_main_stack += u64::from(tasks.off_the_main_stack());
        let says_more =
            |a: &TasksSeen, b: &TasksSeen| (a.threads, a.processes) > (b.threads, b.processes);
        if says_more(tasks, &self.sweep.tasks) {
            self.sweep.tasks = tasks.clone();
        }
    }

    /// All launches must speak of one quantity.
    fn other_unit(&mut self, figure: &Figure) -> Option<LaunchFailure> {
        let expected = self.unit.get_or_insert_with(|| figure.unit.clone());
        (*expected != figure.unit).then(|| LaunchFailure::OtherUnit {
            found: figure.unit.clone(),
            expected: expected.clone(),
        })
    }

    fn failed(&mut self, planned: &PlannedLaunch, failure: &LaunchFailure) {
        let placement = self.known(self.plan.placement_value(planned.padding));
        let place = match placement {
            Some(value) => format!("launch {} at padding {value}", planned.launch),
            None => format!("launch {}", planned.launch),
        };
        let told = self.sweep.failed.len();
        if told < TOLD {
            self.talk.warning(&format!("{place}: {failure}; {}", failure.remedy()));
        } else if told == TOLD {
            self.talk.warning("further failures are not told here; samples.csv marks each launch");
        }
        self.sweep.first_failure.get_or_insert_with(|| (place, failure.clone()));
        self.sweep.failed.push(FailedLaunch {
            launch: planned.launch,
            placement,
            why: failure.without_output(),
        });
    }

    fn sample(&self, planned: &PlannedLaunch, ended: &Ended) -> Sample {
        let plan = self.plan;
        let value = match (self.known(plan.placement_value(planned.padding)), ended.stack) {
            (Some(value), _) => value,
            (None, Some(stack)) => (stack.start % TWO_PAGES) as i64,
            // Nothing is known of the place: the launch's number stands for it.
            (None, None) => i64::from(planned.launch),
        };
        let mut sample =
            Sample::new(&plan.probe, WORKLOAD, plan.placement(), value, planned.launch, 0);
        sample.arm = plan.arm_name(planned.arm).to_owned();
        sample.order = Some(planned.position);
        sample.sp = ended.stack.map(|stack| stack.start);
        sample.env_bytes = ended.stack.map(|stack| stack.env_bytes);
        sample.argv_bytes = ended.stack.map(|stack| stack.argv_bytes);
        sample.cpu = ended.cpu;
        if plan.command.as_ref().is_some_and(|command| command.higher_is_better) {
            sample.params = Params::new().with("better", "higher");
        }
        sample.events.clone_from(&ended.events);
        sample.running_ratio = ended.running_ratio;
        match &ended.figure {
            Ok(Some(figure)) => {
                sample.value = Some(figure.value);
                sample.unit = Some(figure.unit.clone());
            }
            Ok(None) => {
                sample.iterations = Some(1);
                sample.ns_per_op = Some(ended.wall.as_nanos().max(1) as f64);
            }
            Err(_) => sample.status = Status::Failed,
        }
        sample
    }

    /// What the sweep came to, and what was held still.
    pub fn finish(mut self) -> (Sweep, Held) {
        let randomisation = self.prove();
        if !self.plan.aslr_on && randomisation == Randomisation::On {
            let warning = "address-space randomisation could not be turned off (a container's \
                           filter refuses personality, or the command gains privileges): each \
                           launch is at a phase of its own, which is read back; allow personality, \
                           or give more --launches";
            self.talk.warning(warning);
            self.warnings.push(warning.to_owned());
        }
        let stack_starts = self
            .stacks
            .iter()
            .filter_map(|(_, start, _)| *start)
            .map(|start| format!("{start:#x}"))
            .collect();
        (self.sweep, Held { randomisation, stack_starts, warnings: self.warnings })
    }

    /// Equal paddings must have given equal stacks.
    fn prove(&self) -> Randomisation {
        if self.stacks.iter().any(|(.., off)| *off == Some(false)) {
            return Randomisation::On;
        }
        let mut proven = false;
        for (at, (padding, start, _)) in self.stacks.iter().enumerate() {
            let earlier = self.stacks[..at].iter().find(|(other, ..)| other == padding);
            match (earlier.and_then(|(_, start, _)| *start), *start) {
                (Some(one), Some(other)) if one != other => return Randomisation::On,
                (Some(_), Some(_)) => proven = true,
                _ => {}
            }
        }
        let reported = self.stacks.iter().all(|(.., off)| *off == Some(true));
        match (proven, reported && !self.stacks.is_empty()) {
            (true, _) => Randomisation::ProvenOff,
            (false, true) => Randomisation::ReportedOff,
            (false, false) => Randomisation::Unknown,
        }
    }
}
