//! The recorded data sets are judged as their README says.

use std::process::Command;

use serde_json::Value;

fn verdicts(file: &str) -> Vec<Value> {
    let path = format!("{}/sweeps/{file}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(["analyze", "--json", &path])
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    document["verdicts"].as_array().expect("a list").clone()
}

fn of<'a>(verdicts: &'a [Value], arm: &str) -> &'a Value {
    verdicts.iter().find(|verdict| verdict["arm"] == arm).expect("the arm is judged")
}

/// Percent above the fast band, band by band, and the rule that holds everywhere.
fn bands(verdict: &Value) -> (Vec<f64>, bool) {
    let above = |band: &Value| band["percent_above_fast"].as_f64().expect("a number");
    let list = verdict["bands"].as_array().expect("bands").iter().map(above).collect();
    let rules = verdict["rules"].as_array().expect("rules");
    let rule = |rule: &Value| rule["rule"] == "buf & 31 != 0" && rule["held"] == rule["of"];
    (list, rules.iter().any(rule))
}

#[test]
fn the_published_copies_are_banded_under_zmm_and_level_under_ymm() {
    let verdicts = verdicts("published/copies.csv");
    let zmm = of(&verdicts, "zmm");
    assert_eq!(zmm["verdict"], "affected");
    let (above, rule) = bands(zmm);
    assert!((34.0..36.0).contains(&above[1]) && (44.5..47.0).contains(&above[2]), "{above:?}");
    assert!(rule);
    assert_eq!(of(&verdicts, "ymm")["verdict"], "clear");
}

#[test]
fn the_published_fix_removes_bands_of_43_and_35_percent() {
    let verdicts = verdicts("published/verification.csv");
    let baseline = of(&verdicts, "baseline");
    assert_eq!(baseline["verdict"], "affected");
    let (above, rule) = bands(baseline);
    assert!((34.0..35.5).contains(&above[1]) && (42.0..44.0).contains(&above[2]), "{above:?}");
    assert!(rule);
    assert_eq!(of(&verdicts, "candidate")["verdict"], "clear");
}

#[test]
fn the_published_paddings_are_all_in_the_band_that_their_residue_predicts() {
    let verdicts = verdicts("published/padding.csv");
    let sweep = of(&verdicts, "default");
    assert_eq!((&sweep["verdict"], &sweep["launches"]["held"]), (&"affected".into(), &36.into()));
    assert!(bands(sweep).1);
}

#[test]
fn the_recorded_page_grid_has_its_band_and_the_line_grids_have_none() {
    let folder = "2026-12-01-amd-epyc-family-23-model-1";
    let line = verdicts(&format!("{folder}/line.csv"));
    assert!(line.len() > 6 && line.iter().all(|verdict| verdict["verdict"] == "clear"));
    let page = verdicts(&format!("{folder}/page.csv"));
    let blake3 = of(&page, "default");
    assert_eq!((&blake3["verdict"], &blake3["period_bytes"]), (&"affected".into(), &4096.into()));
    let effect = blake3["effect_percent"].as_f64().expect("a number");
    assert!((5.0..7.5).contains(&effect), "{effect}");
}
