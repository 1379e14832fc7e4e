//! `check` and `phase` as a person meets them: bad input, one document, a killed run that goes on.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn stackphase(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stackphase")).args(args).output().expect("runs")
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts")
}

/// The status, and the only line on stderr.
fn refusal(args: &[&str]) -> (Option<i32>, String) {
    let output = stackphase(args);
    assert!(output.stdout.is_empty(), "{args:?}: a refusal is no result");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(!text.contains("panicked"), "{args:?}: {text}");
    (output.status.code(), text)
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

/// Column, workload, arm, placement value, launch and round of every row.
fn keys(directory: &Path) -> BTreeSet<Vec<String>> {
    let mut reader = csv::Reader::from_path(directory.join("samples.csv")).expect("is there");
    let headers = reader.headers().expect("a header").clone();
    let names = ["workload", "arm", "params", "placement_value", "launch", "round"];
    let at = names.map(|name| headers.iter().position(|h| h == name).expect("a column"));
    reader
        .records()
        .filter_map(Result::ok)
        .filter(|row| row.len() == headers.len())
        .map(|row| at.iter().map(|&at| row[at].to_owned()).collect())
        .collect()
}

#[test]
fn check_is_one_document_with_controls_and_verdicts() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("run");
    let out = out.to_str().expect("text");
    let args = ["check", "--json", "--quick", "--rounds", "1", "--launches", "1", "--out", out];
    let output = stackphase(&args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let check = document(&output);
    assert_eq!(check["schema"], "stackphase/check/1");
    assert_eq!(check["machine"]["schema"], "stackphase/machine/1");
    assert_eq!(check["controls"]["schema"], "stackphase/controls/1");
    let grids: BTreeSet<(&str, &str, &str)> = check["verdicts"]
        .as_array()
        .expect("verdicts")
        .iter()
        .map(|v| {
            // The padding sweep has no grid.
            let text = |name: &str| v[name].as_str().unwrap_or_default();
            (text("workload"), text("arm"), text("grid"))
        })
        .collect();
    for wanted in [
        ("blake3", "default", "line"),
        ("blake3", "default", "page"),
        ("copychain", "default", "line"),
        ("copychain", "store-only", "line"),
        ("roundtrip", "realigned", "line"),
        ("registers", "default", "line"),
        ("blake3", "default", ""),
    ] {
        assert!(grids.contains(&wanted), "{wanted:?} in {grids:?}");
    }
    for file in
        ["plan.json", "machine.json", "verdict.json", "controls.json", "report.md", "report.html"]
    {
        assert!(Path::new(out).join(file).is_file(), "{file}");
    }
    // Every shift of both grids was visited, and the buffer moved with it.
    let rows = keys(Path::new(out));
    let of = |workload: &str| rows.iter().filter(|row| row[0] == workload).count();
    assert!(of("blake3") >= 16 + 512, "{}", of("blake3"));
}

#[test]
fn what_cannot_be_is_one_line_that_says_what_mends_it() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let file = file.path().to_str().expect("text");
    let below_a_file = format!("{file}/run");
    for (args, status, parts) in [
        (&["phase", "--workload", "blake4"][..], 2, &["blake4", "blake3"][..]),
        (&["phase", "--workload", "roundtrip", "--len", "32"], 2, &["from 64 to 64"]),
        (&["phase", "--frame-offset", "16"], 2, &["0 and 15"]),
        (&["phase", "--cpu", "99999"], 2, &["99999", "choose one of"]),
        (&["check", "--cpu", "99999"], 2, &["99999", "choose one of"]),
        (&["pad", "--realtime", "--", "true"], 2, &["--realtime", "chrt -f 1"]),
        (&["check", "--rounds", "0"], 2, &["--rounds"]),
        (&["check", "--launches", "-1"], 2, &["-1"]),
        (&["check", "--out", &below_a_file], 1, &[file]),
        (&["check", "--resume", "/nonexistent/run"], 2, &["/nonexistent/run"]),
        (&["check", "--gate-on", "blake3"], 2, &["--gate"]),
        (&["phase", "--resume", "a", "--out", "b"], 2, &["--out"]),
    ] {
        let (code, text) = refusal(args);
        assert_eq!(code, Some(status), "{args:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{args:?} does not name {part}: {text}");
        }
    }
}

#[test]
fn under_json_a_refusal_is_a_document_too() {
    let output = stackphase(&["check", "--json", "--cpu", "99999"]);
    assert_eq!(output.status.code(), Some(2));
    let error = document(&output);
    assert_eq!(error["schema"], "stackphase/error/1");
    for member in ["what", "where", "remedy"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    }
}

