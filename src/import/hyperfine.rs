//! hyperfine's JSON export: each run is one launch of a command.
//!
//! A parameter named `pad`, `shift`, `offset`, `argv` or `path` (in either case) with whole
//! numbers is taken as the placement: `hyperfine -P pad 0 140 -D 4 'env -i PAD=… ./program'` is
//! then a sweep. hyperfine runs one command's repetitions after the other's, so that order and
//! placement are confounded; the order is recorded, and analysis says so.

use serde::Deserialize;

use super::names::is_figure;
use super::{Figure, Figures, Foreign, Format, Process};
use crate::record::ReadError;
use crate::sample::{Params, Placement};

#[derive(Deserialize)]
struct Export {
    results: Vec<Command>,
}

#[derive(Deserialize)]
struct Command {
    #[serde(default)]
    times: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
    #[serde(default)]
    parameters: serde_json::Map<String, serde_json::Value>,
}

pub(super) fn parse(file: &str, text: &str) -> Result<Foreign, ReadError> {
    let export: Export = serde_json::from_str(text).map_err(|error| {
        ReadError::file(
            file,
            format!("this is not hyperfine's JSON: {error}"),
            "export again with --export-json",
        )
        .in_row(error.line() as u64)
    })?;
    let several = export.results.len() > 1;
    let mut processes = Vec::new();
    let mut notes = Vec::new();
    let mut order = 0;
    for (index, command) in export.results.iter().enumerate() {
        let Some(times) = &command.times else {
            return Err(ReadError::file(
                file,
                format!("result {} has no times of single runs", index + 1),
                "export again with --export-json, which lists them",
            )
            .in_column("times"));
        };
        let template = template(index, several, command);
        for (run, seconds) in times.iter().enumerate() {
            order += 1;
            if command.exit_codes.get(run).copied().flatten().is_some_and(|code| code != 0) {
                notes.push(format!("{file}: run {run} of result {} failed; left out", index + 1));
                continue;
            }
            if !is_figure(*seconds) {
                return Err(ReadError::file(
                    file,
                    format!("`{seconds}` is not a time above 0"),
                    "remove that run from the export",
                )
                .in_column(format!("results[{index}].times[{run}]")));
            }
            let figures = Figures::Rounds(vec![*seconds]);
            processes.push(Process {
                figures: vec![Figure { figures, ..template.clone() }],
                repetition: run as u32,
                order: Some(order - 1),
            });
        }
    }
    Ok(Foreign { format: Format::Hyperfine, processes, notes })
}

/// What the runs of one command have in common. The command's own text is not kept: it may hold
/// what its user would not post.
fn template(index: usize, several: bool, command: &Command) -> Figure {
    let mut params = Params::new();
    let mut placement = None;
    for (name, value) in &command.parameters {
        let value = match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let by = Placement::ALL.iter().find(|by| by.as_str().eq_ignore_ascii_case(name));
        match (by, value.parse()) {
            (Some(by), Ok(number)) if placement.is_none() => placement = Some((*by, number)),
            _ => params.set(name, value),
        }
    }
    let told_apart = placement.is_some() || !params.is_empty() || !several;
    let arm = if told_apart { "default".to_owned() } else { format!("command-{}", index + 1) };
    Figure {
        workload: "command".to_owned(),
        len: None,
        arm,
        params,
        unit: Some("s".to_owned()),
        placement,
        figures: Figures::Rounds(Vec::new()),
    }
}
