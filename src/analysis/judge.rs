//! From one series to one verdict.

use super::bands::Bands;
use super::cells::{Basis, Cell, Cells, Unit};
use super::confounding::{Confounding, confounding};
use super::departure::chance_of_arrangement;
use super::launches::launches;
use super::location::{Arrangement, rounding};
use super::periods::{Classes, Partition, classes};
use super::polish::{Groups, row_effects};
use super::reasons::{self, Evidence};
use super::robust::median;
use super::rules::{Address, Visited, outcomes};
use super::simultaneous::{Interval, Permutations, interval};
use super::visits::visits;
use super::{Finding, Series, Verdict, VerdictDocument};

/// What analysis may be told; the defaults are those of the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The smallest effect that counts, in percent, above 0.
    pub min_effect_percent: f64,
    /// Permutations behind each interval and each test of a period; 199 at least are made.
    pub permutations: usize,
    /// Seed of the permutations: the same seed and series give the same verdict.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { min_effect_percent: 2.0, permutations: 999, seed: 0 }
    }
}

impl Options {
    /// Fewer permutations could not reach the levels that are asked for.
    const FEWEST: usize = 199;

    fn permutations(&self) -> Permutations {
        Permutations { count: self.permutations.max(Self::FEWEST), seed: self.seed }
    }

    fn minimum(&self) -> f64 {
        (self.min_effect_percent / 100.0).ln_1p()
    }
}

/// Judges every series of a run, in the order given.
pub fn judge_all(series: &[Series], options: &Options) -> VerdictDocument {
    VerdictDocument::new(series.iter().map(|series| judge(series, options)).collect())
}

/// Judges one series: does the figure depend on the placement?
///
/// `instructions_per_op` stays `None`: it comes from a counter or from single-stepping, not from
/// times.
pub fn judge(series: &Series, options: &Options) -> Verdict {
    let mut verdict = blank(series, options);
    let Some(cells) = Cells::of(series) else {
        verdict.reasons.push(reasons::nothing_undisturbed(series));
        return verdict;
    };
    let levels = without_block_effects(&cells);
    let classes = classes(&cells, &levels, options.minimum(), options.permutations());
    let interval = interval_of(series, &cells, &levels, &classes, options);
    let confounded = visits(series, &cells, &classes).and_then(|rounds| confounding(&rounds));
    let bands =
        interval.as_ref().map(|interval| Bands::of(interval, &classes, &levels, options.minimum()));

    verdict.verdict = finding(interval.as_ref(), confounded, options.minimum());
    describe(&mut verdict, series, &cells, &classes, &levels, interval.as_ref(), bands.as_ref());
    let slow_above = bands.as_ref().filter(|_| confounded.is_none()).and_then(Bands::midpoint);
    verdict.rules = rules(&cells, &levels, slow_above);
    let evidence =
        Evidence { series, cells: &cells, classes: &classes, interval: interval.as_ref() };
    verdict.reasons = reasons::reasons(&verdict, &evidence, confounded);
    verdict
}

/// Affected above the minimum effect, clear below it, both only when the order predicts nothing.
fn finding(interval: Option<&Interval>, confounded: Option<Confounding>, minimum: f64) -> Finding {
    match interval {
        Some(interval) if confounded.is_none() && interval.low > minimum => Finding::Affected,
        Some(interval) if confounded.is_none() && interval.high < minimum => Finding::Clear,
        _ => Finding::Inconclusive,
    }
}

fn blank(series: &Series, options: &Options) -> Verdict {
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
        interval_method: "none".to_owned(),
        instructions_per_op: None,
        launches: None,
        unit: key.unit.clone().unwrap_or_else(|| "ns".to_owned()),
        reasons: Vec::new(),
    }
}

/// The levels of the cells without the effects of their blocks.
fn without_block_effects(cells: &Cells) -> Vec<f64> {
    let levels: Vec<f64> = cells.cells.iter().map(|cell| cell.level).collect();
    if cells.blocks < 2 {
        return levels;
    }
    let block: Vec<u32> = cells.cells.iter().map(|cell| cell.block).collect();
    let column: Vec<u32> = cells.cells.iter().map(|cell| cell.column).collect();
    let blocks = Groups::new(&block, cells.blocks);
    let mut effects =
        row_effects(&levels, &block, &blocks, &Groups::new(&column, cells.columns.len()));
    let typical = median(&mut effects.clone());
    effects.iter_mut().for_each(|effect| *effect -= typical);
    levels.iter().zip(&block).map(|(level, &block)| level - effects[block as usize]).collect()
}

