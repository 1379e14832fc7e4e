//! `stackphase explain` and `stackphase trace --workload` as a person meets them.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn stackphase(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stackphase")).args(args).output().expect("runs")
}

fn document(args: &[&str]) -> Value {
    let output = stackphase(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
    serde_json::from_slice(&output.stdout).expect("one document")
}

fn path(folder: &Path, name: &str, document: &Value) -> String {
    let path = folder.join(name);
    std::fs::write(&path, document.to_string()).expect("written");
    path.to_str().expect("text").to_owned()
}

/// Loads of any width from stores of 32 bytes or more, blocked unless the store is 32-aligned.
fn map_by_hand() -> Value {
    let mut cells = Vec::new();
    for store in [8u16, 16, 32, 64] {
        for load in [4u8, 8, 16, 32, 64] {
            for offset in (0..store).step_by(4) {
                for residue in (0..64u16).step_by(8) {
                    let blocked = store >= 32 && load >= 16 && residue % 32 != 0;
                    cells.push(json!({"store_bytes": store, "load_bytes": load, "offset": offset,
                        "residue": residue, "crosses": null, "form": "chained", "ns": 5.0,
                        "spread_percent": 0.4,
                        "class": if blocked { "blocked" } else { "forwards" }}));
                }
            }
        }
    }
    json!({"schema": "stackphase/forwarding/1", "cells": cells, "rules": []})
}

/// A verdict over the sixteen shifts in which those of `slow` are.
fn verdict(workload: &str, slow: impl Fn(i64) -> bool) -> Value {
    let shifts =
        |wanted: bool| (0..256).step_by(16).filter(|s| slow(*s) == wanted).collect::<Vec<i64>>();
    let mut bands = vec![json!({"ns_per_op": 5.0, "percent_above_fast": 0.0, "residues": [],
        "placements": shifts(false)})];
    if !shifts(true).is_empty() {
        bands.push(json!({"ns_per_op": 9.0, "percent_above_fast": 80.0, "residues": [],
            "placements": shifts(true)}));
    }
    json!({"schema": "stackphase/verdict/1", "verdicts": [{"probe": "phase", "workload": workload,
        "role": "exhibit", "len": 64, "arm": "default", "routine": null, "placement": "shift",
        "grid": "line", "verdict": if bands.len() > 1 { "affected" } else { "clear" },
        "effect_percent": 80.0, "effect_low_percent": 70.0, "effect_high_percent": 90.0,
        "min_effect_percent": 2.0, "bands": bands, "period_bytes": 64,
        "residues_visited": [0, 16, 32, 48], "rules": [], "interval_method": "by hand",
        "instructions_per_op": null, "reasons": []}]})
}

/// Whether copies store 32 bytes at once here, so that the rule by hand speaks of them.
fn wide_copies() -> bool {
    let trace = document(&["trace", "--workload", "copychain", "--json"]);
    let wide = trace["pairs"].as_array().is_some_and(|pairs| {
        pairs.iter().any(|pair| pair["store_bytes"].as_u64().is_some_and(|bytes| bytes >= 32))
    });
    if !wide {
        eprintln!("skipped: the copy routine here stores fewer than 32 bytes at once");
    }
    wide
}

fn ptrace_is_allowed() -> bool {
    let output = stackphase(&["trace", "--workload", "memcpy"]);
    let allowed = output.status.success();
    if !allowed {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    allowed
}

#[test]
fn one_operation_is_traced_alike_at_every_shift() {
    if !ptrace_is_allowed() {
        return;
    }
    let at = |shift: &str| {
        document(&["trace", "--workload", "blake3", "--len", "64", "--shift", shift, "--json"])
    };
    let (zero, other) = (at("0"), at("3296"));
    assert_eq!(zero["schema"], "stackphase/trace/1");
    assert_eq!((&zero["workload"], &zero["len"]), (&json!("blake3"), &json!(64)));
    assert_eq!(zero["instructions"], other["instructions"]);
    assert_eq!(zero["partial"], json!([]));
    let kinds = |document: &Value| {
        let pairs = document["pairs"].as_array().expect("pairs");
        let kind = |p: &Value| format!("{}{}{}", p["store_bytes"], p["load_bytes"], p["relation"]);
        pairs.iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&zero), kinds(&other));
    assert!(zero["pairs"].as_array().is_some_and(|pairs| pairs.len() > 4));
}

#[test]
fn a_map_by_hand_is_checked_against_verdicts_by_hand() {
    if !ptrace_is_allowed() || !wide_copies() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let map = path(folder.path(), "map.json", &map_by_hand());
    let explain = |verdict: &str| {
        let args = ["explain", "--workload", "copychain", "--map", &map, "--verdict", verdict];
        document(&[&args[..], &["--json"]].concat())
    };
    let nothing = document(&["explain", "--workload", "copychain", "--map", &map, "--json"]);
    assert_eq!(nothing["schema"], "stackphase/explanation/1");
    assert_eq!(nothing["agreement"][0]["conclusion"], "not measured");
    let slow = nothing["groups"].as_array().expect("groups").last().expect("one").clone();
    assert_eq!(slow["residues"], json!([16, 48]), "{nothing:#}");
    assert!(slow["blocked"].as_u64().is_some_and(|blocked| blocked > 0));
    // Which shifts give those residues is the build's affair.
    let odd = slow["placements"][0].as_i64().expect("a shift") % 32;
    let right = path(folder.path(), "right.json", &verdict("copychain", |s| s % 32 == odd));
    let found = explain(&right);
    assert_eq!(found["agreement"][0]["conclusion"], "agrees", "{found:#}");
    assert_eq!(found["groups"].as_array().map(Vec::len), Some(2));
    assert!(found["hints"].to_string().contains("align the buffer to 32 bytes"), "{found:#}");

    let level = path(folder.path(), "level.json", &verdict("copychain", |_| false));
    let found = explain(&level);
    assert_eq!(found["agreement"][0]["conclusion"], "sets differ");
    assert_eq!(found["agreement"][0]["not_seen"].as_array().map(Vec::len), Some(8));

    let wrong = path(folder.path(), "wrong.json", &verdict("copychain", |s| s % 32 != odd));
    let found = explain(&wrong);
    assert_eq!(found["agreement"][0]["unexplained"].as_array().map(Vec::len), Some(8));
    // A verdict about something else is no measurement of this.
    let foreign = path(folder.path(), "foreign.json", &verdict("memcpy", |_| false));
    assert_eq!(explain(&foreign)["agreement"][0]["conclusion"], "not measured");
}

#[test]
fn the_text_names_pairs_with_their_functions() {
    if !ptrace_is_allowed() || !wide_copies() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let map = path(folder.path(), "map.json", &map_by_hand());
    let output = stackphase(&["explain", "--workload", "copychain", "--map", &map]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("copychain: "), "{text}");
    for words in ["held up at some placements", "store ", "load ", "not measured", "hint: "] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn files_that_are_something_else_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = path(folder.path(), "other.json", &json!({"schema": "stackphase/trace/1"}));
    let nothing = path(folder.path(), "nothing.json", &json!(""));
    let missing = folder.path().join("missing.json");
    let missing = missing.to_str().expect("text");
    let empty = folder.path().to_str().expect("text");
    for (option, file, words) in [
        ("--map", other.as_str(), "has the schema `stackphase/trace/1`"),
        ("--map", nothing.as_str(), "give a document with the schema"),
        ("--map", missing, "missing.json"),
        ("--verdict", other.as_str(), "no verdict document"),
        ("--verdict", missing, "cannot read it"),
        ("--verdict", empty, "verdict.json"),
    ] {
        let output = stackphase(&["explain", option, file]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{option} {file}: {error}");
        assert!(error.contains(words) && error.lines().count() == 1, "{option} {file}: {error}");
    }
    for args in [
        &["explain", "--workload", "nonsense"][..],
        &["explain", "--workload", "memcpy", "--len", "0"],
        &["trace", "--workload", "memcpy", "--shift", "8"],
        &["trace", "--workload", "memcpy", "--function", "main"],
        &["trace", "--shift", "16", "--function", "main", "--", "/bin/true"],
    ] {
        assert_eq!(stackphase(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_call_that_is_too_long_is_said_to_be() {
    if !ptrace_is_allowed() {
        return;
    }
    let args = ["trace", "--workload", "blake3", "--len", "4096", "--max-steps", "100"];
    let output = stackphase(&args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("more than 100 steps") && error.contains("--max-steps"), "{error}");
}
