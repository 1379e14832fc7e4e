//! bench-hashes' later form: a title line, then tables with one column a contender.
//!
//! A cell is `0.619`; `0.61|0.86` where the process itself had two speeds, the faster first; with
//! `~` behind it where the figure is known to 5 % only, with `!` where the spread is a quarter of
//! the median or more. Columns are found by counting: the contenders stand in the last line before
//! a row that has as many words as the row has cells.

use super::names::{bytes, is_figure, printed, workload};
use super::{Figure, Figures, Foreign, Format, Process};
use crate::record::ReadError;
use crate::sample::Params;

/// What is known while reading downwards.
#[derive(Default)]
struct Reading {
    contenders: Vec<String>,
    /// ns a message rather than ns a byte.
    per_message: bool,
    title: String,
}

pub(super) fn parse(file: &str, text: &str) -> Result<Foreign, ReadError> {
    let mut reading = Reading::default();
    let mut process = Process::default();
    let mut notes = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let line = line.trim();
        if let Some((len, cells)) = data_row(line) {
            if cells.len() != reading.contenders.len() {
                return Err(ReadError::file(
                    file,
                    format!(
                        "the row has {} cells under {} contenders",
                        cells.len(),
                        reading.contenders.len()
                    ),
                    "restore the table",
                )
                .in_row(index as u64 + 1));
            }
            for (contender, cell) in reading.contenders.iter().zip(cells) {
                let Some(cell) = cell else { continue };
                if let Some(second) = cell.second {
                    notes.push(format!(
                        "{file}: {contender} at {len} B had two speeds within the process, \
                         {} and {second}; the faster is used",
                        cell.first
                    ));
                }
                process.figures.extend(reading.figure(contender, len, &cell));
            }
        } else if !line.is_empty() {
            reading.note(line);
        }
    }
    // One figure a contender and length: a table in another unit repeats what stands above it.
    let mut seen = std::collections::HashSet::new();
    process.figures.retain(|f| seen.insert((f.workload.clone(), f.len, f.params.clone())));
    Ok(Foreign { format: Format::Tables, processes: vec![process], notes })
}

impl Reading {
    /// A line that is no row of figures: a title with the unit, contenders, or a rule.
    fn note(&mut self, line: &str) {
        if line.contains("ns/B") || line.contains("ns/msg") {
            self.per_message = line.contains("ns/msg") && !line.contains("ns/B");
            self.title = title(line);
        }
        let words = words(line);
        if !words.is_empty() && line.chars().any(char::is_alphabetic) {
            self.contenders = words;
        }
    }

    fn figure(&self, contender: &str, len: u64, cell: &Cell) -> Option<Figure> {
        let scale = if self.per_message { 1.0 } else { len as f64 };
        let median = cell.first * scale;
        let mut params = Params::new();
        if !self.title.is_empty() {
            params.set("table", &self.title);
        }
        is_figure(median).then(|| Figure {
            workload: workload(contender),
            len: Some(len),
            arm: "default".to_owned(),
            params,
            unit: None,
            placement: None,
            figures: Figures::Summary {
                median,
                fastest: median * (1.0 - cell.known_to),
                resolution: cell.resolution * scale,
            },
        })
    }
}

/// What a table is about: its title without the units.
fn title(line: &str) -> String {
    let plain = line.replace("ns/B", "").replace("ns/msg", "");
    plain.trim_matches(|c: char| !c.is_alphanumeric()).trim().to_owned()
}

/// The contenders of a heading: words parted by two blanks or more, or by single ones; a leading
/// word for the column of sizes is not one of them.
fn words(line: &str) -> Vec<String> {
    let parts: Vec<&str> = line.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
    let parts = if parts.len() > 1 { parts } else { line.split_whitespace().collect() };
    let sizes = ["size", "length", "bytes", "point", "ns/B", "ns/msg", "input", "message"];
    parts
        .iter()
        .enumerate()
        .filter(|(at, word)| *at > 0 || !sizes.iter().any(|s| s.eq_ignore_ascii_case(word)))
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

/// One cell of a table.
struct Cell {
    first: f64,
    second: Option<f64>,
    resolution: f64,
    /// How much faster than the figure the process may have been, as a fraction.
    known_to: f64,
}

/// A size and the cells behind it; `None` where the line is something else. A dash is a cell
/// without a figure.
fn data_row(line: &str) -> Option<(u64, Vec<Option<Cell>>)> {
    let mut words = line.split_whitespace().peekable();
    let mut label = words.next()?.trim_end_matches(':').to_owned();
    if let Some(unit) = words.peek()
        && matches!(unit.trim_end_matches(':'), "B" | "KiB" | "MiB" | "GiB")
    {
        label = format!("{label} {}", unit.trim_end_matches(':'));
        words.next();
    }
    let len = bytes(&label)?;
    let cells: Option<Vec<_>> = words
        .map(|word| match word {
            "-" | "–" | "—" => Some(None),
            word => cell(word).map(Some),
        })
        .collect();
    cells.filter(|cells| !cells.is_empty()).map(|cells| (len, cells))
}

fn cell(word: &str) -> Option<Cell> {
    let plain = word.trim_end_matches(['~', '!']);
    let marks = &word[plain.len()..];
    let known_to = if marks.contains('!') {
        0.25
    } else if marks.contains('~') {
        0.05
    } else {
        0.0
    };
    let (first, second) = match plain.split_once('|') {
        Some((first, second)) => {
            let second = second.trim_end_matches(['~', '!']);
            (first.trim_end_matches(['~', '!']), Some(printed(second)?.0))
        }
        None => (plain, None),
    };
    let (first, resolution) = printed(first)?;
    Some(Cell { first, second, resolution, known_to })
}
