//! Does the order of visiting predict the placement or its class? Then a drift of the machine could
//! not be told from an effect of the placement, and there is no conclusion.

use std::fmt;

/// From here a rank correlation between order and placement counts as one predicting the other.
const PREDICTS: f64 = 0.9;
/// From here the share of the order's variance that lies between classes counts so.
const BETWEEN: f64 = 0.9;
/// Rounds of fewer placements predict anything by chance.
const FEWEST: usize = 4;
/// Below this many placements a round's order is monotone by chance too often for half the rounds
/// to mean anything: then nearly all of them must agree.
const FEW: usize = 7;

/// One visit in a round: when, where, and to which class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Visit {
    pub order: f64,
    /// A number that identifies the placement, below the number of placements.
    pub column: usize,
    pub placement: f64,
    pub class: usize,
}

/// What the order predicts, and in how many rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confounding {
    /// Placements rise or fall with the order.
    Monotone { rounds: usize, of: usize },
    /// Each round repeats the same order.
    Repeated { rounds: usize, of: usize },
    /// Classes are visited one after the other.
    Blocked { rounds: usize, of: usize },
}

impl fmt::Display for Confounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, rounds, of) = match self {
            Confounding::Monotone { rounds, of } => {
                ("the visiting order predicts the placement (ascending or descending)", rounds, of)
            }
            Confounding::Repeated { rounds, of } => {
                ("the visiting order predicts the placement (the same order again)", rounds, of)
            }
            Confounding::Blocked { rounds, of } => {
                ("the visiting order predicts the class (one class after the other)", rounds, of)
            }
        };
        write!(
            f,
            "{what} in {rounds} of {of} rounds, so that a drift of the machine would look like an \
             effect of the placement: visit every placement in a fresh shuffle each round"
        )
    }
}

/// Looks at every round; `None` where the order predicts nothing in most of them.
pub(crate) fn confounding(rounds: &[Vec<Visit>]) -> Option<Confounding> {
    let rounds: Vec<&Vec<Visit>> = rounds.iter().filter(|visits| visits.len() >= FEWEST).collect();
    let most = |count: usize| {
        let few = rounds.iter().any(|visits| visits.len() < FEW);
        let share = if few { 0.9 } else { 0.5 };
        count > 0 && count as f64 > share * rounds.len() as f64
    };
    let of = rounds.len();
    let monotone = rounds.iter().filter(|visits| is_monotone(visits)).count();
    if most(monotone) {
        return Some(Confounding::Monotone { rounds: monotone, of });
    }
    let repeated = repeats(&rounds);
    if of > 2 && most(repeated) {
        return Some(Confounding::Repeated { rounds: repeated, of });
    }
    let blocked = rounds.iter().filter(|visits| is_blocked(visits)).count();
    most(blocked).then_some(Confounding::Blocked { rounds: blocked, of })
}

fn is_monotone(visits: &[Visit]) -> bool {
    let order: Vec<f64> = visits.iter().map(|visit| visit.order).collect();
    let placement: Vec<f64> = visits.iter().map(|visit| visit.placement).collect();
    rank_correlation(&order, &placement).abs() >= PREDICTS
}

/// Rounds whose order the mean order of all other rounds predicts.
fn repeats(rounds: &[&Vec<Visit>]) -> usize {
    let columns = rounds.iter().flat_map(|visits| visits.iter()).map(|visit| visit.column + 1);
    let columns = columns.max().unwrap_or(0);
    let (mut sum, mut count) = (vec![0.0; columns], vec![0.0; columns]);
    let ranked: Vec<Vec<f64>> = rounds
        .iter()
        .map(|visits| ranks(&visits.iter().map(|visit| visit.order).collect::<Vec<_>>()))
        .collect();
    for (visits, ranks) in rounds.iter().zip(&ranked) {
        for (visit, rank) in visits.iter().zip(ranks) {
            sum[visit.column] += rank;
            count[visit.column] += 1.0;
        }
    }
    let repeated = |(visits, ranks): &(&&Vec<Visit>, &Vec<f64>)| {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (visit, &rank) in visits.iter().zip(ranks.iter()) {
            if count[visit.column] > 1.5 {
                own.push(rank);
                others.push((sum[visit.column] - rank) / (count[visit.column] - 1.0));
            }
        }
        own.len() >= FEWEST && rank_correlation(&own, &others) >= PREDICTS
    };
    rounds.iter().zip(&ranked).filter(repeated).count()
}

