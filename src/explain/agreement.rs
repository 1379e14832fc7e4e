//! Whether the prediction holds: the slow sets and their order, against measured bands.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use super::predict::Load;
use crate::analysis::{Finding, Verdict};

/// How prediction and measurement compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// The same placements are slow, in the same order; or none is in either.
    #[serde(rename = "agrees")]
    Agrees,
    /// The same placements are slow, in another order.
    #[serde(rename = "order differs")]
    OrderDiffers,
    /// Other placements are slow than those predicted.
    #[serde(rename = "sets differ")]
    SetsDiffer,
    /// The measurement settles nothing.
    #[serde(rename = "not settled")]
    NotSettled,
    /// Nothing was measured.
    #[serde(rename = "not measured")]
    NotMeasured,
}

/// The bands of the placements that were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Band of each shift, 0 the fastest.
    pub band: BTreeMap<usize, usize>,
    /// How far each band lies above the fastest, in percent.
    pub percent: Vec<f64>,
    /// Whether a verdict was reached.
    pub settled: bool,
}

impl Measured {
    /// The bands of a verdict over shifts; a clear one has a single band.
    pub fn of(verdict: &Verdict) -> Measured {
        let clear = verdict.verdict == Finding::Clear;
        let shifts = verdict.bands.iter().enumerate().flat_map(|(index, band)| {
            let index = if clear { 0 } else { index };
            band.placements.iter().filter_map(move |&s| Some((usize::try_from(s).ok()?, index)))
        });
        Measured {
            band: shifts.collect(),
            percent: verdict.bands.iter().map(|band| band.percent_above_fast).collect(),
            settled: verdict.verdict != Finding::Inconclusive,
        }
    }
}

/// How the prediction fared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// In one word.
    pub conclusion: Conclusion,
    /// Shifts that are slow although no pair and no store predicts it.
    pub unexplained: Vec<usize>,
    /// Shifts that are level although a stall was predicted.
    pub not_seen: Vec<usize>,
    /// What the unexplained placements have that no level one has.
    pub crossing: Option<String>,
}

/// Compares the loads with the measured bands.
pub fn agree(loads: &[Load], measured: Option<&Measured>) -> Agreement {
    let nothing = |conclusion| Agreement {
        conclusion,
        unexplained: Vec::new(),
        not_seen: Vec::new(),
        crossing: None,
    };
    let Some(measured) = measured.filter(|m| !m.band.is_empty()) else {
        return nothing(Conclusion::NotMeasured);
    };
    if !measured.settled {
        return nothing(Conclusion::NotSettled);
    }
    let seen: Vec<(&Load, usize)> =
        loads.iter().filter_map(|load| Some((load, *measured.band.get(&load.shift)?))).collect();
    let Some(base) = seen.iter().map(|(load, _)| load).min_by_key(|load| load.weight()) else {
        return nothing(Conclusion::NotMeasured);
    };
    let predicted = |load: &Load| load.order(base) == Some(Ordering::Greater);
    let shifts = |wanted: &dyn Fn(&Load, usize) -> bool| -> Vec<usize> {
        seen.iter().filter(|(load, band)| wanted(load, *band)).map(|(load, _)| load.shift).collect()
    };
    let unexplained = shifts(&|load, band| band > 0 && !predicted(load));
    let not_seen = shifts(&|load, band| band == 0 && predicted(load));
    let reversed = seen.iter().any(|(a, band_a)| {
        seen.iter().any(|(b, band_b)| a.order(b) == Some(Ordering::Greater) && band_a < band_b)
    });
    let conclusion = match (unexplained.is_empty() && not_seen.is_empty(), reversed) {
        (false, _) => Conclusion::SetsDiffer,
        (true, true) => Conclusion::OrderDiffers,
        (true, false) => Conclusion::Agrees,
    };
    let crossing = crossing(&seen, &unexplained);
    Agreement { conclusion, unexplained, not_seen, crossing }
}

/// Whether every unexplained placement has more accesses across a page or a line than any level one.
fn crossing(seen: &[(&Load, usize)], unexplained: &[usize]) -> Option<String> {
    if unexplained.is_empty() {
        return None;
    }
    let apart = |count: fn(&Load) -> u64| {
        let odd = |load: &Load| unexplained.contains(&load.shift);
        let least = seen.iter().filter(|(load, _)| odd(load)).map(|(load, _)| count(load)).min();
        let most = seen.iter().filter(|(_, band)| *band == 0).map(|(load, _)| count(load)).max();
        least.zip(most).is_some_and(|(least, most)| least > most)
    };
    if apart(|load| load.page_crossings) {
        Some("more accesses cross a page there than at any level placement".to_owned())
    } else if apart(|load| load.line_crossings) {
        Some("more accesses cross a 64-byte line there than at any level placement".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::predict::tests_support::load_at;
    use super::*;

    fn measured(bands: &[(usize, usize)]) -> Measured {
        Measured {
            band: bands.iter().copied().collect(),
            percent: vec![0.0, 50.0, 70.0],
            settled: true,
        }
    }

    #[test]
    fn sets_and_order_are_judged_and_nothing_else() {
        let loads = [load_at(0, [0, 0, 0]), load_at(16, [0, 1, 0]), load_at(32, [0, 2, 0])];
        let conclude = |bands: &[(usize, usize)]| agree(&loads, Some(&measured(bands)));
        assert_eq!(conclude(&[(0, 0), (16, 1), (32, 2)]).conclusion, Conclusion::Agrees);
        // Two that differ in number may share a band.
        assert_eq!(conclude(&[(0, 0), (16, 1), (32, 1)]).conclusion, Conclusion::Agrees);
        assert_eq!(conclude(&[(0, 0), (16, 2), (32, 1)]).conclusion, Conclusion::OrderDiffers);
        let off = conclude(&[(0, 1), (16, 1), (32, 0)]);
        assert_eq!(off.conclusion, Conclusion::SetsDiffer);
        assert_eq!((off.unexplained, off.not_seen), (vec![0], vec![32]));
        assert_eq!(agree(&loads, None).conclusion, Conclusion::NotMeasured);
        let open = Measured { settled: false, ..measured(&[(0, 0)]) };
        assert_eq!(agree(&loads, Some(&open)).conclusion, Conclusion::NotSettled);
    }

    #[test]
    fn an_unexplained_band_is_checked_for_crossing() {
        let mut crossing = load_at(16, [0, 0, 0]);
        crossing.line_crossings = 3;
        let loads = [load_at(0, [0, 0, 0]), crossing];
        let found = agree(&loads, Some(&measured(&[(0, 0), (16, 1)])));
        assert_eq!(found.unexplained, [16]);
        assert!(found.crossing.is_some_and(|words| words.contains("64-byte line")));
    }

    #[test]
    fn level_and_predicted_level_agree() {
        let loads = [load_at(0, [0, 2, 0]), load_at(16, [0, 2, 0])];
        let found = agree(&loads, Some(&measured(&[(0, 0), (16, 0)])));
        assert_eq!(found.conclusion, Conclusion::Agrees);
    }
}
