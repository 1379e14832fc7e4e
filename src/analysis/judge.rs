//! From one series to one verdict.

use super::{Finding, Series, Verdict, VerdictDocument};

/// What analysis may be told; the defaults are those of the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The smallest effect that counts, in percent, above 0.
    pub min_effect_percent: f64,
    /// Permutations behind each interval and each test of a period; at least 199.
    pub permutations: usize,
    /// Seed of the permutations: the same seed and series give the same verdict.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { min_effect_percent: 2.0, permutations: 999, seed: 0 }
    }
}

/// Judges one series.
pub fn judge(series: &Series, options: &Options) -> Verdict {
    let key = &series.key;
    Verdict {
        probe: key.probe.clone(),
        workload: key.workload.clone(),
        role: series.role,
        len: key.len,
        arm: key.arm.clone(),
        routine: key.routine.clone(),
        placement: key.placement,
        grid: key.grid,
        params: key.params.clone(),
        verdict: Finding::Inconclusive,
        effect_percent: None,
        effect_low_percent: None,
        effect_high_percent: None,
        min_effect_percent: options.min_effect_percent,
        bands: Vec::new(),
        period_bytes: None,
        residues_visited: Vec::new(),
        rules: Vec::new(),
        interval_method: String::new(),
        instructions_per_op: None,
        launches: None,
        unit: key.unit.clone().unwrap_or_else(|| "ns".to_owned()),
        reasons: vec!["no estimate was made".to_owned()],
    }
}

/// Judges every series of a run, in the order given.
pub fn judge_all(series: &[Series], options: &Options) -> VerdictDocument {
    VerdictDocument::new(series.iter().map(|series| judge(series, options)).collect())
}
