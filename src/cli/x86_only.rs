//! What decodes x86-64 instructions, on a machine of another kind: refused in one line.

use std::ffi::OsString;

use super::{Exit, Output};
use crate::Failure;

/// Whatever was asked.
#[derive(clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<OsString>,
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn run(command: &str, _output: &mut Output) -> Result<Exit, Failure> {
    Err(Failure::new(
        format!("`{command}` decodes x86-64 instructions under Linux, and this is another machine"),
        format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "run it on an x86-64 Linux machine; `stackphase phase` measures here as well",
    ))
}

/// The explanation that ends a check: none here.
#[cfg(target_os = "linux")]
pub fn for_check(
    _verdicts: &[crate::analysis::Verdict],
    _cpu: Option<usize>,
    _seed: u64,
    _output: &Output,
) -> Option<serde_json::Value> {
    None
}
