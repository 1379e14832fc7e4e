//! Cells: what one unit of the experiment says about one placement.
//!
//! The unit is the launch, because processes differ by more than their rounds do: a cell is ln of
//! the median of the undisturbed rows of one launch at one placement, after the effects of rounds
//! have been removed by median polish. With fewer than three launches the unit is the round. In a
//! sweep whose launches carry the placement themselves, a cell is one launch.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use super::polish::{Groups, row_effects};
use super::robust::{median, spread};
use super::series::{Observation, Series};
use crate::sample::Placement;

/// More units than this are taken together in as many groups.
pub(crate) const MOST_BLOCKS: usize = 256;
/// Fewer groups than [`MOST_BLOCKS`] are made where there would be more cells than this: the
/// permutations must not cost more than reading the rows.
const MOST_CELLS: usize = 8192;
/// But never fewer groups than this.
const FEWEST_BLOCKS: usize = 8;
/// More placements than this are taken together by their position within two pages.
const MOST_COLUMNS: usize = 4096;
/// What positions are taken modulo when there are too many of them.
const TWO_PAGES: u64 = 8192;

/// Where a row's residue and its longer periods come from: the best that every row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The true address of the buffer.
    Buffer,
    /// Its residue modulo 64; longer periods come from the placement's value.
    Residue,
    /// The stack pointer: classes are right, but the buffer lies an unknown distance away.
    Stack,
    /// Nothing but the placement's value.
    Value,
}

impl Basis {
    fn of(rows: &[&Observation]) -> Self {
        let all = |known: fn(&Observation) -> bool| rows.iter().all(|row| known(row));
        if all(|row| row.buf.is_some()) {
            Basis::Buffer
        } else if all(|row| row.residue.is_some()) {
            Basis::Residue
        } else if all(|row| row.sp.is_some()) {
            Basis::Stack
        } else {
            Basis::Value
        }
    }

    /// What periods are taken of.
    fn position(self, row: &Observation) -> u64 {
        // Two's complement keeps residues modulo a power of two right for negative values.
        let value = row.placement as u64;
        match self {
            Basis::Buffer => row.buf.unwrap_or(value),
            Basis::Stack => row.sp.unwrap_or(value),
            Basis::Residue | Basis::Value => value,
        }
    }

    fn residue(self, row: &Observation) -> u8 {
        match (self, row.residue) {
            (Basis::Residue, Some(residue)) => residue,
            _ => (self.position(row) % 64) as u8,
        }
    }
}

/// One placement (with one residue, should a placement have met several).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub placement: i64,
    pub residue: u8,
}

/// One unit at one placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// The unit that it is compared within: a launch, a round, a group of either.
    pub block: u32,
    /// Index of its placement.
    pub column: u32,
    /// The launch (the first of a group).
    pub launch: u32,
    /// What periods are taken of.
    pub position: u64,
    /// ln of the figure, larger is slower, after the effects of rounds.
    pub level: f64,
    /// Robust standard deviation of its rows, NaN with fewer than three.
    pub within: f64,
}

/// What the permutation's unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Launches that each visit many placements.
    Launch,
    /// Launches that each have one placement.
    LaunchAtPlacement,
    /// Rounds of fewer than three launches.
    Round,
}

/// The cells of a series.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    pub cells: Vec<Cell>,
    pub columns: Vec<Column>,
    /// Number of blocks.
    pub blocks: usize,
    pub unit: Unit,
    pub basis: Basis,
    /// Number of processes.
    pub launches: usize,
    /// Rounds (or launches) before they were grouped, where they were.
    pub grouped_from: Option<usize>,
    pub undisturbed: usize,
    pub disturbed: usize,
}

/// Hashes small integers: the default hasher would cost more than everything else here.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing; the rotation brings the well mixed high bits to where tables look.
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed.rotate_left(32);
    }
}

/// Numbers keys from 0 in the order of their first appearance.
struct Numbering<K> {
    numbers: HashMap<K, u32, BuildHasherDefault<Multiply>>,
    keys: Vec<K>,
    last: Option<(K, u32)>,
}

impl<K: Copy + Eq + Hash> Numbering<K> {
    fn new() -> Self {
        Numbering { numbers: HashMap::default(), keys: Vec::new(), last: None }
    }

    fn number(&mut self, key: K) -> u32 {
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        self.last = Some((key, number));
        number
    }
}

