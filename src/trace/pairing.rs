//! Which stores the bytes of each load come from.
//!
//! For every byte of memory the last store inside the window is known; a load asks for its bytes.
//! Time is linear in the accesses, and memory bounded by the window: a store that leaves it takes
//! its cache lines along, unless a younger store wrote to them. Steps stand for instructions here,
//! so the elements of a string instruction count one by one.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::access::{Access, AccessKind, Step};

/// Bytes that one table entry describes.
const LINE: u64 = 64;
/// Distinct pairs kept; a program that makes more is told so.
const MOST_PAIRS: usize = 1 << 17;
/// Stores named for one load. A load of up to 64 bytes cannot have more.
const MOST_STORES: usize = 64;

/// How a load's bytes relate to the stores inside the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// One store covers all bytes.
    Contained,
    /// Several stores together cover all bytes.
    Spans,
    /// Some bytes are older than the window.
    Partial,
}

/// A store that a load takes bytes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreSite {
    /// Address of the instruction.
    pub ip: u64,
    /// Address written, at the first occurrence of the pair.
    pub address: u64,
    /// Width in bytes.
    pub bytes: u32,
    /// An element of a string instruction.
    pub string: bool,
}

/// A load and the stores that its bytes come from, with how often that occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// How the load lies on the stores.
    pub relation: Relation,
    /// Occurrences.
    pub count: u64,
    /// The stores, youngest first.
    pub stores: Vec<StoreSite>,
    /// Address of the load instruction.
    pub load_ip: u64,
    /// Address read, at the first occurrence.
    pub load_address: u64,
    /// Width of the load in bytes.
    pub load_bytes: u32,
    /// The load is an element of a string instruction.
    pub load_string: bool,
    /// Load address minus address of the youngest store.
    pub offset: i64,
    /// Fewest steps from the youngest store to the load.
    pub distance: u64,
    /// Bit `r` is set when the youngest store was once at `r` modulo 64.
    pub residues: u64,
}

impl Pair {
    /// Width of the youngest store in bytes.
    pub fn store_bytes(&self) -> u32 {
        self.stores.first().map_or(0, |store| store.bytes)
    }

