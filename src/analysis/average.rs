//! The layout-averaged figure: the mean over placements drawn at random, with its interval.
//!
//! A figure from one placement speaks of that placement. The mean over all of them is what a
//! benchmark should quote; placements drawn at random stand for all, so that the mean of their
//! figures estimates it, with Student's interval. The same interval of paired differences of
//! logarithms gives the factor between two arms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::robust::median;
use super::{Series, SeriesKey};

/// Confidence of the intervals, in percent.
const CONFIDENCE: f64 = 95.0;

/// The mean over placements of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutAverage {
    /// The workload.
    pub workload: String,
    /// The arm.
    pub arm: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// `ns` or the metric's unit.
    pub unit: String,
    /// Mean of the placements' medians.
    pub mean: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Placements that it is made from.
    pub placements: u64,
    /// Confidence of the interval, in percent.
    pub confidence_percent: f64,
}

/// One arm over another, as a factor of their figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The workload.
    pub workload: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// The arm above the line.
    pub arm: String,
    /// The arm below it.
    pub over: String,
    /// Geometric mean of the paired ratios.
    pub factor: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs: launches of both arms with one number at one placement.
    pub pairs: u64,
    /// Confidence of the interval, in percent.
    pub confidence_percent: f64,
}

/// The mean over placements; `None` with fewer than two of them.
pub fn layout_average(series: &Series) -> Option<LayoutAverage> {
    let mut by_placement = BTreeMap::<i64, Vec<f64>>::new();
    for ((placement, _), figure) in launch_medians(series) {
        by_placement.entry(placement).or_default().push(figure);
    }
    let figures: Vec<f64> = by_placement.into_values().map(|mut all| median(&mut all)).collect();
    let (mean, half) = student(&figures)?;
    let SeriesKey { workload, arm, len, unit, .. } = series.key.clone();
    Some(LayoutAverage {
        workload,
        arm,
        len,
        unit: unit.unwrap_or_else(|| "ns".to_owned()),
        mean,
        low: mean - half,
        high: mean + half,
        placements: figures.len() as u64,
        confidence_percent: CONFIDENCE,
    })
}

/// `above` over `below`, from launches of one number at one placement; `None` with fewer than two
/// such pairs.
pub fn factor(above: &Series, below: &Series) -> Option<Factor> {
    let others = launch_medians(below);
    let ratios: Vec<f64> = launch_medians(above)
        .into_iter()
        .filter_map(|(key, figure)| Some((figure / others.get(&key)?).ln()))
        .collect();
    let (mean, half) = student(&ratios)?;
    Some(Factor {
        workload: above.key.workload.clone(),
        len: above.key.len,
        arm: above.key.arm.clone(),
        over: below.key.arm.clone(),
        factor: mean.exp(),
        low: (mean - half).exp(),
        high: (mean + half).exp(),
        pairs: ratios.len() as u64,
        confidence_percent: CONFIDENCE,
    })
}

/// The median of the undisturbed rows of each launch at each placement (of all its rows where none
/// is undisturbed).
fn launch_medians(series: &Series) -> BTreeMap<(i64, u32), f64> {
    let mut rows = BTreeMap::<(i64, u32), [Vec<f64>; 2]>::new();
    for row in series.observations.iter().filter(|row| super::cells::usable(row)) {
        let of = rows.entry((row.placement, row.launch)).or_default();
        of[usize::from(row.disturbed)].push(row.ns);
    }
    let figure = |[mut quiet, mut disturbed]: [Vec<f64>; 2]| {
        if quiet.is_empty() { median(&mut disturbed) } else { median(&mut quiet) }
    };
    rows.into_iter().map(|(key, rows)| (key, figure(rows))).collect()
}

/// Mean and half the width of its interval; `None` with fewer than two values.
fn student(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
    let quantile = t_quantile(0.5 + CONFIDENCE / 200.0, (n - 1) as f64);
    Some((mean, quantile * (variance / n as f64).sqrt()))
}

