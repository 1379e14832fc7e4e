//! `stackphase completions` and `stackphase man`: what a shell and `man` need to know.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, Output};
use crate::Failure;

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stackphase completions bash > ~/.local/share/bash-completion/completions/stackphase
  stackphase completions fish > ~/.config/fish/completions/stackphase.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  stackphase man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Directory to write the pages to; made where it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the completions of one shell.
///
/// # Errors
/// When stdout cannot be written.
pub fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stackphase", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.json() {
        output.document(&serde_json::json!({
            "schema": "stackphase/completions/1",
            "shell": args.shell.to_string(),
            "script": script,
        }))?;
    } else {
        output.text(&script)?;
    }
    Ok(Exit::Done)
}

/// Writes a page for the program and one for each subcommand.
///
/// # Errors
/// When a page cannot be written.
pub fn man(args: &ManArgs, output: &mut Output) -> Result<Exit, Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(
            format!("cannot write the page: {error}"),
            path.display().to_string(),
            "name a directory that can be written",
        )
    };
    let directory = &args.directory;
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let command = Cli::command();
    let mut pages = vec![("stackphase".to_owned(), command.clone())];
    for subcommand in command.get_subcommands() {
        let name = format!("stackphase-{}", subcommand.get_name());
        pages.push((name.clone(), subcommand.clone().name(name)));
    }
    let mut written = Vec::new();
    for (name, command) in pages {
        let path = directory.join(format!("{name}.1"));
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .and_then(|()| std::fs::write(&path, &page))
            .map_err(|error| failed(&path, error))?;
        written.push(path.display().to_string());
    }
    if output.json() {
        output.document(&serde_json::json!({"schema": "stackphase/man/1", "files": written}))?;
    } else {
        output.text(&(written.join("\n") + "\n"))?;
    }
    Ok(Exit::Done)
}