/// Whether nearly all of the order's variance lies between classes. With one placement a class it
/// always does, which means nothing.
fn is_blocked(visits: &[Visit]) -> bool {
    let ranks = ranks(&visits.iter().map(|visit| visit.order).collect::<Vec<_>>());
    let classes = visits.iter().map(|visit| visit.class + 1).max().unwrap_or(0);
    let (mut sum, mut count) = (vec![0.0; classes], vec![0.0; classes]);
    for (visit, rank) in visits.iter().zip(&ranks) {
        sum[visit.class] += rank;
        count[visit.class] += 1.0;
    }
    let visited = count.iter().filter(|&&n| n > 0.0).count();
    if visited < 2 || visits.len() < 2 * visited {
        return false;
    }
    let n = visits.len() as f64;
    let mean = (n - 1.0) / 2.0;
    let total: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    let between: f64 = sum
        .iter()
        .zip(&count)
        .filter(|(_, n)| **n > 0.0)
        .map(|(sum, n)| n * (sum / n - mean).powi(2))
        .sum();
    total > 0.0 && between >= BETWEEN * total
}

/// Spearman's rank correlation; 0 where either side does not vary.
pub(crate) fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let dot = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let scale = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if scale > 0.0 { dot(&a, &b) / scale } else { 0.0 }
}

/// Ranks from 0; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        order[start..end].iter().for_each(|&i| ranks[i] = (start + end - 1) as f64 / 2.0);
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(columns: &[usize], classes: usize) -> Vec<Visit> {
        columns
            .iter()
            .enumerate()
            .map(|(order, &column)| Visit {
                order: order as f64,
                column,
                placement: column as f64 * 16.0,
                class: column % classes,
            })
            .collect()
    }

    fn shuffled(n: usize, rng: &mut fastrand::Rng) -> Vec<usize> {
        let mut columns: Vec<usize> = (0..n).collect();
        rng.shuffle(&mut columns);
        columns
    }

    #[test]
    fn ascending_and_descending_are_confounded() {
        let up: Vec<usize> = (0..16).collect();
        let down: Vec<usize> = (0..16).rev().collect();
        let rounds = vec![round(&up, 4), round(&down, 4), round(&up, 4)];
        assert_eq!(confounding(&rounds), Some(Confounding::Monotone { rounds: 3, of: 3 }));
    }

    #[test]
    fn one_fixed_shuffle_is_confounded() {
        let fixed = shuffled(16, &mut fastrand::Rng::with_seed(3));
        let rounds: Vec<_> = (0..12).map(|_| round(&fixed, 4)).collect();
        assert_eq!(confounding(&rounds), Some(Confounding::Repeated { rounds: 12, of: 12 }));
    }

    #[test]
    fn class_after_class_is_confounded() {
        let mut rng = fastrand::Rng::with_seed(4);
        let rounds: Vec<_> = (0..6)
            .map(|_| {
                let mut columns = shuffled(16, &mut rng);
                columns.sort_by_key(|column| (column % 4) ^ 2);
                round(&columns, 4)
            })
            .collect();
        assert!(matches!(
            confounding(&rounds),
            Some(Confounding::Blocked { .. } | Confounding::Repeated { .. })
        ));
    }

    #[test]
    fn fresh_shuffles_are_not_whatever_their_size() {
        let mut rng = fastrand::Rng::with_seed(5);
        for n in [4, 5, 8, 16, 36] {
            for _ in 0..200 {
                let rounds: Vec<_> = (0..12).map(|_| round(&shuffled(n, &mut rng), 4)).collect();
                assert_eq!(confounding(&rounds), None, "{n} placements");
            }
        }
    }

    #[test]
    fn each_placement_visited_once_is_no_ground() {
        let rounds = vec![round(&[3, 1, 2, 0, 5, 4, 7, 6], 8)];
        assert_eq!(confounding(&rounds), None);
        assert_eq!(confounding(&[]), None);
    }

    proptest! {
        /// Ranks counted value by value, and the textbook formula of a correlation.
        #[test]
        fn rank_correlation_equals_the_plain_reference(
            pairs in prop::collection::vec((0..9i32, 0..9i32), 2..30)
        ) {
            let rank = |values: &[f64], i: usize| {
                let below = values.iter().filter(|v| **v < values[i]).count() as f64;
                let equal = values.iter().filter(|v| **v == values[i]).count() as f64;
                below + (equal - 1.0) / 2.0
            };
            let a: Vec<f64> = pairs.iter().map(|p| f64::from(p.0)).collect();
            let b: Vec<f64> = pairs.iter().map(|p| f64::from(p.1)).collect();
            let ra: Vec<f64> = (0..a.len()).map(|i| rank(&a, i)).collect();
            let rb: Vec<f64> = (0..b.len()).map(|i| rank(&b, i)).collect();
            let n = a.len() as f64;
            let (ma, mb) = (ra.iter().sum::<f64>() / n, rb.iter().sum::<f64>() / n);
            let cov: f64 = ra.iter().zip(&rb).map(|(x, y)| (x - ma) * (y - mb)).sum();
            let va: f64 = ra.iter().map(|x| (x - ma).powi(2)).sum();
            let vb: f64 = rb.iter().map(|y| (y - mb).powi(2)).sum();
            let plain = if va * vb > 0.0 { cov / (va * vb).sqrt() } else { 0.0 };
            prop_assert!((rank_correlation(&a, &b) - plain).abs() < 1e-9);
        }
    }
}
