//! The verdict document, `stackphase/verdict/1`: what analysis concludes, as it is printed.

use serde::{Deserialize, Serialize};

use crate::sample::{Grid, Params, Placement, Role};

/// The schema of [`VerdictDocument`].
pub const SCHEMA: &str = "stackphase/verdict/1";

/// All verdicts of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictDocument {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// One entry a probe, workload, length, arm, routine, placement and grid.
    pub verdicts: Vec<Verdict>,
}

impl VerdictDocument {
    /// A document with its schema set.
    pub fn new(verdicts: Vec<Verdict>) -> Self {
        VerdictDocument { schema: SCHEMA.to_owned(), verdicts }
    }
}

/// Whether the speed depends on the placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// The simultaneous interval lies above the minimum effect.
    Affected,
    /// The simultaneous interval lies below the minimum effect.
    Clear,
    /// Neither; `reasons` says why and what would settle it.
    Inconclusive,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Finding::Affected => "affected",
            Finding::Clear => "clear",
            Finding::Inconclusive => "inconclusive",
        })
    }
}

/// One conclusion about one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The experiment.
    pub probe: String,
    /// The workload.
    pub workload: String,
    /// Its role; only subjects gate.
    pub role: Role,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// The variant.
    pub arm: String,
    /// The C library's copy routine.
    pub routine: Option<String>,
    /// How the placement was chosen.
    pub placement: Placement,
    /// Which grid of shifts.
    pub grid: Option<Grid>,
    /// Further parameters of the series (`k=v;…`).
    #[serde(default)]
    pub params: Params,
    /// The conclusion.
    pub verdict: Finding,
    /// Slowest band over the fastest, in percent; 0 with one band; `null` without an estimate.
    pub effect_percent: Option<f64>,
    /// Lower end of the simultaneous interval of the largest difference, in percent.
    pub effect_low_percent: Option<f64>,
    /// Upper end of the same.
    pub effect_high_percent: Option<f64>,
    /// The smallest effect that counts, in percent.
    pub min_effect_percent: f64,
    /// Bands from the fastest to the slowest.
    pub bands: Vec<Band>,
    /// The accepted period; `null` where classes are the placements themselves.
    pub period_bytes: Option<u64>,
    /// The buffer's residues modulo 64 that were visited.
    pub residues_visited: Vec<u8>,
    /// The rules tried, with what they held for.
    pub rules: Vec<RuleOutcome>,
    /// How the interval was made.
    pub interval_method: String,
    /// Retired instructions an operation, with their source.
    pub instructions_per_op: Option<InstructionsPerOp>,
    /// The unit of the figures in `bands`: `ns` unless a foreign command's metric was read.
    #[serde(default = "nanoseconds")]
    pub unit: String,
    /// What the launches themselves show, where there are several; `null` from one launch.
    #[serde(default)]
    pub launches: Option<Launches>,
    /// Sentences that qualify the verdict; each warning ends in its remedy.
    pub reasons: Vec<String>,
}

fn nanoseconds() -> String {
    "ns".to_owned()
}

/// What the launches show beside the classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    /// Launches with an undisturbed figure.
    pub count: u64,
    /// Spread of the blocks of one launch at one placement (robust standard deviation), in percent;
    /// `null` where each launch has one block a placement.
    pub spread_within_percent: Option<f64>,
    /// Spread between launches beyond what their classes explain (the same measure), in percent.
    pub spread_between_percent: Option<f64>,
    /// Launches that lie in the band their class predicts; `null` without bands, or where a launch
    /// visits many placements.
    pub held: Option<u64>,
    /// The launches that do not.
    #[serde(default)]
    pub exceptions: Vec<LaunchException>,
}

/// A launch outside the band that its class predicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaunchException {
    /// The launch.
    pub launch: u32,
    /// Its placement.
    pub placement: i64,
    /// Its position modulo the period (modulo 64 where there is none).
    pub residue: u64,
    /// Its median, ns an operation (or the metric's value).
    pub ns_per_op: f64,
    /// The median of the band that was predicted, in the same unit.
    pub predicted_ns_per_op: f64,
}

/// Classes of one speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    /// Median of the band, ns an operation (or the metric's value).
    pub ns_per_op: f64,
    /// Above the fastest band, in percent.
    pub percent_above_fast: f64,
    /// Residues modulo the period that belong to it (modulo 64 where the period is 64).
    pub residues: Vec<u64>,
    /// Placement values that belong to it.
    #[serde(default)]
    pub placements: Vec<i64>,
}

/// One rule and for how many placements it held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleOutcome {
    /// The rule's name; the first of those that coincide on what was visited.
    pub rule: String,
    /// Rules that coincide with it on what was visited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Placements (launches, in a sweep by launch) for which it held; `null` without bands.
    pub held: Option<u64>,
    /// Placements (launches) it was tried on.
    pub of: u64,
}

/// Retired instructions of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstructionsPerOp {
    /// Instructions an operation.
    pub value: f64,
    /// How they were counted.
    pub source: InstructionSource,
}

/// How instructions were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructionSource {
    /// The hardware counter.
    Pmu,
    /// Single-stepping one call in a child.
    SingleStep,
}
