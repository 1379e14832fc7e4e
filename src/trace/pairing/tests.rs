use super::*;
use proptest::prelude::*;

/// One access a step, from `(ip, access)`.
fn pair_up(window: u64, steps: &[(u64, Vec<Access>)]) -> Vec<Pair> {
    let mut pairing = Pairing::new(window);
    for (index, (ip, accesses)) in steps.iter().enumerate() {
        pairing.step(&Step { index: index as u64, ip: *ip, accesses });
    }
    pairing.into_pairs()
}

/// The same by looking, for every byte of every load, through all earlier stores.
fn reference(window: u64, steps: &[(u64, Vec<Access>)]) -> Vec<Pair> {
    struct Past {
        step: u64,
        site: StoreSite,
        touched: Vec<u64>,
        opaque: bool,
    }
    let mut past: Vec<Past> = Vec::new();
    let mut pairs: Vec<Pair> = Vec::new();
    for (index, (ip, accesses)) in steps.iter().enumerate() {
        let now = index as u64;
        for access in accesses {
            if access.kind == AccessKind::Store {
                let Access { address, bytes, string, opaque, .. } = *access;
                let site = StoreSite { ip: *ip, address, bytes, string };
                past.push(Past { step: now, site, touched: access.touched().collect(), opaque });
                continue;
            }
            let mut from: Vec<usize> = Vec::new();
            let mut older = false;
            for byte in access.touched() {
                let writer = past.iter().rposition(|store| store.touched.contains(&byte));
                match writer.filter(|w| !past[*w].opaque && now - past[*w].step <= window) {
                    Some(writer) => from.push(writer),
                    None => older = true,
                }
            }
            if access.opaque || from.is_empty() {
                continue;
            }
            from.sort_unstable();
            from.dedup();
            from.reverse();
            let relation = match (older, from.len()) {
                (true, _) => Relation::Partial,
                (false, 1) => Relation::Contained,
                (false, _) => Relation::Spans,
            };
            let youngest = &past[from[0]];
            let pair = Pair {
                relation,
                count: 1,
                stores: from.iter().map(|store| past[*store].site).collect(),
                load_ip: *ip,
                load_address: access.address,
                load_bytes: access.bytes,
                load_string: access.string,
                offset: access.address.wrapping_sub(youngest.site.address) as i64,
                distance: now - youngest.step,
                residues: 1 << (youngest.site.address % 64),
            };
            match pairs.iter_mut().find(|known| same_kind(known, &pair)) {
                Some(known) => {
                    known.count += 1;
                    known.distance = known.distance.min(pair.distance);
                    known.residues |= pair.residues;
                }
                None => pairs.push(pair),
            }
        }
    }
    pairs
}

/// Same instructions, widths and geometry.
fn same_kind(a: &Pair, b: &Pair) -> bool {
    let shape = |pair: &Pair| -> Vec<(u64, u64, u32)> {
        let relative = |s: &StoreSite| (s.ip, pair.load_address.wrapping_sub(s.address), s.bytes);
        pair.stores.iter().map(relative).collect()
    };
    (a.load_ip, a.load_bytes, a.relation) == (b.load_ip, b.load_bytes, b.relation)
        && shape(a) == shape(b)
}

