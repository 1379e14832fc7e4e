//! Where words go: the result to stdout, the talk to stderr.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::Failure;
use crate::report::text::TextOptions;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The two streams of a subcommand and how it should write to them.
pub struct Output {
    json: bool,
    color: bool,
}

impl Output {
    /// Decides on colour once, from the option, `NO_COLOR` and the terminal.
    pub fn new(json: bool, color: ColorWhen) -> Self {
        let color = match color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Output { json, color }
    }

    /// Whether the result is one JSON document.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether text may carry colour (never as the only carrier of meaning).
    pub fn color(&self) -> bool {
        self.color
    }

    /// How result text is laid out: the terminal's width (`COLUMNS` where that is set, 80 where
    /// there is neither) and whether it may carry colour.
    pub fn text_options(&self) -> TextOptions {
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = asked.or_else(terminal_width).unwrap_or(80);
        TextOptions { width: width.max(20), color: self.color }
    }

    /// Writes result text to stdout.
    ///
    /// # Errors
    /// When stdout cannot be written, other than by a reader that went away: a closed pipe is not
    /// an error.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
                format!("cannot write the result: {error}"),
                "stdout",
                "free space or choose another target",
            )),
            _ => Ok(()),
        }
    }

    /// Writes the one JSON document of this command to stdout.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn document(&mut self, document: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_string_pretty(document).map_err(|error| {
            Failure::new(format!("cannot make JSON: {error}"), "result", "report this as a fault")
        })?;
        text.push('\n');
        self.text(&text)
    }

    /// Prints a warning; its text ends with the remedy.
    pub fn warn(&self, warning: &str) {
        // A closed stderr leaves nobody to tell.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }

    /// Prints the failure as one line (and as a document under `--json`) and gives its status.
    pub fn fail(&mut self, failure: &Failure) -> ExitCode {
        let _ = writeln!(io::stderr(), "error: {failure}");
        if self.json {
            // The failure to report is the first one; a second about stdout would hide it.
            let _ = self.document(&failure.to_json());
        }
        ExitCode::from(if failure.usage { 2 } else { 1 })
    }
}

/// Columns of the terminal that stdout is; `None` where it is none.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    (width.0 > 0).then_some(usize::from(width.0))
}