/// Where each row belongs.
struct Rows<'a> {
    rows: Vec<&'a Observation>,
    level: Vec<f64>,
    launch: Vec<u32>,
    column: Vec<u32>,
    columns: Vec<Column>,
    launches: usize,
}

/// Whether a figure can be worked with at all.
pub(crate) fn usable(row: &Observation) -> bool {
    row.ns.is_finite() && row.ns > 0.0
}

impl Cells {
    /// The cells of `series`; `None` without an undisturbed figure.
    pub(crate) fn of(series: &Series) -> Option<Cells> {
        let usable_rows = || series.observations.iter().filter(|row| usable(row));
        let quiet: Vec<&Observation> = usable_rows().filter(|row| !row.disturbed).collect();
        let disturbed = usable_rows().count() - quiet.len();
        if quiet.is_empty() {
            return None;
        }
        let basis = Basis::of(&quiet);
        let mut rows = Rows::new(quiet, basis, series.higher_is_better);
        let unit = rows.unit(series.key.placement);
        if unit != Unit::LaunchAtPlacement {
            rows.remove_round_effects();
        }
        let (block, blocks, grouped_from) = rows.blocks(unit);
        let cells = rows.cells(&block, blocks, basis, unit);
        // In a sweep by launch each cell is a process, unless one process met several placements.
        let launches = match unit {
            Unit::LaunchAtPlacement => rows.processes(),
            Unit::Launch | Unit::Round => rows.launches,
        };
        let undisturbed = rows.rows.len();
        let columns = rows.columns;
        Some(Cells {
            cells,
            columns,
            blocks,
            unit,
            basis,
            launches,
            grouped_from,
            undisturbed,
            disturbed,
        })
    }
}

impl<'a> Rows<'a> {
    fn new(rows: Vec<&'a Observation>, basis: Basis, higher_is_better: bool) -> Self {
        let sign = if higher_is_better { -1.0 } else { 1.0 };
        let level = rows.iter().map(|row| sign * row.ns.ln()).collect();
        let mut launches = Numbering::new();
        let mut launch: Vec<u32> = rows.iter().map(|row| launches.number(row.launch)).collect();
        // By rising number, so that neighbours in a group are neighbours in time.
        let rank = ranks(&launches.keys);
        launch.iter_mut().for_each(|launch| *launch = rank[*launch as usize]);
        let mut numbering = Numbering::new();
        let key = |row: &Observation| (row.placement, basis.residue(row));
        let mut column: Vec<u32> = rows.iter().map(|row| numbering.number(key(row))).collect();
        if numbering.keys.len() > MOST_COLUMNS {
            numbering = Numbering::new();
            let near = |row: &Observation| (basis.position(row) % TWO_PAGES) as i64;
            column =
                rows.iter().map(|row| numbering.number((near(row), basis.residue(row)))).collect();
        }
        let rank = ranks(&numbering.keys);
        column.iter_mut().for_each(|column| *column = rank[*column as usize]);
        let mut keys = numbering.keys;
        keys.sort_unstable();
        let columns =
            keys.iter().map(|&(placement, residue)| Column { placement, residue }).collect();
        Rows { rows, level, launch, column, columns, launches: launches.keys.len() }
    }

    /// Number of pairs of a launch and a placement.
    fn processes(&self) -> usize {
        let mut pairs = Numbering::new();
        for (&launch, &column) in self.launch.iter().zip(&self.column) {
            pairs.number((launch, column));
        }
        pairs.keys.len()
    }

    /// Environment, arguments, path and randomisation are fixed when a process starts, so there
    /// each launch at each placement is a process of its own, however launches are numbered.
    fn unit(&self, placement: Placement) -> Unit {
        let by_process = matches!(
            placement,
            Placement::Pad | Placement::Aslr | Placement::Argv | Placement::Path
        );
        let one_each =
            self.launches > 2 && self.processes() == self.launches && self.columns.len() > 1;
        if by_process || one_each {
            Unit::LaunchAtPlacement
        } else if self.launches > 2 {
            Unit::Launch
        } else {
            Unit::Round
        }
    }

