//! Do launches whose placement is not known fall into speeds?
//!
//! One figure a launch, so the launch is the unit. Two neighbours on the scale of logarithms part
//! two speeds when the gap between them exceeds three things at once: the minimum effect; twice
//! what a launch varies by within itself; and [`APART`] times the scatter of the launches inside
//! the speeds so found. The last is what keeps launches that merely scatter from being cut at
//! their largest gap. The scatter of few launches is itself uncertain, so it is pooled over the
//! speeds and shrunk towards the spread within a launch, which has the weight [`PRIOR`] of as many
//! launches. A speed that a single launch has may be an outlier: it is listed, but does not decide.
//!
//! Speeds are called that only if launches of one speed would hardly fall apart so: the share of
//! the sum of squares that the best cut in two takes away is compared with that of as many normal
//! values, 999 times ([`chance`]). Nothing in it depends on how much launches scatter.

use super::{Band, Finding, Launches, Series, SeriesKey, Verdict};
use crate::sample::{Placement, Role};

/// A gap must exceed this many standard deviations of the launches inside the speeds.
pub const APART: f64 = 4.0;
/// Weight of the spread within a launch in the pooled variance, in launches.
pub const PRIOR: f64 = 4.0;
/// With seven launches a speed that half of them take is missed once in 128.
const ENOUGH: usize = 7;

/// What one launch came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchFigure {
    /// The launch.
    pub launch: u32,
    /// Its median, finite and above 0.
    pub median: f64,
    /// Its fast end: the minimum, or the 5 % quantile of its rounds. The slow end tells of
    /// interruptions, not of the launch's own spread.
    pub fastest: f64,
    /// Half a unit of the last digit recorded; 0 where figures are exact.
    pub resolution: f64,
}

impl LaunchFigure {
    /// The figure of a launch whose rounds are known; `None` without rounds.
    pub fn of_rounds(launch: u32, rounds: &[f64]) -> Option<Self> {
        let mut sorted = rounds.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let fastest = *sorted.get(sorted.len() / 20)?;
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            0.5 * (sorted[middle - 1] + sorted[middle])
        };
        Some(LaunchFigure { launch, median, fastest, resolution: 0.0 })
    }

    /// What the launch varies by within itself, as a difference of logarithms.
    fn within(&self) -> f64 {
        let spread = (self.median / self.fastest).ln();
        spread.max((self.resolution / self.median).ln_1p()).max(0.0)
    }
}

/// The figure of each launch of a series, from its undisturbed rows (from all of a launch's rows
/// where none is undisturbed). Rates are turned into times.
pub fn launch_figures(series: &Series) -> Vec<LaunchFigure> {
    let mut launches = std::collections::BTreeMap::<u32, [Vec<f64>; 2]>::new();
    for observation in &series.observations {
        let time = if series.higher_is_better { 1.0 / observation.ns } else { observation.ns };
        launches.entry(observation.launch).or_default()[usize::from(observation.disturbed)]
            .push(time);
    }
    launches
        .into_iter()
        .filter_map(|(launch, [quiet, disturbed])| {
            let rounds = if quiet.is_empty() { disturbed } else { quiet };
            LaunchFigure::of_rounds(launch, &rounds)
        })
        .collect()
}

/// Whether nothing is known of where the launches ran: no address, and the launch's own number in
/// the place of the placement. Such a series is one for [`judge_launches`].
pub fn is_unplaced(series: &Series) -> bool {
    series.key.placement == Placement::Aslr
        && series.observations.iter().all(|o| {
            o.residue.is_none()
                && o.buf.is_none()
                && o.sp.is_none()
                && o.placement == i64::from(o.launch)
        })
}

/// Launches of one speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Speed {
    /// Mean of the logarithms of its launches' medians.
    pub ln_mean: f64,
    /// The median of its launches' medians.
    pub median: f64,
    /// The launches, in rising order of their number.
    pub launches: Vec<u32>,
}

/// The speeds that launches fall into.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// From the fastest to the slowest; one where the launches do not differ.
    pub speeds: Vec<Speed>,
    /// What a launch varies by within itself (the median of launches), of logarithms.
    pub within: f64,
    /// Pooled standard deviation of the launches within their speeds, of logarithms.
    pub scatter: f64,
    /// The gap that parts two speeds, as a difference of logarithms.
    pub gap: f64,
}

impl Speeds {
    /// Whether a gap between speeds has two launches or more on either side.
    fn parts_two_from_two(&self) -> bool {
        let counts = || self.speeds.iter().map(|speed| speed.launches.len());
        let total: usize = counts().sum();
        let mut below = 0;
        counts().take(self.speeds.len().saturating_sub(1)).any(|count| {
            below += count;
            below > 1 && total - below > 1
        })
    }
}

