//! Carrying out planned launches one after the other, and proving afterwards what was held still.

use std::collections::HashMap;

use serde::Serialize;

use crate::block::GuardReading;
use crate::launch::{Executable, GridJob, Hello, Job, LaunchError, LaunchOptions, Worker};
use crate::sample::Sink;

/// One process and what it has to do.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPlan {
    /// How it is started.
    pub options: LaunchOptions,
    /// Its jobs, in order.
    pub jobs: Vec<GridJob>,
}

/// Who hears of warnings and progress.
pub trait Talk {
    /// Something that a person should know; ends with its remedy. Repetitions are suppressed by the
    /// campaign.
    fn warning(&mut self, text: &str);
    /// `done` of `total` blocks are finished. Called between blocks only.
    fn progress(&mut self, done: u64, total: u64);
}

/// Whether address-space randomisation was off, by proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Randomisation {
    /// Two launches or more with equal environments had stack, heap and text at equal addresses.
    ProvenOff,
    /// The kernel reports it off, but a single launch proves nothing.
    ReportedOff,
    /// It was on: asked for, or because turning it off was refused.
    On,
    /// Nothing is known: `/proc` hides it.
    Unknown,
}

/// What was held still, as it was found afterwards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Address-space randomisation.
    pub randomisation: Randomisation,
    /// The start of the stack of each launch, hexadecimal.
    pub stack_starts: Vec<String>,
    /// What could not be held, each ending in its remedy.
    pub warnings: Vec<String>,
}

/// Launches in progress.
pub struct Campaign<'a> {
    executable: Executable,
    sink: &'a mut dyn Sink,
    talk: &'a mut dyn Talk,
    warnings: Vec<String>,
    /// Guards are compared within one arm only: arms may run at different clocks.
    guard_best: HashMap<String, GuardReading>,
    hellos: Vec<(LaunchOptions, Hello)>,
    done: u64,
    total: u64,
    realtime: bool,
}

impl<'a> Campaign<'a> {
    /// Finds the program to launch.
    ///
    /// # Errors
    /// When no file on disk is this program.
    pub fn new(
        sink: &'a mut dyn Sink,
        talk: &'a mut dyn Talk,
    ) -> Result<Self, crate::launch::ExecutableError> {
        Ok(Campaign {
            executable: Executable::current()?,
            sink,
            talk,
            warnings: Vec::new(),
            guard_best: HashMap::new(),
            hellos: Vec::new(),
            done: 0,
            total: 0,
            realtime: false,
        })
    }

    /// Runs the workers at real-time priority from here on, where that is permitted.
    pub fn at_realtime_priority(&mut self, on: bool) {
        self.realtime = on;
    }

    /// Carries out all launches.
    ///
    /// # Errors
    /// At the first launch that fails, or when a stop was asked for. Samples passed to the sink
    /// before stay kept.
    pub fn run(&mut self, launches: &[LaunchPlan]) -> Result<(), LaunchError> {
        self.total += launches.iter().map(LaunchPlan::blocks).sum::<u64>();
        launches.iter().try_for_each(|launch| self.launch(launch))
    }

    fn launch(&mut self, launch: &LaunchPlan) -> Result<(), LaunchError> {
        if launch.jobs.iter().all(GridJob::is_finished) {
            return Ok(());
        }
        let mut worker = Worker::start(&self.executable, &launch.options)?;
        self.hellos.push((launch.options.clone(), worker.hello.clone()));
        for job in &launch.jobs {
            let mut job = job.clone();
            job.realtime = self.realtime;
            job.guard_best = self.guard_best.get(&job.arm).copied();
            let arm = job.arm.clone();
            let mut warnings = Vec::new();
            let best = worker.run(
                &Job::Grid(Box::new(job)),
                |sample| {
                    self.sink.accept(&sample)?;
                    self.done += 1;
                    // Rounds that were repeated come on top of what was planned.
                    self.talk.progress(self.done.min(self.total), self.total);
                    Ok(())
                },
                |warning| warnings.push(warning),
            )?;
            warnings.into_iter().for_each(|warning| self.warn(warning));
            if let Some(best) = best {
                self.guard_best.insert(arm, best);
            }
        }
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.talk.warning(&warning);
            self.warnings.push(warning);
        }
    }

    /// What was held still over all launches so far.
    pub fn held(&mut self) -> Held {
        let randomisation = prove(&self.hellos);
        let asked = self.hellos.iter().any(|(options, _)| options.randomisation_off);
        if asked && randomisation == Randomisation::On {
            self.warn(
                "address-space randomisation could not be turned off (a container's filter refuses \
                 personality): each launch is at a phase of its own, which is read back; allow \
                 personality, or give more --launches"
                    .to_owned(),
            );
        }
        Held {
            randomisation,
            stack_starts: self
                .hellos
                .iter()
                .filter_map(|(_, hello)| hello.stack_start)
                .map(|start| format!("{start:#x}"))
                .collect(),
            warnings: self.warnings.clone(),
        }
    }
}

/// Proves from what launches with one environment have in common.
fn prove(hellos: &[(LaunchOptions, Hello)]) -> Randomisation {
    if hellos.iter().any(|(_, hello)| hello.randomisation_off == Some(false)) {
        return Randomisation::On;
    }
    let layout = |hello: &Hello| (hello.stack_start, hello.text, hello.heap);
    let mut proven = false;
    for (index, (options, hello)) in hellos.iter().enumerate() {
        let earlier = hellos[..index].iter().find(|(other, _)| other == options);
        match earlier {
            Some((_, other)) if layout(other) != layout(hello) => return Randomisation::On,
            Some(_) => proven = true,
            None => {}
        }
    }
    let reported = hellos.iter().all(|(_, hello)| hello.randomisation_off == Some(true));
    match (proven, reported && !hellos.is_empty()) {
        (true, _) => Randomisation::ProvenOff,
        (false, true) => Randomisation::ReportedOff,
        (false, false) => Randomisation::Unknown,
    }
}

impl LaunchPlan {
    /// Blocks that are still to be timed.
    pub fn blocks(&self) -> u64 {
        self.jobs.iter().map(GridJob::blocks_left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Environment;

    fn hello(stack: u64, off: Option<bool>) -> (LaunchOptions, Hello) {
        let options =
            LaunchOptions { environment: Environment::padded(64), randomisation_off: true };
        let hello = Hello {
            protocol: 1,
            pid: 1,
            randomisation_off: off,
            stack_start: Some(stack),
            env_bytes: None,
            argv_bytes: None,
            text: 0x1000,
            heap: 0x2000,
        };
        (options, hello)
    }

    #[test]
    fn only_equal_layouts_prove_it() {
        let (a, b) = (hello(0x7000, Some(true)), hello(0x7010, Some(true)));
        assert_eq!(prove(&[a.clone(), a.clone()]), Randomisation::ProvenOff);
        assert_eq!(prove(&[a.clone(), b.clone()]), Randomisation::On, "the flag alone lied");
        assert_eq!(prove(std::slice::from_ref(&a)), Randomisation::ReportedOff);
        assert_eq!(prove(&[hello(0x7000, Some(false))]), Randomisation::On);
        assert_eq!(prove(&[hello(0x7000, None)]), Randomisation::Unknown);
        assert_eq!(prove(&[]), Randomisation::Unknown);
    }

    #[test]
    fn another_environment_proves_nothing() {
        let mut other = hello(0x6ff0, Some(true));
        other.0.environment = Environment::padded(80);
        assert_eq!(prove(&[hello(0x7000, Some(true)), other]), Randomisation::ReportedOff);
    }
}
