//! The trampoline grid.
//!
//! *Hypothesis*: the time of one operation depends on where its stack frame lies, by the buffer's
//! residue in its cache line or by its place in a page. *Control*: everything but the shift is
//! constant within a launch (environment, code, heap, input); a workload in registers and a round
//! trip that realigns its buffer must come out flat. *Cannot show*: why; and nothing of placements
//! that a shift of 16 bytes cannot reach, unless the in-frame offset is varied.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use stack_trampoline::Alignment;

use super::campaign::LaunchPlan;
use crate::launch::{Environment, GridJob, LaunchOptions, Order};
use crate::placement::{line_shifts, page_shifts};
use crate::sample::{Grid, Params, Placement, SampleKey};
use crate::workloads::Spec;

/// Bytes of the constant padding of every launch: enough for a tunable in its place.
pub const PADDING: usize = 256;

/// One workload over one grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridPlan {
    /// The workload.
    pub spec: Spec,
    /// The grid.
    pub grid: Grid,
    /// The trampoline's anchor: `page` or `line`.
    pub alignment: String,
    /// Rounds a launch.
    pub rounds: u32,
}

impl GridPlan {
    /// `spec` over `grid`, anchored to the page.
    pub fn new(spec: Spec, grid: Grid, rounds: u32) -> Self {
        GridPlan { spec, grid, alignment: Alignment::Page.to_string(), rounds }
    }

    fn shifts(&self) -> Vec<i64> {
        let shifts = match self.grid {
            Grid::Line => line_shifts(),
            Grid::Page => page_shifts(),
        };
        shifts.into_iter().map(|shift| shift as i64).collect()
    }
}

/// The whole experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// The experiment's name in the samples.
    pub probe: String,
    /// Grids, all in each launch.
    pub grids: Vec<GridPlan>,
    /// Processes.
    pub launches: u32,
    /// Extra whole rounds at most, when blocks were disturbed.
    pub extra_rounds: u32,
    /// The order of visiting.
    pub order: Order,
    /// Seed of all shuffles and messages.
    pub seed: u64,
    /// Processor.
    pub cpu: Option<usize>,
    /// On a spawned thread.
    pub on_thread: bool,
}

impl PhasePlan {
    /// The launches, without what `finished` already holds.
    pub fn launches(&self, finished: &HashSet<SampleKey>) -> Vec<LaunchPlan> {
        let environment = Environment::padded(PADDING);
        (0..self.launches)
            .map(|launch| LaunchPlan {
                options: LaunchOptions {
                    environment: environment.clone(),
                    randomisation_off: true,
                },
                jobs: self.jobs(launch, finished),
            })
            .collect()
    }

    fn jobs(&self, launch: u32, finished: &HashSet<SampleKey>) -> Vec<GridJob> {
        let mut seeds = fastrand::Rng::with_seed(self.seed);
        // One stream for all launches: the seeds of a launch do not depend on how many there are.
        for _ in 0..launch {
            seeds = fastrand::Rng::with_seed(seeds.u64(..));
        }
        self.grids
            .iter()
            .map(|grid| {
                let mut job = GridJob {
                    probe: self.probe.clone(),
                    arm: grid.spec.variant.to_string(),
                    spec: grid.spec.clone(),
                    label: None,
                    placement: Placement::Shift,
                    alignment: Some(grid.alignment.clone()),
                    placements: grid.shifts(),
                    params: self.params(grid),
                    rounds: grid.rounds,
                    extra_rounds: self.extra_rounds,
                    order: self.order,
                    seed: seeds.u64(..),
                    launch,
                    cpu: self.cpu,
                    guard_best: None,
                    on_thread: self.on_thread,
                    realtime: false,
                    order_from: 0,
                    finished: Vec::new(),
                };
                job.skip(finished);
                job
            })
            .collect()
    }

    fn params(&self, grid: &GridPlan) -> Params {
        let mut params = Params::new().with("grid", grid.grid);
        if grid.spec.frame_offset != 0 {
            params.set("frame_offset", grid.spec.frame_offset);
        }
        if grid.spec.sink != crate::workloads::SinkKind::BlackBox {
            params.set("sink", grid.spec.sink);
        }
        if grid.alignment != Alignment::Page.to_string() {
            params.set("align", &grid.alignment);
        }
        if self.on_thread {
            params.set("stack", "thread");
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Name;

    fn plan(launches: u32) -> PhasePlan {
        PhasePlan {
            probe: "phase".into(),
            grids: vec![GridPlan::new(Spec::new(Name::Blake3, 64), Grid::Line, 12)],
            launches,
            extra_rounds: 3,
            order: Order::Shuffled,
            seed: 1,
            cpu: None,
            on_thread: false,
        }
    }

    #[test]
    fn a_launch_keeps_its_seed_however_many_there_are() {
        let (three, five) = (plan(3).launches(&HashSet::new()), plan(5).launches(&HashSet::new()));
        assert_eq!(three[..], five[..3]);
        assert_ne!(three[0].jobs[0].seed, three[1].jobs[0].seed);
    }

    #[test]
    fn what_is_finished_is_not_planned_again() {
        let all = plan(1).launches(&HashSet::new());
        let job = &all[0].jobs[0];
        let finished: HashSet<SampleKey> = (0..3).flat_map(|round| job.keys_of(round)).collect();
        let rest = plan(1).launches(&finished);
        assert_eq!(rest[0].blocks(), all[0].blocks() - 3 * 16);
    }
}
