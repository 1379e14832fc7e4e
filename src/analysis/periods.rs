//! The period: the smallest power of two from 64 up, modulo which placements are alike.
//!
//! A period is accepted when no finer partition of the cells (twice the period, four times, …, the
//! placement itself) departs from it. The test is a permutation within blocks of what the classes
//! of the period leave over; its statistic is the largest, over the partitions, of the sum of
//! squares between their classes, standardised by its own permutations.

use super::cells::{Basis, Cells};
use super::location::Arrangement;
use super::simultaneous::Permutations;

/// The largest period that is looked for: the page, where addresses alias.
const LARGEST: u64 = 4096;
/// The smallest: the line.
pub(crate) const LINE: u64 = 64;
/// Residuals are clipped at so many robust standard deviations.
const CLIP: f64 = 5.0;
/// A finer partition departs when chance does so in fewer cases than this.
const LEVEL: f64 = 0.005;

/// A partition of the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The class of each cell.
    pub of: Vec<u32>,
    /// The position modulo the period of each class (the placement for placements), rising.
    pub keys: Vec<u64>,
}

impl Partition {
    /// Cells by their position modulo `period`, a power of two.
    pub(crate) fn by_period(cells: &Cells, period: u64) -> Self {
        let key = |cell: &super::cells::Cell| {
            let residue = cells.columns[cell.column as usize].residue;
            match cells.basis {
                Basis::Residue if period <= LINE => (u64::from(residue) % period, 0),
                // Equal values with unequal residues are unlike, and must stay so.
                Basis::Residue => (cell.position % period, residue),
                _ => (cell.position % period, 0),
            }
        };
        Self::by(cells.cells.iter().map(key).collect(), |key| key.0)
    }

    /// Cells by their placement.
    pub(crate) fn by_placement(cells: &Cells) -> Self {
        let of = cells.cells.iter().map(|cell| cell.column).collect();
        Self::by(of, |column| cells.columns[column as usize].placement as u64)
    }

    fn by<K: Ord + Copy>(keys: Vec<K>, name: impl Fn(K) -> u64) -> Self {
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let number = |key: &K| distinct.partition_point(|other| other < key) as u32;
        Partition {
            of: keys.iter().map(number).collect(),
            keys: distinct.iter().map(|&key| name(key)).collect(),
        }
    }

    /// Number of classes.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// The classes that the verdict is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Classes {
    pub partition: Partition,
    /// What `partition` is modulo; `None` where it is the placements themselves.
    pub modulus: Option<u64>,
    /// Whether that period was tried against finer partitions and accepted.
    pub accepted: bool,
    /// Periods that were tried and rejected, rising.
    pub rejected: Vec<u64>,
}

/// How far apart the outermost positions are, counting the last one's own step.
pub(crate) fn span(cells: &Cells) -> u64 {
    let mut positions: Vec<i64> = match cells.basis {
        Basis::Residue | Basis::Value => cells.columns.iter().map(|c| c.placement).collect(),
        _ => cells.cells.iter().map(|cell| cell.position as i64).collect(),
    };
    positions.sort_unstable();
    positions.dedup();
    let step = positions.windows(2).map(|pair| pair[1].abs_diff(pair[0])).min();
    match (positions.first(), positions.last(), step) {
        (Some(first), Some(last), Some(step)) => last.abs_diff(*first).saturating_add(step),
        _ => 0,
    }
}

/// Chooses the classes: residues modulo 64, or modulo the next period that separates; and from
/// there up to the first period that no finer partition departs from.
pub(crate) fn classes(
    cells: &Cells,
    levels: &[f64],
    minimum: f64,
    permutations: Permutations,
) -> Classes {
    let span = span(cells);
    let periods =
        || std::iter::successors(Some(LINE), |p| Some(2 * p)).take_while(|p| *p <= LARGEST);
    let separates = |p: &u64| Partition::by_period(cells, *p).len() > 1;
    let first = periods().find(separates);
    let mut rejected = Vec::new();
    for period in periods().filter(|p| first.is_some_and(|first| *p >= first)) {
        let partition = Partition::by_period(cells, period);
        if span / 2 < period {
            // Not tried. Nothing coarser was accepted, so that only the first is left to stand.
            if rejected.is_empty() {
                let modulus = Some(period);
                return Classes { partition, modulus, accepted: false, rejected };
            }
            break;
        }
        let finer = finer(cells, &partition, period);
        if !departs(cells, &partition, &finer, levels, minimum, permutations) {
            return Classes { partition, modulus: Some(period), accepted: true, rejected };
        }
        rejected.push(period);
    }
    let partition = Partition::by_placement(cells);
    Classes { partition, modulus: None, accepted: false, rejected }
}

