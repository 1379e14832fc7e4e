//! From times to classes, without a constant of any core: the scale's two ends are measured.

use super::cell::Class;

/// Two groups of cells are different when they are at least this far apart, in cycles of the
/// measured clock: more than a cycle of rounding at each end and a cycle of extra latency.
pub const GAP_CYCLES: f64 = 4.0;

/// A renamed load is faster than a load from the cache by at least the resolution of one cycle.
const FASTER_THAN_CACHE: f64 = 1.0;

/// One cell as classification sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Time net of the twin, in cycles.
    pub net_cycles: f64,
    /// How uncertain that is, in cycles.
    pub spread_cycles: f64,
    /// Whether it helps to find the groups: covered by the stores, not at the end of a page,
    /// nothing between store and load. The others are placed into the groups that were found.
    pub takes_part: bool,
    /// Whether it is chained, so that its time is a latency and can be below the cache's.
    pub latency: bool,
}

/// The ends of the scale, in the same unit and form as the points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct References {
    /// One store of the load's own width, loaded at offset 0.
    pub own_width: f64,
    /// A load wider than its only store.
    pub wider_load: f64,
}

/// A group of neighbouring figures, between two gaps.
#[derive(Clone, Copy, Debug)]
struct Group {
    low: f64,
    high: f64,
}

impl Group {
    fn distance(&self, figure: f64) -> f64 {
        (self.low - figure).max(figure - self.high).max(0.0)
    }
}

/// Classifies the cells of one load width and one form.
pub fn classify(points: &[Point], references: &References) -> Vec<Class> {
    let groups = split(points, references);
    points.iter().map(|point| place(point, &groups, references)).collect()
}

/// Groups of those that take part, together with the references, split at the gaps.
fn split(points: &[Point], references: &References) -> Vec<Group> {
    let mut figures: Vec<f64> = points
        .iter()
        // A cell that is as uncertain as half a gap could bridge one.
        .filter(|point| point.takes_part && point.spread_cycles < GAP_CYCLES / 2.0)
        .map(|point| point.net_cycles)
        .chain([references.own_width, references.wider_load])
        .filter(|figure| figure.is_finite())
        .collect();
    figures.sort_by(f64::total_cmp);
    let mut groups: Vec<Group> = Vec::new();
    for figure in figures {
        match groups.last_mut() {
            Some(group) if figure - group.high < GAP_CYCLES => group.high = figure,
            _ => groups.push(Group { low: figure, high: figure }),
        }
    }
    groups
}

fn place(point: &Point, groups: &[Group], references: &References) -> Class {
    let figure = point.net_cycles;
    if !figure.is_finite() {
        return Class::Unclear;
    }
    let half = GAP_CYCLES / 2.0;
    let near: Vec<Class> = groups
        .iter()
        .filter(|group| group.distance(figure) < half.max(point.spread_cycles))
        .map(|group| class_of(group, figure, references))
        .collect();
    let class = match near[..] {
        [] if beyond(figure, groups, references) => Class::Blocked,
        [] => Class::Unclear,
        [first, ..] if near.iter().all(|class| *class == first) => first,
        _ => Class::Unclear,
    };
    let below_cache = point.latency && figure + point.spread_cycles < -FASTER_THAN_CACHE;
    if below_cache && class != Class::Blocked { Class::Renamed } else { class }
}

/// Above everything that takes part, and the scale has an upper end: at least as slow as blocked.
fn beyond(figure: f64, groups: &[Group], references: &References) -> bool {
    stalls(references) && groups.last().is_some_and(|group| figure > group.high)
}

/// Whether a load wider than its only store is slower at all on this core.
fn stalls(references: &References) -> bool {
    references.wider_load - references.own_width >= GAP_CYCLES
}

fn class_of(group: &Group, figure: f64, references: &References) -> Class {
    let holds = |reference: f64| group.low <= reference && reference <= group.high;
    match (holds(references.own_width), holds(references.wider_load)) {
        // The core merges a narrower store with the cache in the same time.
        (true, true) if !stalls(references) => Class::Forwards,
        // Cells at all times between the two ends: only what is at an end has a name.
        (true, true) if figure <= references.own_width + GAP_CYCLES / 2.0 => Class::Forwards,
        (true, true) if figure >= references.wider_load - GAP_CYCLES / 2.0 => Class::Blocked,
        (true, true) => Class::Unclear,
        (true, false) => Class::Forwards,
        (false, true) if stalls(references) => Class::Blocked,
        _ if group.high < references.own_width => Class::Forwards,
        _ if !stalls(references) => Class::SlowForward,
        _ if group.low > references.wider_load => Class::Blocked,
        _ => Class::SlowForward,
    }
}

#[cfg(test)]
mod tests;
