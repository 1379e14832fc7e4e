//! Classification on generated cells of cores that are not at hand.

use proptest::prelude::*;

use super::*;
use crate::probes::forwarding::{Cell, Form, Gap, Map, Reference, StorePart};

/// Net cycles of a core like Zen 4, from rules that its published measurements show.
#[derive(Clone, Copy)]
struct Core {
    own: f64,
    wider: f64,
}

const CORE: Core = Core { own: 3.0, wider: 14.0 };

impl Core {
    fn single(self, store: i32, load: i32, offset: i32, residue: i32) -> f64 {
        let inside = offset >= 0 && offset + load <= store;
        let spans_half = offset < 32 && 32 < offset + load;
        let blocked = match (store, load) {
            _ if !inside => true,
            (64, 64) => residue % 32 != 0,
            (64, _) => spans_half,
            _ => false,
        };
        let renamed = store == 8 && load == 8 && offset == 0;
        match (renamed, blocked) {
            (true, _) => -3.5,
            (_, true) => self.wider,
            _ => self.own + f64::from(store) / 64.0,
        }
    }
}

fn a_cell(
    store: u16,
    stores: Vec<StorePart>,
    load: u8,
    offset: i16,
    residue: u8,
    net: f64,
) -> Cell {
    Cell {
        store_bytes: store,
        stores,
        load_bytes: load,
        offset,
        residue,
        page_offset: None,
        crosses: None,
        form: Form::Chained,
        gap: Gap::default(),
        ns: 2.0 + net * 0.25,
        spread_percent: 0.5,
        twin_ns: Some(2.0),
        net_cycles: Some(net),
        class: None,
    }
}

/// A map of that core with `noise` cycles drawn around each figure.
fn generated(mut noise: impl FnMut() -> f64) -> Map {
    const WIDTHS: [i32; 7] = [1, 2, 4, 8, 16, 32, 64];
    let mut cells = Vec::new();
    for store in WIDTHS {
        for load in WIDTHS {
            for offset in 1 - load..store {
                for residue in [0, 1, 16, 32, 48] {
                    let net = CORE.single(store, load, offset, residue) + noise();
                    let (store, load) = (store as u16, load as u8);
                    cells.push(a_cell(store, vec![], load, offset as i16, residue as u8, net));
                }
            }
        }
    }
    let halves = vec![StorePart { bytes: 8, at: 0 }, StorePart { bytes: 8, at: 8 }];
    for offset in 0..=8i16 {
        let net = if offset == 0 || offset == 8 { CORE.own } else { CORE.wider + 2.0 };
        cells.push(a_cell(16, halves.clone(), 8, offset, 0, net + noise()));
    }
    cells.push(a_cell(16, halves, 16, 0, 0, CORE.wider + 2.0 + noise()));
    let reference = |load: i32| Reference {
        load_bytes: load as u8,
        form: Form::Chained,
        own_width_cycles: CORE.own,
        wider_load_cycles: CORE.wider,
        wider_load: String::new(),
    };
    let mut map = Map::new(0.25, WIDTHS.map(reference).to_vec(), cells);
    map.classify();
    map
}

fn classes(map: &Map, store: u16, load: u8) -> Vec<(i16, u8, Class)> {
    map.cells
        .iter()
        .filter(|cell| cell.store_bytes == store && cell.load_bytes == load)
        .filter(|cell| cell.offset >= 0 && cell.offset as u16 + u16::from(load) <= store)
        .filter_map(|cell| Some((cell.offset, cell.residue, cell.class?)))
        .collect()
}

fn check(map: &Map) {
    for (offset, _, class) in classes(map, 64, 16) {
        assert_eq!(class == Class::Blocked, (17..=31).contains(&offset), "64 → 16 at {offset}");
    }
    for (offset, _, class) in classes(map, 64, 32) {
        assert_eq!(class == Class::Blocked, offset != 0 && offset != 32, "64 → 32 at {offset}");
    }
    for (_, residue, class) in classes(map, 64, 64) {
        assert_eq!(class == Class::Blocked, residue % 32 != 0, "64 → 64 at residue {residue}");
    }
    for (_, _, class) in classes(map, 8, 8) {
        assert_eq!(class, Class::Renamed);
    }
    let halves = map.pairs.iter().find(|cell| cell.load_bytes == 16);
    assert_eq!(halves.and_then(|cell| cell.class), Some(Class::Blocked));
    let partly = map.cells.iter().filter(|cell| cell.offset < 0);
    assert!(partly.into_iter().all(|cell| cell.class == Some(Class::Blocked)));
}

