//! Which cells a map has.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::cell::{Cover, Form, Gap, StorePart, cover};
use crate::kernels::pairs::Stores;

/// Where the first store stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// In the middle of a page, at this address modulo 64.
    Residue(u8),
    /// At this address modulo 4096.
    PageOffset(u16),
}

/// One cell to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Experiment {
    /// The stores.
    pub stores: Stores,
    /// Width of the load.
    pub load_bytes: u8,
    /// Address of the load minus address of the first store.
    pub offset: i16,
    /// Where the first store stands.
    pub at: At,
    /// Chained or independent.
    pub form: Form,
    /// What stands between.
    pub gap: Gap,
}

impl Experiment {
    /// A chained cell with nothing between, in the middle of a page.
    pub fn new(stores: Stores, load_bytes: u8, offset: i16, residue: u8) -> Self {
        let at = At::Residue(residue);
        Experiment { stores, load_bytes, offset, at, form: Form::Chained, gap: Gap::default() }
    }

    /// The stores as the map names them.
    pub fn parts(&self) -> Vec<StorePart> {
        let first = StorePart { bytes: self.stores.bytes, at: 0 };
        let second = self.stores.second.map(|s| StorePart { bytes: s.bytes, at: s.at });
        std::iter::once(first).chain(second).collect()
    }

    /// Where the load's bytes come from.
    pub fn cover(&self) -> Cover {
        cover(&self.parts(), self.offset, self.load_bytes)
    }
}

/// One store and one load width at every two offsets in a line: 64 × 64 cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridPreset {
    /// Width of the store.
    pub store_bytes: u8,
    /// Width of the load.
    pub load_bytes: u8,
}

impl GridPreset {
    /// The presets: that of the published 64 × 64 maps, and two with vector registers.
    pub const ALL: [GridPreset; 3] =
        [GridPreset::new(8, 4), GridPreset::new(16, 16), GridPreset::new(64, 16)];

    /// A grid of one store width and one load width.
    pub const fn new(store_bytes: u8, load_bytes: u8) -> Self {
        GridPreset { store_bytes, load_bytes }
    }
}

impl fmt::Display for GridPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.store_bytes, self.load_bytes)
    }
}

impl FromStr for GridPreset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        GridPreset::ALL
            .into_iter()
            .find(|preset| preset.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not one of 8x4, 16x16, 64x16"))
    }
}

/// How much of the product is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every offset at four residues, at a line's end and at a page's end.
    Default,
    /// The offsets at which classes have been seen to change, at four residues; three repeats.
    Quick,
    /// Every offset at every residue, both forms, pairs at eight residues, gaps everywhere.
    Full,
    /// One store and one load width at every two offsets of a line.
    Grid(GridPreset),
}

/// The cells and how often each is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The cells, without duplicates.
    pub experiments: Vec<Experiment>,
    /// Visits to each.
    pub repeats: u32,
    /// The grid, where this is one.
    pub grid: Option<GridPreset>,
}

const BOTH: [Form; 2] = [Form::Chained, Form::Independent];

impl Plan {
    /// The cells of `extent` over the widths that the machine has.
    pub fn new(extent: Extent, widths: &[u8]) -> Self {
        let (experiments, repeats, grid) = match extent {
            Extent::Grid(preset) => (grid(preset), 5, Some(preset)),
            Extent::Quick => (quick(widths), 3, None),
            Extent::Default => (default(widths), 5, None),
            Extent::Full => (full(widths), 5, None),
        };
        // A set, since the axes overlap (a line's end is also one of the residues).
        let experiments: BTreeSet<Experiment> = experiments.into_iter().collect();
        Plan { experiments: experiments.into_iter().collect(), repeats, grid }
    }

    /// Single stores of `store_bytes`, loads of `load_bytes`, at exactly these offsets and residues,
    /// chained and independent: for who needs no more than an answer about a few pairs.
    pub fn of(
        stores: impl IntoIterator<Item = Stores>,
        loads: &[u8],
        residues: &[u8],
        offsets: impl Fn(&Stores, u8) -> Vec<i16>,
    ) -> Self {
        let mut experiments = BTreeSet::new();
        for stores in stores {
            for &load in loads {
                for offset in offsets(&stores, load) {
                    for &residue in residues {
                        let cell = Experiment::new(stores, load, offset, residue);
                        experiments.extend(BOTH.map(|form| Experiment { form, ..cell }));
                    }
                }
            }
        }
        Plan { experiments: experiments.into_iter().collect(), repeats: 5, grid: None }
    }
}

