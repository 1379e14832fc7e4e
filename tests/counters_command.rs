//! The `counters` command as a person and as a script see it.
#![cfg(all(target_os = "linux", feature = "cli"))]

use assert_cmd::Command;
use serde_json::Value;

const NAMES: [&str; 8] = [
    "instructions",
    "cycles",
    "store_forward_failures",
    "store_forwards",
    "address_aliases",
    "split_loads",
    "split_stores",
    "store_queue_stalls",
];

fn counters() -> Command {
    let mut command = Command::cargo_bin("stackphase").expect("is built");
    command.arg("counters");
    command
}

fn json(args: &[&str]) -> Value {
    let output = counters().arg("--json").args(args).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("is one document")
}

#[test]
fn every_counter_is_proven_or_absent_with_reason_and_remedy() {
    let document = json(&[]);
    assert_eq!(document["schema"], "stackphase/counters/1");
    let counters = document["counters"].as_array().expect("is a list");
    let names: Vec<&str> = counters.iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, NAMES);
    for counter in counters {
        if counter["proven"] == true {
            assert!(counter["raw"].is_string() && counter["unavailable"].is_null());
        } else {
            assert!(counter["unavailable"].as_str().is_some_and(|why| !why.is_empty()));
            assert!(counter["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()));
            assert!(counter["proven"].is_null());
        }
    }
}

#[test]
fn the_text_names_each_counter_and_ends_each_absence_in_a_remedy() {
    let output = counters().output().expect("runs");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("is text");
    for name in NAMES {
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(text.matches("absent: ").count(), text.matches("remedy: ").count(), "{text}");
    assert!(text.contains("counted by the kernel, without the processor's counters"));
}

#[test]
fn an_event_of_the_users_joins_the_table() {
    // Only x86-64 encodings have a unit mask.
    let x86 = cfg!(target_arch = "x86_64");
    let event = if x86 { "mine=cpu/event=0x24,umask=0x02/" } else { "mine=r0224" };
    let document = json(&["--event", event]);
    let counters = document["counters"].as_array().expect("is a list");
    let mine = counters.last().expect("is not empty");
    assert_eq!((mine["name"].as_str(), mine["raw"].as_str()), (Some("mine"), Some("r0224")));
}

#[test]
fn a_mistaken_event_is_a_usage_error_that_says_what_to_write() {
    let output = counters().args(["--event", "mine=0224"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("write r0224"), "{text}");
    let output =
        counters().args(["--event", "a=r1", "--event", "a=r2", "--json"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&output.stdout).expect("is one document");
    assert_eq!(document["what"], "two events are called a");
}

#[test]
fn the_plan_is_the_perf_command() {
    let output = counters().args(["--plan", "--event", "mine=r0224"]).output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("is text");
    assert!(text.starts_with("perf stat -e '{"), "{text}");
    assert!(text.contains("name=mine/u") && text.trim_end().ends_with("-- COMMAND"), "{text}");
    let document = json(&["--plan"]);
    assert_eq!(document["schema"], "stackphase/plan/1");
    assert!(document["perf"][0].as_str().is_some_and(|perf| perf.starts_with("perf stat")));
}

#[test]
fn a_processor_that_is_not_there_is_refused() {
    let output = counters().args(["--cpu", "99999"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("99999"), "{text}");
}