/// Groups launches into speeds; `min_effect_percent` is the smallest difference that counts.
pub fn speeds(figures: &[LaunchFigure], min_effect_percent: f64) -> Speeds {
    let mut sorted = figures.to_vec();
    sorted.sort_by(|a, b| a.median.total_cmp(&b.median).then(a.launch.cmp(&b.launch)));
    let ln: Vec<f64> = sorted.iter().map(|figure| figure.median.ln()).collect();
    let mut within: Vec<f64> = sorted.iter().map(LaunchFigure::within).collect();
    within.sort_unstable_by(f64::total_cmp);
    let within = within.get(within.len() / 2).copied().unwrap_or(0.0);
    let least = (min_effect_percent / 100.0).ln_1p().max(2.0 * within);

    // `cuts` holds where each speed but the first begins.
    let mut cuts: Vec<usize> = (1..ln.len()).filter(|&i| ln[i] - ln[i - 1] > least).collect();
    let mut scatter = pooled(&ln, &cuts, within);
    while let Some(smallest) = smallest_gap(&ln, &cuts)
        && ln[cuts[smallest]] - ln[cuts[smallest] - 1] <= APART * scatter
    {
        cuts.remove(smallest);
        scatter = pooled(&ln, &cuts, within);
    }
    let speeds = ranges(&cuts, ln.len()).map(|range| speed(&sorted[range.clone()], &ln[range]));
    Speeds { speeds: speeds.collect(), within, scatter, gap: least.max(APART * scatter) }
}

fn smallest_gap(ln: &[f64], cuts: &[usize]) -> Option<usize> {
    let gap = |cut: usize| ln[cut] - ln[cut - 1];
    (0..cuts.len()).min_by(|a, b| gap(cuts[*a]).total_cmp(&gap(cuts[*b])))
}

fn ranges(cuts: &[usize], len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain(std::iter::once(len));
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end)
}

/// Standard deviation of the launches within their speeds, shrunk towards that within a launch.
fn pooled(ln: &[f64], cuts: &[usize], within: f64) -> f64 {
    let mut squares = 0.0;
    let mut freedom = 0;
    for range in ranges(cuts, ln.len()) {
        let part = &ln[range];
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        squares += part.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        freedom += part.len() - 1;
    }
    ((PRIOR * within * within + squares) / (PRIOR + freedom as f64)).sqrt()
}

fn speed(figures: &[LaunchFigure], ln: &[f64]) -> Speed {
    let middle = figures.len() / 2;
    let median = if figures.len() % 2 == 1 {
        figures[middle].median
    } else {
        0.5 * (figures[middle - 1].median + figures[middle].median)
    };
    let mut launches: Vec<u32> = figures.iter().map(|figure| figure.launch).collect();
    launches.sort_unstable();
    Speed { ln_mean: ln.iter().sum::<f64>() / ln.len() as f64, median, launches }
}

/// Largest probability under which launches of one speed may look like several.
const LEVEL: f64 = 0.01;
/// Samples of one speed that launches are compared with.
const SAMPLES: usize = 999;
/// More launches than this are compared with samples of so many: the statistic of one speed falls
/// with their number, so that this errs to the side of one speed.
const LARGEST_SAMPLE: usize = 256;

/// How often normal values, as many as there are launches, fall apart as clearly as these do:
/// (1 + samples that do) / (1 + samples). The samples are the same in every call.
pub fn chance(figures: &[LaunchFigure]) -> f64 {
    let mut ln: Vec<f64> = figures.iter().map(|figure| figure.median.ln()).collect();
    ln.sort_unstable_by(f64::total_cmp);
    let observed = divided(&ln);
    let mut rng = fastrand::Rng::with_seed(0x5eed);
    let mut sample = vec![0.0; ln.len().min(LARGEST_SAMPLE)];
    let mut as_clear = 1;
    for _ in 0..SAMPLES {
        sample.fill_with(|| normal(&mut rng));
        sample.sort_unstable_by(f64::total_cmp);
        as_clear += usize::from(divided(&sample) >= observed);
    }
    as_clear as f64 / (1 + SAMPLES) as f64
}

/// The largest share of the sum of squares of sorted values that one cut takes away, from 0 to 1.
fn divided(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let total: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
    let mut below = 0.0;
    let mut best = 0.0f64;
    for (i, x) in sorted.iter().enumerate().take(sorted.len().saturating_sub(1)) {
        below += x - mean;
        let count = (i + 1) as f64;
        best = best.max(below * below * n / (count * (n - count)));
    }
    if total > 0.0 { best / total } else { 0.0 }
}

