//! What a person wants to see of thousands of cells: one entry a store and load width.

use std::collections::BTreeMap;

use super::cell::{Cell, Class, Cover, Crosses, Form, Gap};
use super::map::Map;

/// Chained cells of one single store and one load, within a page, that the store covers (where the
/// load is wider than the store: that it touches).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// How many cells have each class.
    pub classes: BTreeMap<Class, usize>,
    /// Smallest and largest time net of the twin, in cycles.
    pub cycles: Option<(f64, f64)>,
}

impl Entry {
    /// `forwards`, or `blocked 60/196` where some are and some are not.
    pub fn words(&self) -> String {
        let all: usize = self.classes.values().sum();
        let mut named: Vec<String> = self
            .classes
            .iter()
            .filter(|(class, _)| **class != Class::Forwards || self.classes.len() == 1)
            .map(|(class, count)| match *count == all {
                true => class.to_string(),
                false => format!("{class} {count}/{all}"),
            })
            .collect();
        named.reverse();
        named.join(", ")
    }
}

impl Map {
    /// One entry a store width and load width.
    pub fn summary(&self) -> BTreeMap<(u16, u8), Entry> {
        let mut entries: BTreeMap<(u16, u8), Entry> = BTreeMap::new();
        for cell in self.cells.iter().filter(|cell| counts(cell)) {
            let Some(class) = cell.class else { continue };
            let entry = entries.entry((cell.store_bytes, cell.load_bytes)).or_default();
            *entry.classes.entry(class).or_default() += 1;
            if let Some(net) = cell.net_cycles {
                let (low, high) = entry.cycles.unwrap_or((net, net));
                entry.cycles = Some((low.min(net), high.max(net)));
            }
        }
        entries
    }
}

fn counts(cell: &Cell) -> bool {
    let wider = u16::from(cell.load_bytes) > cell.store_bytes;
    cell.form == Form::Chained
        && cell.gap == Gap::default()
        && cell.crosses != Some(Crosses::Page)
        && (wider || cell.cover() != Cover::Partly)
}
