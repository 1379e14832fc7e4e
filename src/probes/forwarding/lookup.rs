//! Asking the map what becomes of one store and load of a program.

use super::cell::{Cell, Class, Crosses, Form, Gap, StorePart};
use super::map::Map;

/// A store and a load as a program made them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place<'a> {
    /// The stores that hold bytes of the load, in program order, `at` above the first's address.
    pub stores: &'a [StorePart],
    /// Address of the first of them.
    pub store_address: u64,
    /// Address of the load.
    pub load_address: u64,
    /// Width of the load.
    pub load_bytes: u8,
}

/// What the map says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The class.
    pub class: Class,
    /// Whether a cell at exactly this residue (or page offset) was measured; else the cell nearest
    /// in alignment speaks for it.
    pub exact: bool,
    /// What it costs above a plain load, in cycles: the smaller and the larger of the two forms.
    /// `None` where the map has no figures, or only one form.
    pub cost_cycles: Option<(f64, f64)>,
}

impl Map {
    /// What the map says of `place`; `None` where it holds nothing of that kind.
    pub fn predict(&self, place: &Place<'_>) -> Option<Prediction> {
        let offset = place.load_address as i64 - place.store_address as i64;
        let offset = i16::try_from(offset).ok()?;
        let list = if place.stores.len() == 1 { &self.cells } else { &self.pairs };
        let alike: Vec<&Cell> = list
            .iter()
            .filter(|cell| {
                cell.load_bytes == place.load_bytes
                    && cell.offset == offset
                    && cell.gap == Gap::default()
                    && cell.class.is_some()
                    && cell.parts() == place.stores
            })
            .collect();
        let rank = |cell: &&Cell| likeness(cell, place.store_address);
        let chosen = alike
            .iter()
            .copied()
            .filter(|cell| cell.form == Form::Chained)
            .max_by_key(rank)
            .or_else(|| alike.iter().copied().max_by_key(rank))?;
        let other = alike.iter().copied().find(|cell| {
            cell.form != chosen.form
                && cell.residue == chosen.residue
                && cell.page_offset == chosen.page_offset
        });
        let cost = chosen.net_cycles.zip(other.and_then(|cell| cell.net_cycles));
        Some(Prediction {
            class: chosen.class?,
            exact: likeness(chosen, place.store_address) == EXACT,
            cost_cycles: cost.map(|(a, b)| (a.min(b), a.max(b))),
        })
    }
}

const EXACT: u32 = u32::MAX;

/// How much a cell's place is like that of an address: the same place, else the same way of
/// crossing, then as many low bits as possible.
fn likeness(cell: &Cell, address: u64) -> u32 {
    // A store of at most 64 bytes, and what it crosses there.
    let crosses = Crosses::of((address % 4096) as usize, usize::from(cell.store_bytes));
    let at_page_end = crosses == Some(Crosses::Page);
    let same = match cell.page_offset {
        Some(offset) => u64::from(offset) == address % 4096,
        None => !at_page_end && u64::from(cell.residue) == address % 64,
    };
    if same {
        return EXACT;
    }
    let way = u32::from(at_page_end == cell.page_offset.is_some());
    let bits = (u64::from(cell.residue) ^ (address % 64) | 64).trailing_zeros();
    way * 64 + bits
}

#[cfg(test)]
mod tests;
