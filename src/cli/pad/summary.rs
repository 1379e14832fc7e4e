//! From the samples of a sweep to what is printed and kept: the verdicts, and what goes with them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measure::{Measured, without_threads};
use crate::Failure;
use crate::analysis::{
    Factor, Finding, LayoutAverage, Options, PlacedLaunch, ResidueControl, Series, Verdict,
    VerdictDocument, factor, is_unplaced, judge, judge_launches, launch_figures, layout_average,
    placed_launches, residue_control, unexplained_speeds,
};
use crate::probes::Randomisation;
use crate::probes::pad::{FailedLaunch, PadPlan, settle};
use crate::record::{RunDirectory, series_of};
use crate::sample::{Placement, Sample, Status};

/// The launches of one verdict.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) workload: String,
    pub(super) arm: String,
    /// Launches in the band that their residue predicts; `null` without bands.
    pub(super) held: Option<u64>,
    pub(super) of: u64,
    pub(super) launches: Vec<PlacedLaunch>,
}

/// Threads of a command.
#[derive(Debug, Serialize)]
pub(super) struct Threads {
    pub(super) threads: usize,
    pub(super) processes: usize,
    /// The threads' share of the processor time; `null` where the kernel does not say.
    pub(super) share: Option<f64>,
    pub(super) launches_off_the_main_stack: u64,
}

/// Everything that is said about a sweep.
#[derive(Debug)]
pub struct Summary {
    /// The verdicts.
    pub verdicts: VerdictDocument,
    pub(super) more: More,
}

/// What goes with the verdicts, in the document beside them.
#[derive(Debug, Serialize)]
pub(super) struct More {
    pub(super) randomisation: Randomisation,
    pub(super) averages: Vec<LayoutAverage>,
    pub(super) factors: Vec<Factor>,
    pub(super) controls: Vec<ResidueControl>,
    pub(super) placed: Vec<Listed>,
    pub(super) threads: Option<Threads>,
    pub(super) failed: Vec<FailedLaunch>,
}

impl Summary {
    /// Judges what the run directory holds.
    ///
    /// # Errors
    /// When the samples cannot be read back, or hold no figure.
    pub fn of(
        directory: &RunDirectory,
        plan: &PadPlan,
        measured: &Measured,
    ) -> Result<Self, Failure> {
        let mut samples = directory.read_samples()?;
        settle(&mut samples);
        let all = series_of(&samples);
        if all.is_empty() {
            return Err(Failure::new(
                "no launch came to a figure",
                directory.path().display().to_string(),
                "mend what the warnings above say",
            ));
        }
        let options = Options { seed: plan.seed, ..Options::default() };
        let failed = failed(&samples, measured);
        let mut verdicts: Vec<Verdict> = Vec::new();
        let mut placed = Vec::new();
        for series in &all {
            let mut verdict = judge_one(series, &options);
            qualify(&mut verdict, series, measured, failed.len(), samples_of(&samples, series));
            placed.push(list(series, &verdict));
            verdicts.push(verdict);
        }
        let sweep = measured.sweep.as_ref();
        let more = More {
            randomisation: measured.held.randomisation,
            averages: all
                .iter()
                .filter(|_| plan.random || plan.aslr_on)
                .filter_map(layout_average)
                .collect(),
            factors: factors(&all),
            controls: controls(&all, &samples, &options),
            placed,
            threads: sweep.filter(|sweep| sweep.tasks.threads > 0).map(|sweep| Threads {
                threads: sweep.tasks.threads,
                processes: sweep.tasks.processes,
                share: sweep.tasks.share,
                launches_off_the_main_stack: sweep.off_the_main_stack,
            }),
            failed,
        };
        Ok(Summary { verdicts: VerdictDocument::new(verdicts), more })
    }

    /// The document: that of the verdicts, with the rest as further members.
    ///
    /// # Errors
    /// When it cannot be made, which is a fault of the program.
    pub fn document(&self) -> Result<serde_json::Value, Failure> {
        let failed = |error: serde_json::Error| {
            Failure::new(format!("cannot make JSON: {error}"), "result", "report this as a fault")
        };
        let mut document = serde_json::to_value(&self.verdicts).map_err(failed)?;
        let more = serde_json::to_value(&self.more).map_err(failed)?;
        if let (Some(document), serde_json::Value::Object(more)) = (document.as_object_mut(), more)
        {
            document.extend(more);
        }
        Ok(document)
    }
}

