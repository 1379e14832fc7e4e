//! Generated verdicts for the tests of every format: the published figures of one Zen 5 (zmm and
//! ymm copies), a page band, an exhibit, and one that is not settled.

use std::path::Path;

use serde_json::{Value, json};

use crate::analysis::{
    Band, Finding, InstructionSource, InstructionsPerOp, RuleOutcome, Verdict, VerdictDocument,
};
use crate::sample::{Grid, Params, Placement, Role};

fn blank() -> Verdict {
    Verdict {
        launches: None,
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
        launches: None,
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
        launches: None,
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
        launches: None,
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
        launches: None,
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
        launches: None,
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

/// A run directory as stackphase leaves it, with samples that fit the verdicts: 3 launches of 12
/// rounds, noise of 0.1 %, and one disturbed block in fifty.
pub fn run_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fill(dir.path());
    dir
}

/// Writes the fixture's run into `directory`.
pub fn fill(directory: &Path) {
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("the fixture can be written");
    };
    let document = VerdictDocument::new(verdicts());
    write("verdict.json", &serde_json::to_string(&document).expect("verdicts are JSON"));
    write("machine.json", &machine().to_string());
    write("plan.json", &plan().to_string());
    write("controls.json", &controls().to_string());
    write("explanation.json", &explanation().to_string());
    write("forwarding.json", &forwarding().to_string());
    write("samples.csv", &samples(&verdicts()));
}

/// Leaves the fixture's run where the page is looked at in a browser.
#[test]
fn leave_a_run_for_the_browser() {
    if let Some(directory) = std::env::var_os("STACKPHASE_FIXTURE_DIR") {
        std::fs::create_dir_all(&directory).expect("the directory can be made");
        fill(Path::new(&directory));
    }
}

/// The samples of `verdicts`, generated from their bands.
fn samples(verdicts: &[Verdict]) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = crate::sample::COLUMNS.join(",") + "\n";
    for verdict in verdicts {
        let grid = verdict.grid.map_or("line", Grid::as_str);
        let (placements, period) = if grid == "page" { (512, 4096) } else { (16, 64) };
        for (launch, round, index) in (0..3)
            .flat_map(|l| (0..12).map(move |r| (l, r)))
            .flat_map(|(l, r)| (0..placements).map(move |i| (l, r, i)))
        {
            let shift = index * 16;
            let buf = 0x7fff_ffff_e000_u64 - shift;
            let band = verdict.bands.iter().find(|b| b.residues.contains(&(buf % period)));
            let Some(band) = band else { continue };
            let disturbed = random.u32(0..50) == 0;
            let slow = if disturbed { 1.3 + random.f64() } else { 1.0 };
            let ns = band.ns_per_op * slow * (1.0 + 0.002 * (random.f64() - 0.5));
            text.push_str(&format!(
                "{},{},64,{},,shift,{shift},{launch},{round},,,{buf:#x},,{},{},,,,,1,1000,{ns:.3},,,grid={grid},0.33,,{disturbed},ok\n",
                verdict.probe, verdict.workload, verdict.arm, buf % 64, buf % 32,
            ));
        }
    }
    text
}

/// A machine document.
pub fn machine() -> Value {
    json!({
        "schema": "stackphase/machine/1",
        "cpu": {"name": "AMD Ryzen AI MAX+ PRO 395", "vendor": "AuthenticAMD", "family": 26, "model": 112},
        "kernel": "Linux 6.18.0", "libc": {"name": "glibc", "version": "2.43", "build_id": "5f1e"},
        "copy_routine": {"store_bytes": [64, 64], "symbol": null, "file_offset": "0x18c5c0"},
        "warnings": ["the governor is powersave; stackphase machine --set governor=performance"],
    })
}

/// A plan with the command that made it.
pub fn plan() -> Value {
    json!({
        "schema": "stackphase/plan/1",
        "command_line": "stackphase check --seed 20260909 --cpu 8",
        "seed": 20_260_909, "launches": 3, "rounds": 12,
    })
}

/// Controls as `check` runs them.
pub fn controls() -> Value {
    json!({
        "schema": "stackphase/controls/1",
        "null": [{"workload": "registers", "verdict": "clear", "effect_high_percent": 0.2}],
        "sensitivity": {"stall": "8-byte stores, 16-byte load", "ns": 6.5, "against_ns": 4.3, "passed": true},
    })
}

/// An explanation with its instruction pairs.
pub fn explanation() -> Value {
    json!({
        "schema": "stackphase/explain/1",
        "sentences": ["Four 16-byte loads read back what two 64-byte stores wrote."],
        "pairs": [{"relation": "contained", "store_bytes": 64, "load_bytes": 16, "offset": 16,
            "residues": [16, 48], "store": "vmovdqu64 [rdi],zmm16", "load": "movups xmm0,[rsp+40h]"}],
        "agreement": {"sets": true, "order": true},
    })
}

/// A small forwarding map by the published rule.
pub fn forwarding() -> Value {
    let cells: Vec<Value> = [0, 16, 32, 48]
        .iter()
        .flat_map(|residue| (0..=48).step_by(4).map(move |offset| (*residue, offset)))
        .map(|(residue, offset)| {
            let blocked = residue % 32 != 0;
            json!({
                "store_bytes": 64, "load_bytes": 16, "offset": offset, "residue": residue,
                "crosses": null, "form": "chained", "ns": if blocked { 7.8 } else { 4.6 },
                "spread_percent": 0.4, "class": if blocked { "blocked" } else { "forwards" },
            })
        })
        .collect();
    json!({
        "schema": "stackphase/forwarding/1", "cells": cells,
        "rules": ["a 16-byte load from a 64-byte store is blocked when the store is not 32-byte aligned"],
    })
}
