//! Medians, trimmed means and their spread: estimates that one bad block in four cannot move far.

/// Share of the values that the trimmed mean leaves out at each end.
pub(crate) const TRIM: f64 = 0.25;
/// The median absolute deviation of normal values times this is their standard deviation.
const MAD_TO_SD: f64 = 1.482_602_218_505_602;
/// Up to here sorting a few values is faster than selecting among them.
const SORT_UP_TO: usize = 40;

/// The median; the mean of the two middle values for an even count, NaN without values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (lower + upper)
}

/// Robust standard deviation: the median distance from `centre`, scaled for normal values.
pub(crate) fn spread(values: &mut [f64], centre: f64) -> f64 {
    for value in values.iter_mut() {
        *value = (*value - centre).abs();
    }
    MAD_TO_SD * median(values)
}

/// A 25 % trimmed mean and what its standard error is made of (Yuen 1974).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trimmed {
    /// Number of values.
    pub n: usize,
    /// Number of values that were kept, `n − 2⌊n/4⌋`.
    pub kept: usize,
    /// Mean of those kept.
    pub mean: f64,
    /// Sum of squares of the winsorised values about their own mean.
    pub squares: f64,
}

impl Trimmed {
    /// The variance of one value as Yuen's standard error implies it: `n` times its square. `None`
    /// from a single value.
    pub(crate) fn variance(&self) -> Option<f64> {
        let (n, h) = (self.n as f64, self.kept as f64);
        (self.kept > 1).then(|| n * self.squares / (h * (h - 1.0)))
    }
}

/// The trimmed mean of `values`, which are reordered. They must not be empty.
pub(crate) fn trimmed(values: &mut [f64]) -> Trimmed {
    let n = values.len();
    let cut = (TRIM * n as f64) as usize;
    let kept = n - 2 * cut;
    if n <= SORT_UP_TO {
        values.sort_unstable_by(f64::total_cmp);
    } else {
        let (_, _, above) = values.select_nth_unstable_by(cut, f64::total_cmp);
        above.select_nth_unstable_by(kept - 2, f64::total_cmp);
    }
    let middle = &values[cut..cut + kept];
    let (least, most) = (middle[0], middle[kept - 1]);
    let sum: f64 = middle.iter().sum();
    let winsorised_mean = (sum + cut as f64 * (least + most)) / n as f64;
    let square = |x: f64| (x - winsorised_mean).powi(2);
    let squares = middle.iter().copied().map(square).sum::<f64>()
        + cut as f64 * (square(least) + square(most));
    Trimmed { n, kept, mean: sum / kept as f64, squares }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(values: &[f64]) -> Vec<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    fn plain_median(values: &[f64]) -> f64 {
        let sorted = sorted(values);
        let n = sorted.len();
        (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
    }

    /// Yuen's formulas written out value by value.
    fn plain_trimmed(values: &[f64]) -> Trimmed {
        let sorted = sorted(values);
        let n = sorted.len();
        let g = n / 4;
        let kept: Vec<f64> = sorted[g..n - g].to_vec();
        let winsorised: Vec<f64> = (0..n).map(|i| sorted[i.clamp(g, n - g - 1)]).collect();
        let mean_w = winsorised.iter().sum::<f64>() / n as f64;
        Trimmed {
            n,
            kept: kept.len(),
            mean: kept.iter().sum::<f64>() / kept.len() as f64,
            squares: winsorised.iter().map(|w| (w - mean_w).powi(2)).sum(),
        }
    }

    proptest! {
        #[test]
        fn equals_the_plain_reference(values in prop::collection::vec(-10.0..10.0f64, 1..150)) {
            let plain = plain_trimmed(&values);
            let fast = trimmed(&mut values.clone());
            prop_assert_eq!((fast.n, fast.kept), (plain.n, plain.kept));
            prop_assert!((fast.mean - plain.mean).abs() < 1e-12);
            prop_assert!((fast.squares - plain.squares).abs() < 1e-9);
            prop_assert!((median(&mut values.clone()) - plain_median(&values)).abs() < 1e-12);
        }
    }

    #[test]
    fn a_quarter_of_wild_values_at_one_end_is_ignored() {
        let mut values = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 900.0, 900.0];
        let result = trimmed(&mut values);
        assert_eq!((result.mean, result.kept, result.squares), (1.0, 4, 0.0));
    }

    #[test]
    fn one_value_has_a_mean_and_no_variance() {
        assert_eq!(trimmed(&mut [3.0]).variance(), None);
        assert_eq!(trimmed(&mut [1.0, 3.0]).variance(), Some(2.0));
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn the_variance_of_normal_values_comes_out_near_theirs() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut total = 0.0;
        for _ in 0..400 {
            let mut values: Vec<f64> =
                (0..48).map(|_| (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0).collect();
            total += trimmed(&mut values).variance().unwrap();
        }
        // A 25 % trimmed mean has an efficiency of 0.84: 1 / 0.84 = 1.19.
        assert!((1.1..1.3).contains(&(total / 400.0)), "{}", total / 400.0);
    }
}
