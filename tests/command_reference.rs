//! `docs/commands.md` is what `--help` says. To write it anew:
//!
//!     STACKPHASE_WRITE_DOCS=1 cargo test --test command_reference

// Other targets have fewer commands.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fmt::Write;
use std::process::Command;

fn help(subcommand: Option<&str>) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(subcommand)
        .arg("--help")
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .expect("runs");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The names below `Commands:`; a description that goes on is indented further.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.is_empty());
    list.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_reference_is_what_help_says() {
    let main = help(None);
    let names = subcommands(&main);
    assert!(names.len() > 8, "{names:?}");
    let mut page = String::from("# Commands\n\nWritten from `--help`; a test holds it true.\n");
    let mut section = |title: &str, text: &str| {
        write!(page, "\n## {title}\n\n```\n{text}\n```\n").expect("a string takes everything");
    };
    section("stackphase", &main);
    for name in &names {
        section(&format!("stackphase {name}"), &help(Some(name)));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md");
    if std::env::var_os("STACKPHASE_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).expect("is writable");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/commands.md is not what --help says: write it anew with \
         STACKPHASE_WRITE_DOCS=1 cargo test --test command_reference"
    );
}
