//! What a report is made from: one run directory, as far as it goes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::thin::Thinned;
use crate::analysis::{Verdict, VerdictDocument};

/// One run, with whatever of it could be read.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// The directory's own name, without the path to it.
    pub label: String,
    /// What analysis concluded.
    pub verdicts: Option<VerdictDocument>,
    /// Every other document by its kind (`machine`, `plan`, `controls`, `explanation`, …).
    pub documents: BTreeMap<String, Value>,
    /// The recorded blocks, thinned for drawing.
    pub series: Vec<SampleSeries>,
    /// Rows of the samples file, drawn or not.
    pub rows: u64,
    /// What is not there or could not be read: sentences that end in a remedy where there is one.
    pub missing: Vec<String>,
}

/// The blocks of one series, thinned, under the names that its verdict has.
#[derive(Clone, Debug)]
pub struct SampleSeries {
    /// What the blocks have in common.
    pub key: Key,
    /// The blocks.
    pub blocks: Thinned,
}

/// The cells that tell series apart, as text: foreign files may hold any words in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// The experiment.
    pub probe: String,
    /// The workload.
    pub workload: String,
    /// Bytes an operation, as written.
    pub len: String,
    /// The variant.
    pub arm: String,
    /// The copy routine.
    pub routine: String,
    /// How the placement was chosen.
    pub placement: String,
    /// The `params` cell: the grid and whatever else distinguishes the series.
    pub params: String,
    /// The unit of a foreign command's metric; empty for ns an operation.
    pub unit: String,
}

impl Key {
    /// The key that the samples of `verdict` carry.
    pub fn of(verdict: &Verdict) -> Key {
        let mut params = verdict.params.clone();
        if let Some(grid) = verdict.grid {
            params.set("grid", grid);
        }
        Key {
            probe: verdict.probe.clone(),
            workload: verdict.workload.clone(),
            len: verdict.len.map_or(String::new(), |len| len.to_string()),
            arm: verdict.arm.clone(),
            routine: verdict.routine.clone().unwrap_or_default(),
            placement: verdict.placement.to_string(),
            params: params.to_string(),
            unit: if verdict.unit == "ns" { String::new() } else { verdict.unit.clone() },
        }
    }

    /// The value of one parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
    }
}

impl RunData {
    /// The verdict entries, none where there is no document.
    pub fn verdicts(&self) -> &[Verdict] {
        self.verdicts.as_ref().map_or(&[], |document| &document.verdicts)
    }

    /// The blocks that `verdict` was made from. A routine or unit that only one side names does
    /// not tell them apart.
    pub fn series_of(&self, verdict: &Verdict) -> Option<&SampleSeries> {
        let wanted = Key::of(verdict);
        let same = |a: &str, b: &str| a == b || a.is_empty() || b.is_empty();
        self.series.iter().find(|series| series.key == wanted).or_else(|| {
            self.series.iter().find(|series| {
                let rest = Key {
                    routine: wanted.routine.clone(),
                    unit: wanted.unit.clone(),
                    ..series.key.clone()
                };
                rest == wanted
                    && same(&series.key.routine, &wanted.routine)
                    && same(&series.key.unit, &wanted.unit)
            })
        })
    }

    /// One document by kind.
    pub fn document(&self, kind: &str) -> Option<&Value> {
        self.documents.get(kind)
    }
}
