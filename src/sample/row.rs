//! The sample itself: one row of `samples.csv`.

use serde::{Deserialize, Serialize};

use super::{Params, Placement, Status};

/// The fixed columns of `samples.csv`, in order; one `<event>_per_op` column a counter follows.
pub const COLUMNS: [&str; 29] = [
    "probe",
    "workload",
    "len",
    "arm",
    "routine",
    "placement",
    "placement_value",
    "launch",
    "round",
    "order",
    "sp",
    "buf",
    "src",
    "buf_mod64",
    "buf_and_31",
    "heap_mod64",
    "text_mod64",
    "env_bytes",
    "argv_bytes",
    "cpu",
    "iterations",
    "ns_per_op",
    "value",
    "unit",
    "params",
    "guard_ns",
    "running_ratio",
    "disturbed",
    "status",
];

/// One timed block, or one launch of a foreign command.
///
/// `buf_mod64` and `buf_and_31` of the CSV are derived from `buf` and therefore not fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The experiment: `phase`, `pad`, `readback`, `copies`, `input`, `pairs`, `compare`, ….
    pub probe: String,
    /// The workload's name, or `command` for a foreign command.
    pub workload: String,
    /// Bytes that one operation handles; `None` where a length has no meaning.
    pub len: Option<u64>,
    /// Which variant: `default`, `zmm`, `ymm`, `baseline`, `candidate`, ….
    pub arm: String,
    /// The C library's copy routine in use, where it is known.
    pub routine: Option<String>,
    /// How the placement was chosen.
    pub placement: Placement,
    /// The placement, in the unit of [`Placement`].
    pub placement_value: i64,
    /// The process, from 0; in a sweep that gives each placement a process of its own, the pass over
    /// all of them.
    pub launch: u32,
    /// The visit to every placement that this block belongs to, from 0.
    pub round: u32,
    /// Position in the order of visiting, from 0, counted within a launch.
    pub order: Option<u64>,
    /// The stack pointer at entry of the timed block.
    pub sp: Option<u64>,
    /// True address of the buffer that is written and read back.
    pub buf: Option<u64>,
    /// Address of the input.
    pub src: Option<u64>,
    /// The input heap allocation's address modulo 64.
    pub heap_mod64: Option<u8>,
    /// The timed loop's code address modulo 64.
    pub text_mod64: Option<u8>,
    /// Bytes of the environment block (strings with their terminators).
    pub env_bytes: Option<u64>,
    /// Bytes of the argument block (strings with their terminators).
    pub argv_bytes: Option<u64>,
    /// The processor that the block ran on.
    pub cpu: Option<u32>,
    /// Operations in the block.
    pub iterations: Option<u64>,
    /// Nanoseconds an operation: wall time of the loop over iterations.
    pub ns_per_op: Option<f64>,
    /// A foreign command's metric; `ns_per_op` is then `None`.
    pub value: Option<f64>,
    /// The unit of `value`.
    pub unit: Option<String>,
    /// Everything else that distinguishes the sample.
    pub params: Params,
    /// The guard's dependent chain, ns a step: the clock at the time of the block.
    pub guard_ns: Option<f64>,
    /// Time running over time enabled of the counters; below 1 they were multiplexed and scaled.
    pub running_ratio: Option<f64>,
    /// Whether the guard saw a disturbance; `None` where there was no guard.
    pub disturbed: Option<bool>,
    /// What became of the block.
    pub status: Status,
    /// Counter name and events an operation, in the order of the columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<(String, Option<f64>)>,
}

impl Sample {
    /// A sample of which nothing but its identity is known yet.
    pub fn new(
        probe: &str,
        workload: &str,
        placement: Placement,
        placement_value: i64,
        launch: u32,
        round: u32,
    ) -> Self {
        Sample {
            probe: probe.to_owned(),
            workload: workload.to_owned(),
            len: None,
            arm: "default".to_owned(),
            routine: None,
            placement,
            placement_value,
            launch,
            round,
            order: None,
            sp: None,
            buf: None,
            src: None,
            heap_mod64: None,
            text_mod64: None,
            env_bytes: None,
            argv_bytes: None,
            cpu: None,
            iterations: None,
            ns_per_op: None,
            value: None,
            unit: None,
            params: Params::new(),
            guard_ns: None,
            running_ratio: None,
            disturbed: None,
            status: Status::Ok,
            events: Vec::new(),
        }
    }

    /// `buf` modulo 64: the buffer's residue in its cache line.
    pub fn buf_mod64(&self) -> Option<u8> {
        self.buf.map(|address| (address % 64) as u8)
    }

    /// `buf & 31`, the quantity of the rule.
    pub fn buf_and_31(&self) -> Option<u8> {
        self.buf.map(|address| (address & 31) as u8)
    }

    /// What identifies the sample among all of a run: two samples with one key are repetitions.
    pub fn key(&self) -> SampleKey {
        SampleKey {
            probe: self.probe.clone(),
            workload: self.workload.clone(),
            len: self.len,
            arm: self.arm.clone(),
            placement: self.placement,
            placement_value: self.placement_value,
            launch: self.launch,
            round: self.round,
            params: self.params.clone(),
        }
    }
}

/// The identity of a sample within a run, as resuming needs it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKey {
    /// See [`Sample::probe`].
    pub probe: String,
    /// See [`Sample::workload`].
    pub workload: String,
    /// See [`Sample::len`].
    pub len: Option<u64>,
    /// See [`Sample::arm`].
    pub arm: String,
    /// See [`Sample::placement`].
    pub placement: Placement,
    /// See [`Sample::placement_value`].
    pub placement_value: i64,
    /// See [`Sample::launch`].
    pub launch: u32,
    /// See [`Sample::round`].
    pub round: u32,
    /// See [`Sample::params`].
    pub params: Params,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_come_from_the_true_address() {
        let mut sample = Sample::new("phase", "blake3", Placement::Shift, 16, 0, 0);
        assert_eq!((sample.buf_mod64(), sample.buf_and_31()), (None, None));
        sample.buf = Some(0x7fff_ffff_e070);
        assert_eq!((sample.buf_mod64(), sample.buf_and_31()), (Some(48), Some(16)));
    }
}
