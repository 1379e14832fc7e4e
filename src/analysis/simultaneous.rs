//! The simultaneous interval of all differences between classes, by permutation.
//!
//! Which two classes differ most is not known beforehand, so a difference must be larger than the
//! largest that chance makes among all pairs: the quantile is that of a maximum (the max-statistic
//! of Westfall and Young). What chance makes is found by permuting residuals within blocks, which
//! assumes no shape of their distribution, and by estimating and studentising anew each time.

use super::location::{Arrangement, ByClass, Locations};

/// The coverage of the interval.
const LEVEL: f64 = 0.99;

/// All differences between classes, with their simultaneous interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Interval {
    /// The estimates that the interval is about.
    pub locations: Locations,
    /// How many standard errors of a difference the interval reaches to either side.
    pub quantile: f64,
    /// Largest lower end of any difference of ln, not below 0.
    pub low: f64,
    /// Largest upper end of any difference of ln.
    pub high: f64,
    /// Whether the classes are told apart by the exact test as well; until it is made, yes.
    pub distinct: bool,
}

impl Interval {
    /// Lets a lower end above 0 stand only where `chance`, that of the exact test of
    /// [`super::departure`], is no larger than the interval's own error.
    ///
    /// Residuals are what the classes leave over. Where launches have two modes that happen to fall
    /// on two classes they leave nothing over, and the interval is far too narrow.
    pub(crate) fn stand_against(&mut self, chance: impl FnOnce() -> f64) {
        // A lower end at 0 has nothing to lose.
        if self.low > 0.0 && chance() > 1.0 - LEVEL + 1e-12 {
            self.distinct = false;
            self.low = 0.0;
        }
    }

    /// Lower end of how much slower class `slow` is than class `fast`, in ln; of any two where the
    /// classes are not told apart, nothing is known.
    pub(crate) fn lower(&self, slow: usize, fast: usize) -> f64 {
        if !self.distinct {
            return f64::NEG_INFINITY;
        }
        let variance = self.locations.variance[slow] + self.locations.variance[fast];
        self.locations.mean[slow] - self.locations.mean[fast] - self.quantile * variance.sqrt()
    }
}

/// Which permutations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutations {
    pub count: usize,
    pub seed: u64,
}

