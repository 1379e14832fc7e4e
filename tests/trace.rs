//! `stackphase trace` over a program whose pairs are known: one function a kind of access.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

/// The program of known accesses. Test targets that are built alone do not build examples.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let binary = Path::new(env!("CARGO_BIN_EXE_stackphase"));
        let folder = binary.parent().expect("a folder");
        let path = folder.join("examples/access_kinds");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--example", "access_kinds"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success());
        path
    })
}

/// What this processor can run of it.
fn runnable(kind: &str) -> bool {
    let list = Command::new(program()).arg("--list").output().expect("runs");
    let list = String::from_utf8(list.stdout).expect("text");
    let can = list.lines().any(|known| known == kind);
    if !can {
        eprintln!("skipped: this processor lacks what `{kind}` needs");
    }
    can
}

fn stackphase(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stackphase")).args(args).output().expect("runs")
}

/// Traces `kind_KIND`, called after `before`; status must be 0.
fn trace_after(kind: &str, before: &[&str], options: &[&str]) -> Value {
    let function = format!("kind_{kind}");
    let program = program().to_str().expect("a path of text");
    let mut args = vec!["trace", "--json", "--function", &function];
    args.extend(options);
    args.extend(["--", program]);
    args.extend(before);
    args.push(kind);
    let output = stackphase(&args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{kind}: {error}");
    // The program's own output is not on stdout.
    assert!(error.contains("calling "), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["schema"], "stackphase/trace/1");
    document
}

/// `relation store→load@offset ×count`, sorted; `s` after a width marks a string element.
fn pairs(document: &Value) -> Vec<String> {
    let string = |site: &Value| if site["string"] == true { "s" } else { "" };
    let mut pairs: Vec<String> = document["pairs"]
        .as_array()
        .expect("pairs")
        .iter()
        .map(|pair| {
            format!(
                "{} {}{}→{}{}@{} ×{}",
                pair["relation"].as_str().expect("a relation"),
                pair["store_bytes"],
                string(&pair["stores"][0]),
                pair["load_bytes"],
                string(&pair["load"]),
                pair["offset"],
                pair["count"],
            )
        })
        .collect();
    pairs.sort();
    pairs
}

/// Kind, instructions, and its pairs.
const EXPECTED: &[(&str, u64, &[&str])] = &[
    ("whole", 4, &["contained 8→8@0 ×1"]),
    ("inner", 4, &["contained 8→1@3 ×1"]),
    ("two_halves", 5, &["spans 4→8@-4 ×1"]),
    ("older_bytes", 4, &["partial 4→8@-4 ×1"]),
    ("overlapping_stores", 6, &["contained 16→16@0 ×1", "spans 16→16@-4 ×1"]),
    ("page_crossing", 4, &["contained 16→8@4 ×1"]),
    ("push_pop", 3, &["contained 8→8@0 ×1"]),
    ("call_return", 3, &["contained 8→8@0 ×1"]),
    ("push_from_memory", 5, &["contained 8→8@0 ×1", "contained 8→8@0 ×1"]),
    ("pop_to_stack", 5, &["contained 8→8@0 ×1", "contained 8→8@0 ×1"]),
    ("frame", 5, &["contained 8→8@0 ×1"]),
    ("flags", 3, &["contained 8→8@0 ×1"]),
    ("read_modify_write", 18, &["contained 8→8@0 ×4"]),
    ("exchange", 6, &["contained 8→8@0 ×1", "contained 8→8@0 ×1", "contained 8→8@0 ×1"]),
    ("bit_string", 5, &["contained 8→8@0 ×1"]),
    ("thread_local", 5, &["contained 8→8@0 ×1"]),
    ("string_copy", 6, &["spans 1s→16@-15 ×1"]),
    ("string_fill", 5, &["spans 8s→16@-8 ×1"]),
    ("string_nothing", 6, &["contained 8→8@0 ×1"]),
    ("string_load", 4, &["contained 8→4s@0 ×1"]),
    (
        "string_compare",
        7,
        &[
            "contained 2→1s@0 ×1",
            "contained 2→1s@0 ×1",
            "contained 2→1s@1 ×1",
            "contained 2→1s@1 ×1",
        ],
    ),
    ("x87", 6, &["contained 10→10@0 ×1"]),
    ("saved_state", 5, &[]),
    ("conditional_move", 5, &["contained 8→8@0 ×1"]),
    ("no_access", 6, &[]),
    ("masked_bytes", 7, &["contained 16→1@1 ×1", "partial 16→2@2 ×1"]),
    ("wide", 4, &["contained 32→16@8 ×1"]),
    ("masked_store", 7, &["contained 16→4@0 ×1", "partial 16→8@8 ×1"]),
    ("masked_load", 7, &["partial 4→16@0 ×1", "spans 4→16@-8 ×1"]),
    ("gather", 7, &["contained 4→4@0 ×1", "contained 8→4@0 ×1"]),
    ("copy_of_copy", 5, &["contained 64→16@24 ×1"]),
    ("opmask_store", 8, &["contained 64→4@0 ×1", "partial 64→8@8 ×1"]),
    ("opmask_load", 6, &["contained 8→64@0 ×1"]),
    ("scatter", 7, &["spans 4→8@-4 ×1"]),
    ("compress", 6, &["contained 8→8@0 ×1"]),
    ("kernel_between", 6, &["contained 8→8@0 ×1"]),
    ("kernel_writes", 7, &[]),
    ("kernel_fills", 9, &["partial 8→8@0 ×1"]),
    // The handler and the return from it are five instructions of the thread.
    ("signal_arrives", 14, &["contained 8→8@0 ×1"]),
];

#[test]
fn every_kind_of_access_has_exactly_its_pairs() {
    for (kind, instructions, expected) in EXPECTED {
        if !runnable(kind) {
            continue;
        }
        let document = trace_after(kind, &[], &[]);
        assert_eq!(pairs(&document), *expected, "{kind}: {document:#}");
        assert_eq!(document["instructions"], *instructions, "{kind}");
        assert_eq!(document["partial"], serde_json::json!([]), "{kind}");
    }
}

#[test]
fn every_kind_is_tested() {
    let special = ["undecodable", "crashes", "jumps_away", "exits", "forks", "endless"];
    let list = Command::new(program()).arg("--list").output().expect("runs");
    for kind in String::from_utf8(list.stdout).expect("text").lines() {
        assert!(
            EXPECTED.iter().any(|(known, ..)| *known == kind) || special.contains(&kind),
            "{kind}"
        );
    }
}

#[test]
fn names_instruction_symbol_and_address() {
    let document = trace_after("two_halves", &[], &[]);
    let pair = &document["pairs"][0];
    assert_eq!(pair["stores"].as_array().map(Vec::len), Some(2));
    assert_eq!(pair["stores"][0]["text"], "mov [rdi+4], eax");
    assert_eq!(pair["stores"][1]["text"], "mov [rdi], eax");
    assert_eq!(pair["load"]["text"], "mov rcx, [rdi]");
    assert_eq!(pair["load"]["symbol"], "kind_two_halves");
    assert_eq!(pair["residues"], serde_json::json!([4]));
    assert_eq!(pair["distance"], 1);
    let number = |site: &Value, field: &str| {
        let text = site[field].as_str().expect("text");
        u64::from_str_radix(text.strip_prefix("0x").expect("hexadecimal"), 16).expect("a number")
    };
    let (store, load) = (&pair["stores"][0], &pair["load"]);
    assert_eq!(number(load, "address") + 4, number(store, "address"));
    assert_eq!(number(store, "address") % 64, 4);
    assert!(number(store, "ip") < number(load, "ip"));
}

#[test]
fn the_window_decides_what_is_a_pair() {
    let near = trace_after("kernel_between", &[], &["--window", "3"]);
    assert_eq!(pairs(&near).len(), 1);
    let far = trace_after("kernel_between", &[], &["--window", "2"]);
    assert_eq!(pairs(&far).len(), 0);
}

#[test]
fn a_later_call_can_be_chosen() {
    // Its argument list calls it three times.
    let document = trace_after("whole", &["whole", "whole"], &["--call", "3"]);
    assert_eq!(document["instructions"], 4);
    let output = stackphase(&[
        "trace",
        "--function",
        "kind_whole",
        "--call",
        "2",
        "--",
        program().to_str().expect("text"),
        "whole",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("called 1 times before the program exited with status 0"), "{error}");
}

#[test]
fn an_address_will_do() {
    let table = Command::new("nm").arg(program()).output();
    let Ok(table) = table else {
        eprintln!("skipped: no nm");
        return;
    };
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    let line = table.lines().find(|line| line.ends_with(" kind_inner")).expect("a symbol");
    let address = format!("0x{}", line.split(' ').next().expect("an address"));
    for address in [address.clone(), format!("access_kinds+{address}")] {
        let path = program().to_str().expect("text");
        let output = stackphase(&["trace", "--json", "--address", &address, "--", path, "inner"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(pairs(&document), ["contained 8→1@3 ×1"]);
    }
}

#[test]
fn a_function_of_a_library_is_traced_in_the_code_that_was_chosen() {
    let path = program().to_str().expect("text");
    let output = stackphase(&["trace", "--json", "--function", "memcpy", "--", path, "whole"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert!(document["instructions"].as_u64().is_some_and(|n| n > 2), "{document}");
}

#[test]
fn events_are_lines_and_the_document_is_the_last() {
    let path = program().to_str().expect("text");
    let output = stackphase(&[
        "trace",
        "--events",
        "--function",
        "kind_string_copy",
        "--",
        path,
        "string_copy",
    ]);
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (document, events) = lines.split_last().expect("lines");
    assert_eq!(document["schema"], "stackphase/trace/1");
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    // Sixteen elements are read and written; one wide load, one return.
    assert_eq!((of("store"), of("load")), (16, 18));
    assert!(events.iter().filter(|event| event["string"] == true).count() == 32);
    assert_eq!(events[0]["symbol"], "kind_string_copy");
    assert_eq!(events[0]["bytes"], 1);
}

#[test]
fn what_ends_a_call_early_is_said_and_the_rest_is_kept() {
    let cases: [(&str, &str, usize); 6] = [
        ("undecodable", "cannot be decoded (06 ", 1),
        ("crashes", "was killed by SIGSEGV before the call returned", 1),
        ("exits", "exited with status 7 before the call returned", 0),
        ("forks", "1 child processes were started, and are not followed", 0),
        ("jumps_away", "jumped to 0x0", 0),
        ("endless", "stopped after 1000 steps", 0),
    ];
    for (kind, reason, least) in cases {
        let document = trace_after(kind, &[], &["--max-steps", "1000"]);
        let partial = document["partial"].as_array().expect("reasons");
        assert!(
            partial.iter().any(|p| p.as_str().is_some_and(|p| p.contains(reason))),
            "{document:#}"
        );
        assert!(pairs(&document).len() >= least, "{kind}");
    }
}

#[test]
fn threads_and_children_do_not_disturb_and_are_mentioned() {
    let document = trace_after("whole", &["--thread"], &[]);
    assert_eq!(pairs(&document), ["contained 8→8@0 ×1"]);
    assert!(document["partial"][0].as_str().is_some_and(|p| p.contains("other threads ran")));
    // In a thread other than the first.
    let document = trace_after("two_halves", &["--in-thread"], &[]);
    assert_eq!(pairs(&document), ["spans 4→8@-4 ×1"]);
    // A child before the call runs as ever, and the call is whole.
    let document = trace_after("whole", &["--child"], &[]);
    assert_eq!(document["partial"], serde_json::json!([]));
}

/// Runs a trace that must fail with status 1 and one line that holds all of `words`.
fn refused(function: &str, command: &[&str], words: &[&str]) {
    let mut args = vec!["trace", "--function", function, "--"];
    args.extend(command);
    let output = stackphase(&args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let line = error.lines().last().expect("a line");
    for word in words {
        assert!(line.starts_with("error: ") && line.contains(word), "{word}: {line}");
    }
    assert!(output.stdout.is_empty());
    args.insert(1, "--json");
    let document: Value = serde_json::from_slice(&stackphase(&args).stdout).expect("a document");
    assert_eq!(document["schema"], "stackphase/error/1");
}

#[test]
fn each_bad_program_has_its_own_line() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8], mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("mode set");
        path.to_str().expect("text").to_owned()
    };
    let path = program().to_str().expect("text");
    refused("nothing_is_called_so", &[path], &["no function `nothing_is_called_so`", "nm -C"]);
    refused("kind_whole", &[path], &["called 0 times before the program exited with status 0"]);
    refused("main", &["/nonexistent/program"], &["no such program", "/nonexistent/program"]);
    refused("main", &["no-such-program-in-the-path"], &["no such program"]);
    refused("main", &[&file("plain", b"#!/bin/sh\n", 0o644)], &["not executable", "chmod"]);
    refused("main", &["/"], &["not executable"]);
    refused("main", &[&file("garbage", b"\x7fGARBAGE and more of it", 0o755)], &["not executable"]);
    let mut arm = vec![0u8; 64];
    arm[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\x00");
    arm[18] = 183;
    refused("main", &[&file("arm", &arm, 0o755)], &["64-bit Arm"]);
    let mut small = arm.clone();
    (small[4], small[18]) = (1, 3);
    refused("main", &[&file("small", &small, 0o755)], &["32-bit x86"]);
    // A script: what runs is its interpreter.
    let script = file("script", b"#!/bin/sh\nexit 0\n", 0o755);
    refused("no_such_function", &[&script], &["is what runs"]);
}

#[test]
fn a_set_uid_program_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("set-uid");
    std::fs::copy(program(), &path).expect("copied");
    if let Err(error) = chown(&path, Some(12345), None) {
        eprintln!("skipped: cannot give a file away: {error}");
        return;
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4755)).expect("mode set");
    refused("kind_whole", &[path.to_str().expect("text"), "whole"], &["set-uid", "copy"]);
}

#[test]
fn a_statically_linked_program_is_traced_and_its_chosen_functions_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("program.c");
    let binary = folder.path().join("program");
    std::fs::write(
        &source,
        "#include <string.h>\n\
         __attribute__((noinline)) long work(volatile long *p) { *p = 7; return *p; }\n\
         int main(int n, char **v) { long x; char b[64]; memcpy(b, v[0], n); \
         return work(&x) == 7 ? b[0] & 0 : 1; }\n",
    )
    .expect("written");
    let mut build = Command::new("cc");
    build.args(["-static", "-O1", "-o"]).arg(&binary).arg(&source);
    if !build.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler with a static C library");
        return;
    }
    let path = binary.to_str().expect("text");
    let output = stackphase(&["trace", "--json", "--function", "work", "--", path]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(pairs(&document), ["contained 8→8@0 ×1"]);
    refused("memcpy", &[path], &["chosen at start by a statically linked program"]);
}

#[test]
fn a_mistake_on_the_command_line_is_usage() {
    for args in [
        &["trace", "--", "/bin/true"][..],
        &["trace", "--function", "main"],
        &["trace", "--address", "main", "--", "/bin/true"],
        &["trace", "--function", "main", "--call", "0", "--", "/bin/true"],
    ] {
        assert_eq!(stackphase(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn two_traces_are_the_same() {
    let one = trace_after("overlapping_stores", &[], &[]);
    let two = trace_after("overlapping_stores", &[], &[]);
    assert_eq!(one, two);
}