    /// Addresses modulo 64 at which the youngest store was seen, ascending.
    pub fn residue_list(&self) -> Vec<u8> {
        (0..64).filter(|residue| self.residues >> residue & 1 == 1).collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Store {
    step: u64,
    site: StoreSite,
}

/// Last writers of one line: a store's number plus one, 0 for none.
struct Line {
    writers: [u64; LINE as usize],
    youngest: u64,
}

/// Pairs loads with stores, step by step.
pub struct Pairing {
    window: u64,
    /// Steps whose loads are paired.
    wanted: Range<u64>,
    stores: VecDeque<Store>,
    /// Number of the oldest store kept.
    oldest: u64,
    lines: HashMap<u64, Line, BuildHasherDefault<Mix>>,
    pairs: HashMap<Vec<u64>, usize>,
    found: Vec<Pair>,
    overflowed: u64,
    writers: Vec<u64>,
    key: Vec<u64>,
}

impl Pairing {
    /// Pairs loads with stores at most `window` steps older.
    pub fn new(window: u64) -> Pairing {
        Pairing {
            window,
            wanted: 0..u64::MAX,
            stores: VecDeque::new(),
            oldest: 0,
            lines: HashMap::default(),
            pairs: HashMap::new(),
            found: Vec::new(),
            overflowed: 0,
            writers: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Pairs only the loads of these steps; the stores of all others are remembered as ever.
    pub fn only(self, wanted: Range<u64>) -> Pairing {
        Pairing { wanted, ..self }
    }

    /// Takes the next step in.
    pub fn step(&mut self, step: &Step<'_>) {
        self.evict(step.index);
        for access in step.accesses {
            match access.kind {
                AccessKind::Load if access.opaque || !self.wanted.contains(&step.index) => {}
                AccessKind::Load => self.load(step, access),
                AccessKind::Store if access.opaque => {
                    self.forget(access.address, u64::from(access.bytes));
                }
                AccessKind::Store => self.store(step, access),
            }
        }
    }

    /// Something else wrote `bytes` bytes from `address` on: the kernel, or a save of state.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        let Some(last) = bytes.checked_sub(1).map(|more| address.saturating_add(more)) else {
            return;
        };
        let wipe = |number: u64, line: &mut Line| {
            for (i, writer) in line.writers.iter_mut().enumerate() {
                let at = number * LINE + i as u64;
                if (address..=last).contains(&at) {
                    *writer = 0;
                }
            }
        };
        let (from, to) = (address / LINE, last / LINE);
        if to - from < self.lines.len() as u64 {
            for number in from..=to {
                if let Some(line) = self.lines.get_mut(&number) {
                    wipe(number, line);
                }
            }
        } else {
            self.lines.iter_mut().for_each(|(number, line)| wipe(*number, line));
        }
    }

    /// First addresses of the 64-byte lines that hold bytes of stores inside the window.
    pub fn live_lines(&self) -> Vec<u64> {
        self.lines.keys().map(|number| number * LINE).collect()
    }

    /// Loads that belonged to a pair beyond the number of distinct pairs kept.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Lines and stores held at this moment: what memory grows with, besides the pairs found.
    pub fn held(&self) -> usize {
        self.lines.len() + self.stores.len()
    }

    /// The pairs in order of their first occurrence.
    pub fn into_pairs(self) -> Vec<Pair> {
        self.found
    }

    /// Drops the stores that are out of the window at step `now`.
    fn evict(&mut self, now: u64) {
        while let Some(store) = self.stores.front() {
            if now.saturating_sub(store.step) <= self.window {
                break;
            }
            let site = store.site;
            self.stores.pop_front();
            self.oldest += 1;
            for number in lines_of(site.address, site.bytes) {
                // A line whose youngest writer left holds nothing of the window any more.
                if self.lines.get(&number).is_some_and(|line| line.youngest < self.oldest) {
                    self.lines.remove(&number);
                }
            }
        }
    }

    fn store(&mut self, step: &Step<'_>, access: &Access) {
        let number = self.oldest + self.stores.len() as u64;
        let Access { address, bytes, string, .. } = *access;
        let site = StoreSite { ip: step.ip, address, bytes, string };
        self.stores.push_back(Store { step: step.index, site });
        let empty = || Line { writers: [0; LINE as usize], youngest: 0 };
        if let Some(mask) = access.mask {
            for at in access.touched() {
                let line = self.lines.entry(at / LINE).or_insert_with(empty);
                line.writers[(at % LINE) as usize] = number + 1;
                line.youngest = number;
            }
            debug_assert!(bytes <= 64, "mask {mask:#x} on {bytes} bytes");
            return;
        }
        for line_number in lines_of(address, bytes) {
            let line = self.lines.entry(line_number).or_insert_with(empty);
            let (from, to) = part_in_line(line_number, address, bytes);
            line.writers[from..to].fill(number + 1);
            line.youngest = number;
        }
    }

    fn load(&mut self, step: &Step<'_>, access: &Access) {
        self.writers.clear();
        let mut older = false;
        let mut line = None;
        for at in access.touched() {
            // Neighbouring bytes share their line.
            let number = at / LINE;
            if line.is_none_or(|(known, _)| known != number) {
                line = Some((number, self.lines.get(&number)));
            }
            let writer =
                line.and_then(|(_, line)| line).map_or(0, |l| l.writers[(at % LINE) as usize]);
            match writer.checked_sub(1).filter(|store| *store >= self.oldest) {
                None => older = true,
                Some(store) if self.writers.last() == Some(&store) => {}
                Some(store) => self.writers.push(store),
            }
        }
        if self.writers.is_empty() {
            return;
        }
        self.writers.sort_unstable_by(|a, b| b.cmp(a));
        self.writers.dedup();
        self.writers.truncate(MOST_STORES);
        let relation = match (older, self.writers.len()) {
            (true, _) => Relation::Partial,
            (false, 1) => Relation::Contained,
            (false, _) => Relation::Spans,
        };
        self.count(step, access, relation);
    }

    /// Adds one occurrence of the pair whose stores stand in `self.writers`.
    fn count(&mut self, step: &Step<'_>, access: &Access, relation: Relation) {
        let store = |number: &u64| self.stores[(number - self.oldest) as usize];
        let youngest = store(&self.writers[0]);
        self.key.clear();
        self.key.extend([step.ip, relation as u64, u64::from(access.bytes)]);
        for site in self.writers.iter().map(|number| store(number).site) {
            let offset = access.address.wrapping_sub(site.address);
            self.key.extend([site.ip, offset, u64::from(site.bytes)]);
        }
        let distance = step.index - youngest.step;
        let residue = 1u64 << (youngest.site.address % LINE);
        if let Some(&known) = self.pairs.get(self.key.as_slice()) {
            let pair = &mut self.found[known];
            pair.count += 1;
            pair.distance = pair.distance.min(distance);
            pair.residues |= residue;
            return;
        }
        if self.found.len() == MOST_PAIRS {
            self.overflowed += 1;
            return;
        }
        let pair = Pair {
            relation,
            count: 1,
            stores: self.writers.iter().map(|number| store(number).site).collect(),
            load_ip: step.ip,
            load_address: access.address,
            load_bytes: access.bytes,
            load_string: access.string,
            offset: access.address.wrapping_sub(youngest.site.address) as i64,
            distance,
            residues: residue,
        };
        self.pairs.insert(self.key.clone(), self.found.len());
        self.found.push(pair);
    }
}

/// Numbers of the lines that an operand lies on.
fn lines_of(address: u64, bytes: u32) -> std::ops::RangeInclusive<u64> {
    let last = address.saturating_add(u64::from(bytes.max(1)) - 1);
    address / LINE..=last / LINE
}

/// The part of line `number` that an operand covers, as a range of bytes in the line.
fn part_in_line(number: u64, address: u64, bytes: u32) -> (usize, usize) {
    let start = number * LINE;
    let end = address.saturating_add(u64::from(bytes));
    (address.saturating_sub(start) as usize, (end - start).min(LINE) as usize)
}

/// Spreads line numbers over the table; nobody chooses them to collide.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing, its best bits folded down to where the table looks.
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests;
