//! A verdict beside that of its store-only twin.
//!
//! A misaligned wide store costs something by itself. Where the twin, which makes the same stores
//! and loads from elsewhere, has the same bands, the placement's cost is the store's and says
//! nothing of forwarding.

use super::verdict::{Finding, RuleOutcome, Verdict};

/// Of the workload's own time, this share of the effect may be the twin's before the effect is
/// called the store's.
const MOSTLY: f64 = 0.5;

/// The arm of the twin.
const TWIN: &str = "store-only";

/// Adds to each affected verdict what its twin shows, and names store placement where the twin
/// obeys the same rule or nothing is read back at all.
pub fn name_store_placement(verdicts: &mut [Verdict]) {
    for index in 0..verdicts.len() {
        if verdicts[index].verdict != Finding::Affected || verdicts[index].arm == TWIN {
            continue;
        }
        let sentence = if verdicts[index].workload == "memcpy" {
            Some(
                "store placement: this copy is not read back, so that its bands are the cost of \
                 the stores themselves and not of forwarding"
                    .to_owned(),
            )
        } else {
            twin_of(verdicts, index).map(|twin| compare(&verdicts[index], twin))
        };
        verdicts[index].reasons.extend(sentence);
    }
}

fn twin_of(verdicts: &[Verdict], index: usize) -> Option<&Verdict> {
    let verdict = &verdicts[index];
    verdicts.iter().find(|twin| {
        twin.arm == TWIN
            && twin.probe == verdict.probe
            && twin.workload == verdict.workload
            && twin.len == verdict.len
            && twin.placement == verdict.placement
            && twin.grid == verdict.grid
            && twin.params == verdict.params
    })
}

fn compare(verdict: &Verdict, twin: &Verdict) -> String {
    match twin.verdict {
        Finding::Clear => {
            "its store-only twin is level at the same addresses: it is the load that \
                           waits, not the store that costs"
                .to_owned()
        }
        Finding::Inconclusive => "its store-only twin is not settled: store placement is not \
                                  excluded; give more --launches"
            .to_owned(),
        Finding::Affected => {
            let cost = |v: &Verdict| {
                let (fast, slow) = (v.bands.first(), v.bands.last());
                fast.zip(slow).map_or(0.0, |(fast, slow)| slow.ns_per_op - fast.ns_per_op)
            };
            let (own, twins) = (cost(verdict), cost(twin));
            if shares_a_rule(verdict, twin) && twins >= MOSTLY * own {
                format!(
                    "store placement: its store-only twin obeys the same rule and loses {twins:.2} \
                     of the {own:.2} ns, so that the stores cost this, not the load"
                )
            } else {
                format!(
                    "its store-only twin loses {twins:.2} of the {own:.2} ns by placement alone; \
                     the rest is the load's"
                )
            }
        }
    }
}

/// Whether a rule that holds everywhere for one does for the other.
fn shares_a_rule(a: &Verdict, b: &Verdict) -> bool {
    fn names(verdict: &Verdict) -> impl Iterator<Item = &String> {
        let everywhere = |rule: &&RuleOutcome| rule.held == Some(rule.of);
        let rules = verdict.rules.iter().filter(everywhere);
        rules.flat_map(|rule| std::iter::once(&rule.rule).chain(&rule.also))
    }
    names(a).any(|name| names(b).any(|other| other == name))
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Band;
    use super::*;

    fn banded(workload: &str, arm: &str, fast: f64, slow: f64, rule: &str) -> Verdict {
        let band = |ns_per_op: f64| Band {
            ns_per_op,
            percent_above_fast: (ns_per_op / fast - 1.0) * 100.0,
            residues: vec![],
            placements: vec![],
        };
        let mut verdict = crate::report::fixture::zmm();
        verdict.workload = workload.to_owned();
        verdict.arm = arm.to_owned();
        verdict.bands = vec![band(fast), band(slow)];
        verdict.rules =
            vec![RuleOutcome { rule: rule.to_owned(), also: vec![], held: Some(16), of: 16 }];
        verdict.reasons.clear();
        verdict
    }

    fn said(mut verdicts: Vec<Verdict>) -> String {
        name_store_placement(&mut verdicts);
        assert!(verdicts[1..].iter().all(|twin| twin.reasons.is_empty()));
        verdicts[0].reasons.join("; ")
    }

    const RULE: &str = "buf & 31 != 0";

    #[test]
    fn a_twin_with_the_same_bands_means_store_placement() {
        let own = banded("roundtrip", "default", 0.55, 0.9, RULE);
        let text = said(vec![own, banded("roundtrip", TWIN, 0.55, 0.88, RULE)]);
        assert!(text.starts_with("store placement") && text.contains("0.33 of the 0.35"), "{text}");
    }

    #[test]
    fn a_small_cost_of_the_stores_is_told_apart() {
        let own = banded("copychain", "default", 4.6, 8.4, RULE);
        let text = said(vec![own, banded("copychain", TWIN, 0.55, 0.85, RULE)]);
        assert!(text.contains("the rest is the load's"), "{text}");
    }

    #[test]
    fn a_level_twin_names_the_load() {
        let mut twin = banded("copychain", TWIN, 0.55, 0.55, RULE);
        twin.verdict = Finding::Clear;
        let text = said(vec![banded("copychain", "default", 4.6, 8.4, RULE), twin]);
        assert!(text.contains("it is the load that waits"), "{text}");
    }

    #[test]
    fn what_is_not_read_back_is_store_placement() {
        let text = said(vec![banded("memcpy", "default", 2.4, 19.2, RULE)]);
        assert!(text.starts_with("store placement"), "{text}");
        assert_eq!(said(vec![banded("blake3", "default", 59.0, 86.2, RULE)]), "");
    }
}
