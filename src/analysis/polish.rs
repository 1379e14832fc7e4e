//! Median polish (Tukey 1977): row effects of a table, such as a round in which everything was
//! slower, told apart from column effects without letting a few wild cells decide.

use super::robust::median;

/// Sweeps over the table at most; each is one pass over columns and one over rows.
const SWEEPS: usize = 4;
/// Effects that change by less than this (0.001 % of the figure) have settled.
const SETTLED: f64 = 1e-5;

/// Which entries belong to each of `count` groups, in the order of the entries.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    /// Groups entries by their number below `count`.
    pub(crate) fn new(of: &[u32], count: usize) -> Self {
        let mut starts = vec![0u32; count + 1];
        for &group in of {
            starts[group as usize + 1] += 1;
        }
        for group in 0..count {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut members = vec![0u32; of.len()];
        for (entry, &group) in of.iter().enumerate() {
            let slot = &mut next[group as usize];
            members[*slot as usize] = entry as u32;
            *slot += 1;
        }
        Groups { starts, members }
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The entries of one group.
    pub(crate) fn of(&self, group: usize) -> &[u32] {
        &self.members[self.starts[group] as usize..self.starts[group + 1] as usize]
    }

    /// All groups in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|group| self.of(group))
    }
}

/// The effect of each row. A row of one entry has none: it could not be told from its column's.
pub(crate) fn row_effects(
    values: &[f64],
    row_of: &[u32],
    rows: &Groups,
    columns: &Groups,
) -> Vec<f64> {
    let mut effects = vec![0.0; rows.len()];
    let mut column_effects = vec![0.0; columns.len()];
    let mut column_of = vec![0u32; values.len()];
    for (column, members) in columns.iter().enumerate() {
        members.iter().for_each(|&entry| column_of[entry as usize] = column as u32);
    }
    let mut scratch = Vec::new();
    for _ in 0..SWEEPS {
        for (column, members) in columns.iter().enumerate() {
            scratch.clear();
            scratch.extend(
                members.iter().map(|&entry| {
                    values[entry as usize] - effects[row_of[entry as usize] as usize]
                }),
            );
            column_effects[column] = median(&mut scratch);
        }
        let mut change: f64 = 0.0;
        for (row, members) in rows.iter().enumerate().filter(|(_, members)| members.len() > 1) {
            scratch.clear();
            scratch.extend(members.iter().map(|&entry| {
                values[entry as usize] - column_effects[column_of[entry as usize] as usize]
            }));
            let effect = median(&mut scratch);
            change = change.max((effect - effects[row]).abs());
            effects[row] = effect;
        }
        if change < SETTLED {
            break;
        }
    }
    effects
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain_median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        (values[(n - 1) / 2] + values[n / 2]) / 2.0
    }

    /// The same sweeps over a list of (row, column, value), each median found anew from the list.
    fn plain(table: &[(u32, u32, f64)], rows: u32, columns: u32) -> Vec<f64> {
        let mut effect = vec![0.0; rows as usize];
        for _ in 0..SWEEPS {
            let column_effect: Vec<f64> = (0..columns)
                .map(|c| {
                    let rest =
                        table.iter().filter(|t| t.1 == c).map(|t| t.2 - effect[t.0 as usize]);
                    let rest: Vec<f64> = rest.collect();
                    if rest.is_empty() { 0.0 } else { plain_median(rest) }
                })
                .collect();
            let before = effect.clone();
            for r in 0..rows {
                let rest =
                    table.iter().filter(|t| t.0 == r).map(|t| t.2 - column_effect[t.1 as usize]);
                let rest: Vec<f64> = rest.collect();
                if rest.len() > 1 {
                    effect[r as usize] = plain_median(rest);
                }
            }
            let change = effect.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            if change < SETTLED {
                break;
            }
        }
        effect
    }

    fn effects(table: &[(u32, u32, f64)], rows: u32, columns: u32) -> Vec<f64> {
        let row_of: Vec<u32> = table.iter().map(|t| t.0).collect();
        let column_of: Vec<u32> = table.iter().map(|t| t.1).collect();
        let values: Vec<f64> = table.iter().map(|t| t.2).collect();
        let rows = Groups::new(&row_of, rows as usize);
        row_effects(&values, &row_of, &rows, &Groups::new(&column_of, columns as usize))
    }

    proptest! {
        #[test]
        fn equals_the_plain_reference(
            table in prop::collection::vec((0..6u32, 0..5u32, 0.0..4.0f64), 1..60)
        ) {
            let fast = effects(&table, 6, 5);
            for (a, b) in fast.iter().zip(plain(&table, 6, 5)) {
                prop_assert!((a - b).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_slow_round_is_found_beside_a_band_and_a_wild_block() {
        let mut table = Vec::new();
        for round in 0..5 {
            for column in 0..6 {
                let band = if column < 2 { 0.3 } else { 0.0 };
                let slow = if round == 3 { 0.05 } else { 0.0 };
                table.push((round, column, 4.0 + band + slow));
            }
        }
        table[7].2 += 1.0;
        let effects = effects(&table, 5, 6);
        assert!((effects[3] - effects[0] - 0.05).abs() < 1e-12);
        assert!((effects[1] - effects[0]).abs() < 1e-12);
    }
}
