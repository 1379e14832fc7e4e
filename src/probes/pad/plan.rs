//! Which launches a sweep makes, and in what order.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::launch::{Environment, GridJob, LaunchOptions, Order};
use crate::probes::LaunchPlan;
use crate::sample::{Params, Placement, SampleKey, vocabulary};
use crate::workloads::Spec;

/// Bytes of the constant padding of launches that something else moves.
pub const RANDOMISED_PADDING: usize = super::super::phase::PADDING;

vocabulary! {
    /// What is made longer.
    Axis {
        /// The environment: the variable `PAD`.
        Env => "env",
        /// The arguments: one more of them.
        Argv => "argv",
        /// The path to the program.
        Path => "path",
    }
}

vocabulary! {
    /// How launches are held to a processor; the column `arm` where there are both.
    Arm {
        /// Pinned to one processor.
        Pinned => "pinned",
        /// Where the scheduler puts them.
        Unpinned => "unpinned",
    }
}

/// Own workloads as they come: where the kernel put the stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnPlan {
    /// The workloads, all in each launch.
    pub specs: Vec<Spec>,
    /// Rounds a launch.
    pub rounds: u32,
    /// Extra rounds at most, when blocks were disturbed.
    pub extra_rounds: u32,
}

/// A foreign command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandPlan {
    /// The program and its arguments; the program's file name alone where they are not to be kept.
    pub argv: Vec<String>,
    /// Number of arguments, the program's name included.
    pub arguments: usize,
    /// Whether `argv` lacks what was given.
    pub redacted: bool,
    /// The pattern of the figure in its output; `None` takes its wall time.
    pub metric: Option<String>,
    /// Whether a larger figure is better.
    pub higher_is_better: bool,
    /// Whether its environment is emptied of all but the padding.
    pub clean_env: bool,
    /// Seconds that a launch may take.
    pub timeout_s: f64,
}

/// The whole sweep. Exactly one of `own` and `command` is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PadPlan {
    /// The experiment's name in the samples.
    pub probe: String,
    /// Own workloads.
    pub own: Option<OwnPlan>,
    /// A foreign command.
    pub command: Option<CommandPlan>,
    /// What is made longer.
    pub axis: Axis,
    /// By how many bytes, each once a pass. One placement that means nothing under randomisation.
    pub paddings: Vec<usize>,
    /// Whether the paddings were drawn at random, to stand for all of them.
    pub random: bool,
    /// Whether randomisation is left on, so that each launch is at a place of its own.
    pub aslr_on: bool,
    /// Bytes of the program's path before it is made longer.
    pub path_bytes: usize,
    /// Launches a padding.
    pub launches: u32,
    /// Pinned, or pinned and unpinned.
    pub arms: Vec<Arm>,
    /// Seed of all shuffles and messages.
    pub seed: u64,
    /// Processor of the pinned arm.
    pub cpu: Option<usize>,
}

/// One launch of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLaunch {
    /// Its number: that of the pass, or of the launch itself under randomisation.
    pub launch: u32,
    /// Its position in the run.
    pub position: u64,
    /// Bytes that are added.
    pub padding: usize,
    /// How it is held.
    pub arm: Arm,
}

/// The original sweep: 0 to 140 bytes by 4.
pub fn default_paddings() -> Vec<usize> {
    (0..=140).step_by(4).collect()
}

impl PadPlan {
    /// A sweep of the environment over own workloads: 36 paddings, 3 launches each, pinned.
    pub fn own(specs: Vec<Spec>, seed: u64, cpu: Option<usize>) -> Self {
        PadPlan {
            probe: "pad".to_owned(),
            own: Some(OwnPlan { specs, rounds: 12, extra_rounds: 3 }),
            command: None,
            axis: Axis::Env,
            paddings: default_paddings(),
            random: false,
            aslr_on: false,
            path_bytes: 0,
            launches: 3,
            arms: vec![Arm::Pinned],
            seed,
            cpu,
        }
    }

    /// The same with one launch a padding and 5 rounds a launch: some seconds.
    pub fn quick(mut self) -> Self {
        self.launches = 1;
        if let Some(own) = &mut self.own {
            own.rounds = 5;
            own.extra_rounds = 1;
        }
        self
    }

    /// How the placement is recorded.
    pub fn placement(&self) -> Placement {
        match self.axis {
            _ if self.aslr_on => Placement::Aslr,
            Axis::Env => Placement::Pad,
            Axis::Argv => Placement::Argv,
            Axis::Path => Placement::Path,
        }
    }

    /// What is recorded of a padding: under `path` the path's whole length.
    pub fn placement_value(&self, padding: usize) -> i64 {
        match self.placement() {
            Placement::Path => (self.path_bytes + padding) as i64,
            _ => padding as i64,
        }
    }

    /// What surrounds a launch at `padding`.
    pub fn surroundings(&self, padding: usize) -> Environment {
        match self.axis {
            Axis::Env if !self.aslr_on => Environment::padded(padding),
            _ if self.aslr_on => Environment::padded(RANDOMISED_PADDING),
            Axis::Argv => Environment::padded(RANDOMISED_PADDING).with_argument(padding),
            Axis::Path | Axis::Env => {
                Environment::padded(RANDOMISED_PADDING).with_longer_path(padding)
            }
        }
    }