#[test]
fn finds_what_a_zen_4_does() {
    let map = generated(|| 0.0);
    check(&map);
    let says =
        |rule: &str| assert!(map.rules.iter().any(|r| r == rule), "{rule}: {:#?}", map.rules);
    says("a 16-byte load from a 64-byte store is blocked when it spans byte 32 of the store");
    says("a 32-byte load from a 64-byte store is blocked when it spans byte 32 of the store");
    says("a 64-byte load from a 64-byte store is blocked when the store is not 32-byte aligned");
    says("a 16-byte load from two 8-byte stores side by side is blocked");
    says("an 8-byte load from an 8-byte store is renamed");
    says("a load that its store covers only partly is blocked");
}

#[test]
fn nothing_is_unclear_on_a_clean_map() {
    let map = generated(|| 0.0);
    assert!(map.all().all(|cell| cell.class.is_some_and(|class| class != Class::Unclear)));
}

fn point(net_cycles: f64, takes_part: bool) -> Point {
    Point { net_cycles, spread_cycles: 0.1, takes_part, latency: true }
}

#[test]
fn between_the_ends_is_a_slow_forward() {
    let ends = References { own_width: 2.0, wider_load: 14.0 };
    let points = [2.5, 3.0, 8.0, 8.4, 14.0, 20.0].map(|net| point(net, true));
    use Class::{Blocked, Forwards, SlowForward};
    let expected = [Forwards, Forwards, SlowForward, SlowForward, Blocked, Blocked];
    assert_eq!(classify(&points, &ends), expected);
}

#[test]
fn what_takes_no_part_makes_no_bridge_and_no_group() {
    let ends = References { own_width: 2.0, wider_load: 14.0 };
    // A ladder of page-crossing cells from one end to the other.
    let mut points: Vec<Point> = (2..=14).map(|net| point(f64::from(net), false)).collect();
    points.push(point(2.0, true));
    let classes = classify(&points, &ends);
    assert_eq!(classes[0], Class::Forwards);
    assert_eq!(classes[6], Class::Unclear, "8 cycles is near neither group");
    assert_eq!(classes[12], Class::Blocked);
    // Far above everything is at least as slow as blocked.
    assert_eq!(classify(&[point(60.0, false)], &ends), [Class::Blocked]);
}

#[test]
fn a_core_on_which_nothing_stalls_has_no_blocked_cells() {
    let ends = References { own_width: 2.0, wider_load: 2.5 };
    let points = [1.8, 2.2, 3.0].map(|net| point(net, true));
    assert_eq!(classify(&points, &ends), [Class::Forwards; 3]);
    assert_eq!(classify(&[point(30.0, false)], &ends), [Class::Unclear]);
}

#[test]
fn a_cell_that_cannot_be_told_is_unclear() {
    let ends = References { own_width: 2.0, wider_load: 14.0 };
    let noisy = Point { spread_cycles: 9.0, ..point(8.0, true) };
    assert_eq!(classify(&[noisy], &ends), [Class::Unclear]);
    assert_eq!(classify(&[point(f64::NAN, true)], &ends), [Class::Unclear]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A cycle of noise either way changes no class: the gap is four.
    #[test]
    fn noise_below_the_gap_changes_nothing(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let map = generated(|| random.f64() * 2.0 - 1.0);
        check(&map);
    }

    /// Another core's slower scale gives the same classes: no constant of one core is in it.
    #[test]
    fn classes_follow_the_references(scale in 1.0..6.0f64, shift in -2.0..20.0f64) {
        let net = |figure: f64| figure * scale + shift;
        let ends = References { own_width: net(3.0), wider_load: net(14.0) };
        let points = [3.0, 4.0, 14.0, 15.0].map(|figure| {
            Point { latency: false, ..point(net(figure), true) }
        });
        use Class::{Blocked, Forwards};
        let expected = [Forwards, if scale < 4.0 { Forwards } else { Class::SlowForward }, Blocked, Blocked];
        prop_assert_eq!(&classify(&points, &ends)[..], &expected[..]);
    }
}
