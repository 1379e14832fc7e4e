//! What the formats have in common: processes with figures, and how they become samples and series.

use std::collections::HashMap;

use super::Foreign;
use crate::analysis::{LaunchFigure, SeriesKey};
use crate::sample::{Params, Placement, Sample};

/// What was measured of one workload in one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The workload's name, as stackphase spells it where it knows it.
    pub workload: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// Which variant.
    pub arm: String,
    /// What else distinguishes it.
    pub params: Params,
    /// The unit where it is not ns an operation.
    pub unit: Option<String>,
    /// Where the file says how the process was placed.
    pub placement: Option<(Placement, i64)>,
    /// The figures.
    pub figures: Figures,
}

/// Figures in ns an operation (or in the unit named beside them), finite and above 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Figures {
    /// Each round's.
    Rounds(Vec<f64>),
    /// Only their summary.
    Summary {
        /// The middle.
        median: f64,
        /// The fastest round, where it is given.
        fastest: f64,
        /// Half a unit of the last digit that the file gives.
        resolution: f64,
    },
}

/// The figures of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// One entry a workload, length and variant.
    pub figures: Vec<Figure>,
    /// Its number among the repetitions of the same measurement within its file.
    pub repetition: u32,
    /// When it ran among the processes of its file, where the order is known.
    pub order: Option<u64>,
}

/// The launches of one series: what the question about speeds is asked of.
#[derive(Clone, Debug, PartialEq)]
pub struct Launches {
    /// What they have in common.
    pub key: SeriesKey,
    /// Each launch's figure.
    pub figures: Vec<LaunchFigure>,
}

/// The probe under which imported samples stand.
const PROBE: &str = "launches";

/// The processes of several files of one machine as launches of one experiment: numbered through
/// in the order of the files.
fn numbered(files: &[Foreign]) -> impl Iterator<Item = (u32, &Process, &Figure)> {
    let mut first = 0;
    files.iter().flat_map(move |file| {
        let from = first;
        first += file.processes.iter().map(|process| process.repetition + 1).max().unwrap_or(0);
        file.processes.iter().flat_map(move |process| {
            process.figures.iter().map(move |figure| (from + process.repetition, process, figure))
        })
    })
}

fn template(launch: u32, process: &Process, figure: &Figure) -> Sample {
    // Without an address a placement cannot be told from the next: the launch stands for it.
    let (placement, value) = figure.placement.unwrap_or((Placement::Aslr, i64::from(launch)));
    let mut sample = Sample::new(PROBE, &figure.workload, placement, value, launch, 0);
    sample.len = figure.len;
    sample.arm = figure.arm.clone();
    sample.params = figure.params.clone();
    sample.unit = figure.unit.clone();
    sample.order = process.order;
    sample
}

/// The files' figures as samples: one a round where rounds are given, else one a process.
pub fn samples(files: &[Foreign]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (launch, process, figure) in numbered(files) {
        let template = template(launch, process, figure);
        let rounds = match &figure.figures {
            Figures::Rounds(rounds) => rounds.as_slice(),
            Figures::Summary { median, .. } => std::slice::from_ref(median),
        };
        for (round, value) in rounds.iter().enumerate() {
            let mut sample = Sample { round: round as u32, ..template.clone() };
            if figure.unit.is_some() {
                sample.value = Some(*value);
            } else {
                sample.ns_per_op = Some(*value);
            }
            samples.push(sample);
        }
    }
    samples
}

/// The files' figures by series, one figure a launch.
pub fn launches(files: &[Foreign]) -> Vec<Launches> {
    let mut all: Vec<Launches> = Vec::new();
    let mut index: HashMap<SeriesKey, usize> = HashMap::new();
    for (launch, process, figure) in numbered(files) {
        let key = SeriesKey::of(&template(launch, process, figure));
        let at = *index.entry(key).or_insert_with_key(|key| {
            all.push(Launches { key: key.clone(), figures: Vec::new() });
            all.len() - 1
        });
        all[at].figures.extend(match &figure.figures {
            Figures::Rounds(rounds) => LaunchFigure::of_rounds(launch, rounds),
            Figures::Summary { median, fastest, resolution } => Some(LaunchFigure {
                launch,
                median: *median,
                fastest: *fastest,
                resolution: *resolution,
            }),
        });
    }
    all
}
