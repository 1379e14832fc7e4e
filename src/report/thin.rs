//! A million blocks in a picture: what is kept of them, and that the extremes always are.
//!
//! Rows stream through; of each residue and each placement a [`Bucket`] keeps the exact count,
//! minimum and maximum, and a uniform sample of bounded size (reservoir sampling, Vitter's
//! algorithm R, with a fixed seed so that one directory always gives one picture). Memory is bounded
//! by residues and placements, whatever the number of rows.

use std::collections::BTreeMap;

/// One block as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// ns an operation, or the metric's value.
    pub value: f64,
    /// The process.
    pub launch: u32,
    /// Whether the guard saw a disturbance.
    pub disturbed: bool,
}

/// Blocks kept of one residue.
const PER_RESIDUE: usize = 256;
/// Blocks kept of one placement.
const PER_PLACE: usize = 32;
/// Placements kept apart; beyond, neighbours share a bucket.
const PLACES: usize = 4096;

/// What is kept of the blocks at one residue or placement.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Blocks seen.
    pub count: u64,
    /// Blocks among them that the guard saw disturbed.
    pub disturbed: u64,
    /// The fastest block.
    pub min: Dot,
    /// The slowest block.
    pub max: Dot,
    kept: Vec<Dot>,
    limit: usize,
}

impl Bucket {
    fn new(first: Dot, limit: usize) -> Self {
        let disturbed = u64::from(first.disturbed);
        Bucket { count: 1, disturbed, min: first, max: first, kept: vec![first], limit }
    }

    fn add(&mut self, dot: Dot, random: &mut fastrand::Rng) {
        self.count += 1;
        self.disturbed += u64::from(dot.disturbed);
        self.extremes(dot);
        if self.kept.len() < self.limit {
            self.kept.push(dot);
        } else if let Ok(at) = usize::try_from(random.u64(0..self.count))
            && at < self.limit
        {
            self.kept[at] = dot;
        }
    }

    fn extremes(&mut self, dot: Dot) {
        if dot.value < self.min.value {
            self.min = dot;
        }
        if dot.value > self.max.value {
            self.max = dot;
        }
    }

    /// Takes in what another bucket kept, each side with a share of the room by its count.
    fn merge(&mut self, other: Bucket, random: &mut fastrand::Rng) {
        self.extremes(other.min);
        self.extremes(other.max);
        let total = self.count + other.count;
        if self.kept.len() + other.kept.len() <= self.limit {
            self.kept.extend(other.kept);
        } else {
            let share = (self.limit as u128 * u128::from(self.count)).div_ceil(u128::from(total));
            let mine = (share as usize).min(self.kept.len());
            random.shuffle(&mut self.kept);
            self.kept.truncate(mine);
            self.kept.extend(other.kept.into_iter().take(self.limit - mine));
        }
        self.count = total;
        self.disturbed += other.disturbed;
    }

    /// At most `room` blocks with both extremes among them, in the order in which they are kept.
    pub fn dots(&self, room: usize) -> Vec<Dot> {
        let step = self.kept.len().div_ceil(room.saturating_sub(2).max(1)).max(1);
        let mut dots: Vec<Dot> = self.kept.iter().copied().step_by(step).collect();
        for extreme in [self.min, self.max] {
            if !dots.contains(&extreme) {
                dots.push(extreme);
            }
        }
        dots
    }

    /// Median of the kept blocks that were not disturbed (of all where all were): exact while
    /// [`Bucket::is_whole`], else an estimate from a uniform sample.
    pub fn median(&self) -> f64 {
        let mut values: Vec<f64> =
            self.kept.iter().filter(|dot| !dot.disturbed).map(|dot| dot.value).collect();
        if values.is_empty() {
            values = self.kept.iter().map(|dot| dot.value).collect();
        }
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len().is_multiple_of(2) {
            (values[middle - 1] + values[middle]) / 2.0
        } else {
            values[middle]
        }
    }

    /// Whether every block seen is kept.
    pub fn is_whole(&self) -> bool {
        self.count == self.kept.len() as u64
    }

    /// The blocks kept.
    pub fn kept(&self) -> &[Dot] {
        &self.kept
    }
}

/// What is kept of the blocks at one placement (or a few neighbouring ones).
#[derive(Clone, Debug)]
pub struct Place {
    /// The blocks.
    pub bucket: Bucket,
    /// The buffer's address modulo 4096, where it was the same in every block.
    pub page_offset: Option<u16>,
}

/// The blocks of one series by residue and by placement.
#[derive(Clone, Debug)]
pub struct Thinned {
    /// Rows with a figure.
    pub rows: u64,
    /// By the buffer's address modulo 64, where the buffer was located.
    pub residues: BTreeMap<u8, Bucket>,
    /// By placement value; the first value of a bucket that [`Thinned::width`] placements share.
    pub places: BTreeMap<i64, Place>,
    /// Placement values that share a bucket of `places`.
    pub width: i64,
    /// Launches seen: one more than the largest number.
    pub launches: u32,
    random: fastrand::Rng,
}

