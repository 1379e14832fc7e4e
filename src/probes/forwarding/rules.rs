//! Rules read off the cells: the simplest condition on offset and address that separates the cells
//! of one class from the others, put in words.

use std::collections::BTreeMap;
use std::fmt;

use super::cell::{Cell, Class, Cover, Crosses, Form, Gap, StorePart};
use super::map::Map;

/// A condition on a cell, in the order in which conditions are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// The load has bytes on both sides of this byte of the store.
    SpansByte(i32),
    /// The load does not start where the store starts.
    NotAtStart,
    /// The load's offset is no multiple of this.
    OffsetNotMultiple(i32),
    /// The load has bytes on both sides of a multiple of this, counted from the store's start.
    SpansMultiple(i32),
    /// The load's address crosses a boundary of this many bytes.
    LoadCrosses(i32),
    /// The store's address is not aligned to this.
    StoreUnaligned(i32),
    /// The load's address is not aligned to this.
    LoadUnaligned(i32),
    /// The store crosses a boundary of this many bytes.
    StoreCrosses(i32),
}

/// Offset and address of a cell, as conditions see them.
#[derive(Clone, Copy, Debug)]
struct Spot {
    offset: i32,
    load: i32,
    store: i32,
    residue: i32,
}

impl Condition {
    fn holds(self, spot: &Spot) -> bool {
        let Spot { offset, load, store, residue } = *spot;
        let differs = |start: i32, bytes: i32, unit: i32| {
            start.div_euclid(unit) != (start + bytes - 1).div_euclid(unit)
        };
        match self {
            Condition::SpansByte(byte) => offset < byte && byte < offset + load,
            Condition::NotAtStart => offset != 0,
            Condition::OffsetNotMultiple(unit) => offset.rem_euclid(unit) != 0,
            Condition::SpansMultiple(unit) => differs(offset, load, unit),
            Condition::LoadCrosses(unit) => differs(residue + offset, load, unit),
            Condition::StoreUnaligned(unit) => residue % unit != 0,
            Condition::LoadUnaligned(unit) => (residue + offset).rem_euclid(unit) != 0,
            Condition::StoreCrosses(unit) => differs(residue, store, unit),
        }
    }

    /// All conditions worth trying for stores whose parts begin and end at `edges`.
    fn all(store: i32, edges: &[i32]) -> Vec<Condition> {
        let units = [2, 4, 8, 16, 32, 64];
        let bytes = units.iter().copied().filter(|&byte| byte < store);
        let mut conditions: Vec<Condition> =
            edges.iter().copied().chain(bytes.clone().rev()).map(Condition::SpansByte).collect();
        conditions.push(Condition::NotAtStart);
        conditions.extend(bytes.clone().rev().map(Condition::OffsetNotMultiple));
        conditions.extend(bytes.rev().map(Condition::SpansMultiple));
        for make in [
            Condition::LoadCrosses as fn(i32) -> Condition,
            Condition::StoreUnaligned,
            Condition::LoadUnaligned,
            Condition::StoreCrosses,
        ] {
            conditions.extend(units.iter().rev().copied().map(make));
        }
        conditions
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::SpansByte(byte) => write!(f, "it spans byte {byte} of the store"),
            Condition::NotAtStart => f.write_str("it does not start where the store starts"),
            Condition::OffsetNotMultiple(unit) => {
                write!(f, "its offset is not a multiple of {unit}")
            }
            Condition::SpansMultiple(unit) => {
                write!(f, "it spans a multiple of {unit} bytes of the store")
            }
            Condition::LoadCrosses(unit) => {
                write!(f, "it crosses a {unit}-byte boundary")
            }
            Condition::StoreUnaligned(unit) => write!(f, "the store is not {unit}-byte aligned"),
            Condition::LoadUnaligned(unit) => write!(f, "it is not {unit}-byte aligned"),
            Condition::StoreCrosses(unit) => {
                write!(f, "the store crosses a {unit}-byte boundary")
            }
        }
    }
}

/// How one class is told from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Always,
    When(Condition),
    WhenBoth(Condition, Condition),
    WhenEither(Condition, Condition),
}

impl Rule {
    fn holds(&self, spot: &Spot) -> bool {
        match self {
            Rule::Always => true,
            Rule::When(a) => a.holds(spot),
            Rule::WhenBoth(a, b) => a.holds(spot) && b.holds(spot),
            Rule::WhenEither(a, b) => a.holds(spot) || b.holds(spot),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Always => Ok(()),
            Rule::When(a) => write!(f, " when {a}"),
            Rule::WhenBoth(a, b) => write!(f, " when {a} and {b}"),
            Rule::WhenEither(a, b) => write!(f, " when {a} or {b}"),
        }
    }
}

