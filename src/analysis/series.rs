//! What one verdict is made from: the observations of one probe, workload, length, arm, routine,
//! placement and grid.

use crate::sample::{Grid, Params, Placement, Role, Sample};

/// Identifies the series that a sample belongs to; one verdict is given a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// See [`Sample::probe`].
    pub probe: String,
    /// See [`Sample::workload`].
    pub workload: String,
    /// See [`Sample::len`].
    pub len: Option<u64>,
    /// See [`Sample::arm`].
    pub arm: String,
    /// See [`Sample::routine`].
    pub routine: Option<String>,
    /// See [`Sample::placement`].
    pub placement: Placement,
    /// The grid of shifts, from `params`.
    pub grid: Option<Grid>,
    /// What else distinguishes it: `params` without `grid`.
    pub params: Params,
    /// The unit of a foreign command's metric; `None` for ns an operation.
    pub unit: Option<String>,
}

impl SeriesKey {
    /// The series that `sample` belongs to.
    pub fn of(sample: &Sample) -> Self {
        let mut params = Params::new();
        for (key, value) in sample.params.iter().filter(|(key, _)| *key != "grid") {
            params.set(key, value);
        }
        SeriesKey {
            probe: sample.probe.clone(),
            workload: sample.workload.clone(),
            len: sample.len,
            arm: sample.arm.clone(),
            routine: sample.routine.clone(),
            placement: sample.placement,
            grid: sample.params.get("grid").and_then(|grid| grid.parse().ok()),
            params,
            unit: sample.unit.clone(),
        }
    }
}

/// One figure with its place in the experiment. Small and `Copy`: a million of them fit in 100 MB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The process.
    pub launch: u32,
    /// The round within the process.
    pub round: u32,
    /// Position in the visiting order; `None` where it is unknown.
    pub order: Option<u32>,
    /// The placement's value.
    pub placement: i64,
    /// The buffer's residue modulo 64, where the buffer was located.
    pub residue: Option<u8>,
    /// The buffer's whole address, where it is known.
    pub buf: Option<u64>,
    /// The stack pointer, where it is known (stands in for the buffer that was not located).
    pub sp: Option<u64>,
    /// The figure: ns an operation, or the metric's value. Finite and above 0.
    pub ns: f64,
    /// Whether the guard saw a disturbance (unknown counts as undisturbed).
    pub disturbed: bool,
}

/// The observations of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they have in common.
    pub key: SeriesKey,
    /// The workload's role.
    pub role: Role,
    /// Whether a larger value is better (a rate); times are false.
    pub higher_is_better: bool,
    /// The observations, in the order in which they were recorded.
    pub observations: Vec<Observation>,
}