fn judge_one(series: &Series, options: &Options) -> Verdict {
    if !is_unplaced(series) {
        return judge(series, options);
    }
    let figures = launch_figures(series);
    let minimum = options.min_effect_percent;
    judge_launches(&series.key, series.role, series.higher_is_better, &figures, minimum)
}

/// Adds what only the sweep knows to a verdict.
fn qualify(
    verdict: &mut Verdict,
    series: &Series,
    measured: &Measured,
    failed: usize,
    rows: usize,
) {
    if failed > 0 && series.key.workload == "command" {
        verdict
            .reasons
            .push(format!("{failed} of {rows} launches failed and are left out: see `failed`"));
    }
    if series.key.workload == "command" {
        // Nothing can be located in a foreign command from outside.
        let located = |reason: &mut String| {
            if reason.starts_with("the buffer was not located") {
                *reason = "of a foreign command no buffer is known, so that classes are those of \
                           its stack's start and no rule about a buffer was tried: trace it, or \
                           name the code as a workload"
                    .to_owned();
            }
        };
        verdict.reasons.iter_mut().for_each(located);
    }
    verdict.reasons.extend(unexplained_speeds(series, verdict));
    let threads = measured.sweep.as_ref().and_then(|sweep| without_threads(verdict.verdict, sweep));
    if let Some(reason) = threads {
        verdict.verdict = Finding::Inconclusive;
        verdict.reasons.insert(0, reason);
    }
}

fn samples_of(samples: &[Sample], series: &Series) -> usize {
    let same =
        |sample: &&Sample| sample.workload == series.key.workload && sample.arm == series.key.arm;
    samples.iter().filter(same).count()
}

/// The launches without a figure, with the reason where it was seen: a resumed run has forgotten
/// those of its first part.
fn failed(samples: &[Sample], measured: &Measured) -> Vec<FailedLaunch> {
    let seen = measured.sweep.iter().flat_map(|sweep| &sweep.failed);
    let seen: Vec<&FailedLaunch> = seen.collect();
    samples
        .iter()
        .filter(|sample| sample.status != Status::Ok)
        .map(|sample| {
            let placement = (sample.placement != Placement::Aslr).then_some(sample.placement_value);
            let same = |failed: &&&FailedLaunch| {
                (failed.launch, failed.placement) == (sample.launch, placement)
            };
            seen.iter().find(same).map_or_else(
                || FailedLaunch {
                    launch: sample.launch,
                    placement,
                    why: "it came to no figure".to_owned(),
                },
                |failed| (*failed).clone(),
            )
        })
        .collect()
}

fn list(series: &Series, verdict: &Verdict) -> Listed {
    let launches = placed_launches(series, verdict);
    let predicted = || launches.iter().filter_map(|launch| launch.held);
    let known = predicted().next().is_some();
    Listed {
        workload: series.key.workload.clone(),
        arm: series.key.arm.clone(),
        held: known.then(|| predicted().filter(|held| *held).count() as u64),
        of: launches.len() as u64,
        launches,
    }
}

/// The unpinned arm over the pinned one, for each workload that has both.
fn factors(series: &[Series]) -> Vec<Factor> {
    let arm = |name: &'static str| series.iter().filter(move |series| series.key.arm == name);
    arm("unpinned")
        .filter_map(|above| {
            let same = |below: &&Series| {
                (&below.key.workload, below.key.len, &below.key.unit)
                    == (&above.key.workload, above.key.len, &above.key.unit)
            };
            factor(above, arm("pinned").find(same)?)
        })
        .collect()
}

/// The residues of heap and text, which are to explain nothing.
fn controls(series: &[Series], samples: &[Sample], options: &Options) -> Vec<ResidueControl> {
    type Residue = fn(&Sample) -> Option<u8>;
    let of: [(&str, Residue); 2] =
        [("heap_mod64", |sample| sample.heap_mod64), ("text_mod64", |sample| sample.text_mod64)];
    let mut controls = Vec::new();
    for series in series {
        for (name, residue) in of {
            let residues: BTreeMap<(u32, i64), u8> = samples
                .iter()
                .filter(|sample| {
                    sample.workload == series.key.workload
                        && sample.arm == series.key.arm
                        && sample.len == series.key.len
                })
                .filter_map(|sample| {
                    Some(((sample.launch, sample.placement_value), residue(sample)?))
                })
                .collect();
            controls.extend(residue_control(series, name, &residues, options));
        }
    }
    controls
}