fn interval_of(
    series: &Series,
    cells: &Cells,
    levels: &[f64],
    classes: &Classes,
    options: &Options,
) -> Option<Interval> {
    let Partition { of, keys } = &classes.partition;
    let block: Vec<u32> = cells.cells.iter().map(|cell| cell.block).collect();
    let arrangement = Arrangement::new(of, keys.len(), &block, cells.blocks);
    let typical = median(&mut levels.to_vec()).abs_exp(series.higher_is_better);
    let figures = series.observations.iter().filter(|row| super::cells::usable(row));
    let floor = rounding(figures.map(|row| row.ns), typical);
    let mut interval = interval(&arrangement, levels, floor, options.permutations())?;
    interval.stand_against(|| {
        let Classes { partition, .. } = classes;
        chance_of_arrangement(levels, &block, cells.blocks, partition, options.permutations())
    });
    Some(interval)
}

/// A level of ln, slower upward, back in the unit that was recorded.
trait AbsExp {
    fn abs_exp(self, higher_is_better: bool) -> f64;
}

impl AbsExp for f64 {
    fn abs_exp(self, higher_is_better: bool) -> f64 {
        if higher_is_better { (-self).exp() } else { self.exp() }
    }
}

/// Fills in what was estimated.
fn describe(
    verdict: &mut Verdict,
    series: &Series,
    cells: &Cells,
    classes: &Classes,
    levels: &[f64],
    interval: Option<&Interval>,
    bands: Option<&Bands>,
) {
    let sign = if series.higher_is_better { -1.0 } else { 1.0 };
    verdict.residues_visited = residues(cells);
    verdict.launches = launches(cells, classes, levels, bands, sign);
    verdict.period_bytes = classes.modulus.filter(|_| classes.accepted);
    if let Some(interval) = interval {
        verdict.effect_low_percent = Some(100.0 * interval.low.exp_m1());
        verdict.effect_high_percent = Some(100.0 * interval.high.exp_m1());
        verdict.interval_method = reasons::method(cells);
    }
    if let Some(bands) = bands {
        verdict.effect_percent = Some(bands.effect_percent());
        verdict.bands = bands.printed(cells, classes, sign);
    }
}

/// The buffer's residues modulo 64; none where the buffer is not known.
fn residues(cells: &Cells) -> Vec<u8> {
    if !matches!(cells.basis, Basis::Buffer | Basis::Residue) {
        return Vec::new();
    }
    let mut residues: Vec<u8> = cells.columns.iter().map(|column| column.residue).collect();
    residues.sort_unstable();
    residues.dedup();
    residues
}

/// Tries the rules on every placement, or on every launch where launches carry the placement.
fn rules(cells: &Cells, levels: &[f64], slow_above: Option<f64>) -> Vec<super::RuleOutcome> {
    let address = |cell: &Cell| match cells.basis {
        Basis::Buffer => Some(Address::Whole(cell.position)),
        Basis::Residue => Some(Address::Line(cells.columns[cell.column as usize].residue)),
        Basis::Stack | Basis::Value => None,
    };
    let unit: Vec<u32> = match cells.unit {
        Unit::LaunchAtPlacement => (0..cells.cells.len() as u32).collect(),
        Unit::Launch | Unit::Round => cells.cells.iter().map(|cell| cell.column).collect(),
    };
    let units = unit.iter().max().map_or(0, |most| *most as usize + 1);
    let groups = Groups::new(&unit, units);
    let visit = |members: &[u32]| {
        let mut of: Vec<f64> = members.iter().map(|&cell| levels[cell as usize]).collect();
        let level = median(&mut of);
        let address = address(&cells.cells[*members.first()? as usize])?;
        Some(Visited { address, slow: slow_above.map(|limit| level > limit) })
    };
    let visited: Vec<Visited> = groups.iter().filter_map(visit).collect();
    if visited.is_empty() { Vec::new() } else { outcomes(&visited) }
}
