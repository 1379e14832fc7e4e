//! `pad` over foreign commands, as a person meets it: bands, bad input, interruption.
#![cfg(all(target_os = "linux", feature = "cli"))]

mod pad_common;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pad_common::*;

/// A command whose figure follows the phase of its stack, as the kernel gives it: four bands with a
/// period of 64 bytes, and a little noise.
const BANDED: &str =
    "set -- $(cat /proc/$$/stat); shift 27; echo t=$((6000 + $1 % 64 * 20 + $$ % 7)) ns";
/// A command whose figure follows nothing.
const LEVEL: &str = "echo t=$((6000 + $$ % 7)) ns";
const METRIC: &str = "t=([0-9.]+ ns)";

#[test]
fn bands_period_and_every_launch_are_found_by_what_the_command_prints() {
    let run = Run::new();
    let output = run.pad(&["--metric", METRIC, "--json", "--", "sh", "-c", BANDED]);
    let document = document(&output, 0);
    let verdict = &document["verdicts"][0];
    if document["randomisation"] != "proven-off" {
        eprintln!("skipped: randomisation is {} here", document["randomisation"]);
        return;
    }
    assert_eq!(document["schema"], "stackphase/verdict/1");
    assert_eq!(verdict["verdict"], "affected", "{verdict:#}");
    assert_eq!((&verdict["workload"], &verdict["placement"]), (&"command".into(), &"pad".into()));
    assert_eq!(verdict["period_bytes"], 64);
    assert_eq!(verdict["bands"].as_array().map(Vec::len), Some(4));
    let slowest = verdict["bands"][3]["percent_above_fast"].as_f64().expect("a number");
    assert!((slowest - 16.0).abs() < 0.5, "48 × 20 of 6000 is 16 %: {slowest}");
    assert_eq!(document["placed"][0]["held"], 108);
    // One row a launch, its value in the unit that was printed.
    let rows = run.rows();
    assert_eq!(rows.len(), 36 * 3);
    for row in &rows {
        assert_eq!((row["unit"].as_str(), row["ns_per_op"].as_str()), ("ns", ""), "{row:?}");
        assert_eq!(row["status"], "ok");
        // The phase in the row is the one that the command itself saw.
        let residue =
            u64::from_str_radix(row["sp"].trim_start_matches("0x"), 16).expect("hex") % 64;
        let value: u64 = row["value"].parse().expect("a number");
        assert_eq!((value - 6000) / 320 * 16, residue, "{row:?}");
    }
    let visited: BTreeSet<&str> = rows.iter().map(|row| row["placement_value"].as_str()).collect();
    assert_eq!(visited.len(), 36);
    let text = run.pad_text(&["--metric", METRIC, "--", "sh", "-c", BANDED]);
    assert!(text.contains("4 bands, a period of 64 bytes"), "{text}");
    assert!(text.contains("108 of 108 launches are in the band"), "{text}");
}

