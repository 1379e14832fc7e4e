//! In which order placements were visited, as far as it was recorded.

use std::collections::BTreeMap;

use super::cells::{Cells, Unit, usable};
use super::confounding::Visit;
use super::periods::Classes;
use super::series::{Observation, Series};

/// So many rounds, spread over the run, tell as much as all of a million.
const ROUNDS_LOOKED_AT: usize = 256;

/// The visits of each round; `None` where the order was not recorded.
///
/// Where launches carry the placement, the launches take the place of the visits in a round. Their
/// order is that of `order` where it goes on from launch to launch, else that of their numbers.
pub(crate) fn visits(series: &Series, cells: &Cells, classes: &Classes) -> Option<Vec<Vec<Visit>>> {
    if series.observations.iter().any(|row| row.order.is_none()) {
        return None;
    }
    let class_of = classes_of_placements(cells, classes);
    let rounds = match cells.unit {
        Unit::LaunchAtPlacement => by_launch(series),
        Unit::Launch | Unit::Round => by_round(series),
    };
    let visit = |(order, placement): (f64, i64)| {
        let &(column, class) = class_of.get(&placement)?;
        Some(Visit { order, column, placement: placement as f64, class })
    };
    Some(rounds.into_iter().map(|round| round.into_iter().filter_map(visit).collect()).collect())
}

/// A number and a class for each placement's value.
fn classes_of_placements(cells: &Cells, classes: &Classes) -> BTreeMap<i64, (usize, usize)> {
    let mut of = BTreeMap::new();
    for (cell, &class) in cells.cells.iter().zip(&classes.partition.of) {
        let column = cell.column as usize;
        of.insert(cells.columns[column].placement, (column, class as usize));
    }
    of
}

type Round = Vec<(f64, i64)>;

fn by_round(series: &Series) -> Vec<Round> {
    let figures = || series.observations.iter().filter(|row| usable(row));
    let mut keys: Vec<(u32, u32)> = figures().map(|row| (row.launch, row.round)).collect();
    keys.dedup();
    keys.sort_unstable();
    keys.dedup();
    let step = keys.len().div_ceil(ROUNDS_LOOKED_AT).max(1);
    let chosen: Vec<(u32, u32)> = keys.into_iter().step_by(step).collect();
    let mut rounds = vec![Round::new(); chosen.len()];
    for row in figures() {
        if let Ok(at) = chosen.binary_search(&(row.launch, row.round)) {
            rounds[at].push((order(row), row.placement));
        }
    }
    rounds
}

fn order(row: &Observation) -> f64 {
    row.order.map_or(f64::NAN, f64::from)
}

/// One round a pass: launches that are numbered through are one pass, launch numbers that each go
/// over several placements are a pass each.
fn by_launch(series: &Series) -> Vec<Round> {
    let mut first: BTreeMap<(u32, i64), f64> = BTreeMap::new();
    for row in series.observations.iter().filter(|row| usable(row)) {
        let entry = first.entry((row.launch, row.placement)).or_insert(f64::INFINITY);
        *entry = entry.min(order(row));
    }
    let mut passes: BTreeMap<u32, Round> = BTreeMap::new();
    for (&(launch, placement), &order) in &first {
        passes.entry(launch).or_default().push((order, placement));
    }
    if first.len() >= 2 * passes.len() {
        return passes.into_values().collect();
    }
    let goes_on = first.values().any(|&order| order != 0.0);
    let through = first.iter().map(|(&(launch, placement), &order)| {
        (if goes_on { order } else { f64::from(launch) }, placement)
    });
    vec![through.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::simulate::observation;
    use crate::analysis::simulate::series_of as series;

    fn row(launch: u32, round: u32, order: Option<u32>, placement: i64) -> Observation {
        Observation { order, ..observation(launch, round, placement, 10.0) }
    }

    #[test]
    fn launches_numbered_through_are_one_round_in_the_order_of_their_numbers() {
        let rows = (0..6).flat_map(|l| (0..3).map(move |r| row(l, r, Some(r), i64::from(l) * 16)));
        let rounds = by_launch(&series(rows.collect()));
        let expected: Round = (0..6).map(|l| (f64::from(l), i64::from(l) * 16)).collect();
        assert_eq!(rounds, vec![expected]);
    }

    #[test]
    fn a_launch_number_that_goes_over_the_placements_is_a_pass() {
        let rows = (0..3).flat_map(|l| (0..8).map(move |p| row(l, 0, Some(p), i64::from(p) * 16)));
        let rounds = by_launch(&series(rows.collect()));
        assert_eq!(rounds.len(), 3);
        assert!(rounds.iter().all(|round| round.len() == 8));
    }

    #[test]
    fn many_rounds_are_sampled() {
        let rows = (0..2000).flat_map(|r| (0..4).map(move |p| row(0, r, Some(p), i64::from(p))));
        let rounds = by_round(&series(rows.collect()));
        assert_eq!(rounds.len(), 250);
        assert!(rounds.iter().all(|round| round.len() == 4));
    }
}
