//! Whether classes differ by more than the way in which chance would arrange the cells.
//!
//! The cells are permuted within their blocks: if the class of a cell does nothing, every such
//! arrangement was as likely as the one seen, whatever the distribution of the figures. Two
//! statistics of each partition, the sum of squares between its classes and the largest term of it,
//! are standardised by their own permutations, and the largest of all counts. The sum sees many
//! classes that differ a little; the largest term sees one slow placement among hundreds, which
//! drowns in the sum.

use super::location::Arrangement;
use super::periods::Partition;
use super::simultaneous::Permutations;

/// Values are clipped at so many robust standard deviations.
const CLIP: f64 = 5.0;

/// The chance that cells arranged at random differ as much between the classes of `partition`, from
/// their median on and clipped.
pub(crate) fn chance_of_arrangement(
    levels: &[f64],
    blocks: &[u32],
    block_count: usize,
    partition: &Partition,
    permutations: Permutations,
) -> f64 {
    let typical = super::robust::median(&mut levels.to_vec());
    let mut values: Vec<f64> = levels.iter().map(|level| level - typical).collect();
    clip(&mut values);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|value| *value -= mean);
    probability(&values, blocks, block_count, std::slice::from_ref(partition), permutations)
}

/// Clips at [`CLIP`] robust standard deviations; not at all where more than half of the residuals
/// are 0, which gives no scale.
pub(crate) fn clip(residuals: &mut [f64]) {
    let most = CLIP * super::robust::spread(&mut residuals.to_vec(), 0.0);
    if most > 0.0 {
        residuals.iter_mut().for_each(|residual| *residual = residual.clamp(-most, most));
    }
}