    /// Removes from each row the effect of its round, as far as the launch's other placements tell
    /// it. A launch's typical level stays.
    fn remove_round_effects(&mut self) {
        let mut rounds = Numbering::new();
        let mut columns = Numbering::new();
        let of = |i: usize| (self.launch[i], self.rows[i].round);
        let round_of: Vec<u32> = (0..self.rows.len()).map(|i| rounds.number(of(i))).collect();
        let column_of: Vec<u32> = (0..self.rows.len())
            .map(|i| columns.number((self.launch[i], self.column[i])))
            .collect();
        let by_round = Groups::new(&round_of, rounds.keys.len());
        let by_column = Groups::new(&column_of, columns.keys.len());
        // Rounds of a launch that met a single placement cannot be told from that placement.
        let mut width = vec![0u32; self.launches];
        columns.keys.iter().for_each(|&(launch, _)| width[launch as usize] += 1);
        let mut effects = row_effects(&self.level, &round_of, &by_round, &by_column);
        let mut of_launch = vec![Vec::new(); self.launches];
        for (&(launch, _), &effect) in rounds.keys.iter().zip(&effects) {
            of_launch[launch as usize].push(effect);
        }
        let typical: Vec<f64> = of_launch.iter_mut().map(|effects| median(effects)).collect();
        for (&(launch, _), effect) in rounds.keys.iter().zip(effects.iter_mut()) {
            let alone = width[launch as usize] < 2;
            *effect = if alone { 0.0 } else { *effect - typical[launch as usize] };
        }
        for (level, &round) in self.level.iter_mut().zip(&round_of) {
            *level -= effects[round as usize];
        }
    }

    /// The block of each row, how many blocks there are, and from how many they were grouped.
    fn blocks(&self, unit: Unit) -> (Vec<u32>, usize, Option<usize>) {
        let most = (MOST_CELLS / self.columns.len()).clamp(FEWEST_BLOCKS, MOST_BLOCKS);
        match unit {
            Unit::Launch => group(self.launch.clone(), self.launches, most),
            Unit::LaunchAtPlacement => {
                // Launch numbers that each go over several placements are passes: drift between
                // them is not the placements'.
                let passes = self.processes() >= 2 * self.launches;
                match passes {
                    true => group(self.launch.clone(), self.launches, most),
                    false => (vec![0; self.rows.len()], 1, None),
                }
            }
            Unit::Round => {
                let mut rounds = Numbering::new();
                let of = |i: usize| rounds.number((self.launch[i], self.rows[i].round));
                let mut round: Vec<u32> = (0..self.rows.len()).map(of).collect();
                let rank = ranks(&rounds.keys);
                round.iter_mut().for_each(|round| *round = rank[*round as usize]);
                group(round, rounds.keys.len(), most)
            }
        }
    }

    fn cells(&self, block: &[u32], blocks: usize, basis: Basis, unit: Unit) -> Vec<Cell> {
        let columns = self.columns.len() as u64;
        let mut numbering = Numbering::new();
        let crowded = blocks == 1 && self.processes() > MOST_CELLS;
        let parts = (MOST_CELLS / self.columns.len()).max(FEWEST_BLOCKS) as u32;
        let of: Vec<u32> = (0..self.rows.len())
            .map(|i| {
                // One block of launches: each is a cell, or each group of them at one placement.
                let part = match (unit, blocks) {
                    (Unit::LaunchAtPlacement, 1) if crowded => self.launch[i] % parts,
                    (Unit::LaunchAtPlacement, 1) => self.launch[i],
                    _ => block[i],
                };
                numbering.number(u64::from(part) * columns + u64::from(self.column[i]))
            })
            .collect();
        let groups = Groups::new(&of, numbering.keys.len());
        let mut scratch = Vec::new();
        let cell = |members: &[u32]| {
            let first = members[0] as usize;
            scratch.clear();
            scratch.extend(members.iter().map(|&row| self.level[row as usize]));
            let level = median(&mut scratch);
            Cell {
                block: block[first],
                column: self.column[first],
                launch: self.rows[first].launch,
                position: basis.position(self.rows[first]),
                level,
                within: if members.len() > 2 { spread(&mut scratch, level) } else { f64::NAN },
            }
        };
        groups.iter().map(cell).collect()
    }
}

/// Takes consecutive units together where there are more than `most`.
fn group(mut unit: Vec<u32>, units: usize, most: usize) -> (Vec<u32>, usize, Option<usize>) {
    if units <= most {
        return (unit, units, None);
    }
    for unit in &mut unit {
        *unit = (u64::from(*unit) * most as u64 / units as u64) as u32;
    }
    (unit, most, Some(units))
}

/// The rank of each key among all of them.
fn ranks<K: Ord>(keys: &[K]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
    let mut ranks = vec![0; keys.len()];
    for (rank, &key) in order.iter().enumerate() {
        ranks[key as usize] = rank as u32;
    }
    ranks
}
