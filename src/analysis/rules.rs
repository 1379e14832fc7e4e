//! Rules: which property of the buffer's address tells slow placements from fast ones.

use super::verdict::RuleOutcome;

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// The whole of it.
    Whole(u64),
    /// Its residue modulo 64; rules about pages cannot be tried.
    Line(u8),
}

impl Address {
    fn line(self) -> u64 {
        match self {
            Address::Whole(address) => address % 64,
            Address::Line(residue) => u64::from(residue),
        }
    }

    fn page(self) -> Option<u64> {
        match self {
            Address::Whole(address) => Some(address % 4096),
            Address::Line(_) => None,
        }
    }
}

/// A placement (or launch) with its address, and whether it was slow (`None` without bands).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visited {
    pub address: Address,
    pub slow: Option<bool>,
}

/// A rule, with the bytes or the residue that its name carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// `buf & N != 0`
    Misaligned(u64),
    /// `buf & 63 == R`
    Residue(u64),
    /// `W-byte object crosses a 64-byte line`
    CrossesLine(u64),
    /// `W-byte object crosses a 4096-byte page`
    CrossesPage(u64),
    /// `32-byte half of a 64-byte object crosses a 4096-byte page`
    HalfCrossesPage,
}

impl Rule {
    fn name(self) -> String {
        match self {
            Rule::Misaligned(mask) => format!("buf & {mask} != 0"),
            Rule::Residue(residue) => format!("buf & 63 == {residue}"),
            Rule::CrossesLine(bytes) => format!("{bytes}-byte object crosses a 64-byte line"),
            Rule::CrossesPage(bytes) => format!("{bytes}-byte object crosses a 4096-byte page"),
            Rule::HalfCrossesPage => {
                "32-byte half of a 64-byte object crosses a 4096-byte page".to_owned()
            }
        }
    }

    /// Whether the rule calls an address slow; `None` where too little of it is known.
    fn slow(self, address: Address) -> Option<bool> {
        let line = address.line();
        match self {
            Rule::Misaligned(mask) => Some(line & mask != 0),
            Rule::Residue(residue) => Some(line == residue),
            Rule::CrossesLine(bytes) => Some(line + bytes > 64),
            Rule::CrossesPage(bytes) => address.page().map(|page| page + bytes > 4096),
            Rule::HalfCrossesPage => address.page().map(|page| {
                // The half that starts at `page` or the one 32 bytes on, which may begin beyond.
                let crosses = |start: u64| start < 4096 && start + 32 > 4096;
                crosses(page) || crosses(page + 32)
            }),
        }
    }
}

/// Every rule, in the order in which the first of several that coincide is named.
fn all(visited: &[Visited]) -> Vec<Rule> {
    let mut residues: Vec<u64> = visited.iter().map(|v| v.address.line()).collect();
    residues.sort_unstable();
    residues.dedup();
    let mut rules: Vec<Rule> = [15, 31, 63].map(Rule::Misaligned).to_vec();
    rules.extend(residues.into_iter().map(Rule::Residue));
    rules.extend([16, 32].map(Rule::CrossesLine));
    rules.extend([16, 32, 64].map(Rule::CrossesPage));
    rules.push(Rule::HalfCrossesPage);
    rules
}