/// A rule found by data must hold for nearly all of it; the count is printed where it is not all.
const MOST: f64 = 0.98;

/// The simplest rule for `truth`, with the number of cells for which it holds.
fn find(spots: &[(Spot, bool)], conditions: &[Condition]) -> Option<(Rule, usize)> {
    if spots.iter().all(|(_, truth)| *truth) {
        return Some((Rule::Always, spots.len()));
    }
    let held =
        |rule: &Rule| spots.iter().filter(|(spot, truth)| rule.holds(spot) == *truth).count();
    let singles = conditions.iter().map(|&a| Rule::When(a));
    let two = |make: fn(Condition, Condition) -> Rule| {
        conditions
            .iter()
            .enumerate()
            .flat_map(move |(i, &a)| conditions[i + 1..].iter().map(move |&b| make(a, b)))
    };
    let candidates = singles.chain(two(Rule::WhenBoth)).chain(two(Rule::WhenEither));
    let mut best: Option<(Rule, usize)> = None;
    for rule in candidates {
        let count = held(&rule);
        if count == spots.len() {
            return Some((rule, count));
        }
        if best.as_ref().is_none_or(|(_, most)| count > *most) {
            best = Some((rule, count));
        }
    }
    best.filter(|(_, held)| *held as f64 >= MOST * spots.len() as f64)
}

/// What one group of cells has in common: the stores (width and place), and the load's width.
type Key = (Vec<(u8, u8)>, u8);

/// The rules of a map, in words: of chained cells with nothing between, within a page.
pub fn rules(map: &Map) -> Vec<String> {
    let mut groups: BTreeMap<Key, Vec<&Cell>> = BTreeMap::new();
    for cell in map.cells.iter().chain(&map.pairs).filter(is_plain) {
        let parts = cell.parts().iter().map(|part| (part.bytes, part.at)).collect();
        groups.entry((parts, cell.load_bytes)).or_default().push(cell);
    }
    let mut single = Vec::new();
    let mut pair = Vec::new();
    for (key, cells) in &groups {
        let list = if key.0.len() == 1 { &mut single } else { &mut pair };
        list.extend(of_group(key, cells));
    }
    let always = single.extract_if(.., |(_, level)| *level).map(|(text, _)| text);
    let mut lines: Vec<String> = Vec::new();
    let level: Vec<String> = always.collect();
    if !level.is_empty() {
        lines.push(format!("forwards at every offset inside the store: {}", level.join(", ")));
    }
    lines.extend(single.into_iter().map(|(text, _)| text));
    lines.extend(partly(map));
    let level: Vec<String> = pair.extract_if(.., |(_, l)| *l).map(|(text, _)| text).collect();
    if !level.is_empty() {
        lines.push(format!("forwards at every offset inside two stores: {}", level.join(", ")));
    }
    lines.extend(pair.into_iter().map(|(text, _)| text));
    lines
}

fn is_plain(cell: &&Cell) -> bool {
    cell.form == Form::Chained
        && cell.gap == Gap::default()
        && cell.crosses != Some(Crosses::Page)
        && matches!(cell.cover(), Cover::One | Cover::Several)
        && !matches!(cell.class, None | Some(Class::Unclear))
}

/// The sentences of one group; the flag says that it forwards everywhere, for which one name will do.
fn of_group((parts, load): &Key, cells: &[&Cell]) -> Vec<(String, bool)> {
    let edges: Vec<i32> = match parts[..] {
        [(first, _), (second, at)] => {
            let (first, second, at) = (i32::from(first), i32::from(second), i32::from(at));
            vec![at, first, at + second]
        }
        _ => Vec::new(),
    };
    let store = stores_in_words(parts);
    let span = cells.first().map_or(0, |cell| i32::from(cell.store_bytes));
    let spots = |class: Class| -> Vec<(Spot, bool)> {
        let spot = |cell: &&Cell| Spot {
            offset: i32::from(cell.offset),
            load: i32::from(cell.load_bytes),
            store: i32::from(cell.store_bytes),
            residue: i32::from(cell.residue),
        };
        cells.iter().map(|cell| (spot(cell), cell.class == Some(class))).collect()
    };
    let mut sentences = Vec::new();
    for class in [Class::Renamed, Class::SlowForward, Class::Blocked] {
        let spots = spots(class);
        if !spots.iter().any(|(_, truth)| *truth) {
            continue;
        }
        let verb = match class {
            Class::Renamed => "is renamed",
            Class::SlowForward => "forwards slowly",
            _ => "is blocked",
        };
        let subject = format!("{} load from {store} {verb}", wide(*load));
        let conditions = Condition::all(span, &edges);
        sentences.push((sentence(&subject, &spots, &conditions), false));
    }
    if sentences.is_empty() {
        sentences.push((format!("{load} from {}", stores_in_short(parts)), true));
    }
    sentences
}

