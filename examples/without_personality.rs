//! Runs a command under a filter that refuses `personality`, as container runtimes do: randomisation
//! cannot be turned off there.
//!
//! ```text
//! without_personality stackphase pad --quick
//! ```

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;

    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: without_personality COMMAND [ARGUMENT...]");
        std::process::exit(2);
    };
    stackphase::sys::filter::refuse_personality()?;
    Err(std::process::Command::new(program).args(arguments).exec())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("only Linux has personalities");
}