/// The partitions that are finer than `coarse`, each once.
fn finer(cells: &Cells, coarse: &Partition, period: u64) -> Vec<Partition> {
    let mut finer: Vec<Partition> = Vec::new();
    let by_period = std::iter::successors(Some(2 * period), |p| Some(2 * p))
        .take_while(|p| *p <= 2 * LARGEST)
        .map(|p| Partition::by_period(cells, p));
    for partition in by_period.chain([Partition::by_placement(cells)]) {
        let classes = finer.last().map_or(coarse.len(), Partition::len);
        if partition.len() > classes {
            finer.push(partition);
        }
    }
    finer
}

/// Whether some finer partition departs from the coarse one by chance in less than [`LEVEL`], and
/// some class of it by more than half of `minimum` from the class that it lies in.
fn departs(
    cells: &Cells,
    coarse: &Partition,
    finer: &[Partition],
    levels: &[f64],
    minimum: f64,
    permutations: Permutations,
) -> bool {
    let blocks: Vec<u32> = cells.cells.iter().map(|cell| cell.block).collect();
    let location = |partition: &Partition| {
        let arrangement = Arrangement::new(&partition.of, partition.len(), &blocks, cells.blocks);
        arrangement.locate(&arrangement.slots(levels), 0.0).mean
    };
    let centre = location(coarse);
    let differs = finer.iter().any(|partition| {
        let inside = location(partition);
        let pairs = partition.of.iter().zip(&coarse.of);
        pairs.into_iter().any(|(&fine, &class)| {
            (inside[fine as usize] - centre[class as usize]).abs() > 0.5 * minimum
        })
    });
    if !differs {
        return false;
    }
    let mut residuals: Vec<f64> = levels
        .iter()
        .zip(&coarse.of)
        .map(|(level, &class)| level - centre[class as usize])
        .collect();
    clip(&mut residuals);
    probability(&residuals, &blocks, cells.blocks, finer, permutations) < LEVEL
}

/// Clips at [`CLIP`] robust standard deviations; not at all where more than half of the residuals
/// are 0, which gives no scale.
fn clip(residuals: &mut [f64]) {
    let most = CLIP * super::robust::spread(&mut residuals.to_vec(), 0.0);
    if most > 0.0 {
        residuals.iter_mut().for_each(|residual| *residual = residual.clamp(-most, most));
    }
}

/// How often a permutation departs as much as the residuals do, themselves counted.
fn probability(
    residuals: &[f64],
    blocks: &[u32],
    block_count: usize,
    finer: &[Partition],
    permutations: Permutations,
) -> f64 {
    if finer.is_empty() {
        return 1.0;
    }
    let counts: Vec<Vec<f64>> = finer.iter().map(sizes).collect();
    let all = vec![0; residuals.len()];
    let arrangement = Arrangement::new(&all, 1, blocks, block_count);
    let own: Vec<f64> = squares(residuals, finer, &counts, &mut Vec::new());
    let work = residuals.len() * (finer.len() + 1) / 4;
    let chance: Vec<Vec<f64>> = permutations.map(work, |worker, index| {
        worker.slots.resize(residuals.len(), 0.0);
        let mut rng = permutations.rng(index);
        arrangement.permute(residuals, &mut worker.slots, &mut rng, &mut worker.scratch);
        squares(&worker.slots, finer, &counts, &mut worker.scratch)
    });
    let scales: Vec<(f64, f64)> = (0..finer.len()).map(|f| moments(&chance, f)).collect();
    let statistic = |squares: &[f64]| {
        let standardised = squares.iter().zip(&scales).map(|(square, &(mean, deviation))| {
            // Without variation (single cells) a partition can show nothing.
            if deviation > 1e-9 * mean { (square - mean) / deviation } else { f64::NEG_INFINITY }
        });
        standardised.fold(f64::NEG_INFINITY, f64::max)
    };
    let observed = statistic(&own);
    if observed == f64::NEG_INFINITY {
        return 1.0;
    }
    let as_large = chance.iter().filter(|squares| statistic(squares) >= observed).count();
    (1 + as_large) as f64 / (1 + chance.len()) as f64
}

fn sizes(partition: &Partition) -> Vec<f64> {
    let mut sizes = vec![0.0; partition.len()];
    partition.of.iter().for_each(|&class| sizes[class as usize] += 1.0);
    sizes
}

/// The sum of squares between the classes of each partition: Σ n·mean².
fn squares(
    values: &[f64],
    finer: &[Partition],
    counts: &[Vec<f64>],
    sums: &mut Vec<f64>,
) -> Vec<f64> {
    let of = |(partition, counts): (&Partition, &Vec<f64>)| {
        sums.clear();
        sums.resize(partition.len(), 0.0);
        for (&class, value) in partition.of.iter().zip(values) {
            sums[class as usize] += value;
        }
        sums.iter().zip(counts).map(|(sum, n)| sum * sum / n).sum()
    };
    finer.iter().zip(counts).map(of).collect()
}

/// Mean and standard deviation of one partition's sums of squares.
fn moments(chance: &[Vec<f64>], partition: usize) -> (f64, f64) {
    let n = chance.len() as f64;
    let mean = chance.iter().map(|squares| squares[partition]).sum::<f64>() / n;
    let variance =
        chance.iter().map(|squares| (squares[partition] - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}