fn sentence(subject: &str, spots: &[(Spot, bool)], conditions: &[Condition]) -> String {
    match find(spots, conditions) {
        Some((rule, held)) if held == spots.len() => format!("{subject}{rule}"),
        Some((rule, held)) => {
            format!("{subject}{rule} (held for {held} of {} cells)", spots.len())
        }
        None => {
            let slow = spots.iter().filter(|(_, truth)| *truth).count();
            format!(
                "{subject} in {slow} of {} cells, at offsets {}; none of the rules tried holds",
                spots.len(),
                ranges(spots.iter().filter(|(_, truth)| *truth).map(|(spot, _)| spot.offset))
            )
        }
    }
}

/// What becomes of loads that the stores cover only in part.
fn partly(map: &Map) -> Option<String> {
    let cells: Vec<&Cell> = map
        .cells
        .iter()
        .filter(|cell| cell.form == Form::Chained && cell.crosses != Some(Crosses::Page))
        .filter(|cell| cell.cover() == Cover::Partly && cell.class.is_some())
        .collect();
    let blocked = cells.iter().filter(|cell| cell.class == Some(Class::Blocked)).count();
    match (cells.len(), blocked) {
        (0, _) => None,
        (all, blocked) if all == blocked => {
            Some("a load that its store covers only partly is blocked".to_owned())
        }
        (all, blocked) => Some(format!(
            "a load that its store covers only partly is blocked in {blocked} of {all} cells"
        )),
    }
}

/// `a 4-byte`, `an 8-byte`.
fn wide(bytes: u8) -> String {
    let article = if bytes == 8 { "an" } else { "a" };
    format!("{article} {bytes}-byte")
}

fn stores_in_words(parts: &[(u8, u8)]) -> String {
    match *parts {
        [(bytes, _)] => format!("{} store", wide(bytes)),
        [(first, _), (second, at)] if first == second && at == first => {
            format!("two {first}-byte stores side by side")
        }
        [(first, _), (second, 0)] if first == second => {
            format!("two {first}-byte stores of the same bytes")
        }
        [(first, _), (second, at)] => {
            format!("{} store and {} store at +{at} over it", wide(first), wide(second))
        }
        _ => "no store".to_owned(),
    }
}

fn stores_in_short(parts: &[(u8, u8)]) -> String {
    match *parts {
        [(first, _), (second, at)] => format!("{first}+{second}@{at}"),
        [(bytes, _)] => bytes.to_string(),
        _ => String::new(),
    }
}

/// `1–7, 9` of a set of figures.
fn ranges(figures: impl Iterator<Item = i32>) -> String {
    let mut sorted: Vec<i32> = figures.collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for figure in sorted {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == figure => *last = figure,
            _ => runs.push((figure, figure)),
        }
    }
    let text = |(first, last): (i32, i32)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

// What a cell's stores are called is needed by the text output too.
impl Cell {
    /// The stores in words, such as `two 8-byte stores side by side`.
    pub fn stores_in_words(&self) -> String {
        let parts: Vec<(u8, u8)> =
            self.parts().iter().map(|&StorePart { bytes, at }| (bytes, at)).collect();
        stores_in_words(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_listed_as_ranges() {
        assert_eq!(ranges([3, 1, 2, 9, 9].into_iter()), "1 to 3, 9");
    }

    #[test]
    fn a_condition_counts_from_the_store_or_from_the_line() {
        let spot = Spot { offset: 17, load: 16, store: 64, residue: 16 };
        assert!(Condition::SpansByte(32).holds(&spot));
        assert!(!Condition::SpansByte(32).holds(&Spot { offset: 16, ..spot }));
        assert!(!Condition::SpansByte(32).holds(&Spot { offset: 32, ..spot }));
        assert!(Condition::StoreUnaligned(32).holds(&spot));
        assert!(Condition::StoreCrosses(64).holds(&spot));
        assert!(!Condition::LoadCrosses(32).holds(&Spot { offset: 16, ..spot }));
    }
}
