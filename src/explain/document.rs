//! The explanation as it is printed.

use serde::Serialize;

use super::agreement::{Agreement, Conclusion};
use crate::sample::Grid;
use crate::trace::Relation;

/// The schema of [`Explanation`].
pub const SCHEMA: &str = "stackphase/explanation/1";

/// Why the placements of one workload differ, or do not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The workload.
    pub workload: String,
    /// Bytes an operation.
    pub len: Option<u64>,
    /// Instructions of one operation, stepped.
    pub instructions: u64,
    /// Pairs of stores and loads in it.
    pub pairs_traced: usize,
    /// Where the map comes from.
    pub map: String,
    /// Placements by what is predicted for them, the fastest first.
    pub groups: Vec<PlacementGroup>,
    /// Pairs that may be blocked or forward slowly somewhere.
    pub pairs: Vec<PairFate>,
    /// Stores that are slow by themselves somewhere.
    pub stores: Vec<StoreFate>,
    /// Pairs of several stores that the map holds nothing of.
    pub unknown_pairs: usize,
    /// How the prediction fared on each grid that was measured.
    pub agreement: Vec<GridAgreement>,
    /// What would remove the bands; guesses that a measurement has to confirm.
    pub hints: Vec<String>,
    /// What limits the explanation.
    pub notes: Vec<String>,
    /// All of it in a few sentences.
    pub sentences: Vec<String>,
}

/// The comparison on one grid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridAgreement {
    /// The grid.
    pub grid: Option<Grid>,
    /// The comparison.
    #[serde(flatten)]
    pub agreement: Agreement,
}

/// Placements for which the same is predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementGroup {
    /// Residues modulo 64 of the buffer there; empty where the buffer is not known.
    pub residues: Vec<u8>,
    /// The shifts.
    pub placements: Vec<usize>,
    /// Stores an operation that are slow because they cross a page.
    pub slow_stores: u64,
    /// Pairs an operation that may be blocked.
    pub blocked: u64,
    /// Pairs an operation that forward slowly.
    pub slow_forwards: u64,
    /// How far the slowest measured band that these placements are in lies above the fastest, in
    /// percent; `null` where nothing was measured.
    pub measured_percent_above_fast: Option<f64>,
}

/// One pair and where it may be held up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairFate {
    /// How the load lies on the stores.
    pub relation: Relation,
    /// Occurrences an operation.
    pub count: u64,
    /// The stores, youngest first, as text with their function.
    pub stores: Vec<String>,
    /// The load, as text with its function.
    pub load: String,
    /// Width of the youngest store and of the load.
    pub store_bytes: u32,
    /// Width of the load.
    pub load_bytes: u32,
    /// Load address minus address of the youngest store.
    pub offset: i64,
    /// Instructions from the youngest store to the load.
    pub distance: u64,
    /// Blocked or only slow.
    pub class: String,
    /// The shifts where it is so.
    pub placements: Vec<usize>,
    /// Whether that is all of them: background, and no cause of bands.
    pub everywhere: bool,
}

/// One store that is slow without a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreFate {
    /// The store, as text with its function.
    pub store: String,
    /// Its width.
    pub bytes: u32,
    /// The shifts where it crosses a page and pays for it.
    pub placements: Vec<usize>,
}

impl Explanation {
    /// The explanation in the few sentences that stand at the end of a check.
    pub fn summarise(&mut self) {
        let mut sentences = vec![self.pairs_in_words(), self.groups_in_words()];
        sentences.extend(self.agreement.iter().map(agreement_in_words));
        self.sentences = sentences;
    }

    fn pairs_in_words(&self) -> String {
        let blocked = || self.pairs.iter().filter(|pair| pair.class == "blocked");
        let always = blocked().filter(|pair| pair.everywhere).count();
        let some = blocked().filter(|pair| !pair.everywhere).count();
        let intro = format!(
            "{}: {} instructions an operation with {} kinds of store-load pairs",
            self.workload, self.instructions, self.pairs_traced
        );
        let first = blocked().find(|pair| !pair.everywhere).or_else(|| blocked().next());
        match first {
            None => format!("{intro}; by this core's map none of them is blocked at any placement"),
            Some(pair) => format!(
                "{intro}; {some} may be blocked at some placements and {always} at every one \
                 (background), such as the {}-byte load `{}` from `{}`",
                pair.load_bytes,
                pair.load,
                pair.stores.join("` and `")
            ),
        }
    }

    fn groups_in_words(&self) -> String {
        let [fastest, slower @ ..] = self.groups.as_slice() else {
            return "no placement was looked at".to_owned();
        };
        if slower.is_empty() {
            return "prediction: all placements alike".to_owned();
        }
        let words: Vec<String> = slower.iter().map(|group| group.in_words()).collect();
        let base = fastest.in_words();
        format!("prediction: slower than {base}: {}", words.join("; then "))
    }
}

impl PlacementGroup {
    /// The residues where they are few, else the number of placements.
    pub fn in_words(&self) -> String {
        let list =
            |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(", ");
        if self.placements.len() <= 4 {
            return format!("shifts {}", list(&mut self.placements.iter().map(usize::to_string)));
        }
        if self.residues.is_empty() || self.residues.len() > 8 {
            return format!("{} placements", self.placements.len());
        }
        format!(
            "residues {} ({} placements)",
            list(&mut self.residues.iter().map(u8::to_string)),
            self.placements.len()
        )
    }
}

fn agreement_in_words(on: &GridAgreement) -> String {
    let grid = on.grid.map_or_else(|| "measured".to_owned(), |grid| format!("{grid} grid"));
    let found = &on.agreement;
    match found.conclusion {
        Conclusion::Agrees => format!("{grid}: the measured bands agree, in set and order"),
        Conclusion::OrderDiffers => {
            format!("{grid}: the predicted placements are slow, but in another order")
        }
        Conclusion::SetsDiffer => {
            let mut words = format!("{grid}: the measurement disagrees:");
            if !found.unexplained.is_empty() {
                words += &format!(
                    " {} slow placements that no pair explains ({})",
                    found.unexplained.len(),
                    found.crossing.as_deref().unwrap_or("nor does a line or page crossing")
                );
            }
            if !found.not_seen.is_empty() {
                words += &format!(
                    "{} {} predicted slow that are level: what else is in flight may \
                     hide the stall",
                    if found.unexplained.is_empty() { "" } else { "," },
                    found.not_seen.len()
                );
            }
            words
        }
        Conclusion::NotSettled => format!("{grid}: the measurement settles nothing yet"),
        Conclusion::NotMeasured => {
            format!("{grid}: not measured, so that the prediction is unchecked")
        }
    }
}
