//! `stackphase writer` as a person meets it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod refusals;

use std::process::{Command, Output};

use serde_json::Value;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackphase"));
    command.args(args);
    command
}

fn stackphase(args: &[&str]) -> Output {
    command(args).output().expect("runs")
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}

/// Whether there are watchpoints here; the reason is printed where there are none.
fn proven() -> bool {
    match stackphase::sys::breakpoint::prove() {
        Ok(()) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

/// A C program of known stores; `None` without a compiler.
fn program(folder: &tempfile::TempDir) -> Option<String> {
    let (source, binary) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(
        &source,
        "volatile int counter;\n\
         __attribute__((noinline)) void fill(char *p) { *(volatile long *)p = 7; \
         *(volatile short *)p = 3; *(volatile char *)(p + 1) = 1; (void)*(volatile int *)p; }\n\
         __attribute__((noinline)) void die(char *p) { *(volatile char *)p = 1; __builtin_trap(); }\n\
         __attribute__((noinline)) void nothing(void *p) { __asm__ volatile(\"\" :: \"r\"(p)); }\n\
         int main(int n, char **v) { char b[64]; nothing(0); counter = 5; counter += n; \
         fill(b); if (n > 1) die(b); return 0; }\n",
    )
    .expect("written");
    let built = Command::new("cc")
        .args(["-O1", "-no-pie", "-o"])
        .args([&binary, &source])
        .status()
        .is_ok_and(|status| status.success());
    if !built {
        eprintln!("skipped: no C compiler");
        return None;
    }
    Some(binary.to_str().expect("text").to_owned())
}

fn document(args: &[&str]) -> Value {
    let output = stackphase(args);
    assert_eq!(output.status.code(), Some(0), "{}", error_of(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["schema"], "stackphase/writer/1");
    document
}

fn widths(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().map(|a| a["bytes"].as_u64().unwrap_or(0)).collect()
}

#[test]
fn a_workloads_buffer_is_written_by_the_c_librarys_copy() {
    if !proven() {
        return;
    }
    let document = document(&["writer", "--workload", "copychain", "--reads", "--json"]);
    let writes = document["writes"].as_array().expect("writes");
    assert!((1..=2).contains(&writes.len()), "{document:#}");
    assert!(writes.iter().all(|write| {
        write["file"].as_str().is_some_and(|file| file.contains("libc"))
            && write["file_offset"].as_str().is_some_and(|offset| offset.starts_with("0x"))
            && write["build_id"].is_string()
            && write["text"].as_str().is_some_and(|text| text.contains("mov"))
    }));
    assert!(!widths(&document["reads"]).is_empty());
    let plain = document_without_reads();
    assert_eq!(plain["reads"], Value::Null);
}

fn document_without_reads() -> Value {
    document(&["writer", "--workload", "copychain", "--json"])
}

#[test]
fn every_store_of_a_program_is_named_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(&folder).filter(|_| proven()) else { return };
    let found = document(&[
        "writer",
        "--json",
        "--reads",
        "--function",
        "fill",
        "--arg-pointer",
        "1",
        "--",
        &program,
    ]);
    // The third store leaves the first byte out.
    assert_eq!(widths(&found["writes"]), [8, 2], "{found:#}");
    assert_eq!(widths(&found["reads"]), [4]);
    assert!(found["writes"].as_array().is_some_and(|w| w.iter().all(|w| w["symbol"] == "fill")));
    assert_eq!(found["partial"], serde_json::json!([]));
}

#[test]
fn a_programs_own_data_is_watched_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(&folder).filter(|_| proven()) else { return };
    let Ok(table) = Command::new("nm").arg(&program).output() else {
        eprintln!("skipped: no nm");
        return;
    };
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    let line = table.lines().find(|line| line.ends_with(" counter")).expect("a symbol");
    let address = format!("0x{}", line.split(' ').next().expect("an address"));
    let found = document(&["writer", "--json", "--address", &address, "--", &program]);
    assert_eq!(widths(&found["writes"]), [4, 4], "{found:#}");
    assert!(found["writes"].as_array().is_some_and(|w| w.iter().all(|w| w["symbol"] == "main")));
}

#[test]
fn a_program_that_dies_in_the_call_leaves_what_was_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(&folder).filter(|_| proven()) else { return };
    let found = document(&[
        "writer",
        "--json",
        "--function",
        "die",
        "--arg-pointer",
        "1",
        "--",
        &program,
        "more",
    ]);
    assert_eq!(widths(&found["writes"]), [1]);
    let partial = found["partial"][0].as_str().expect("a reason");
    assert!(partial.contains("was killed by SIGILL before the call returned"), "{partial}");
}

