//! Where in the arena a cell and its twin stand.

use super::cell::Crosses;
use super::plan::{At, Experiment};
use crate::kernels::pairs::{Access, Gap, Stores};

/// Pages of the arena.
pub const PAGES: usize = 16;

const PAGE: usize = 4096;
/// Cells that stand in the middle of a page: the page, and its offset.
const MIDDLE: usize = PAGE + 1024;
/// Cells at the end of a page: stores begin in this page and may reach into the next.
const EDGE: usize = 2 * PAGE;
/// From a load to its twin's: another page, and not at the same page offset, since some cores take
/// addresses that agree modulo 4096 for the same.
const TWIN: usize = 5 * PAGE + 1024;

/// The cell itself.
pub fn cell(experiment: &Experiment) -> Access {
    let store_at = match experiment.at {
        At::Residue(residue) => MIDDLE + usize::from(residue),
        At::PageOffset(offset) => EDGE + usize::from(offset),
    };
    let gap = match (experiment.gap.instructions, experiment.gap.cycles) {
        (0, 0) => Gap::None,
        (instructions, 0) => Gap::Instructions(instructions),
        (_, cycles) => Gap::Cycles(cycles),
    };
    Access {
        stores: experiment.stores,
        store_at,
        load_bytes: experiment.load_bytes,
        load_at: store_at.wrapping_add_signed(isize::from(experiment.offset)),
        form: experiment.form.into(),
        gap,
        older: experiment.gap.older_stores,
    }
}

/// Its twin: the load stands at the same place of another line, across the same boundaries.
pub fn twin(cell: &Access) -> Access {
    let crosses_page =
        Crosses::of(cell.load_at, usize::from(cell.load_bytes)) == Some(Crosses::Page);
    // Only a page's end is a page's end: there the page offset has to agree.
    let distance = if crosses_page { 5 * PAGE } else { TWIN };
    Access { load_at: cell.load_at + distance, ..*cell }
}

/// The widest boundary that the stores or the load cross.
pub fn crosses(cell: &Access) -> Option<Crosses> {
    let Stores { bytes, second } = cell.stores;
    let second = second.and_then(|second| {
        Crosses::of(cell.store_at + usize::from(second.at), usize::from(second.bytes))
    });
    Crosses::of(cell.store_at, usize::from(bytes))
        .max(second)
        .max(Crosses::of(cell.load_at, usize::from(cell.load_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::forwarding::{Extent, Plan};

    #[test]
    fn a_twin_loads_like_its_cell_and_touches_none_of_its_lines() {
        for experiment in Plan::new(Extent::Default, &[1, 2, 4, 8, 16, 32, 64]).experiments {
            let cell = cell(&experiment);
            let twin = twin(&cell);
            assert_eq!(cell.load_at % 64, twin.load_at % 64);
            let load = usize::from(cell.load_bytes);
            assert_eq!(Crosses::of(cell.load_at, load), Crosses::of(twin.load_at, load));
            let end = cell.store_at + cell.stores.span();
            assert!(twin.load_at / 64 > (end - 1) / 64, "{experiment:?}");
            assert!(twin.load_at + load <= PAGES * PAGE, "{experiment:?}");
        }
    }
}
