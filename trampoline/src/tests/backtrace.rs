//! An unwinder walks from the closure through the assembly to the caller and beyond.

use std::backtrace::Backtrace;

use crate::Alignment::{self, Line, Page};
use crate::call_at_shift;

#[inline(never)]
fn innermost_marker() -> String {
    std::hint::black_box(Backtrace::force_capture().to_string())
}

#[inline(never)]
fn calling_marker(alignment: Alignment, shift: usize) -> String {
    let trace = call_at_shift(alignment, shift, innermost_marker).unwrap();
    std::hint::black_box(trace)
}

/// Fails unless the names stand in the trace in this order.
fn assert_in_order(trace: &str, names: &[&str]) {
    let mut rest = trace;
    for name in names {
        let Some(at) = rest.find(name) else {
            panic!("{name} is missing, or not in its place, in\n{trace}");
        };
        rest = &rest[at + name.len()..];
    }
}

#[test]
fn a_backtrace_reaches_the_test() {
    for (alignment, shift) in [(Line, 0), (Line, 48), (Page, 0), (Page, 16), (Page, 8192)] {
        let trace = calling_marker(alignment, shift);
        assert_in_order(
            &trace,
            &[
                "innermost_marker",
                "stack_trampoline_v0_1_call",
                "call_at_shift",
                "calling_marker",
                "a_backtrace_reaches_the_test",
                // The thread's own start: the walk did not end early.
                "thread",
            ],
        );
    }
}

#[test]
fn a_backtrace_crosses_nested_calls() {
    let trace = call_at_shift(Page, 32, || calling_marker(Line, 16)).unwrap();
    let call = "stack_trampoline_v0_1_call";
    assert_in_order(
        &trace,
        &["innermost_marker", call, "calling_marker", call, "a_backtrace_crosses_nested_calls"],
    );
}

/// The unwinder that raises panics walks by the same tables, but stops at each call to ask for handlers.
#[test]
fn the_panic_hook_sees_the_caller() {
    // The hook is the process's: run in a process of its own, so that no other test meets it.
    if std::env::var_os("STACK_TRAMPOLINE_HOOK").is_some() {
        std::panic::set_hook(Box::new(|_| eprintln!("{}", Backtrace::force_capture())));
        let _ = std::panic::catch_unwind(|| call_at_shift(Page, 64, || panic!("within")));
        return;
    }
    let Ok(program) = std::env::current_exe() else {
        eprintln!("skipped: the test program's own path is not known");
        return;
    };
    let output = std::process::Command::new(program)
        .args(["--exact", "--nocapture", "tests::backtrace::the_panic_hook_sees_the_caller"])
        .env("STACK_TRAMPOLINE_HOOK", "1")
        .output();
    match output {
        Ok(output) if output.status.code() == Some(127) || cfg!(miri) => {
            eprintln!("skipped: this program cannot be started from here (emulation)");
        }
        Ok(output) => assert_in_order(
            &String::from_utf8_lossy(&output.stderr),
            &["stack_trampoline_v0_1_call", "the_panic_hook_sees_the_caller"],
        ),
        Err(error) => eprintln!("skipped: this program cannot be started from here: {error}"),
    }
}