/// Every offset at which a load of `load` bytes touches the stores.
fn touching(stores: &Stores, load: u8) -> Vec<i16> {
    // Spans are at most 128 bytes, so the conversions hold.
    (1 - i16::from(load)..stores.span() as i16).collect()
}

/// Offsets at and beside multiples of eight, with one partly covered at each end.
fn telling(stores: &Stores, load: u8) -> Vec<i16> {
    let last = stores.span() as i16 - i16::from(load);
    let ends = [-1, 0, 1, last - 1, last, last + 1];
    touching(stores, load)
        .into_iter()
        .filter(|offset| {
            let inside = (0..=last).contains(offset);
            ends.contains(offset) || (inside && matches!(offset.rem_euclid(8), 0 | 1 | 7))
        })
        .collect()
}

/// The residue at which `width` bytes lie half on the next line.
fn line_end(width: u8) -> u8 {
    64 - (width / 2).max(1)
}

/// Page offsets at which `width` bytes cross the page: at their middle, and, where one half of a
/// wide store may cross by itself, at every quarter.
fn page_ends(width: u8) -> Vec<u16> {
    let width = u16::from(width);
    match width {
        0 | 1 => Vec::new(),
        64 => vec![4096 - 48, 4096 - 32, 4096 - 16],
        32 => vec![4096 - 24, 4096 - 16, 4096 - 8],
        _ => vec![4096 - width / 2],
    }
}

fn grid(preset: GridPreset) -> Vec<Experiment> {
    let stores = Stores::single(preset.store_bytes);
    let offsets = move |store: u8| {
        (0..64u8).map(move |load| {
            let offset = i16::from(load) - i16::from(store);
            Experiment::new(stores, preset.load_bytes, offset, store)
        })
    };
    (0..64u8).flat_map(offsets).collect()
}

fn singles(
    widths: &[u8],
    residues: impl Fn(u8) -> Vec<u8>,
    offsets: fn(&Stores, u8) -> Vec<i16>,
) -> Vec<Experiment> {
    let mut cells = Vec::new();
    for &store in widths {
        let stores = Stores::single(store);
        for &load in widths {
            for offset in offsets(&stores, load) {
                for residue in residues(store) {
                    let cell = Experiment::new(stores, load, offset, residue);
                    cells.extend(BOTH.map(|form| Experiment { form, ..cell }));
                }
            }
        }
    }
    cells
}

fn at_page_ends(widths: &[u8]) -> Vec<Experiment> {
    let mut cells = Vec::new();
    for &store in widths {
        let stores = Stores::single(store);
        for &load in widths {
            for offset in telling(&stores, load) {
                for page_offset in page_ends(store) {
                    let cell = Experiment::new(stores, load, offset, 0);
                    let at = At::PageOffset(page_offset);
                    cells.extend(BOTH.map(|form| Experiment { at, form, ..cell }));
                }
            }
        }
    }
    cells
}

/// The pairs: two halves, two overlapping stores as a C library's copy makes them, and a narrow
/// store over part of a wide one.
pub(super) fn pair_shapes(widths: &[u8]) -> Vec<Stores> {
    let mut shapes = Vec::new();
    for &width in widths {
        shapes.push(Stores::pair(width, width, width));
        shapes.push(Stores::pair(width, width, 0));
        if width > 1 {
            shapes.push(Stores::pair(width, width, width / 2));
            shapes.push(Stores::pair(width, 1, width / 2));
        }
        if width > 4 {
            shapes.push(Stores::pair(width, width / 2, width / 4));
            // Half over the end: what an incomplete last word leaves behind.
            shapes.push(Stores::pair(width, width / 2, width - 1));
        }
    }
    shapes
}

fn pairs(widths: &[u8], residues: &[u8], forms: &[Form], every: bool) -> Vec<Experiment> {
    let mut cells = Vec::new();
    for stores in pair_shapes(widths) {
        for &load in widths {
            let offsets = if every { touching(&stores, load) } else { telling(&stores, load) };
            for offset in offsets {
                for &residue in residues {
                    let cell = Experiment::new(stores, load, offset, residue);
                    cells.extend(forms.iter().map(|&form| Experiment { form, ..cell }));
                }
            }
        }
    }
    cells
}