impl Default for Thinned {
    fn default() -> Self {
        Thinned {
            rows: 0,
            residues: BTreeMap::new(),
            places: BTreeMap::new(),
            width: 1,
            launches: 0,
            // One directory must always give one picture.
            random: fastrand::Rng::with_seed(0x5747_ac6b),
        }
    }
}

impl Thinned {
    /// Takes in one block.
    pub fn add(&mut self, placement: i64, residue: Option<u8>, page: Option<u16>, dot: Dot) {
        self.rows += 1;
        self.launches = self.launches.max(dot.launch.saturating_add(1));
        if let Some(residue) = residue {
            match self.residues.get_mut(&(residue % 64)) {
                Some(bucket) => bucket.add(dot, &mut self.random),
                None => {
                    self.residues.insert(residue % 64, Bucket::new(dot, PER_RESIDUE));
                }
            }
        }
        let key = placement.div_euclid(self.width) * self.width;
        match self.places.get_mut(&key) {
            Some(place) => {
                place.bucket.add(dot, &mut self.random);
                if place.page_offset != page {
                    place.page_offset = None;
                }
            }
            None => {
                let bucket = Bucket::new(dot, PER_PLACE);
                self.places.insert(key, Place { bucket, page_offset: page });
                while self.places.len() > PLACES {
                    self.widen();
                }
            }
        }
    }

    /// Lets twice as many neighbouring placements share a bucket.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        for (key, place) in std::mem::take(&mut self.places) {
            let key = key.div_euclid(self.width).saturating_mul(self.width);
            match self.places.get_mut(&key) {
                Some(shared) => {
                    shared.bucket.merge(place.bucket, &mut self.random);
                    shared.page_offset = None;
                }
                None => {
                    self.places.insert(key, place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dot(value: f64) -> Dot {
        Dot { value, launch: 0, disturbed: false }
    }

    #[test]
    fn a_few_blocks_are_all_kept() {
        let mut thinned = Thinned::default();
        for n in 0..100 {
            thinned.add(n % 4, Some((n % 4 * 16) as u8), None, dot(n as f64));
        }
        assert_eq!(thinned.residues.len(), 4);
        let first = &thinned.residues[&0];
        assert!(first.is_whole());
        assert_eq!((first.count, first.min.value, first.max.value), (25, 0.0, 96.0));
        assert_eq!(first.median(), 48.0);
    }

    #[test]
    fn one_slow_block_in_a_million_is_drawn() {
        let mut thinned = Thinned::default();
        for n in 0..1_000_000_u64 {
            let value = if n == 123_457 { 900.0 } else { 59.0 + (n % 97) as f64 / 1000.0 };
            thinned.add((n % 512 * 16) as i64, Some((n % 4 * 16) as u8), None, dot(value));
        }
        let slowest = |dots: Vec<Dot>| dots.iter().map(|d| d.value).fold(0.0, f64::max);
        assert_eq!(slowest(thinned.residues[&16].dots(50)), 900.0);
        let place = &thinned.places[&((123_457 % 512) * 16)];
        assert_eq!(slowest(place.bucket.dots(3)), 900.0);
        assert!(thinned.residues.values().all(|bucket| bucket.kept().len() <= PER_RESIDUE));
        // The sample is uniform: its median is that of all, to within its size.
        assert!((thinned.residues[&0].median() - 59.048).abs() < 0.01);
    }

    #[test]
    fn any_number_of_placements_is_bounded() {
        let mut thinned = Thinned::default();
        for n in 0..100_000_i64 {
            thinned.add(n * 16 - 800_000, None, None, dot(1.0 + n as f64));
        }
        assert!(thinned.places.len() <= PLACES);
        let counted: u64 = thinned.places.values().map(|place| place.bucket.count).sum();
        assert_eq!(counted, 100_000);
        let slowest =
            thinned.places.values().map(|place| place.bucket.max.value).fold(0.0, f64::max);
        assert_eq!(slowest, 100_000.0);
        thinned.add(i64::MIN, None, None, dot(1.0));
        thinned.add(i64::MAX, None, None, dot(1.0));
    }

    proptest! {
        #[test]
        fn extremes_survive_any_room(values in proptest::collection::vec(0.1..1e6_f64, 1..2000), room in 0_usize..40) {
            let mut thinned = Thinned::default();
            for value in &values {
                thinned.add(0, Some(0), None, dot(*value));
            }
            let dots = thinned.residues[&0].dots(room);
            let drawn = |pick: fn(f64, f64) -> f64| dots.iter().map(|d| d.value).reduce(pick);
            prop_assert_eq!(drawn(f64::min), values.iter().copied().reduce(f64::min));
            prop_assert_eq!(drawn(f64::max), values.iter().copied().reduce(f64::max));
            prop_assert!(dots.len() <= room.max(3));
        }
    }
}