/// Box and Muller's standard normal value.
fn normal(rng: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

fn percent(difference_of_ln: f64) -> f64 {
    100.0 * difference_of_ln.exp_m1()
}

/// The verdict on launches whose placement is not known: bands carry the launches' numbers as
/// their placements. `higher_is_better` says that the series' own figures are rates, of which
/// `figures` holds the reciprocals.
pub fn judge_launches(
    key: &SeriesKey,
    role: Role,
    higher_is_better: bool,
    figures: &[LaunchFigure],
    min_effect_percent: f64,
) -> Verdict {
    let found = speeds(figures, min_effect_percent);
    let bands = found
        .speeds
        .iter()
        .map(|speed| Band {
            ns_per_op: if higher_is_better { 1.0 / speed.median } else { speed.median },
            percent_above_fast: percent(speed.ln_mean - found.speeds[0].ln_mean),
            residues: Vec::new(),
            placements: speed.launches.iter().map(|launch| i64::from(*launch)).collect(),
        })
        .collect();
    let (verdict, reasons) = conclude(&found, figures, min_effect_percent);
    let interval = interval(&found, figures);
    Verdict {
        probe: key.probe.clone(),
        workload: key.workload.clone(),
        role,
        len: key.len,
        arm: key.arm.clone(),
        routine: key.routine.clone(),
        placement: key.placement,
        grid: key.grid,
        params: key.params.clone(),
        verdict,
        effect_percent: interval.map(|[effect, ..]| effect),
        effect_low_percent: interval.map(|[_, low, _]| low),
        effect_high_percent: interval.map(|[.., high]| high),
        min_effect_percent,
        bands,
        period_bytes: None,
        residues_visited: Vec::new(),
        rules: Vec::new(),
        interval_method: format!(
            "launches grouped into speeds where a gap exceeds the minimum effect, twice the \
             spread within a launch and {APART} times the scatter of launches within a speed; \
             interval of slowest over fastest: {APART} standard errors of that scatter, or the \
             range of the launches where they have one speed"
        ),
        instructions_per_op: None,
        launches: (figures.len() > 1).then(|| Launches {
            count: figures.len() as u64,
            spread_within_percent: Some(percent(found.within)),
            spread_between_percent: Some(percent(found.scatter)),
            held: None,
            exceptions: Vec::new(),
        }),
        unit: key.unit.clone().unwrap_or_else(|| "ns".to_owned()),
        reasons,
    }
}

/// Effect, low and high in percent; `None` without two launches.
fn interval(found: &Speeds, figures: &[LaunchFigure]) -> Option<[f64; 3]> {
    if figures.len() < 2 {
        return None;
    }
    let (fast, slow) = (found.speeds.first()?, found.speeds.last()?);
    if found.speeds.len() == 1 {
        let ln = figures.iter().map(|figure| figure.median.ln());
        let (low, high) = ln.fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
        return Some([0.0, 0.0, percent(high - low)]);
    }
    let difference = slow.ln_mean - fast.ln_mean;
    let count = |speed: &Speed| speed.launches.len() as f64;
    let error = found.scatter * (1.0 / count(fast) + 1.0 / count(slow)).sqrt();
    let [low, high] = [difference - APART * error, difference + APART * error];
    Some([percent(difference), percent(low.max(0.0)), percent(high)])
}

fn conclude(found: &Speeds, figures: &[LaunchFigure], min_effect: f64) -> (Finding, Vec<String>) {
    let launches = figures.len();
    if launches < 2 {
        let reason = "one launch cannot show whether launches differ; record at least seven";
        return (Finding::Inconclusive, vec![reason.to_owned()]);
    }
    let mut reasons = vec![counts(found, launches)];
    let alone: Vec<String> = found
        .speeds
        .iter()
        .filter(|s| s.launches.len() == 1)
        .map(|s| s.launches[0].to_string())
        .collect();
    if found.speeds.len() > 1 && !alone.is_empty() {
        reasons.push(format!(
            "launch {} stands alone at its speed and may be an outlier; more launches would tell",
            alone.join(", ")
        ));
    }
    let parted = found.parts_two_from_two();
    let chance = if parted { chance(figures) } else { 1.0 };
    let range = interval(found, figures).map_or(0.0, |[.., high]| high);
    let verdict = if parted && chance <= LEVEL {
        Finding::Affected
    } else if parted {
        reasons.push(format!(
            "{launches} launches of one speed would fall apart as clearly with a probability of \
             {:.1} %; more launches would tell",
            100.0 * chance
        ));
        Finding::Inconclusive
    } else if found.speeds.len() > 1 {
        Finding::Inconclusive
    } else if range > min_effect {
        reasons.push(format!(
            "the launches scatter over {range:.1} % without a gap between speeds; \
             quieten the machine or record more launches"
        ));
        Finding::Inconclusive
    } else if launches < ENOUGH {
        reasons.push(format!(
            "{launches} launches can all have met the same speed by chance; record at least \
             {ENOUGH}"
        ));
        Finding::Inconclusive
    } else {
        reasons.push(format!(
            "a speed that one launch in four takes would be missed by {launches} launches with a \
             probability of {:.1} %",
            100.0 * 0.75f64.powi(launches as i32)
        ));
        Finding::Clear
    };
    reasons.push(
        "no address was recorded, so that the placement behind a speed is not known; \
         `stackphase pad` or `stackphase phase` sweeps it"
            .to_owned(),
    );
    (verdict, reasons)
}

/// How many speeds and how many launches in each, as a sentence.
fn counts(found: &Speeds, launches: usize) -> String {
    if found.speeds.len() == 1 {
        return format!("{launches} launches have one speed");
    }
    let each: Vec<String> = found.speeds.iter().map(|s| s.launches.len().to_string()).collect();
    format!(
        "{launches} launches fall into {} speeds, from the fastest: {} launches",
        each.len(),
        each.join(", ")
    )
}

#[cfg(test)]
mod tests;