/// What stands between, for the two references of each load width.
fn spaced(widths: &[u8], forms: &[Form]) -> Vec<Experiment> {
    let gap = |instructions, cycles, older_stores| Gap { instructions, cycles, older_stores };
    let gaps: Vec<Gap> = [1, 2, 4, 8, 12, 16, 24, 32]
        .map(|cycles| gap(0, cycles, 0))
        .into_iter()
        .chain([8, 32, 128].map(|instructions| gap(instructions, 0, 0)))
        .chain([4, 16, 48].map(|older| gap(0, 0, older)))
        .collect();
    let mut cells = Vec::new();
    for (index, &load) in widths.iter().enumerate() {
        let narrower = index.checked_sub(1).map(|index| widths[index]);
        for store in narrower.into_iter().chain([load]) {
            for &gap in &gaps {
                let cell = Experiment::new(Stores::single(store), load, 0, 0);
                cells.extend(forms.iter().map(|&form| Experiment { gap, form, ..cell }));
            }
        }
    }
    cells
}

fn quick(widths: &[u8]) -> Vec<Experiment> {
    let residues = |_| vec![0, 16, 32, 48];
    let mut cells = singles(widths, residues, telling);
    cells.retain(|cell| cell.form == Form::Chained);
    cells.extend(pairs(widths, &[0], &[Form::Chained], false));
    cells
}

fn default(widths: &[u8]) -> Vec<Experiment> {
    let residues = |store| vec![0, 1, 16, 32, 48, line_end(store)];
    let mut cells = singles(widths, residues, touching);
    cells.extend(at_page_ends(widths));
    cells.extend(pairs(widths, &[0, 16], &[Form::Chained], false));
    cells.extend(spaced(widths, &[Form::Chained]));
    cells
}

fn full(widths: &[u8]) -> Vec<Experiment> {
    let mut cells = singles(widths, |_| (0..64).collect(), touching);
    cells.extend(at_page_ends(widths));
    let residues: Vec<u8> = (0..64).step_by(8).collect();
    cells.extend(pairs(widths, &residues, &BOTH, true));
    cells.extend(spaced(widths, &BOTH));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: [u8; 7] = [1, 2, 4, 8, 16, 32, 64];

    #[test]
    fn a_grid_is_every_two_offsets_of_a_line() {
        let plan = Plan::new(Extent::Grid(GridPreset::new(8, 4)), &WIDTHS);
        assert_eq!(plan.experiments.len(), 64 * 64);
        assert_eq!(plan.repeats, 5);
        let touching = plan.experiments.iter().filter(|e| e.cover() != Cover::Nothing).count();
        // Eleven offsets each, less those that a load would have to leave the line for.
        assert_eq!(touching, 11 * 64 - (3 + 2 + 1) - (7 * 8) / 2);
    }

    #[test]
    fn every_touching_offset_is_there_and_no_other() {
        let plan = Plan::new(Extent::Default, &WIDTHS);
        assert!(plan.experiments.iter().all(|e| e.cover() != Cover::Nothing));
        for store in WIDTHS {
            for load in WIDTHS {
                let found = plan
                    .experiments
                    .iter()
                    .filter(|e| {
                        e.stores == Stores::single(store)
                            && e.load_bytes == load
                            && e.at == At::Residue(32)
                            && e.form == Form::Chained
                            && e.gap == Gap::default()
                    })
                    .count();
                let expected = usize::from(store) + usize::from(load) - 1;
                assert!(found >= expected, "{store} {load}: {found} of {expected}");
            }
        }
    }

    #[test]
    fn every_width_has_a_line_end_and_a_page_end() {
        let plan = Plan::new(Extent::Default, &WIDTHS);
        for store in &WIDTHS[1..] {
            let of = |at: At| {
                plan.experiments.iter().any(|e| e.stores == Stores::single(*store) && e.at == at)
            };
            assert!(of(At::Residue(line_end(*store))), "{store}");
            assert!(page_ends(*store).into_iter().all(|end| of(At::PageOffset(end))), "{store}");
        }
    }

    #[test]
    fn presets_are_read_as_they_are_written() {
        for preset in GridPreset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        assert!("9x9".parse::<GridPreset>().is_err_and(|text| text.contains("8x4")));
    }
}
