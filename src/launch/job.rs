//! A grid of placements for one workload in one launch.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::block::GuardReading;
use crate::sample::{Params, Placement, SampleKey};
use crate::workloads::Spec;

/// The order in which a round visits the placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// A fresh seeded shuffle each round.
    Shuffled,
    /// Ascending: to show what goes wrong; no conclusion is drawn from it.
    Ascending,
}

/// What to time, where, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridJob {
    /// The experiment's name in the samples.
    pub probe: String,
    /// The workload.
    pub spec: Spec,
    /// The column `workload` of code that is not built in; `None` takes the name of `spec`.
    #[serde(default)]
    pub label: Option<String>,
    /// The column `arm`.
    pub arm: String,
    /// The column `placement`.
    pub placement: Placement,
    /// The trampoline's alignment (`page` or `line`); `None` runs where the stack happens to be.
    pub alignment: Option<String>,
    /// The placements: shifts, or the one value that this launch stands for. Under randomisation
    /// one of any value: the worker puts what it found in its place.
    pub placements: Vec<i64>,
    /// The column `params`.
    pub params: Params,
    /// Rounds.
    pub rounds: u32,
    /// Extra whole rounds at most, when blocks were disturbed.
    pub extra_rounds: u32,
    /// The order of visiting.
    pub order: Order,
    /// Seed of the shuffles and messages; each launch gets its own.
    pub seed: u64,
    /// The launch's number.
    pub launch: u32,
    /// Processor to pin to; `None` leaves the thread unpinned.
    pub cpu: Option<usize>,
    /// The best guard reading of earlier launches of this arm.
    pub guard_best: Option<GuardReading>,
    /// Run on a spawned thread instead of the main one.
    pub on_thread: bool,
    /// Run at real-time priority, with sleeps that stay below the kernel's throttle.
    #[serde(default)]
    pub realtime: bool,
    /// What `order` is counted from: launches that carry the placement are numbered through, so
    /// that their order in the run is recorded.
    #[serde(default)]
    pub order_from: u64,
    /// `(round, placement)` pairs that a resumed run already has.
    #[serde(default)]
    pub finished: Vec<(u32, i64)>,
}

impl GridJob {
    /// The column `workload`.
    pub fn workload(&self) -> &str {
        self.label.as_deref().unwrap_or(self.spec.name.as_str())
    }

    /// The column `len`; unknown for code that is not built in.
    pub fn sample_len(&self) -> Option<u64> {
        self.label.is_none().then(|| self.spec.sample_len()).flatten()
    }

    /// Leaves out what `finished` holds of this job.
    pub fn skip(&mut self, finished: &HashSet<SampleKey>) {
        let (name, len) = (self.workload().to_owned(), self.sample_len());
        self.finished = finished
            .iter()
            .filter(|key| {
                key.probe == self.probe
                    && key.workload == name
                    && key.len == len
                    && key.arm == self.arm
                    && key.placement == self.placement
                    && key.launch == self.launch
                    && key.params == self.params
            })
            .filter_map(|key| match (self.placement, self.placements.first()) {
                // Under randomisation the placement is found, not planned: the launch's number
                // tells.
                (Placement::Aslr, Some(&planned)) => Some((key.round, planned)),
                // A sweep by launch has jobs of one launch number at other placements.
                _ => self
                    .placements
                    .contains(&key.placement_value)
                    .then_some((key.round, key.placement_value)),
            })
            .collect();
    }

    /// Whether every planned block is finished.
    pub fn is_finished(&self) -> bool {
        self.blocks_left() == 0
    }

    /// Planned blocks that are not finished; repeated rounds are not planned.
    pub fn blocks_left(&self) -> u64 {
        let planned = u64::from(self.rounds) * self.placements.len() as u64;
        let finished = self.finished.iter().filter(|(round, _)| *round < self.rounds).count();
        planned.saturating_sub(finished as u64)
    }

    /// The keys of one round, as its samples will have them.
    pub fn keys_of(&self, round: u32) -> Vec<SampleKey> {
        self.placements
            .iter()
            .map(|&placement_value| SampleKey {
                probe: self.probe.clone(),
                workload: self.workload().to_owned(),
                len: self.sample_len(),
                arm: self.arm.clone(),
                placement: self.placement,
                placement_value,
                launch: self.launch,
                round,
                params: self.params.clone(),
            })
            .collect()
    }
}
