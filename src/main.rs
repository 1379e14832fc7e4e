//! The `stackphase` binary: parse, run, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    stackphase::cli::main(std::env::args_os())
}
