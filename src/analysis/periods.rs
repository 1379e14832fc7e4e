//! The period: the smallest power of two from 64 up, modulo which placements are alike.
//!
//! A period is accepted when no finer partition of the cells (twice the period, four times, …, the
//! placement itself) departs from it, by the test of [`super::departure`] on what the classes of the
//! period leave over.

use super::cells::{Basis, Cells};
use super::departure::{clip, probability};
use super::location::Arrangement;
use super::simultaneous::Permutations;

/// The largest period that is looked for: the page, where addresses alias.
const LARGEST: u64 = 4096;
/// The smallest: the line.
pub(crate) const LINE: u64 = 64;
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

    pub(crate) fn by<K: Ord + Copy>(keys: Vec<K>, name: impl Fn(K) -> u64) -> Self {
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