    /// The column `arm`.
    pub fn arm_name(&self, arm: Arm) -> &'static str {
        if self.arms.len() > 1 { arm.as_str() } else { "default" }
    }

    /// Every launch in the order of the run. Each pass visits every padding once, in a shuffle of
    /// its own that does not depend on how many passes there are.
    pub fn planned(&self) -> Vec<PlannedLaunch> {
        let mut planned = Vec::new();
        for pass in 0..self.launches {
            let mut visits: Vec<(usize, Arm)> = self
                .paddings
                .iter()
                .flat_map(|&padding| self.arms.iter().map(move |&arm| (padding, arm)))
                .collect();
            fastrand::Rng::with_seed(seed_of(self.seed, u64::from(pass))).shuffle(&mut visits);
            for (padding, arm) in visits {
                let position = planned.len() as u64;
                planned.push(PlannedLaunch { launch: pass, position, padding, arm });
            }
        }
        planned
    }

    /// The launches of own workloads, without what `finished` already holds; none for a command.
    pub fn own_launches(&self, finished: &HashSet<SampleKey>) -> Vec<LaunchPlan> {
        let Some(own) = &self.own else { return Vec::new() };
        let launch = |planned: PlannedLaunch| LaunchPlan {
            options: LaunchOptions {
                environment: self.surroundings(planned.padding),
                randomisation_off: !self.aslr_on,
            },
            jobs: own.specs.iter().map(|spec| self.job(own, spec, &planned, finished)).collect(),
        };
        self.planned().into_iter().map(launch).collect()
    }

    fn job(
        &self,
        own: &OwnPlan,
        spec: &Spec,
        planned: &PlannedLaunch,
        finished: &HashSet<SampleKey>,
    ) -> GridJob {
        let mut params = Params::new();
        if spec.frame_offset != 0 {
            params.set("frame_offset", spec.frame_offset);
        }
        if spec.sink != crate::workloads::SinkKind::BlackBox {
            params.set("sink", spec.sink);
        }
        let arm = match self.arms.len() {
            1 => spec.variant.to_string(),
            _ => planned.arm.to_string(),
        };
        let mut job = GridJob {
            probe: self.probe.clone(),
            spec: spec.clone(),
            label: None,
            arm,
            placement: self.placement(),
            alignment: None,
            placements: vec![self.placement_value(planned.padding)],
            params,
            rounds: own.rounds,
            extra_rounds: own.extra_rounds,
            order: Order::Shuffled,
            seed: seed_of(self.seed, (1 << 32) + planned.position),
            launch: planned.launch,
            cpu: self.cpu.filter(|_| planned.arm == Arm::Pinned),
            guard_best: None,
            on_thread: false,
            realtime: false,
            order_from: planned.position * u64::from(own.rounds + own.extra_rounds),
            finished: Vec::new(),
        };
        job.skip(finished);
        job
    }
}

/// A seed for one part of a run.
fn seed_of(seed: u64, part: u64) -> u64 {
    // Two neighbouring seeds must not give neighbouring streams.
    fastrand::Rng::with_seed(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Name;

    fn plan() -> PadPlan {
        PadPlan::own(vec![Spec::new(Name::Blake3, 64)], 7, Some(0))
    }

    #[test]
    fn each_pass_visits_every_padding_once_in_an_order_of_its_own() {
        let planned = plan().planned();
        assert_eq!(planned.len(), 3 * 36);
        let order = |pass: u32| -> Vec<usize> {
            planned.iter().filter(|p| p.launch == pass).map(|p| p.padding).collect()
        };
        for pass in 0..3 {
            let mut visited = order(pass);
            assert_ne!(visited, default_paddings(), "shuffled");
            visited.sort_unstable();
            assert_eq!(visited, default_paddings());
        }
        assert_ne!(order(0), order(1));
        let more = PadPlan { launches: 5, ..plan() }.planned();
        assert_eq!(more[..planned.len()], planned[..], "more passes change none of the first");
        assert!(planned.iter().enumerate().all(|(at, p)| p.position == at as u64));
    }

    #[test]
    fn a_finished_launch_is_not_planned_again() {
        let all = plan().own_launches(&HashSet::new());
        let finished: HashSet<SampleKey> =
            (0..12).flat_map(|round| all[5].jobs[0].keys_of(round)).collect();
        let rest = plan().own_launches(&finished);
        assert_eq!(rest[5].blocks(), 0);
        assert_eq!(rest.iter().map(LaunchPlan::blocks).sum::<u64>(), 107 * 12);
    }

    #[test]
    fn under_randomisation_the_launch_is_what_is_finished() {
        let plan = PadPlan { aslr_on: true, paddings: vec![0], launches: 4, ..plan() };
        let all = plan.own_launches(&HashSet::new());
        assert_eq!(all.len(), 4);
        let mut finished = HashSet::new();
        for round in 0..12 {
            let mut key = all[2].jobs[0].keys_of(round).remove(0);
            key.placement_value = 4321;
            finished.insert(key);
        }
        let left: Vec<u64> = plan.own_launches(&finished).iter().map(LaunchPlan::blocks).collect();
        assert_eq!(left, [12, 12, 0, 12]);
    }

    #[test]
    fn each_axis_makes_one_thing_longer() {
        let plan = |axis| PadPlan { axis, path_bytes: 14, ..plan() };
        let env = plan(Axis::Env).surroundings(64);
        assert_eq!((env.bytes(), env.argument()), (64 + 5, None));
        let argv = plan(Axis::Argv).surroundings(64);
        assert_eq!((argv.bytes(), argv.argument()), (256 + 5, Some("x".repeat(64))));
        let path = plan(Axis::Path).surroundings(64);
        assert_eq!(path.longer(std::ffi::OsStr::new("/proc/self/exe")).len(), 14 + 64);
        assert_eq!(plan(Axis::Path).placement_value(64), 78);
        assert_eq!(plan(Axis::Argv).placement(), Placement::Argv);
    }
}
