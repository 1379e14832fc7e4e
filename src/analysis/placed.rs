//! Launches one by one: the residue of each, the band that it predicts, and the band that was met;
//! launches that differ although no residue tells them apart; and a control that must not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Band, Finding};
use super::{LaunchFigure, Options, Series, Verdict, chance, judge, speeds};

/// One launch against what its residue predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedLaunch {
    /// The launch.
    pub launch: u32,
    /// Its placement.
    pub placement: i64,
    /// Its buffer (its stack, where the buffer is not known) modulo the period, 64 where there is
    /// none; `null` where no address is known.
    pub residue: Option<u64>,
    /// Its median, ns an operation or the metric's value.
    pub figure: f64,
    /// The band that its residue belongs to, from 0, the fastest; `null` where none is known to.
    pub predicted_band: Option<usize>,
    /// The band nearest to its figure.
    pub band: Option<usize>,
    /// Whether it is in the band that its residue predicts; `null` where nothing was predicted.
    pub held: Option<bool>,
}

/// Every launch of a series that was judged to `verdict`, in the order of launch and placement.
pub fn placed_launches(series: &Series, verdict: &Verdict) -> Vec<PlacedLaunch> {
    let modulus = verdict.period_bytes.unwrap_or(64);
    let mut of = BTreeMap::<(u32, i64), (Vec<f64>, Option<u64>)>::new();
    for row in series.observations.iter().filter(|row| !row.disturbed) {
        let residue = match (row.buf.or(row.sp), row.residue) {
            (Some(address), _) => Some(address % modulus),
            (None, Some(residue)) if modulus <= 64 => Some(u64::from(residue) % modulus),
            (None, _) => None,
        };
        let launch = of.entry((row.launch, row.placement)).or_default();
        launch.0.push(row.ns);
        launch.1 = launch.1.or(residue);
    }
    let bands = (verdict.bands.len() > 1).then_some(&verdict.bands[..]);
    of.into_iter()
        .map(|((launch, placement), (mut figures, residue))| {
            let figure = super::robust::median(&mut figures);
            let predicted_band = bands.and_then(|bands| predicted(bands, residue?));
            let band = bands.and_then(|bands| nearest(bands, figure));
            PlacedLaunch {
                launch,
                placement,
                residue,
                figure,
                predicted_band,
                band,
                held: predicted_band.zip(band).map(|(predicted, met)| predicted == met),
            }
        })
        .collect()
}

fn predicted(bands: &[Band], residue: u64) -> Option<usize> {
    bands.iter().position(|band| band.residues.contains(&residue))
}

fn nearest(bands: &[Band], figure: f64) -> Option<usize> {
    let distance = |band: &Band| (band.ns_per_op / figure).ln().abs();
    (0..bands.len()).min_by(|&a, &b| distance(&bands[a]).total_cmp(&distance(&bands[b])))
}

/// What to say where launches fall into speeds that no residue explains: a sentence, or `None`.
///
/// Asked of series whose placements do not differ: then all launches should have one speed.
pub fn unexplained_speeds(series: &Series, verdict: &Verdict) -> Option<String> {
    /// As for launches whose placement is not known.
    const LEVEL: f64 = 0.01;
    if verdict.verdict == Finding::Affected {
        return None;
    }
    let figures: Vec<LaunchFigure> = placed_launches(series, verdict)
        .iter()
        .enumerate()
        .filter_map(|(number, placed)| {
            let rows = |row: &&super::Observation| {
                (row.launch, row.placement) == (placed.launch, placed.placement) && !row.disturbed
            };
            let figure = |row: &super::Observation| match series.higher_is_better {
                true => 1.0 / row.ns,
                false => row.ns,
            };
            let rounds: Vec<f64> = series.observations.iter().filter(rows).map(figure).collect();
            LaunchFigure::of_rounds(number as u32, &rounds)
        })
        .collect();
    let found = speeds(&figures, verdict.min_effect_percent);
    let counts: Vec<usize> = found.speeds.iter().map(|speed| speed.launches.len()).collect();
    let several = counts.iter().filter(|count| **count > 1).count() > 1;
    if !several || chance(&figures) > LEVEL {
        return None;
    }
    let effect = found.speeds.last()?.ln_mean - found.speeds[0].ln_mean;
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    Some(format!(
        "launches fall into {} speeds ({} launches, from the fastest; {:.1} % apart) that no residue \
         explains, so that something else differs by launch: record more of it, such as the heap's \
         addresses or the processor",
        counts.len(),
        counts.join(", "),
        100.0 * effect.exp_m1()
    ))
}