/// How often a permutation departs as much as the residuals do, themselves counted.
pub(crate) fn probability(
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
    let scales: Vec<(f64, f64)> = (0..own.len()).map(|f| moments(&chance, f)).collect();
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

/// Of each partition the sum of squares between its classes, Σ n·mean², and the largest of its
/// terms.
fn squares(
    values: &[f64],
    finer: &[Partition],
    counts: &[Vec<f64>],
    sums: &mut Vec<f64>,
) -> Vec<f64> {
    let mut both = Vec::with_capacity(2 * finer.len());
    for (partition, counts) in finer.iter().zip(counts) {
        sums.clear();
        sums.resize(partition.len(), 0.0);
        for (&class, value) in partition.of.iter().zip(values) {
            sums[class as usize] += value;
        }
        let terms = sums.iter().zip(counts).map(|(sum, n)| sum * sum / n);
        let (sum, largest) =
            terms.fold((0.0, 0.0), |(sum, largest): (f64, f64), t| (sum + t, largest.max(t)));
        both.extend([sum, largest]);
    }
    both
}

/// Mean and standard deviation of one statistic over the permutations.
fn moments(chance: &[Vec<f64>], statistic: usize) -> (f64, f64) {
    let n = chance.len() as f64;
    let mean = chance.iter().map(|squares| squares[statistic]).sum::<f64>() / n;
    let variance =
        chance.iter().map(|squares| (squares[statistic] - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The test of a period by the letter: every permutation shuffled in lists, both statistics
    /// collected class by class, standardised, and the largest compared.
    fn plain_probability(
        residuals: &[f64],
        blocks: &[u32],
        finer: &[Partition],
        permutations: Permutations,
    ) -> f64 {
        let statistics = |values: &[f64]| -> Vec<f64> {
            let mut both = Vec::new();
            for partition in finer {
                let terms: Vec<f64> = (0..partition.len() as u32)
                    .map(|class| {
                        let of = (0..values.len()).filter(|&i| partition.of[i] == class);
                        let members: Vec<f64> = of.map(|i| values[i]).collect();
                        let mean = members.iter().sum::<f64>() / members.len() as f64;
                        members.len() as f64 * mean * mean
                    })
                    .collect();
                both.push(terms.iter().sum());
                both.push(terms.iter().copied().fold(0.0, f64::max));
            }
            both
        };
        let count = *blocks.iter().max().unwrap() + 1;
        let chance: Vec<Vec<f64>> = (0..permutations.count)
            .map(|index| {
                let mut rng = permutations.rng(index);
                let mut permuted = vec![0.0; residuals.len()];
                for block in 0..count {
                    let members: Vec<usize> =
                        (0..residuals.len()).filter(|&i| blocks[i] == block).collect();
                    let mut values: Vec<f64> = members.iter().map(|&i| residuals[i]).collect();
                    rng.shuffle(&mut values);
                    members.iter().zip(values).for_each(|(&i, value)| permuted[i] = value);
                }
                statistics(&permuted)
            })
            .collect();
        let largest = |of: &[f64]| {
            let standardised = of.iter().enumerate().map(|(which, value)| {
                let (mean, deviation) = moments(&chance, which);
                if deviation > 1e-9 * mean { (value - mean) / deviation } else { f64::NEG_INFINITY }
            });
            standardised.fold(f64::NEG_INFINITY, f64::max)
        };
        let own = largest(&statistics(residuals));
        if own == f64::NEG_INFINITY {
            return 1.0;
        }
        let as_large = chance.iter().filter(|c| largest(c) >= own - 1e-9).count();
        (1 + as_large) as f64 / (1 + chance.len()) as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn equals_the_plain_reference(
            cells in prop::collection::vec((0..8u64, 0..3u32, -1.0..1.0f64), 24..60),
            seed in any::<u64>(),
        ) {
            let residuals: Vec<f64> = cells.iter().map(|c| c.2).collect();
            let blocks: Vec<u32> = cells.iter().map(|c| c.1).collect();
            let by = |modulus: u64| Partition::by(cells.iter().map(|c| c.0 % modulus).collect(), |k| k);
            let finer = [by(4), by(8)];
            let permutations = Permutations { count: 99, seed };
            let block_count = *blocks.iter().max().unwrap() as usize + 1;
            let fast = probability(&residuals, &blocks, block_count, &finer, permutations);
            let plain = plain_probability(&residuals, &blocks, &finer, permutations);
            // Sums in another order may put equal statistics on either side.
            prop_assert!((fast - plain).abs() <= 0.01 + 1e-9, "{fast} {plain}");
        }
    }

    /// One placement in 256 that is slow everywhere, among blocks of which one in ten is slow by
    /// chance: as seen on a real machine.
    #[test]
    fn one_slow_placement_among_hundreds_rejects_the_line() {
        let mut rng = fastrand::Rng::with_seed(3);
        let positions: Vec<u64> = (0..3).flat_map(|_| 0..512u64).collect();
        let levels: Vec<f64> = positions
            .iter()
            .map(|position| {
                let by_chance = if rng.u32(0..10) == 0 { 0.1 * rng.f64() } else { 0.0 };
                let slow = if position % 256 == 17 { 0.06 } else { 0.0 };
                0.0005 * rng.f64() + slow + by_chance
            })
            .collect();
        let blocks: Vec<u32> = (0..3).flat_map(|launch| [launch; 512]).collect();
        let by =
            |modulus: u64| Partition::by(positions.iter().map(|p| p % modulus).collect(), |k| k);
        let mut residuals = levels.clone();
        let typical = super::super::robust::median(&mut levels.clone());
        residuals.iter_mut().for_each(|residual| *residual -= typical);
        clip(&mut residuals);
        let finer: Vec<Partition> = [8, 16, 32, 64, 128, 256, 512].map(by).into();
        let permutations = Permutations { count: 999, seed: 1 };
        assert!(probability(&residuals, &blocks, 3, &finer, permutations) < 0.005);
        // Within the period nothing departs.
        assert!(probability(&residuals, &blocks, 3, &finer[6..], permutations) > 0.005);
    }

    #[test]
    fn few_cells_are_arranged_neatly_by_chance_alone() {
        let partition = Partition::by(vec![0u64, 0, 0, 1, 1, 1], |key| key);
        let levels = [0.0, 0.001, 0.002, 0.2, 0.201, 0.202];
        let permutations = Permutations { count: 999, seed: 0 };
        let chance = chance_of_arrangement(&levels, &[0; 6], 1, &partition, permutations);
        // Two of the twenty ways to choose three of six.
        assert!((0.07..0.13).contains(&chance), "{chance}");
    }

    #[test]
    fn four_speeds_in_three_launches_are_no_chance() {
        let classes = (0..3).flat_map(|_| 0..4u64).collect();
        let partition = Partition::by(classes, |key| key);
        let speeds = [59.0f64, 79.7, 59.3, 86.2].map(f64::ln);
        let levels: Vec<f64> =
            (0..12).map(|i| speeds[i % 4] + 0.0001 * (i * 7 % 5) as f64).collect();
        let blocks: Vec<u32> = (0..3).flat_map(|launch| [launch; 4]).collect();
        let permutations = Permutations { count: 999, seed: 0 };
        assert!(chance_of_arrangement(&levels, &blocks, 3, &partition, permutations) < 0.01);
    }
}