/// Tries every rule that can be tried. Rules that say the same of everything visited are one entry.
pub(crate) fn outcomes(visited: &[Visited]) -> Vec<RuleOutcome> {
    let mut predictions: Vec<Vec<bool>> = Vec::new();
    let mut outcomes: Vec<RuleOutcome> = Vec::new();
    for rule in all(visited) {
        let slow: Option<Vec<bool>> = visited.iter().map(|v| rule.slow(v.address)).collect();
        let Some(slow) = slow else { continue };
        if let Some(same) = predictions.iter().position(|other| *other == slow) {
            outcomes[same].also.push(rule.name());
            continue;
        }
        let agrees: Option<Vec<bool>> =
            visited.iter().zip(&slow).map(|(v, &says)| Some(v.slow? == says)).collect();
        let held = agrees.map(|agrees| agrees.into_iter().filter(|&a| a).count() as u64);
        outcomes.push(RuleOutcome {
            rule: rule.name(),
            also: Vec::new(),
            held,
            of: visited.len() as u64,
        });
        predictions.push(slow);
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(addresses: impl IntoIterator<Item = u64>, slow: fn(u64) -> bool) -> Vec<Visited> {
        addresses
            .into_iter()
            .map(|a| Visited { address: Address::Whole(a), slow: Some(slow(a)) })
            .collect()
    }

    fn find<'a>(outcomes: &'a [RuleOutcome], rule: &str) -> &'a RuleOutcome {
        outcomes.iter().find(|outcome| outcome.rule == rule).unwrap()
    }

    #[test]
    fn the_published_rule_holds_for_all_sixteen() {
        let grid = (0..16).map(|shift| 0x7fff_ffff_e000 + 16 * shift);
        let outcomes = outcomes(&visited(grid, |a| a & 31 != 0));
        assert_eq!(find(&outcomes, "buf & 31 != 0").held, Some(16));
        assert_eq!(find(&outcomes, "buf & 31 != 0").of, 16);
        // Three quarters are not 64-aligned, of which the 32-aligned quarter is fast.
        assert_eq!(find(&outcomes, "buf & 63 != 0").held, Some(12));
        assert_eq!(
            find(&outcomes, "buf & 63 == 48").also,
            ["32-byte object crosses a 64-byte line"]
        );
        // 16-aligned 16-byte objects cross nothing, and none of the sixteen lies at a page's end.
        let nothing = find(&outcomes, "buf & 15 != 0");
        assert!(nothing.also.contains(&"16-byte object crosses a 64-byte line".to_owned()));
        assert!(nothing.also.contains(&"64-byte object crosses a 4096-byte page".to_owned()));
    }

    #[test]
    fn the_page_rule_tells_4048_and_4080_from_4064() {
        let grid = (0..512).map(|n| 0x7000_0000 + 16 * n);
        let outcomes = outcomes(&visited(grid, |a| [4048, 4080].contains(&(a % 4096))));
        let rule = "32-byte half of a 64-byte object crosses a 4096-byte page";
        assert_eq!(find(&outcomes, rule).held, Some(512));
        assert_eq!(find(&outcomes, "64-byte object crosses a 4096-byte page").held, Some(510));
        assert_eq!(find(&outcomes, "32-byte object crosses a 4096-byte page").held, Some(510));
    }

    #[test]
    fn halves_are_taken_byte_by_byte() {
        let crosses = |page: u64, at: u64| (page + at) / 4096 != (page + at + 31) / 4096;
        for page in 0..4096 {
            let plain = crosses(page, 0) || crosses(page, 32);
            assert_eq!(Rule::HalfCrossesPage.slow(Address::Whole(page)), Some(plain), "{page}");
            for bytes in [16, 32, 64] {
                let plain = page / 4096 != (page + bytes - 1) / 4096;
                assert_eq!(Rule::CrossesPage(bytes).slow(Address::Whole(page)), Some(plain));
            }
            for bytes in [16, 32] {
                let plain = page / 64 != (page + bytes - 1) / 64;
                assert_eq!(Rule::CrossesLine(bytes).slow(Address::Whole(page)), Some(plain));
            }
        }
    }

    #[test]
    fn residues_alone_leave_pages_untried_and_no_bands_leave_held_empty() {
        let visited: Vec<Visited> = [0, 16, 32, 48]
            .map(|residue| Visited { address: Address::Line(residue), slow: None })
            .to_vec();
        let outcomes = outcomes(&visited);
        assert!(outcomes.iter().all(|outcome| outcome.held.is_none() && outcome.of == 4));
        assert!(!format!("{outcomes:?}").contains("page"));
    }
}
