//! Where each class lies and how well that is known: 25 % trimmed means with Yuen's standard error,
//! the variance of a class shrunk to the pooled one.

use super::polish::Groups;
use super::robust::trimmed;

/// A class of `n` cells has its own variance with weight `n/(n + SHRINK)`.
pub(crate) const SHRINK: f64 = 20.0;

/// The estimates of all classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Locations {
    /// Trimmed mean of each class.
    pub mean: Vec<f64>,
    /// Square of its standard error, not below the square of the floor.
    pub variance: Vec<f64>,
    /// Standard deviation of a cell, as shrunk.
    pub scale: Vec<f64>,
    /// Whether recording resolution, not scatter, limits the class.
    pub floored: Vec<bool>,
}

/// Values of the classes one after the other, and where each class begins.
#[derive(Debug)]
pub(crate) struct ByClass<'a> {
    /// One more than there are classes.
    pub starts: &'a [u32],
    /// Reordered within their class.
    pub values: &'a mut [f64],
}

impl Locations {
    /// Estimates every class; `floor` is what rounding alone leaves unknown of a location.
    pub(crate) fn estimate(&mut self, classes: ByClass<'_>, floor: f64) {
        self.mean.clear();
        self.variance.clear();
        self.scale.clear();
        self.floored.clear();
        let (mut pooled, mut freedom) = (0.0, 0.0);
        // `variance` and `scale` first hold the own variance (NaN from one cell) and the size.
        for bounds in classes.starts.windows(2) {
            let part = trimmed(&mut classes.values[bounds[0] as usize..bounds[1] as usize]);
            let own = part.variance();
            if let Some(own) = own {
                pooled += (part.kept - 1) as f64 * own;
                freedom += (part.kept - 1) as f64;
            }
            self.mean.push(part.mean);
            self.variance.push(own.unwrap_or(f64::NAN));
            self.scale.push(part.n as f64);
        }
        let pooled = if freedom > 0.0 { pooled / freedom } else { 0.0 };
        for (variance, scale) in self.variance.iter_mut().zip(&mut self.scale) {
            let n = *scale;
            let weight = n / (n + SHRINK);
            let own = if variance.is_nan() { pooled } else { *variance };
            let shrunk = weight * own + (1.0 - weight) * pooled;
            *scale = shrunk.sqrt();
            self.floored.push(shrunk / n < floor * floor);
            *variance = (shrunk / n).max(floor * floor);
        }
    }
}

/// Cells arranged so that classes are contiguous, whatever order blocks are permuted in.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    /// Where each class begins; one more than there are classes.
    pub starts: Vec<u32>,
    /// The class of each slot.
    pub class: Vec<u32>,
    /// The cell in each slot.
    pub cell: Vec<u32>,
    /// The slots of each block.
    pub blocks: Groups,
}

impl Arrangement {
    /// Arranges cells by class (below `classes`), each in its block (below `blocks`).
    pub(crate) fn new(class_of: &[u32], classes: usize, block_of: &[u32], blocks: usize) -> Self {
        let groups = Groups::new(class_of, classes);
        let mut starts = vec![0u32];
        let (mut class, mut cell) = (Vec::new(), Vec::new());
        for (number, members) in groups.iter().enumerate() {
            cell.extend_from_slice(members);
            class.resize(cell.len(), number as u32);
            starts.push(cell.len() as u32);
        }
        let block: Vec<u32> = cell.iter().map(|&cell| block_of[cell as usize]).collect();
        Arrangement { starts, class, cell, blocks: Groups::new(&block, blocks) }
    }

    /// Number of classes.
    pub(crate) fn classes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The values of the cells, slot by slot.
    pub(crate) fn slots(&self, of_cell: &[f64]) -> Vec<f64> {
        self.cell.iter().map(|&cell| of_cell[cell as usize]).collect()
    }

    /// Estimates of all classes from values in slots, which stay as they are.
    pub(crate) fn locate(&self, slots: &[f64], floor: f64) -> Locations {
        let mut locations = Locations::default();
        let mut values = slots.to_vec();
        locations.estimate(ByClass { starts: &self.starts, values: &mut values }, floor);
        locations
    }

    /// Shuffles `values` (in slots) within blocks into `into`.
    pub(crate) fn permute(
        &self,
        values: &[f64],
        into: &mut [f64],
        rng: &mut fastrand::Rng,
        scratch: &mut Vec<f64>,
    ) {
        for slots in self.blocks.iter() {
            scratch.clear();
            scratch.extend(slots.iter().map(|&slot| values[slot as usize]));
            rng.shuffle(scratch);
            slots
                .iter()
                .zip(scratch.iter())
                .for_each(|(&slot, &value)| into[slot as usize] = value);
        }
    }
}

