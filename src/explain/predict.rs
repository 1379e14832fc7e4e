//! What the map says of every pair and store at one placement.

use std::cmp::Ordering;

use super::moved::{Shape, crosses, moved, wide_stores};
use crate::probes::forwarding::{Class, Form, GAP_CYCLES, Map, Place};
use crate::trace::Trace;

/// What may hold one placement up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The shift.
    pub shift: usize,
    /// Pairs that may be blocked, by their number in the trace.
    pub blocked: Vec<usize>,
    /// Pairs that forward slowly.
    pub slow_forwards: Vec<usize>,
    /// Pairs that the map holds nothing of.
    pub unknown: Vec<usize>,
    /// Pairs decided by a cell that is like theirs and not at their very place.
    pub inexact: usize,
    /// Stores that are slow by themselves because they cross a page, by their number in the trace.
    pub slow_stores: Vec<usize>,
    /// Accesses that cross a 64-byte line but no page.
    pub line_crossings: u64,
    /// Accesses that cross a page.
    pub page_crossings: u64,
    /// Occurrences: slow stores, blocked pairs, slow forwards.
    weight: [u64; 3],
}

impl Load {
    /// Whether `self` has to be slower, faster, or alike; `None` where each has more of something.
    pub fn order(&self, other: &Load) -> Option<Ordering> {
        let mut order = Ordering::Equal;
        for (a, b) in self.weight.iter().zip(&other.weight) {
            match (order, a.cmp(b)) {
                (_, Ordering::Equal) => {}
                (Ordering::Equal, differs) => order = differs,
                (known, differs) if known == differs => {}
                _ => return None,
            }
        }
        Some(order)
    }

    /// Slow stores, blocked pairs and slow forwards, counted by occurrence.
    pub fn weight(&self) -> [u64; 3] {
        self.weight
    }
}

/// What the map says of `trace`, made at shift `traced`, at each of `shifts`.
pub fn predict(trace: &Trace, traced: usize, map: &Map, shifts: &[usize]) -> Vec<Load> {
    let shapes: Vec<Option<Shape>> = trace.pairs.iter().map(Shape::of).collect();
    shifts
        .iter()
        .map(|shift| at(trace, &shapes, *shift as i64 - traced as i64, *shift, map))
        .collect()
}

fn at(trace: &Trace, shapes: &[Option<Shape>], by: i64, shift: usize, map: &Map) -> Load {
    let mut load = Load { shift, ..Load::default() };
    for (index, (pair, shape)) in trace.pairs.iter().zip(shapes).enumerate() {
        let prediction = shape.as_ref().and_then(|shape| {
            let store_address = moved(shape.store_address, &trace.moving, by);
            map.predict(&Place {
                stores: &shape.parts(),
                store_address,
                load_address: store_address.wrapping_add_signed(i64::from(shape.offset)),
                load_bytes: shape.load_bytes,
            })
        });
        let Some(prediction) = prediction else {
            load.unknown.push(index);
            continue;
        };
        let reordered = shape.as_ref().is_some_and(|shape| shape.reordered);
        load.inexact += usize::from(!prediction.exact || reordered);
        match prediction.class {
            Class::Blocked => {
                load.blocked.push(index);
                load.weight[1] += pair.count;
            }
            Class::SlowForward => {
                load.slow_forwards.push(index);
                load.weight[2] += pair.count;
            }
            Class::Renamed | Class::Forwards | Class::Unclear => {}
        }
    }
    for (index, store) in wide_stores(trace).enumerate() {
        let address = moved(store.address, &trace.moving, by);
        if is_slow_store(map, store.bytes, address) {
            load.slow_stores.push(index);
            load.weight[0] += store.count;
        }
    }
    for touch in &trace.touches {
        let address = moved(touch.address, &trace.moving, by);
        if crosses(address, u64::from(touch.bytes), 4096) {
            load.page_crossings += touch.count;
        } else if crosses(address, u64::from(touch.bytes), 64) {
            load.line_crossings += touch.count;
        }
    }
    load
}

/// Whether the map has a store of this width at this place of the page that costs at least the gap
/// between two classes more than inside a page, with no load involved (its twin's time).
fn is_slow_store(map: &Map, bytes: u32, address: u64) -> bool {
    if !crosses(address, u64::from(bytes), 4096) {
        return false;
    }
    let Some(cycle_ns) = map.cycle_ns else { return false };
    let time = |page_offset: Option<u16>| {
        let alike = map.cells.iter().filter(|cell| {
            u32::from(cell.store_bytes) == bytes
                && cell.form == Form::Independent
                && cell.gap == Default::default()
                && cell.page_offset == page_offset
                && (page_offset.is_some() || u64::from(cell.residue) == address % 64)
        });
        // The twin with the least other cost.
        alike.filter_map(|cell| cell.twin_ns).min_by(f64::total_cmp)
    };
    let (crossing, inside) = (time(Some((address % 4096) as u16)), time(None));
    crossing
        .zip(inside)
        .is_some_and(|(crossing, inside)| crossing - inside >= GAP_CYCLES * cycle_ns)
}

#[cfg(test)]
pub(super) mod tests_support {
    use super::Load;

    /// A placement with these occurrences.
    pub fn load_at(shift: usize, weight: [u64; 3]) -> Load {
        Load { shift, weight, ..Load::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(weight: [u64; 3]) -> Load {
        Load { weight, ..Load::default() }
    }

    #[test]
    fn more_of_everything_is_slower_and_more_of_something_is_not_decided() {
        let order = |a, b| load(a).order(&load(b));
        assert_eq!(order([0, 1, 0], [0, 0, 0]), Some(Ordering::Greater));
        assert_eq!(order([0, 1, 0], [0, 1, 0]), Some(Ordering::Equal));
        assert_eq!(order([0, 1, 0], [1, 2, 0]), Some(Ordering::Less));
        assert_eq!(order([1, 0, 0], [0, 2, 0]), None);
    }
}