#[test]
fn a_level_command_is_clear_and_gates_by_itself() {
    let run = Run::new();
    let quick = ["--quick", "--gate", "--metric", METRIC, "--", "sh", "-c"];
    let output = run.pad(&[&quick[..], &[LEVEL]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text_of(&output));
    let run = Run::new();
    let output = run.pad(&[&quick[..], &[BANDED]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text_of(&output));
}

#[test]
fn wall_time_is_a_row_of_ns_per_op() {
    let run = Run::new();
    let output = run.pad(&["--quick", "--to", "60", "--json", "--", "sleep", "0.02"]);
    document(&output, 0);
    for row in run.rows() {
        let ns: f64 = row["ns_per_op"].parse().expect("a time");
        assert!((2e7..1e9).contains(&ns), "{row:?}");
        assert_eq!((row["iterations"].as_str(), row["value"].as_str()), ("1", ""));
    }
}

#[test]
fn random_paddings_give_the_average_over_layouts() {
    let run = Run::new();
    let args = ["--random", "48", "--seed", "3", "--metric", METRIC, "--json", "--"];
    let output = run.pad(&[&args[..], &["sh", "-c", BANDED]].concat());
    let average = &document(&output, 0)["averages"][0];
    let number = |name: &str| average[name].as_f64().expect("a number");
    // The mean over 0, 16, 32 and 48 times 20 is 480, and the noise has a mean of 3.
    let truth = 6000.0 + 480.0 + 3.0;
    assert_eq!(average["placements"], 48);
    assert!(number("low") < number("mean") && number("mean") < number("high"));
    // Three of the interval's halves: this must not fail by chance.
    let half = number("high") - number("mean");
    assert!((number("mean") - truth).abs() < 3.0 * half, "{average}");
}

#[test]
fn with_randomisation_each_launch_is_held_against_its_residue() {
    let run = Run::new();
    let args = ["--aslr-on", "--launches", "40", "--metric", METRIC, "--json", "--"];
    let output = run.pad(&[&args[..], &["sh", "-c", BANDED]].concat());
    let document = document(&output, 0);
    let starts: BTreeSet<String> = run.rows().iter().map(|row| row["sp"].clone()).collect();
    if starts.len() == 1 {
        eprintln!("skipped: randomisation is off for everything here");
        return;
    }
    let verdict = &document["verdicts"][0];
    assert_eq!((&verdict["placement"], &verdict["verdict"]), (&"aslr".into(), &"affected".into()));
    let placed = &document["placed"][0];
    assert_eq!((&placed["of"], &placed["held"]), (&40.into(), &40.into()), "{placed:#}");
    let launches = placed["launches"].as_array().expect("a list");
    assert!(launches.iter().all(|launch| launch["held"] == true));
    assert!(launches.iter().all(|launch| launch["residue"].is_u64()));
}

#[test]
fn the_two_other_axes_move_the_stack_too() {
    for (axis, first) in [("argv", 0), ("path", "/bin/sh".len() as i64)] {
        let run = Run::new();
        let args = ["--axis", axis, "--quick", "--to", "128", "--step", "16", "--metric", METRIC];
        let output = run.pad(&[&args[..], &["--json", "--", "/bin/sh", "-c", BANDED]].concat());
        let document = document(&output, 0);
        if document["randomisation"] == "on" {
            eprintln!("skipped: randomisation stays on here");
            return;
        }
        let mut rows = run.rows();
        rows.sort_by_key(|row| row["placement_value"].parse::<i64>().expect("a number"));
        let at = |row: &Row| u64::from_str_radix(&row["sp"][2..], 16).expect("hexadecimal");
        for (step, row) in rows.iter().enumerate() {
            assert_eq!(row["placement"], axis);
            assert_eq!(row["placement_value"], (first + 16 * step as i64).to_string());
            // The path also stands in the first argument only if the caller puts it there: here
            // the stack moves once by each byte.
            assert_eq!(at(&rows[0]) - at(row), 16 * step as u64, "{axis}: {row:?}");
        }
    }
}

#[test]
fn the_command_gets_its_own_environment_and_the_padding_or_the_padding_alone() {
    let script = "env | sort | cut -d= -f1 | tr '\\n' ' '; echo $PAD | wc -c; echo t=1";
    for (clean, expected) in [(true, false), (false, true)] {
        let run = Run::new();
        let keep = run.path("kept");
        let script = format!("{{ {script}; }} > {keep}; echo t=1");
        let mut args = vec!["--quick", "--from", "64", "--to", "64", "--metric", "t=(1)"];
        args.extend(clean.then_some("--clean-env"));
        args.extend(["--", "/bin/sh", "-c", &script]);
        let output = run.pad_with(&args, &[("MARKER", "here"), ("PAD", "old")]);
        assert!(output.status.success(), "{}", text_of(&output));
        let kept = std::fs::read_to_string(&keep).expect("was written");
        assert!(kept.contains("PAD"), "{kept}");
        assert_eq!(kept.contains("MARKER"), expected, "{kept}");
        assert!(kept.contains("65"), "64 bytes and a line feed: {kept}");
    }
}

#[test]
fn what_cannot_be_launched_is_found_before_anything_else() {
    let run = Run::new();
    let text = run.script("text", "echo no", 0o644);
    let shapeless = run.script("shapeless", "\u{1}\u{2}", 0o755);
    let lost = run.script("lost", "#!/nonexistent/interpreter\n", 0o755);
    for (command, says) in [
        ("no-such-command-at-all", "there is no such command: no-such-command-at-all; "),
        ("/nonexistent/tool", "there is no such command: /nonexistent/tool; "),
        (&text, "it is not executable: "),
        ("/tmp", "it is not executable (a directory): /tmp; "),
        (&shapeless, "it cannot be executed: Exec format error"),
        (&lost, "it cannot be executed: No such file or directory"),
    ] {
        let output = run.pad(&["--quick", "--", command]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{command}: {stderr}");
        assert!(stderr.starts_with(&format!("error: {says}")), "{command}: {stderr}");
        assert!(output.stdout.is_empty(), "{command}");
        assert!(!run.directory().exists(), "{command}: nothing was begun");
        let output = run.pad(&["--json", "--", command]);
        let error: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(error["schema"], "stackphase/error/1", "{command}");
    }
}

#[test]
fn mistakes_on_the_command_line_are_usage() {
    let bad: &[&[&str]] = &[
        &["--step", "0"],
        &["--from", "100", "--to", "50"],
        &["--to", "131068"],
        &["--axis", "path", "--to", "4096"],
        &["--axis", "heap"],
        &["--random", "1"],
        &["--random", "20", "--to", "10"],
        &["--random", "20", "--step", "4"],
        &["--aslr-on", "--to", "10"],
        &["--metric", "t=(.)"],
        &["--clean-env"],
        &["--timeout", "0", "--", "true"],
        &["--metric", "t=", "--", "true"],
        &["--metric", "(", "--", "true"],
        &["--higher-is-better", "--", "true"],
        &["--len", "0", "--workload", "memcpy"],
        &["--workload", "memcpy", "--", "true"],
        &["--", ""],
    ];
    for args in bad {
        let run = Run::new();
        let output = run.pad(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text_of(&output));
        assert!(!run.directory().exists(), "{args:?}");
    }
}

/// What must be said of launches of a command that goes wrong every time: one line for each, and
/// the end after three.
fn hopeless(args: &[&str], script: &str, says: &str) {
    let run = Run::new();
    let output = run.pad(&[args, &["--", "sh", "-c", script]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{script}: {stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 4, "{script}: {stderr}");
    for line in &lines[..3] {
        assert!(line.starts_with("warning: launch 0 at padding "), "{line}");
        assert!(line.contains(says), "{line}");
    }
    assert!(lines[3].starts_with("error: no launch of the command came to a figure: "), "{stderr}");
    let rows = run.rows();
    assert_eq!(rows.len(), 3, "what was launched is kept");
    assert!(rows.iter().all(|row| row["status"] == "failed" && row["value"].is_empty()));
    assert!(rows.iter().all(|row| row["ns_per_op"].is_empty()), "no zero stands for a figure");
}

#[test]
fn a_command_that_never_works_is_given_up_after_three_launches() {
    hopeless(&[], "echo broken >&2; exit 3", "it ended with status 3 (`broken`)");
    hopeless(&[], "kill -SEGV $$", "it was ended by SIGSEGV");
    hopeless(&["--metric", METRIC], "echo nothing", "no line that it printed matches");
    hopeless(&["--metric", METRIC], "echo t=1 ns; echo t=2 ns >&2", "matches the metric several");
    hopeless(&["--metric", "t=(.*)"], "echo t=fast", "`fast`, which is not a number above 0");
}

#[test]
fn a_hanging_command_is_ended_with_everything_it_started() {
    let marker = format!("7{}", std::process::id());
    let start = Instant::now();
    let script = format!("sleep {marker} & sleep {marker}");
    hopeless(&["--timeout", "0.3"], &script, "it did not end within 0.3 s");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(!running(&marker), "nothing of it is left");
}

#[test]
fn what_a_command_leaves_running_is_ended_and_told() {
    let marker = format!("8{}", std::process::id());
    // In its own group and out of it: a shell's background job, and a daemon.
    let job = format!("sleep {marker} >/dev/null 2>&1 &");
    hopeless(&[], &job, "it left a process running");
    // A daemon keeps what it was given open, too.
    let daemon = format!("setsid sleep {marker} & sleep 0.05");
    hopeless(&[], &daemon, "it left a process running");
    assert!(!running(&marker), "nothing of it is left");
}

#[test]
fn one_failure_in_ten_is_told_and_left_out() {
    let run = Run::new();
    let count = run.path("count");
    std::fs::write(&count, "0").expect("can be written");
    let script = format!(
        "n=$(($(cat {count}) + 1)); echo $n > {count}; [ $((n % 10)) != 5 ] || exit 9; {LEVEL}"
    );
    let args = ["--launches", "1", "--metric", METRIC, "--json", "--", "sh", "-c", &script];
    let output = run.pad(&args);
    let document = document(&output, 0);
    let failed = document["failed"].as_array().expect("a list");
    assert_eq!(failed.len(), 4, "launches 5, 15, 25 and 35 of 36");
    let stderr = String::from_utf8_lossy(&output.stderr);
    for failure in failed {
        let line = format!("launch 0 at padding {}: it ended with status 9", failure["placement"]);
        assert!(stderr.contains(&line), "{line} in {stderr}");
        assert_eq!(failure["why"], "it ended with status 9");
    }
    let rows = run.rows();
    assert_eq!(rows.iter().filter(|row| row["status"] == "ok").count(), 32);
    let verdict = &document["verdicts"][0];
    assert_eq!(verdict["verdict"], "clear", "{verdict:#}");
    assert!(verdict["reasons"].to_string().contains("4 of 36 launches failed"), "{verdict:#}");
}

#[test]
fn a_gigabyte_of_output_takes_no_memory() {
    let run = Run::new();
    let script = "head -c 500000000 /dev/zero; head -c 500000000 /dev/zero >&2; echo; echo t=5 ns";
    let program = env!("CARGO_BIN_EXE_stackphase");
    // Far below what it prints, and enough for the program itself.
    let limited = format!("ulimit -v 500000; exec {program} \"$@\"");
    let output = std::process::Command::new("sh")
        .args(["-c", &limited, "sh", "pad", "--quick", "--from", "0", "--to", "16", "--step", "16"])
        .args(["--metric", METRIC, "--json", "--out"])
        .arg(run.directory())
        .args(["--", "sh", "-c", script])
        .output()
        .expect("runs");
    document(&output, 0);
    assert!(run.rows().iter().all(|row| row["value"] == "5"), "{:?}", run.rows());
}

#[test]
fn a_change_of_unit_is_told() {
    let run = Run::new();
    let count = run.path("count");
    std::fs::write(&count, "0").expect("can be written");
    let script = format!(
        "n=$(($(cat {count}) + 1)); echo $n > {count}; \
         case $n in 3) echo t=5 apples;; 4) echo t=0.006 ms;; *) {LEVEL};; esac"
    );
    let args = ["--quick", "--to", "28", "--metric", "t=(.*)", "--json", "--", "sh", "-c", &script];
    let output = run.pad(&args);
    let document = document(&output, 0);
    assert_eq!(document["failed"][0]["why"], "the metric came in apples instead of ns");
    assert_eq!(document["failed"].as_array().map(Vec::len), Some(1), "ms are brought to ns");
}

#[test]
fn a_rate_is_better_when_it_is_larger() {
    let script = "set -- $(cat /proc/$$/stat); shift 27; echo r=$((6000 + $1 % 64 * 20 + $$ % 7))";
    for (metric, script, more) in [
        ("r=(.*)", format!("{script} MB/s"), None),
        ("r=(.*)", script.to_owned(), Some("--higher-is-better")),
    ] {
        let run = Run::new();
        let mut args = vec!["--quick", "--json", "--metric", metric];
        args.extend(more);
        args.extend(["--", "sh", "-c", &script]);
        let document = document(&run.pad(&args), 0);
        let bands = document["verdicts"][0]["bands"].as_array().expect("bands").clone();
        let first = bands[0]["ns_per_op"].as_f64().expect("a number");
        let last = bands[bands.len() - 1]["ns_per_op"].as_f64().expect("a number");
        assert!(bands.len() > 1 && first > last, "the best comes first: {bands:?}");
    }
}
