//! Generated verdicts for the tests of every format: the published figures of one Zen 5 (zmm and
//! ymm copies), a page band, an exhibit, and one that is not settled.

use crate::analysis::{Band, Finding, InstructionSource, InstructionsPerOp, RuleOutcome, Verdict};
use crate::sample::{Grid, Params, Placement, Role};

fn blank() -> Verdict {
    Verdict {
        probe: "phase".into(),
        workload: "blake3".into(),
        role: Role::Subject,
        len: Some(64),
        arm: "default".into(),
        routine: None,
        placement: Placement::Shift,
        grid: Some(Grid::Line),
        params: Params::new(),
        verdict: Finding::Clear,
        effect_percent: Some(0.0),
        effect_low_percent: Some(0.0),
        effect_high_percent: Some(0.3),
        min_effect_percent: 2.0,
        bands: vec![],
        period_bytes: Some(64),
        residues_visited: vec![0, 16, 32, 48],
        rules: vec![],
        interval_method: "permutation within rounds, 99 %".into(),
        instructions_per_op: Some(InstructionsPerOp {
            value: 495.5,
            source: InstructionSource::SingleStep,
        }),
        unit: "ns".into(),
        reasons: vec![],
    }
}

fn band(ns_per_op: f64, fastest: f64, residues: &[u64]) -> Band {
    let percent_above_fast = (ns_per_op / fastest - 1.0) * 100.0;
    let placements = residues.iter().map(|r| (64 - *r as i64) % 64).collect();
    Band { ns_per_op, percent_above_fast, residues: residues.to_vec(), placements }
}

fn rule(name: &str, held: Option<u64>) -> RuleOutcome {
    RuleOutcome { rule: name.into(), also: vec![], held, of: 16 }
}

/// Three bands at the four residues, as published for the zmm copy.
pub fn zmm() -> Verdict {
    let bands = vec![band(59.0, 59.0, &[0, 32]), band(79.7, 59.0, &[16]), band(86.2, 59.0, &[48])];
    Verdict {
        arm: "zmm".into(),
        verdict: Finding::Affected,
        effect_percent: Some(46.1),
        effect_low_percent: Some(45.2),
        effect_high_percent: Some(47.0),
        bands,
        rules: vec![rule("buf & 31 != 0", Some(16)), rule("buf & 63 != 0", Some(12))],
        ..blank()
    }
}

/// The same under the ymm copy: one band.
pub fn ymm() -> Verdict {
    Verdict {
        arm: "ymm".into(),
        bands: vec![band(59.0, 59.0, &[0, 16, 32, 48])],
        rules: vec![rule("buf & 31 != 0", None)],
        ..blank()
    }
}

/// Two slow placements in each page, 32 bytes apart.
pub fn page() -> Verdict {
    let fast: Vec<u64> = (0..256).map(|n| n * 16).filter(|r| ![4048, 4080].contains(r)).collect();
    let name = "32-byte half of a 64-byte object crosses a 4096-byte page";
    Verdict {
        grid: Some(Grid::Page),
        verdict: Finding::Affected,
        effect_percent: Some(65.1),
        effect_low_percent: Some(58.0),
        effect_high_percent: Some(66.1),
        bands: vec![band(59.1, 59.1, &fast), band(94.0, 59.1, &[4080]), band(97.6, 59.1, &[4048])],
        period_bytes: Some(4096),
        rules: vec![RuleOutcome { of: 512, ..rule(name, Some(512)) }],
        arm: "default".into(),
        ..blank()
    }
}

/// A copy of a copy, an exhibit.
pub fn copychain() -> Verdict {
    Verdict {
        workload: "copychain".into(),
        role: Role::Exhibit,
        arm: "default".into(),
        bands: vec![band(4.6, 4.6, &[0, 32]), band(8.4, 4.6, &[16, 48])],
        effect_percent: Some(82.6),
        effect_low_percent: Some(80.0),
        effect_high_percent: Some(85.0),
        ..zmm()
    }
}

/// A busy machine: the interval holds the smallest effect that counts.
pub fn inconclusive() -> Verdict {
    Verdict {
        workload: "crc32".into(),
        verdict: Finding::Inconclusive,
        effect_low_percent: Some(1.0),
        effect_high_percent: Some(6.0),
        effect_percent: Some(0.0),
        bands: vec![band(6.11, 6.11, &[0, 16, 32, 48])],
        reasons: vec![
            "visiting order predicts placement in 11 of 12 rounds; let the tool shuffle".into(),
        ],
        ..blank()
    }
}

/// One of each.
pub fn verdicts() -> Vec<Verdict> {
    vec![ymm(), copychain(), inconclusive(), zmm(), page()]
}
