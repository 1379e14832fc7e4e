//! Bands: classes of one speed.

use super::cells::Cells;
use super::periods::Classes;
use super::robust::{median, trimmed};
use super::simultaneous::Interval;
use super::verdict::Band;

/// The bands of a series, from the fastest to the slowest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bands {
    /// The band of each class.
    pub of_class: Vec<usize>,
    /// Trimmed mean of each band's cells, in ln.
    pub location: Vec<f64>,
}

impl Bands {
    /// From the fastest class upward, a class opens a new band when it is slower than the band's
    /// fastest member by more than `minimum` (in ln) at the lower end of the interval.
    pub(crate) fn of(interval: &Interval, classes: &Classes, levels: &[f64], minimum: f64) -> Self {
        let mean = &interval.locations.mean;
        let mut order: Vec<usize> = (0..mean.len()).collect();
        order.sort_by(|&a, &b| mean[a].total_cmp(&mean[b]));
        let mut of_class = vec![0; mean.len()];
        let (mut band, mut fastest) = (0, order[0]);
        for &class in &order {
            if interval.lower(class, fastest) > minimum {
                (band, fastest) = (band + 1, class);
            }
            of_class[class] = band;
        }
        let mut members = vec![Vec::new(); band + 1];
        for (&class, &level) in classes.partition.of.iter().zip(levels) {
            members[of_class[class as usize]].push(level);
        }
        let location = members.iter_mut().map(|levels| trimmed(levels).mean).collect();
        Bands { of_class, location }
    }

    /// Number of bands.
    pub(crate) fn len(&self) -> usize {
        self.location.len()
    }

    /// Above this level (in ln) something is slow: the midpoint of the two fastest bands.
    pub(crate) fn midpoint(&self) -> Option<f64> {
        Some(0.5 * (self.location.first()? + self.location.get(1)?))
    }

    /// The band whose location is nearest to a level.
    pub(crate) fn nearest(&self, level: f64) -> usize {
        let distance = |band: &usize| (self.location[*band] - level).abs();
        (0..self.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    }

    /// How much slower the slowest band is than the fastest, in percent; 0 with one band.
    pub(crate) fn effect_percent(&self) -> f64 {
        self.percent_above_fast(self.len() - 1)
    }

    fn percent_above_fast(&self, band: usize) -> f64 {
        100.0 * (self.location[band] - self.location[0]).exp_m1()
    }

    /// The bands as they are printed; medians are displayed, differences are those of locations.
    pub(crate) fn printed(&self, cells: &Cells, classes: &Classes, sign: f64) -> Vec<Band> {
        (0..self.len()).map(|band| self.print(band, cells, classes, sign)).collect()
    }

    fn print(&self, band: usize, cells: &Cells, classes: &Classes, sign: f64) -> Band {
        let belongs = |class: u32| self.of_class[class as usize] == band;
        let mut levels = Vec::new();
        let mut placements = Vec::new();
        let mut lines = Vec::new();
        for (cell, &class) in cells.cells.iter().zip(&classes.partition.of) {
            if belongs(class) {
                let column = cells.columns[cell.column as usize];
                levels.push(cell.level);
                placements.push(column.placement);
                lines.push(u64::from(column.residue));
            }
        }
        let keys = classes.partition.keys.iter().enumerate();
        let mut residues: Vec<u64> = match classes.modulus {
            Some(_) => keys.filter(|(c, _)| belongs(*c as u32)).map(|(_, &key)| key).collect(),
            None => lines,
        };
        residues.sort_unstable();
        residues.dedup();
        placements.sort_unstable();
        placements.dedup();
        Band {
            ns_per_op: (sign * median(&mut levels)).exp(),
            percent_above_fast: self.percent_above_fast(band),
            residues,
            placements,
        }
    }
}
