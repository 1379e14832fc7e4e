//! `stackphase report`: pages, posts and pictures from run directories.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Exit, Output};
use crate::Failure;
use crate::report::{self, Format, RunData, text};

/// Markdown, SVG and HTML of one or several run directories.
///
/// One run gets report.html, report.md and plots/*.svg, written beside its samples or below --out.
/// Several runs (machines, C libraries, before and after a fix) become one comparison, below --out.
/// Nothing is measured; what a directory lacks is said in the report.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  stackphase report results/20260909T101500Z-amd-epyc-9r45
  stackphase report results/* --out comparison
  stackphase report results/latest --format markdown | gh issue comment 582 --body-file -")]
pub(super) struct Args {
    /// Run directories, or CSV files of samples
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// One format alone; without --out it goes to stdout
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Where the files go [default: the run's own directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep host name, user, home path and command arguments
    #[arg(long)]
    no_redact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    /// One self-contained page
    Html,
    /// For an issue thread, below sixty lines
    Markdown,
    /// The charts, each a file
    Svg,
    /// What the terminal shows
    Text,
}

pub(super) fn run(args: Args, output: &mut Output) -> Result<Exit, Failure> {
    let runs = report::read_runs(&args.runs, !args.no_redact)?;
    let options = output.text_options();
    let formats: Vec<Box<dyn Format>> = match args.format {
        Some(FormatName::Html) => vec![Box::new(report::Html)],
        Some(FormatName::Markdown) => vec![Box::new(report::Markdown)],
        Some(FormatName::Svg) => vec![Box::new(report::Svg)],
        Some(FormatName::Text) => vec![Box::new(report::Text(options))],
        None => vec![Box::new(report::Html), Box::new(report::Markdown), Box::new(report::Svg)],
    };
    let mut files = Vec::new();
    for format in formats {
        files.extend(format.files(&runs)?);
    }
    let to_stdout = args.format.is_some_and(|format| format != FormatName::Svg);
    if to_stdout && args.out.is_none() && !output.json() {
        for file in &files {
            output.text(&file.content)?;
        }
        return Ok(Exit::Done);
    }
    let out = destination(&args)?;
    let written = report::write(&out, &files)?;
    summary(&runs, &written, output)?;
    Ok(Exit::Done)
}

/// Where files go: beside the one run that they are of, else where `--out` says.
fn destination(args: &Args) -> Result<PathBuf, Failure> {
    match (&args.out, &args.runs[..]) {
        (Some(out), _) => Ok(out.clone()),
        (None, [run]) if run.is_dir() => Ok(run.clone()),
        (None, [_]) => Err(Failure::usage(
            "a report on a file has no directory to go to",
            "stackphase report",
            "name one with --out DIR",
        )),
        (None, _) => Err(Failure::usage(
            "a comparison of several runs belongs to none of their directories",
            "stackphase report",
            "name one with --out DIR, or print it with --format text or markdown",
        )),
    }
}

fn summary(runs: &[RunData], written: &[PathBuf], output: &mut Output) -> Result<(), Failure> {
    if output.json() {
        let run = |run: &RunData| {
            json!({
                "label": run.label,
                "verdicts": run.verdicts(),
                "rows": run.rows,
                "missing": run.missing,
            })
        };
        let show = |path: &PathBuf| path.display().to_string();
        return output.document(&json!({
            "schema": "stackphase/report/1",
            "runs": runs.iter().map(run).collect::<Vec<_>>(),
            "files": written.iter().map(show).collect::<Vec<_>>(),
        }));
    }
    if let [run] = runs {
        output.text(&text::run(run, &output.text_options()))?;
    }
    let plots = written.iter().filter(|path| path.extension().is_some_and(|e| e == "svg")).count();
    let mut lines = String::from("\n");
    for path in written.iter().filter(|path| path.extension().is_none_or(|e| e != "svg")) {
        lines.push_str(&format!("wrote {}\n", printable(path)));
    }
    if plots > 0 {
        let place =
            written.last().and_then(|path| path.parent()).map(printable).unwrap_or_default();
        lines.push_str(&format!("wrote {plots} plots in {place}\n"));
    }
    output.text(&lines)
}

fn printable(path: &Path) -> String {
    report::escape::plain(&path.display().to_string())
}
