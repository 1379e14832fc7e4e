//! `pad` over its own workloads, over commands as they are found on a machine, and what is kept of a
//! run: where the stack is, what may be posted, how a stopped run goes on.
#![cfg(all(target_os = "linux", feature = "cli"))]

mod pad_common;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pad_common::*;

/// Probe, workload, arm, placement value, launch and round of every row: what resuming must keep.
fn keys(rows: &[Row]) -> BTreeSet<Vec<&str>> {
    let names = ["probe", "workload", "arm", "placement_value", "launch", "round"];
    rows.iter().map(|row| names.iter().map(|name| row[*name].as_str()).collect()).collect()
}

fn address(row: &Row, column: &str) -> u64 {
    u64::from_str_radix(row[column].trim_start_matches("0x"), 16).expect("hexadecimal")
}

#[test]
fn the_stack_moves_by_the_padding_over_two_pages_and_the_heap_stays() {
    let run = Run::new();
    let args = [
        "--to",
        "8192",
        "--step",
        "128",
        "--launches",
        "1",
        "--rounds",
        "1",
        "--workload",
        "memcpy",
        "--json",
    ];
    let document = document(&run.pad(&args), 0);
    let mut rows = run.rows();
    if document["randomisation"] == "on" {
        eprintln!("skipped: randomisation stays on here");
        return;
    }
    rows.sort_by_key(|row| row["placement_value"].parse::<u64>().expect("a number"));
    let first = rows[0].clone();
    assert_eq!(first["placement_value"], "0");
    for row in &rows {
        let padding: u64 = row["placement_value"].parse().expect("a number");
        assert_eq!(address(&first, "sp") - address(row, "sp"), padding, "{row:?}");
        assert_eq!(address(&first, "buf") - address(row, "buf"), padding, "{row:?}");
        assert_eq!(address(&first, "src"), address(row, "src"), "the heap does not move");
        assert_eq!(first["text_mod64"], row["text_mod64"]);
        assert_eq!(row["env_bytes"], (padding + 5).to_string(), "PAD alone");
    }
    assert!(rows.len() >= 65, "two pages: {}", rows.len());
}

#[test]
fn within_sixteen_bytes_the_stack_moves_once() {
    let run = Run::new();
    let args = ["--to", "32", "--step", "1", "--launches", "1", "--rounds", "1", "--json"];
    let document = document(&run.pad(&[&args[..], &["--workload", "registers"]].concat()), 0);
    if document["randomisation"] == "on" {
        eprintln!("skipped: randomisation stays on here");
        return;
    }
    let mut rows = run.rows();
    rows.sort_by_key(|row| row["placement_value"].parse::<u64>().expect("a number"));
    rows.dedup_by_key(|row| row["placement_value"].clone());
    let moves: Vec<u64> = rows
        .windows(2)
        .map(|pair| address(&pair[0], "sp") - address(&pair[1], "sp"))
        .filter(|moved| *moved != 0)
        .collect();
    assert_eq!((rows.len(), moves), (33, vec![16, 16]));
}