/// A residue that should explain nothing: the heap's, or the text's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidueControl {
    /// The workload.
    pub workload: String,
    /// The arm.
    pub arm: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// Whose residue: `heap_mod64` or `text_mod64`.
    pub residue_of: String,
    /// The residues that launches had.
    pub residues: Vec<u8>,
    /// Launches.
    pub launches: u64,
    /// Whether figures differ by it: `clear` where they do not, or where all launches share one
    /// residue, which then cannot explain any band.
    pub verdict: Finding,
}

/// Judges the figures of `series` by another residue, given for each launch at each placement.
pub fn residue_control(
    series: &Series,
    residue_of: &str,
    residues: &BTreeMap<(u32, i64), u8>,
    options: &Options,
) -> Option<ResidueControl> {
    let mut distinct: Vec<u8> = residues.values().copied().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let verdict = match distinct.len() {
        0 => return None,
        1 => Finding::Clear,
        _ => {
            let mut by_residue = series.clone();
            by_residue.observations.retain_mut(|row| {
                let Some(&residue) = residues.get(&(row.launch, row.placement)) else {
                    return false;
                };
                (row.buf, row.sp, row.residue) = (None, None, Some(residue));
                true
            });
            judge(&by_residue, options).verdict
        }
    };
    Some(ResidueControl {
        workload: series.key.workload.clone(),
        arm: series.key.arm.clone(),
        len: series.key.len,
        residue_of: residue_of.to_owned(),
        residues: distinct,
        launches: residues.len() as u64,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Observation;
    use crate::analysis::simulate::{observation, series_of};
    use crate::sample::Placement;

    /// 36 paddings, 3 passes; slow at stacks that are not 32-aligned, but for one launch.
    fn sweep(exception: Option<(u32, i64)>) -> Series {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut rows = Vec::new();
        for launch in 0..3 {
            for at in 0..36 {
                let placement = 4 * at;
                let sp = (0x7fff_ffff_e000_u64 - placement as u64) & !15;
                let slow = (sp & 31 != 0) ^ (exception == Some((launch, placement)));
                let ns = if slow { 80.0 } else { 60.0 } * (1.0 + 0.002 * rng.f64());
                rows.push(Observation { sp: Some(sp), ..observation(launch, 0, placement, ns) });
            }
        }
        let mut series = series_of(rows);
        series.key.placement = Placement::Pad;
        series
    }

    #[test]
    fn each_launch_is_held_against_its_residue() {
        let series = sweep(Some((1, 64)));
        let verdict = judge(&series, &Options::default());
        assert_eq!(verdict.verdict, Finding::Affected, "{:?}", verdict.reasons);
        let placed = placed_launches(&series, &verdict);
        assert_eq!(placed.len(), 108);
        let out: Vec<(u32, i64)> = placed
            .iter()
            .filter(|launch| launch.held == Some(false))
            .map(|launch| (launch.launch, launch.placement))
            .collect();
        assert_eq!(out, [(1, 64)]);
        assert!(placed.iter().all(|launch| launch.residue.is_some_and(|r| r % 16 == 0)));
    }

    #[test]
    fn speeds_that_no_residue_explains_are_said_to_be_that() {
        let mut series = sweep(None);
        let mut rng = fastrand::Rng::with_seed(9);
        for row in &mut series.observations {
            let slow = rng.bool();
            row.ns = if slow { 80.0 } else { 60.0 } * (1.0 + 0.002 * rng.f64());
        }
        let verdict = judge(&series, &Options::default());
        let said = unexplained_speeds(&series, &verdict).expect("two speeds");
        assert!(said.starts_with("launches fall into 2 speeds (") && said.contains("no residue"));
        for row in &mut series.observations {
            row.ns = 60.0 * (1.0 + 0.002 * rng.f64());
        }
        let verdict = judge(&series, &Options::default());
        assert_eq!(unexplained_speeds(&series, &verdict), None);
    }

    #[test]
    fn a_residue_that_all_launches_share_explains_nothing() {
        let series = sweep(None);
        let keys = || series.observations.iter().map(|row| (row.launch, row.placement));
        let options = Options::default();
        let one = keys().map(|key| (key, 16)).collect();
        let control = residue_control(&series, "heap_mod64", &one, &options).expect("is known");
        assert_eq!((control.verdict, &control.residues[..]), (Finding::Clear, &[16][..]));
        let explains = series
            .observations
            .iter()
            .map(|row| ((row.launch, row.placement), if row.ns > 70.0 { 16 } else { 0 }));
        let control =
            residue_control(&series, "heap_mod64", &explains.collect(), &options).expect("known");
        assert_eq!(control.verdict, Finding::Affected);
        assert_eq!(residue_control(&series, "heap_mod64", &BTreeMap::new(), &options), None);
    }
}