#[test]
fn each_mistake_has_its_own_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program(&folder).filter(|_| proven()) else { return };
    let with = |options: &[&str]| {
        let mut args = vec!["writer"];
        args.extend(options);
        args.extend(["--", &program]);
        stackphase(&args)
    };
    for (options, status, words) in [
        (&["--function", "no_such", "--arg-pointer", "1"][..], 1, "no function `no_such`"),
        (&["--function", "nothing", "--arg-pointer", "1"], 1, "is 0x0, which points to nothing"),
        (&["--function", "fill", "--arg-pointer", "1", "--call", "9"], 1, "was called 1 times"),
        (&["--address", "0x10"], 1, "no data at 0x10"),
        (&["--address", "main"], 2, "no address"),
        (&[], 2, "nothing to watch"),
    ] {
        let output = with(options);
        assert_eq!(output.status.code(), Some(status), "{options:?}: {}", error_of(&output));
        assert!(error_of(&output).contains(words), "{options:?}: {}", error_of(&output));
        assert!(output.stdout.is_empty());
    }
    for (args, status) in [
        (&["writer", "--function", "main"][..], 2),
        (&["writer", "--workload", "memcpy", "--len", "0"], 2),
        (&["writer", "--workload", "memcpy", "--shift", "7"], 2),
        (&["writer", "--workload", "registers", "--len", "0"], 1),
        (&["writer", "--function", "main", "--arg-pointer", "1", "--", "/nonexistent"], 1),
        (&["writer", "--function", "main", "--arg-pointer", "7", "--", "/bin/true"], 2),
    ] {
        assert_eq!(stackphase(args).status.code(), Some(status), "{args:?}");
    }
}

#[test]
fn an_empty_program_is_no_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("empty");
    std::fs::write(&path, "").expect("written");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("mode set");
    let path = path.to_str().expect("text");
    for args in [
        &["writer", "--function", "main", "--arg-pointer", "1", "--", path][..],
        &["trace", "--function", "main", "--", path],
    ] {
        let output = stackphase(args);
        assert_eq!(output.status.code(), Some(1), "{}", error_of(&output));
        assert!(error_of(&output).contains("an empty file"), "{}", error_of(&output));
    }
}

#[test]
fn what_the_kernel_withholds_is_said_with_its_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    if !proven() {
        return;
    }
    let refused = |args: &[&str], call, words: &str| {
        let mut command = command(args);
        refusals::withhold(&mut command, call);
        let Ok(output) = command.output() else {
            eprintln!("skipped: no seccomp filter can be set here");
            return;
        };
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", error_of(&output));
        assert!(error_of(&output).contains(words), "{args:?}: {}", error_of(&output));
    };
    refused(&["writer"], libc::SYS_perf_event_open, "perf_event_open is forbidden");
    refused(&["trace", "--workload", "memcpy"], libc::SYS_ptrace, "forbids tracing");
    refused(&["explain", "--predict"], libc::SYS_ptrace, "forbids tracing");
    if let Some(program) = program(&folder) {
        let watch = ["writer", "--function", "fill", "--arg-pointer", "1", "--", &program];
        refused(&watch, libc::SYS_ptrace, "forbids tracing");
        refused(&["trace", "--function", "fill", "--", &program], libc::SYS_ptrace, "--cap-add");
    }
}