impl Permutations {
    /// The generator of one permutation: its own, so that the order of work does not matter.
    pub(crate) fn rng(self, index: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// `f` of every permutation, on all processors where the work is worth a thread.
    pub(crate) fn map<T: Send>(
        self,
        work: usize,
        f: impl Fn(&mut Worker, usize) -> T + Sync,
    ) -> Vec<T> {
        const WORTH_A_THREAD: usize = 2_000_000;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (self.count * work / WORTH_A_THREAD + 1).min(processors).min(8);
        let part = self.count.div_ceil(threads.max(1)).max(1);
        let run = |start: usize| -> Vec<T> {
            let mut worker = Worker::default();
            (start..(start + part).min(self.count)).map(|index| f(&mut worker, index)).collect()
        };
        if threads == 1 {
            return run(0);
        }
        std::thread::scope(|scope| {
            let run = &run;
            let starts: Vec<usize> = (0..self.count).step_by(part).collect();
            let others: Vec<_> =
                starts[1..].iter().map(|&start| scope.spawn(move || run(start))).collect();
            let mut all = run(0);
            for other in others {
                match other.join() {
                    Ok(part) => all.extend(part),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }
}

/// Memory that is used again from permutation to permutation.
#[derive(Default)]
pub(crate) struct Worker {
    pub slots: Vec<f64>,
    pub scratch: Vec<f64>,
    locations: Locations,
    order: Vec<u32>,
}

/// The interval of the differences between classes of `levels` (a value a cell).
///
/// `floor` is the standard deviation of what rounding took from a figure. Two classes at least, and
/// one of them with two cells, else there is no interval.
pub(crate) fn interval(
    arrangement: &Arrangement,
    levels: &[f64],
    floor: f64,
    permutations: Permutations,
) -> Option<Interval> {
    let slots = arrangement.slots(levels);
    let locations = arrangement.locate(&slots, floor);
    let (n, k) = (slots.len(), arrangement.classes());
    let blocks = arrangement.blocks.len();
    let freedom = n.checked_sub(k + if blocks > 1 { blocks } else { 0 })?;
    if k < 2 || freedom == 0 {
        return None;
    }
    let inflation = (n as f64 / freedom as f64).sqrt();
    let standardised: Vec<f64> = slots
        .iter()
        .zip(&arrangement.class)
        .map(|(level, &class)| {
            let (mean, scale) = (locations.mean[class as usize], locations.scale[class as usize]);
            if scale > 0.0 { (level - mean) / scale * inflation } else { 0.0 }
        })
        .collect();
    let mut maxima = permutations.map(n, |worker, index| {
        let mut rng = permutations.rng(index);
        worker.slots.resize(n, 0.0);
        arrangement.permute(&standardised, &mut worker.slots, &mut rng, &mut worker.scratch);
        for (value, &class) in worker.slots.iter_mut().zip(&arrangement.class) {
            *value *= locations.scale[class as usize];
        }
        let by_class = ByClass { starts: &arrangement.starts, values: &mut worker.slots };
        worker.locations.estimate(by_class, floor);
        round_off(&mut worker.locations, floor, &mut rng);
        largest_ratio(&worker.locations, &mut worker.order)
    });
    maxima.sort_unstable_by(f64::total_cmp);
    let rank = (LEVEL * (maxima.len() + 1) as f64).ceil() as usize;
    let quantile = maxima[rank.clamp(1, maxima.len()) - 1];
    let (low, high) = ends(&locations, quantile);
    Some(Interval { locations, quantile, low, high, distinct: true })
}

/// Where rounding limits a class, all of its cells were rounded the same way: permuting cannot show
/// that error, so it is drawn anew, uniformly within half a step.
fn round_off(locations: &mut Locations, floor: f64, rng: &mut fastrand::Rng) {
    for (mean, &floored) in locations.mean.iter_mut().zip(&locations.floored) {
        if floored {
            *mean += 3f64.sqrt() * floor * (2.0 * rng.f64() - 1.0);
        }
    }
}

/// Largest |mᵢ − mⱼ| / √(sᵢ² + sⱼ²) over all pairs; 0 where nothing differs.
///
/// Pairs are tried from the most distant inwards, and no further than a smaller distance could
/// still win with the smallest errors there are.
fn largest_ratio(locations: &Locations, order: &mut Vec<u32>) -> f64 {
    let Locations { mean, variance, .. } = locations;
    order.clear();
    order.extend(0..mean.len() as u32);
    order.sort_unstable_by(|&a, &b| mean[a as usize].total_cmp(&mean[b as usize]));
    let least = 2.0 * variance.iter().copied().fold(f64::INFINITY, f64::min);
    let mut best: f64 = 0.0; // squared
    for (i, &low) in order.iter().enumerate() {
        for &high in order[i + 1..].iter().rev() {
            let square = (mean[high as usize] - mean[low as usize]).powi(2);
            if square <= best * least {
                break;
            }
            let errors = variance[high as usize] + variance[low as usize];
            if square > best * errors {
                best = square / errors;
            }
        }
    }
    best.sqrt()
}

/// The largest lower and upper end over all ordered pairs.
fn ends(locations: &Locations, quantile: f64) -> (f64, f64) {
    let Locations { mean, variance, .. } = locations;
    let (mut low, mut high): (f64, f64) = (0.0, 0.0);
    for i in 0..mean.len() {
        for j in 0..i {
            let difference = (mean[i] - mean[j]).abs();
            let reach = quantile * (variance[i] + variance[j]).sqrt();
            low = low.max(difference - reach);
            high = high.max(difference + reach);
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every pair, without a short cut.
    fn plain_largest(locations: &Locations) -> f64 {
        let mut best: f64 = 0.0;
        for i in 0..locations.mean.len() {
            for j in 0..locations.mean.len() {
                let difference = (locations.mean[i] - locations.mean[j]).abs();
                if difference > 0.0 {
                    let errors = locations.variance[i] + locations.variance[j];
                    best = best.max(difference / errors.sqrt());
                }
            }
        }
        best
    }

    /// The whole interval by the letter: one permutation after the other, the residuals of each
    /// block shuffled in a list, each class collected anew.
    fn plain_interval(
        class: &[u32],
        block: &[u32],
        levels: &[f64],
        floor: f64,
        permutations: Permutations,
    ) -> (f64, f64, f64) {
        let classes = *class.iter().max().unwrap() as usize + 1;
        let blocks = *block.iter().max().unwrap() as usize + 1;
        let arrangement = Arrangement::new(class, classes, block, blocks);
        let fit = |of_slot: &[f64]| arrangement.locate(of_slot, floor);
        let slots = arrangement.slots(levels);
        let locations = fit(&slots);
        let n = slots.len() as f64;
        let freedom = n - classes as f64 - if blocks > 1 { blocks as f64 } else { 0.0 };
        let mut maxima = Vec::new();
        for index in 0..permutations.count {
            let mut rng = permutations.rng(index);
            let mut permuted = vec![0.0; slots.len()];
            for b in 0..blocks as u32 {
                let members: Vec<usize> = (0..slots.len())
                    .filter(|&s| block[arrangement.cell[s] as usize] == b)
                    .collect();
                let mut residuals: Vec<f64> = members
                    .iter()
                    .map(|&s| {
                        let c = arrangement.class[s] as usize;
                        let scale = locations.scale[c];
                        let residual = slots[s] - locations.mean[c];
                        if scale > 0.0 { residual / scale * (n / freedom).sqrt() } else { 0.0 }
                    })
                    .collect();
                rng.shuffle(&mut residuals);
                for (&s, residual) in members.iter().zip(residuals) {
                    permuted[s] = residual * locations.scale[arrangement.class[s] as usize];
                }
            }
            let mut again = fit(&permuted);
            round_off(&mut again, floor, &mut rng);
            maxima.push(plain_largest(&again));
        }
        maxima.sort_by(f64::total_cmp);
        let q = maxima[(0.99 * (maxima.len() + 1) as f64).ceil() as usize - 1];
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for i in 0..classes {
            for j in (0..classes).filter(|&j| j != i) {
                let reach = q * (locations.variance[i] + locations.variance[j]).sqrt();
                let difference = locations.mean[i] - locations.mean[j];
                low = low.max(difference - reach);
                high = high.max(difference + reach);
            }
        }
        (q, low, high)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn equals_the_plain_reference(
            cells in prop::collection::vec((0..4u32, 0..3u32, -0.1..0.1f64), 12..60),
            floor in prop::sample::select(vec![0.0, 0.001]),
            seed in any::<u64>(),
        ) {
            let mut cells = cells;
            cells.extend((0..4).flat_map(|c| (0..3).map(move |b| (c, b, 0.01 * f64::from(c * b)))));
            let class: Vec<u32> = cells.iter().map(|c| c.0).collect();
            let block: Vec<u32> = cells.iter().map(|c| c.1).collect();
            let levels: Vec<f64> = cells.iter().map(|c| c.2).collect();
            let permutations = Permutations { count: 199, seed };
            let arrangement = Arrangement::new(&class, 4, &block, 3);
            let fast = interval(&arrangement, &levels, floor, permutations).unwrap();
            let (q, low, high) = plain_interval(&class, &block, &levels, floor, permutations);
            prop_assert!((fast.quantile - q).abs() < 1e-9);
            prop_assert!((fast.low - low).abs() < 1e-9);
            prop_assert!((fast.high - high).abs() < 1e-9);
        }

        #[test]
        fn the_largest_ratio_is_found_without_trying_every_pair(
            classes in prop::collection::vec((-1.0..1.0f64, 0.001..1.0f64), 2..60)
        ) {
            let (mean, variance): (Vec<f64>, Vec<f64>) = classes.into_iter().unzip();
            let locations = Locations { mean, variance, ..Locations::default() };
            let fast = largest_ratio(&locations, &mut Vec::new());
            prop_assert!((fast - plain_largest(&locations)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_lower_end_falls_where_chance_arranges_as_neatly() {
        let arrangement = Arrangement::new(&[0, 0, 0, 1, 1, 1], 2, &[0; 6], 1);
        let levels = [0.0, 0.001, 0.002, 0.2, 0.201, 0.202];
        let permutations = Permutations { count: 999, seed: 0 };
        let mut result = interval(&arrangement, &levels, 0.0, permutations).unwrap();
        result.stand_against(|| 0.01);
        assert!(result.low > 0.1 && result.lower(1, 0) > 0.1);
        result.stand_against(|| 0.1);
        assert_eq!((result.low, result.lower(1, 0)), (0.0, f64::NEG_INFINITY));
        assert!(result.high > 0.2);
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let permutations = Permutations { count: 50, seed: 9 };
        let draw = |_: &mut Worker, index| permutations.rng(index).u64(..);
        assert_eq!(permutations.map(1, draw), permutations.map(10_000_000, draw));
    }

    #[test]
    fn equal_figures_are_known_to_their_resolution() {
        let class = [0, 0, 0, 1, 1, 1];
        let arrangement = Arrangement::new(&class, 2, &[0; 6], 1);
        let step = 0.01;
        let result = interval(
            &arrangement,
            &[0.5; 6],
            step / 12f64.sqrt(),
            Permutations { count: 999, seed: 0 },
        )
        .unwrap();
        assert_eq!(result.low, 0.0);
        assert!((0.8..1.01).contains(&(result.high / step)), "{}", result.high / step);
    }

    #[test]
    fn one_figure_a_class_gives_no_interval() {
        let arrangement = Arrangement::new(&[0, 1, 2], 3, &[0; 3], 1);
        let permutations = Permutations { count: 199, seed: 0 };
        assert_eq!(interval(&arrangement, &[1.0, 2.0, 3.0], 0.0, permutations), None);
    }
}
