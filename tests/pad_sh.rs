//! `pad.sh` as a person uses it by hand.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

use stackphase::placement::ProcessStack;

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pad.sh").display().to_string()
}

fn run(args: &[&str]) -> Output {
    Command::new(script()).args(args).output().expect("the script can be started")
}

fn stdout(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("is text")
}

#[test]
fn the_only_variable_is_pad_of_the_length_asked() {
    for (asked, bytes) in [("0", 0), ("1", 1), ("007", 7), ("140", 140), ("131067", 131_067)] {
        assert_eq!(stdout(&[asked, "env"]), format!("PAD={}\n", "x".repeat(bytes)), "{asked}");
    }
}

#[test]
fn arguments_and_status_are_the_commands_own() {
    assert_eq!(stdout(&["4", "printf", "<%s>", "a b", "", "*", "$HOME"]), "<a b><><*><$HOME>");
    assert_eq!(run(&["4", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(run(&["4", "/nonexistent/command"]).status.code(), Some(127));
}

#[test]
fn what_cannot_be_is_usage_on_stderr() {
    let bad: &[&[&str]] = &[
        &[],
        &["5"],
        &["-1", "env"],
        &["x", "env"],
        &["1.5", "env"],
        &["", "env"],
        &["5 ", "env"],
        &["131068", "env"],
        &["99999999999999999999", "env"],
        &["5", ""],
        &["5", "a=b"],
        &["env", "5"],
    ];
    for args in bad {
        let output = run(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(stderr.contains("usage: pad.sh N COMMAND"), "{args:?}: {stderr}");
    }
}

/// The stack's start and the heap's start of a program under `setarch -R` and the script.
fn layout(padding: usize) -> Option<(u64, u64)> {
    let output = Command::new("setarch")
        .args(["-R", &script(), &padding.to_string(), "cat", "/proc/self/stat"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
    // Field 47 of proc_pid_stat(5), of which the first here is field 3: `start_brk`.
    let heap = fields.get(44)?.parse().ok().filter(|heap| *heap > 0)?;
    Some((ProcessStack::parse(&text)?.start, heap))
}

#[test]
fn the_stack_moves_by_the_padding_and_the_heap_does_not() {
    let (Some((first, heap)), Some(again)) = (layout(0), layout(0)) else {
        eprintln!("skipped: setarch -R is refused here, or /proc hides addresses");
        return;
    };
    if again != (first, heap) {
        eprintln!("skipped: address-space randomisation stays on here");
        return;
    }
    for padding in (0..=8192).step_by(112) {
        assert_eq!(layout(padding), Some((first - padding as u64, heap)), "padding {padding}");
    }
    // Within sixteen bytes it moves once, by sixteen: the kernel keeps the stack 16-aligned.
    let starts: Vec<u64> = (0..=16).filter_map(|padding| Some(layout(padding)?.0)).collect();
    assert_eq!((starts.len(), starts[16]), (17, first - 16));
    assert_eq!(starts.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1, "{starts:x?}");
}