#[test]
fn a_directory_is_never_overwritten() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("run");
    let out = out.to_str().expect("text");
    let args =
        ["phase", "--workload", "registers", "--rounds", "1", "--launches", "1", "--out", out];
    assert_eq!(stackphase(&args).status.code(), Some(0));
    let before = std::fs::read(Path::new(out).join("samples.csv")).expect("is there");
    let (code, text) = refusal(&args);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains(out) && text.contains("--resume"), "{text}");
    assert_eq!(std::fs::read(Path::new(out).join("samples.csv")).expect("still"), before);
}

#[test]
fn a_plan_is_printed_and_nothing_is_made() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("run");
    let out = out.to_str().expect("text");
    for command in ["check", "phase"] {
        let output = stackphase(&[command, "--plan", "--out", out]);
        assert_eq!(output.status.code(), Some(0));
        let plan = document(&output);
        assert_eq!(plan["schema"], "stackphase/plan/1");
        assert!(plan["plan"]["seed"].is_u64() || plan["plan"]["phase"]["seed"].is_u64());
        assert!(!Path::new(out).exists(), "{command} --plan made {out}");
    }
}

/// Waits until the run has `rows` rows; the child is then in the middle of its work.
fn wait_for_rows(directory: &Path, rows: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let count = || {
        let text = std::fs::read(directory.join("samples.csv")).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    };
    while count() <= rows {
        assert!(Instant::now() < deadline, "no {rows} rows within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_run_keeps_its_rows_and_ends_with_the_same_keys() {
    let home = tempfile::tempdir().expect("a folder");
    let whole = home.path().join("whole");
    let killed = home.path().join("killed");
    let base = [
        "phase",
        "--workload",
        "copychain",
        "--page",
        "--rounds",
        "2",
        "--launches",
        "2",
        "--seed",
        "7",
    ];
    let with = |out: &Path| -> Vec<String> {
        let out = out.to_str().expect("text");
        base.iter().map(|word| (*word).to_owned()).chain(["--out".into(), out.into()]).collect()
    };
    let run = |args: &[String]| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        stackphase(&args)
    };
    assert_eq!(run(&with(&whole)).status.code(), Some(0));
    for rows in [1, 700, 1500] {
        let _ = std::fs::remove_dir_all(&killed);
        let args = with(&killed);
        let mut child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        wait_for_rows(&killed, rows);
        child.kill().expect("SIGKILL");
        child.wait().expect("ended");
        let kept = keys(&killed);
        assert!(kept.len() + 1 >= rows, "{} rows of {rows} kept", kept.len());
        let resumed = stackphase(&["phase", "--resume", killed.to_str().expect("text")]);
        assert_eq!(resumed.status.code(), Some(0), "{}", String::from_utf8_lossy(&resumed.stderr));
        let (resumed, undisturbed) = (keys(&killed), keys(&whole));
        assert!(resumed.is_superset(&kept), "what was kept was lost");
        // Rounds beyond the planned ones make up for disturbed blocks: those differ by chance.
        let planned = |keys: BTreeSet<Vec<String>>| -> BTreeSet<Vec<String>> {
            keys.into_iter()
                .filter(|key| key[5].parse::<u32>().is_ok_and(|round| round < 2))
                .collect()
        };
        assert_eq!(planned(resumed), planned(undisturbed), "killed after {rows} rows");
    }
}

#[test]
fn a_stop_is_orderly_and_says_how_to_go_on() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let home = tempfile::tempdir().expect("a folder");
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let out = home.path().join(signal.as_str());
        let path = out.to_str().expect("text");
        let args = ["phase", "--page", "--rounds", "200", "--out", path];
        let child = start(&args);
        wait_for_rows(&out, 20);
        let asked = Instant::now();
        kill(Pid::from_raw(i32::try_from(child.id()).expect("fits")), signal).expect("sent");
        let output = child.wait_with_output().expect("ended");
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert_eq!(output.status.code(), Some(status));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("--resume") && text.contains(path), "{text}");
        assert!(keys(&out).len() >= 20);
    }
}

#[test]
fn a_gate_that_nothing_answers_is_inconclusive() {
    let home = tempfile::tempdir().expect("a folder");
    let out = home.path().join("run");
    let out = out.to_str().expect("text");
    let args = [
        "phase",
        "--workload",
        "registers",
        "--rounds",
        "1",
        "--launches",
        "1",
        "--gate",
        "--out",
        out,
    ];
    assert_eq!(stackphase(&args).status.code(), Some(4), "no subject was measured");
}