/// The quantile of Student's distribution for `p` above a half, by bisection of its integral.
fn t_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    while high - low > 1e-9 * (1.0 + low) {
        let middle = 0.5 * (low + high);
        if t_probability(middle, freedom) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The probability below `t` (at least 0): with `t = √ν tan θ` the density becomes a power of cos θ,
/// whose integral from 0 to θ over that from 0 to π/2 is twice what lies above a half.
fn t_probability(t: f64, freedom: f64) -> f64 {
    let power = freedom - 1.0;
    let integral = |end: f64| {
        // Simpson's rule; the integrand is smooth and narrow only by √ν.
        let steps = 2 * (64.0 + 16.0 * freedom.sqrt()) as usize;
        let width = end / steps as f64;
        let value = |step: usize| {
            let cosine = (width * step as f64).cos().max(0.0);
            if power == 0.0 { 1.0 } else { cosine.powf(power) }
        };
        let inner: f64 =
            (1..steps).map(|step| value(step) * if step % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (value(0) + inner + value(steps)) * width / 3.0
    };
    let angle = (t / freedom.sqrt()).atan();
    0.5 + 0.5 * integral(angle) / integral(std::f64::consts::FRAC_PI_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::simulate::{observation, series_of};

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (5.0, 2.571),
            (10.0, 2.228),
            (30.0, 2.042),
            (1000.0, 1.962),
        ] {
            let found = t_quantile(0.975, freedom);
            assert!((found - quantile).abs() < 1e-3, "{freedom}: {found}");
        }
    }

    #[test]
    fn every_placement_counts_alike_however_often_it_was_visited() {
        let rows = [(0, 0, 10.0), (1, 0, 10.0), (2, 0, 13.0), (0, 16, 20.0), (0, 32, 30.0)];
        let series = series_of(
            rows.iter().map(|&(launch, at, ns)| observation(launch, 0, at, ns)).collect(),
        );
        let average = layout_average(&series).expect("three placements");
        assert_eq!((average.mean, average.placements), (20.0, 3));
        // 10, 20, 30: standard error 10/√3, quantile 4.3027 at 2 degrees of freedom.
        let half = 4.302_653 * 10.0 / 3f64.sqrt();
        assert!((average.high - 20.0 - half).abs() < 1e-4, "{average:?}");
        assert!((20.0 - average.low - half).abs() < 1e-4);
    }

    #[test]
    fn one_placement_has_no_interval() {
        let series = series_of(vec![observation(0, 0, 0, 1.0), observation(1, 0, 0, 2.0)]);
        assert_eq!(layout_average(&series), None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        // Two bands, three placements in four in the fast one: far from normal.
        let mut rng = fastrand::Rng::with_seed(1);
        let truth = 0.75 * 60.0 + 0.25 * 85.0;
        let runs = 400;
        let held = (0..runs)
            .filter(|_| {
                let rows = (0..32).map(|at| {
                    let slow = rng.u32(0..4) == 0;
                    let ns = if slow { 85.0 } else { 60.0 } + rng.f64() - 0.5;
                    observation(0, 0, at, ns)
                });
                let average = layout_average(&series_of(rows.collect())).expect("is one");
                average.low <= truth && truth <= average.high
            })
            .count();
        let share = held as f64 / runs as f64;
        assert!((0.90..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn a_factor_compares_launches_at_one_placement() {
        let rows = |scale: f64| {
            let rows = (0..4).map(|at| observation(0, 0, at * 16, scale * (10.0 + at as f64)));
            series_of(rows.collect())
        };
        let factor = factor(&rows(1.5), &rows(1.0)).expect("four pairs");
        assert!((factor.factor - 1.5).abs() < 1e-12 && factor.pairs == 4, "{factor:?}");
        assert!((factor.low - 1.5).abs() < 1e-6 && (factor.high - 1.5).abs() < 1e-6);
    }
}