fn access() -> impl Strategy<Value = Access> {
    let width = prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(16), Just(32), Just(64)];
    // Two hundred bytes, so that accesses meet often and lie on up to two lines.
    (0u64..200, width, any::<bool>(), prop::option::weighted(0.2, any::<u64>()), 0u8..20).prop_map(
        |(at, bytes, load, mask, rare)| Access {
            kind: if load { AccessKind::Load } else { AccessKind::Store },
            // State saves are never masked.
            mask: mask.filter(|_| rare != 0),
            opaque: rare == 0,
            string: rare == 1,
            ..Access::load(0x7fff_0000 + at, bytes)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equals_the_search_through_all_stores(
        window in 0u64..20,
        steps in prop::collection::vec((0u64..6, prop::collection::vec(access(), 0..3)), 0..60),
    ) {
        prop_assert_eq!(pair_up(window, &steps), reference(window, &steps));
    }
}

fn one(ip: u64, access: Access) -> (u64, Vec<Access>) {
    (ip, vec![access])
}

#[test]
fn tells_the_three_relations_apart() {
    let two_halves =
        [one(1, Access::store(64, 8)), one(2, Access::store(72, 8)), one(3, Access::load(64, 16))];
    let pairs = pair_up(100, &two_halves);
    assert_eq!(pairs.len(), 1);
    assert_eq!(pairs[0].relation, Relation::Spans);
    assert_eq!((pairs[0].store_bytes(), pairs[0].offset, pairs[0].distance), (8, -8, 1));
    assert_eq!(pairs[0].stores.iter().map(|s| s.ip).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(pairs[0].residue_list(), [8]);

    let pairs = pair_up(100, &[one(1, Access::store(64, 64)), one(2, Access::load(88, 16))]);
    assert_eq!((pairs[0].relation, pairs[0].offset), (Relation::Contained, 24));

    let pairs = pair_up(100, &[one(1, Access::store(64, 4)), one(2, Access::load(64, 8))]);
    assert_eq!(pairs[0].relation, Relation::Partial);
}

#[test]
fn bytes_that_a_younger_store_replaced_are_not_the_older_ones() {
    // Two whole overlapping stores, as a copy of 64 to 128 bytes makes.
    let steps =
        [one(1, Access::store(0, 64)), one(2, Access::store(0, 64)), one(3, Access::load(16, 16))];
    let pairs = pair_up(100, &steps);
    assert_eq!(pairs[0].relation, Relation::Contained);
    assert_eq!(pairs[0].stores[0].ip, 2);
}

#[test]
fn the_window_is_inclusive() {
    let mut steps = vec![one(1, Access::store(0, 8))];
    steps.resize(10, (9, vec![]));
    steps.push(one(2, Access::load(0, 8)));
    assert_eq!(pair_up(10, &steps).len(), 1);
    assert_eq!(pair_up(9, &steps).len(), 0);
}

#[test]
fn an_access_at_the_end_of_the_address_space_does_not_overflow() {
    let steps = [one(1, Access::store(u64::MAX - 7, 8)), one(2, Access::load(u64::MAX - 3, 8))];
    assert_eq!(pair_up(10, &steps).len(), 1);
}

#[test]
fn what_the_kernel_wrote_comes_from_no_store() {
    let mut pairing = Pairing::new(100);
    pairing.step(&Step { index: 0, ip: 1, accesses: &[Access::store(0, 64)] });
    pairing.forget(8, 8);
    pairing.forget(8, 0);
    pairing.step(&Step { index: 1, ip: 2, accesses: &[Access::load(8, 8), Access::load(0, 16)] });
    let pairs = pairing.into_pairs();
    assert_eq!(pairs.len(), 1);
    assert_eq!((pairs[0].relation, pairs[0].load_address), (Relation::Partial, 0));
    // A range larger than everything known.
    let mut pairing = Pairing::new(100);
    pairing.step(&Step { index: 0, ip: 1, accesses: &[Access::store(0x1000, 64)] });
    pairing.forget(0, u64::MAX);
    pairing.step(&Step { index: 1, ip: 2, accesses: &[Access::load(0x1000, 8)] });
    assert!(pairing.into_pairs().is_empty());
}

#[test]
fn ten_million_steps_need_no_more_memory_than_the_window() {
    let window = 512;
    let mut pairing = Pairing::new(window);
    let mut random = fastrand::Rng::with_seed(7);
    let mut most = 0;
    for index in 0..10_000_000u64 {
        // Stores wander through a gigabyte; loads follow some of them.
        let at = (index.wrapping_mul(64) % (1 << 30)) + random.u64(0..64);
        let accesses = match index % 4 {
            0 => [Access::store(at, 8), Access::store(at + 32, 32)],
            1 => [Access::load(at & !63, 8), Access::load(at, 16)],
            _ => [Access::load(random.u64(0..1 << 30), 8), Access::load(8, 8)],
        };
        pairing.step(&Step { index, ip: index % 50, accesses: &accesses });
        most = most.max(pairing.held());
    }
    // Two stores in four steps, each on at most two lines.
    assert!(most as u64 <= window * 3, "{most}");
    assert_eq!(pairing.overflowed(), 0);
    assert!(!pairing.into_pairs().is_empty());
}