#[test]
fn each_launch_is_a_process_that_times_in_rounds() {
    let run = Run::new();
    let args = ["--to", "12", "--launches", "2", "--rounds", "3", "--workload", "copychain"];
    let output = run.pad(&[&args[..], &["--workload", "registers", "--json"]].concat());
    let document = document(&output, 0);
    let names: Vec<&str> = document["verdicts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|verdict| verdict["workload"].as_str())
        .collect();
    assert_eq!(names, ["copychain", "registers"]);
    let rows = run.rows();
    let of = |workload: &'static str| rows.iter().filter(move |row| row["workload"] == workload);
    let launches: BTreeSet<(&str, &str)> = of("copychain")
        .map(|row| (row["placement_value"].as_str(), row["launch"].as_str()))
        .collect();
    assert_eq!(launches.len(), 4 * 2);
    for (padding, launch) in launches {
        let rounds: BTreeSet<&str> = of("copychain")
            .filter(|row| row["placement_value"] == padding && row["launch"] == launch)
            .map(|row| row["round"].as_str())
            .collect();
        assert!(rounds.is_superset(&["0", "1", "2"].into()), "{padding} {launch}: {rounds:?}");
    }
    assert!(rows.iter().all(|row| row["placement"] == "pad" && row["probe"] == "pad"));
    let heap = &document["controls"][0];
    assert_eq!((&heap["residue_of"], &heap["verdict"]), (&"heap_mod64".into(), &"clear".into()));
}

#[test]
fn under_randomisation_own_launches_are_numbered_through() {
    let run = Run::new();
    let args = ["--aslr-on", "--launches", "6", "--rounds", "2", "--workload", "memcpy", "--json"];
    document(&run.pad(&args), 0);
    let rows = run.rows();
    let launches: BTreeSet<&str> = rows.iter().map(|row| row["launch"].as_str()).collect();
    assert_eq!(launches.len(), 6);
    for row in &rows {
        assert_eq!(row["placement"], "aslr");
        let value: u64 = row["placement_value"].parse().expect("a number");
        assert!(value < 8192 && value.is_multiple_of(16), "{row:?}");
    }
}

#[test]
fn unpinned_launches_are_an_arm_with_a_factor() {
    let run = Run::new();
    let args = ["--to", "28", "--launches", "1", "--rounds", "2", "--unpinned", "--json"];
    let document = document(&run.pad(&[&args[..], &["--workload", "registers"]].concat()), 0);
    let arms: BTreeSet<String> = run.rows().iter().map(|row| row["arm"].clone()).collect();
    assert_eq!(arms, ["pinned".to_owned(), "unpinned".to_owned()].into());
    let factor = &document["factors"][0];
    assert_eq!((&factor["arm"], &factor["over"]), (&"unpinned".into(), &"pinned".into()));
    let number = |name: &str| factor[name].as_f64().expect("a number");
    assert!(number("low") <= number("factor") && number("factor") <= number("high"), "{factor}");
    assert!((0.2..5.0).contains(&number("factor")), "{factor}");
}

#[test]
fn a_plan_is_printed_and_nothing_is_begun() {
    let run = Run::new();
    let output = run.pad(&["--plan", "--seed", "9", "--", "sh", "-c", "secret-argument"]);
    let plan = document(&output, 0);
    assert_eq!(plan["schema"], "stackphase/plan/1");
    assert_eq!(plan["plan"]["paddings"].as_array().map(Vec::len), Some(36));
    assert_eq!((&plan["plan"]["launches"], &plan["plan"]["seed"]), (&3.into(), &9.into()));
    assert!(!plan.to_string().contains("secret-argument"), "{plan}");
    assert!(!run.directory().exists());
}

#[test]
fn what_may_be_posted_holds_no_argument_unless_asked() {
    for (keep, kept) in [(None, false), (Some("--no-redact"), true)] {
        let run = Run::new();
        let mut args = vec!["--quick", "--to", "12"];
        args.extend(keep);
        args.extend(["--", "sh", "-c", "echo token=hunter2 >&2; [ $PAD ]"]);
        let output = run.pad(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // The launch without padding fails, and a person at the terminal may know why.
        assert!(stderr.contains("at padding 0: it ended with status 1 (`token=hunter2`)"));
        for entry in std::fs::read_dir(run.directory()).expect("is there").flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let plan = entry.file_name() == "plan.json";
            assert_eq!(text.contains("hunter2"), kept && plan, "{:?}", entry.path());
        }
    }
}

/// Starts `pad`, stops it by a signal when some rows are kept, and returns its status.
fn stopped_by(run: &Run, signal: &str, args: &[&str]) -> (Option<i32>, String) {
    let child =
        run.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let start = Instant::now();
    let samples = run.directory().join("samples.csv");
    let lines = || std::fs::read_to_string(&samples).map_or(0, |text| text.lines().count());
    while lines() < 5 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let asked = Instant::now();
    let pid = child.id().to_string();
    Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status().expect("runs");
    let output = child.wait_with_output().expect("ends");
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_stopped_sweep_of_a_command_goes_on_where_it_was() {
    let command = ["--", "sh", "-c", "sleep 0.05"];
    let options = ["--launches", "1", "--to", "60", "--seed", "5"];
    let whole = Run::new();
    document(&whole.pad(&[&options[..], &["--json"], &command].concat()), 0);
    for (signal, status) in [("INT", 130), ("TERM", 143)] {
        let run = Run::new();
        let (code, stderr) = stopped_by(&run, signal, &[&options[..], &command].concat());
        assert_eq!(code, Some(status), "{stderr}");
        assert!(stderr.contains("go on with --resume"), "{stderr}");
        let kept = run.rows();
        assert!((3..16).contains(&kept.len()), "{}", kept.len());
        let resume = |more: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_stackphase"))
                .args(["pad", "--json", "--resume"])
                .arg(run.directory())
                .args(more)
                .output()
                .expect("runs")
        };
        // The arguments were not kept.
        assert_eq!(resume(&[]).status.code(), Some(2));
        assert_eq!(resume(&["--", "sleep", "1"]).status.code(), Some(2));
        document(&resume(&command), 0);
        let rows = run.rows();
        assert_eq!(rows[..kept.len()], kept[..], "what was kept stays as it was");
        assert_eq!(keys(&rows), keys(&whole.rows()));
    }
}

#[test]
fn a_stopped_sweep_of_own_workloads_goes_on_where_it_was() {
    let options = ["--launches", "2", "--rounds", "40", "--workload", "memcpy", "--len", "4096"];
    let run = Run::new();
    let (code, stderr) = stopped_by(&run, "INT", &options);
    assert_eq!(code, Some(130), "{stderr}");
    let kept = run.rows();
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(["pad", "--json", "--resume"])
        .arg(run.directory())
        .output()
        .expect("runs");
    document(&output, 0);
    let rows = run.rows();
    assert_eq!(rows[..kept.len()], kept[..]);
    let (whole, planned) = (keys(&rows), 36 * 2 * 40);
    // Rounds that were repeated come on top.
    assert!(whole.len() >= planned && whole.len() <= 36 * 2 * 43, "{}", whole.len());
    let first = |key: &&Vec<&str>| key[5].parse::<u32>().is_ok_and(|round| round < 40);
    assert_eq!(whole.iter().filter(first).count(), planned);
}

#[test]
fn where_personality_is_refused_the_phase_is_read_back() {
    let Some(filter) = example("without_personality") else {
        eprintln!("skipped: the example without_personality was not built");
        return;
    };
    let through = |args: &[&str], run: &Run| {
        let program = env!("CARGO_BIN_EXE_stackphase");
        let output = Command::new(&filter)
            .arg(program)
            .args(["pad", "--json", "--out"])
            .arg(run.directory())
            .args(args)
            .output()
            .expect("runs");
        if output.status.code() == Some(1) && output.stdout.is_empty() {
            eprintln!("skipped: filters are refused here: {}", text_of(&output));
            return None;
        }
        Some(output)
    };
    let own = ["--quick", "--to", "60", "--workload", "registers"];
    let command = ["--quick", "--to", "60", "--", "sh", "-c", ":"];
    for args in [&own[..], &command] {
        let run = Run::new();
        let Some(output) = through(args, &run) else { return };
        let document = document(&output, 0);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if document["randomisation"] != "on" {
            eprintln!("skipped: randomisation is off for everything here");
            return;
        }
        assert!(stderr.contains("could not be turned off"), "{stderr}");
        // Every launch is somewhere else, and where it was is in its row.
        let starts: BTreeSet<String> = run.rows().iter().map(|row| row["sp"].clone()).collect();
        assert!(starts.len() > 8, "{starts:?}");
    }
}

#[test]
fn a_program_with_threads_is_told_apart() {
    let Some(program) = example("phase_sensitive") else {
        eprintln!("skipped: the example phase_sensitive was not built");
        return;
    };
    let run = Run::new();
    // A metric of its own: that of the program would follow whatever this machine does meanwhile.
    let script = "\"$0\" --thread --rounds 200000 > /dev/null; echo t=5 ns";
    let args = ["--quick", "--metric", "t=(.*)", "--json", "--", "sh", "-c", script, &program];
    let document = document(&run.pad(&args), 0);
    assert_eq!(document["threads"]["threads"], 1, "{:#}", document["threads"]);
    let verdict = &document["verdicts"][0];
    assert_eq!(verdict["verdict"], "inconclusive");
    let reason = verdict["reasons"][0].as_str().expect("a reason");
    assert!(reason.starts_with("this axis does not move thread stacks"), "{reason}");
    assert!(reason.contains("call_at_shift"), "{reason}");
    // Without threads there is nothing to tell.
    let run = Run::new();
    let script = "\"$0\" --rounds 200000 > /dev/null; echo t=5 ns";
    let args = ["--quick", "--metric", "t=(.*)", "--json", "--", "sh", "-c", script, &program];
    let document = pad_common::document(&run.pad(&args), 0);
    assert!(document["threads"].is_null(), "{:#}", document["threads"]);
    // On a busy machine every launch may be disturbed, and then nothing is clear.
    assert_ne!(document["verdicts"][0]["verdict"], "affected");
}

/// A command as it is found on the machine, in one short launch.
fn works(metric: Option<&str>, command: &[&str]) {
    let found = Command::new("sh").args(["-c", &format!("command -v {}", command[0])]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {} is not installed", command[0]);
        return;
    }
    let run = Run::new();
    let mut args = vec!["--launches", "1", "--from", "16", "--to", "16", "--json"];
    args.extend(metric.iter().flat_map(|metric| ["--metric", *metric]));
    args.push("--");
    args.extend(command);
    document(&run.pad(&args), 0);
    let rows = run.rows();
    assert_eq!(rows.len(), 1);
    for row in &rows {
        assert_eq!(row["status"], "ok", "{command:?}: {row:?}");
        let figure = if metric.is_some() { &row["value"] } else { &row["ns_per_op"] };
        assert!(figure.parse::<f64>().is_ok_and(|figure| figure > 0.0), "{command:?}: {row:?}");
        assert!(!row["sp"].is_empty() || !row["env_bytes"].is_empty(), "{command:?}: {row:?}");
    }
}

#[test]
fn openssl_as_it_is() {
    let command = ["openssl", "speed", "-seconds", "1", "-bytes", "64", "sha256"];
    works(Some(r"^sha256\s+([0-9.]+k)$"), &command);
}

#[test]
fn zstd_as_it_is() {
    works(Some(r"\),\s+([0-9.]+ MB/s)"), &["zstd", "-b1", "-i1"]);
}

#[test]
fn xxhsum_as_it_is() {
    works(Some(r"XXH32 .*\(\s*([0-9.]+ MB/s)\)"), &["xxhsum", "-b1", "-i1"]);
}

#[test]
fn python_as_it_is() {
    let line = "import time; t = time.perf_counter(); sum(range(10**6)); \
                print('took', (time.perf_counter() - t) * 1e3, 'ms')";
    works(Some(r"took ([0-9.]+ ms)"), &["python3", "-c", line]);
}

#[test]
fn a_shell_script_that_starts_children_as_it_is() {
    works(None, &["sh", "-c", "for i in 1 2 3; do sleep 0.01 & done; wait; ls / | sort | tail -1"]);
}
