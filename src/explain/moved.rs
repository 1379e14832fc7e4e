//! The traced pairs as the forwarding map knows them, and where they are at another shift.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::kernels::pairs::Stores;
use crate::probes::forwarding::{Experiment, Form, Plan, StorePart, widths};
use crate::trace::{AccessKind, Pair, Touch, Trace};

/// Visits to each cell of a map made for one explanation.
const REPEATS: u32 = 5;

/// A pair in the map's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The stores, in program order unless `reordered`.
    pub stores: Stores,
    /// Address of the first of them, at the traced shift.
    pub store_address: u64,
    /// Width of the load.
    pub load_bytes: u8,
    /// Load address minus store address.
    pub offset: i16,
    /// The map has such stores in the other order only; they do not overlap.
    pub reordered: bool,
}

impl Shape {
    /// The shape of `pair`; `None` where the map has none like it: three stores or more, or widths
    /// and distances that its kernels do not have.
    pub fn of(pair: &Pair) -> Option<Shape> {
        let width = |bytes: u32| {
            u8::try_from(bytes).ok().filter(|b| matches!(b, 1 | 2 | 4 | 8 | 16 | 32 | 64))
        };
        let load_bytes = width(pair.load_bytes)?;
        // Youngest first.
        let (stores, store_address, reordered) = match pair.stores[..] {
            [only] => (Stores::single(width(only.bytes)?), only.address, false),
            [young, old] => {
                let (young_bytes, old_bytes) = (width(young.bytes)?, width(old.bytes)?);
                let apart = |from: u64, to: u64| {
                    to.checked_sub(from).and_then(|at| u8::try_from(at).ok()).filter(|at| *at <= 64)
                };
                if let Some(at) =
                    apart(old.address, young.address).filter(|_| young_bytes <= old_bytes)
                {
                    (Stores::pair(old_bytes, young_bytes, at), old.address, false)
                } else {
                    let at = apart(young.address, old.address)?;
                    if old_bytes > young_bytes || at < young_bytes {
                        return None;
                    }
                    (Stores::pair(young_bytes, old_bytes, at), young.address, true)
                }
            }
            _ => return None,
        };
        let offset = i16::try_from(pair.load_address.wrapping_sub(store_address) as i64).ok()?;
        Some(Shape { stores, store_address, load_bytes, offset, reordered })
    }

    /// The stores as the map names them.
    pub fn parts(&self) -> Vec<StorePart> {
        let first = StorePart { bytes: self.stores.bytes, at: 0 };
        let second = self.stores.second.map(|s| StorePart { bytes: s.bytes, at: s.at });
        std::iter::once(first).chain(second).collect()
    }
}

/// Where `address` is when the stack is shifted by `by` bytes more than when it was traced.
pub(super) fn moved(address: u64, moving: &Range<u64>, by: i64) -> u64 {
    if moving.contains(&address) { address.wrapping_sub(by as u64) } else { address }
}

/// Whether `bytes` from `address` lie on two sides of a multiple of `unit`.
pub(super) fn crosses(address: u64, bytes: u64, unit: u64) -> bool {
    bytes > 0 && address / unit != (address + bytes - 1) / unit
}

/// The cells that say what becomes of the pairs and the stores of `trace`, made at shift `traced`,
/// at all of `shifts`; without those of widths that this machine lacks.
pub fn needed(trace: &Trace, traced: usize, shifts: &[usize]) -> Plan {
    let (present, _) = widths();
    let mut experiments = BTreeSet::new();
    let mut add = |stores: Stores, load: u8, offset: i16, address: u64| {
        let known = |bytes: u8| present.contains(&bytes);
        if !known(stores.bytes) || !known(load) || stores.second.is_some_and(|s| !known(s.bytes)) {
            return;
        }
        let mut cell = Experiment::new(stores, load, offset, (address % 64) as u8);
        if crosses(address, stores.span() as u64, 4096) {
            cell.at = crate::probes::forwarding::At::PageOffset((address % 4096) as u16);
        }
        for form in [Form::Chained, Form::Independent] {
            experiments.insert(Experiment { form, ..cell });
        }
    };
    let shapes: Vec<Shape> = trace.pairs.iter().filter_map(Shape::of).collect();
    let stores: Vec<&Touch> = wide_stores(trace).collect();
    for shift in shifts {
        let by = *shift as i64 - traced as i64;
        for shape in &shapes {
            let address = moved(shape.store_address, &trace.moving, by);
            add(shape.stores, shape.load_bytes, shape.offset, address);
        }
        for store in &stores {
            let address = moved(store.address, &trace.moving, by);
            let bytes = store.bytes as u8;
            if crosses(address, u64::from(bytes), 4096) {
                add(Stores::single(bytes), bytes, 0, address);
                // What it costs inside a page, for comparison.
                add(Stores::single(bytes), bytes, 0, address % 64 + 1024);
            }
        }
    }
    Plan { experiments: experiments.into_iter().collect(), repeats: REPEATS, grid: None }
}

/// The stores that may cross a boundary and that the map has a width for.
pub(super) fn wide_stores(trace: &Trace) -> impl Iterator<Item = &Touch> {
    trace.touches.iter().filter(|touch| {
        touch.kind == AccessKind::Store && matches!(touch.bytes, 2 | 4 | 8 | 16 | 32 | 64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Relation, StoreSite};

    fn pair(stores: &[(u64, u32)], load: (u64, u32)) -> Pair {
        let site =
            |&(address, bytes): &(u64, u32)| StoreSite { ip: 1, address, bytes, string: false };
        Pair {
            relation: Relation::Contained,
            count: 1,
            stores: stores.iter().map(site).collect(),
            load_ip: 2,
            load_address: load.0,
            load_bytes: load.1,
            load_string: false,
            offset: 0,
            distance: 1,
            residues: 1,
        }
    }

    #[test]
    fn pairs_become_what_the_map_measures() {
        let one = Shape::of(&pair(&[(0x100, 64)], (0x110, 16))).expect("one store");
        assert_eq!((one.stores, one.offset), (Stores::single(64), 16));
        // Youngest first: a 4-byte store over the last byte of an older 8-byte store.
        let over = Shape::of(&pair(&[(0x107, 4), (0x100, 8)], (0x100, 8))).expect("overlapping");
        assert_eq!((over.stores, over.offset, over.reordered), (Stores::pair(8, 4, 7), 0, false));
        // The upper half was written first: the same cell, and said to be in the other order.
        let halves = Shape::of(&pair(&[(0x100, 8), (0x108, 8)], (0x100, 16))).expect("halves");
        assert_eq!((halves.stores, halves.reordered), (Stores::pair(8, 8, 8), true));
        // A wide store over an older narrow one inside it: not on the map, not guessed.
        assert_eq!(Shape::of(&pair(&[(0x100, 16), (0x104, 4)], (0x0f8, 16))), None);
        assert_eq!(Shape::of(&pair(&[(0x100, 10)], (0x100, 8))), None);
        let three = pair(&[(0x100, 4), (0x104, 4), (0x108, 8)], (0x100, 16));
        assert_eq!(Shape::of(&three), None);
    }

    #[test]
    fn only_the_stack_moves() {
        assert_eq!(moved(0x1000, &(0x800..0x2000), 16), 0x0ff0);
        assert_eq!(moved(0x1000, &(0x800..0x2000), -16), 0x1010);
        assert_eq!(moved(0x5000, &(0x800..0x2000), 16), 0x5000);
        assert!(crosses(4090, 8, 4096) && !crosses(4088, 8, 4096) && !crosses(1, 0, 64));
    }
}