/// The recorded digits' step over √12: the standard deviation of what rounding took away, in units
/// of ln. Never below that of a clock of 1 ns in a block of 100 µs, whatever digits are written:
/// without it, a machine so still that half a class reads the same would have errors of 0.
pub(crate) fn rounding(figures: impl Iterator<Item = f64>, typical: f64) -> f64 {
    const FINEST: f64 = 1e-5;
    let mut step = 1.0;
    for figure in figures {
        while !is_multiple(figure, step) {
            step /= 10.0;
            if step < FINEST * typical {
                return FINEST / 12f64.sqrt();
            }
        }
    }
    (step / typical).max(FINEST) / 12f64.sqrt()
}

/// Whether `figure` was written as a whole number of steps.
fn is_multiple(figure: f64, step: f64) -> bool {
    let steps = figure / step;
    (steps - steps.round()).abs() <= 1e-9 * steps.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::robust::Trimmed;

    /// Class by class, straight from the definition.
    fn plain(values: &[(u32, f64)], classes: u32, floor: f64) -> Vec<(f64, f64, f64)> {
        let parts: Vec<Trimmed> = (0..classes)
            .map(|class| {
                let of = values.iter().filter(|v| v.0 == class).map(|v| v.1);
                trimmed(&mut of.collect::<Vec<_>>())
            })
            .collect();
        let freedom: usize = parts.iter().map(|part| part.kept - 1).sum();
        let pooled = parts
            .iter()
            .filter_map(|part| Some((part.kept - 1) as f64 * part.variance()?))
            .sum::<f64>()
            / (freedom.max(1) as f64);
        parts
            .iter()
            .map(|part| {
                let n = part.n as f64;
                let w = n / (n + 20.0);
                let v = w * part.variance().unwrap_or(pooled) + (1.0 - w) * pooled;
                (part.mean, (v / n).sqrt().max(floor), v.sqrt())
            })
            .collect()
    }

    proptest! {
        #[test]
        fn equals_the_plain_reference(
            mut values in prop::collection::vec((0..4u32, -1.0..1.0f64), 1..80),
            floor in 0.0..0.1f64,
        ) {
            values.extend((0..4).map(|class| (class, 0.5)));
            let class: Vec<u32> = values.iter().map(|v| v.0).collect();
            let levels: Vec<f64> = values.iter().map(|v| v.1).collect();
            let arrangement = Arrangement::new(&class, 4, &vec![0; class.len()], 1);
            let fast = arrangement.locate(&arrangement.slots(&levels), floor);
            for (i, (mean, error, scale)) in plain(&values, 4, floor).into_iter().enumerate() {
                prop_assert!((fast.mean[i] - mean).abs() < 1e-12);
                prop_assert!((fast.variance[i].sqrt() - error).abs() < 1e-9);
                prop_assert!((fast.scale[i] - scale).abs() < 1e-9);
            }
        }

        #[test]
        fn a_permutation_keeps_what_each_block_holds(
            cells in prop::collection::vec((0..3u32, 0..4u32), 1..60), seed in any::<u64>()
        ) {
            let class: Vec<u32> = cells.iter().map(|c| c.0).collect();
            let block: Vec<u32> = cells.iter().map(|c| c.1).collect();
            let arrangement = Arrangement::new(&class, 3, &block, 4);
            let values: Vec<f64> = (0..cells.len()).map(|i| i as f64).collect();
            let mut into = vec![f64::NAN; cells.len()];
            let mut rng = fastrand::Rng::with_seed(seed);
            arrangement.permute(&values, &mut into, &mut rng, &mut Vec::new());
            for slots in arrangement.blocks.iter() {
                let sorted = |of: &[f64]| {
                    let mut held: Vec<f64> = slots.iter().map(|&s| of[s as usize]).collect();
                    held.sort_by(f64::total_cmp);
                    held
                };
                prop_assert_eq!(sorted(&values), sorted(&into));
            }
        }
    }

    #[test]
    fn resolution_is_read_off_the_digits() {
        let step = |figures: &[f64]| rounding(figures.iter().copied(), 1.0) * 12f64.sqrt();
        assert!((step(&[0.88, 1.27, 0.9]) - 0.01).abs() < 1e-12);
        assert!((step(&[3.0, 7.0]) - 1.0).abs() < 1e-12);
        assert!((step(&[0.881_234_567_8, 0.88]) - 1e-5).abs() < 1e-15, "the clock's");
    }
}
