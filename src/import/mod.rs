//! Result files that other programs wrote, read as launches.
//!
//! One file of the bench-hashes family is one process; in hyperfine's export each run is one. None
//! of them records where the stack was, so the question they can answer is whether the launches
//! fall into speeds, not which placement has which (unless a hyperfine parameter was the
//! placement). The format is found by content, never by the file's name.

mod clocks;
mod figure;
mod hyperfine;
mod names;
mod samples_tsv;
mod tables;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use figure::{Figure, Figures, Launches, Process, launches, samples};

use crate::record::ReadError;

/// A format of result files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// bench-hashes, `KEY: value` lines and a `BENCHMARK SUMMARY`.
    Text,
    /// bench-hashes, `Hash speed on …` with tables of one column a contender.
    Tables,
    /// bench-hashes, `# bench-hashes samples v2` or `v4`.
    SamplesTsv,
    /// bench-hashes, clocks and counters by sample.
    Clocks,
    /// hyperfine's `--export-json`.
    Hyperfine,
}

impl Format {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "bench-hashes summary",
            Format::Tables => "bench-hashes tables",
            Format::SamplesTsv => "bench-hashes samples",
            Format::Clocks => "bench-hashes clocks",
            Format::Hyperfine => "hyperfine export",
        }
    }

    /// The format of which `start` is the beginning; `None` for anything else (a CSV of samples).
    pub fn detect(start: &str) -> Option<Format> {
        let start = start.trim_start_matches('\u{feff}').trim_start();
        let first = start.lines().next().unwrap_or_default();
        if start.starts_with('{') && start.contains("\"results\"") {
            Some(Format::Hyperfine)
        } else if first.starts_with("# bench-hashes samples") {
            Some(Format::SamplesTsv)
        } else if first.starts_with("contender,length,sample,") {
            Some(Format::Clocks)
        } else if first.starts_with("Hash speed on ") {
            Some(Format::Tables)
        } else if start.lines().any(|line| line.trim() == "BENCHMARK SUMMARY") {
            Some(Format::Text)
        } else {
            None
        }
    }
}

/// What a result file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// The format it was in.
    pub format: Format,
    /// The processes whose figures it holds, in the order of the file.
    pub processes: Vec<Process>,
    /// What a reader of the verdict must know of this file, as sentences.
    pub notes: Vec<String>,
}

/// A result file is some kilobytes; more than this is something else.
const LARGEST: u64 = 64 << 20;
/// How much of a file is looked at to find its format.
const SNIFF: u64 = 64 << 10;

/// Reads `path` if it is in one of the formats; `None` where it is none of them.
///
/// # Errors
/// When the file cannot be read, or is in one of the formats and at fault.
pub fn read(path: &Path) -> Result<Option<Foreign>, ReadError> {
    let name = path.display().to_string();
    let cannot = |error: std::io::Error| {
        ReadError::file(&name, format!("cannot read: {error}"), "check the path and permissions")
    };
    let mut file = File::open(path).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.by_ref().take(SNIFF).read_to_end(&mut bytes).map_err(cannot)?;
    let Some(format) = Format::detect(&String::from_utf8_lossy(&bytes)) else { return Ok(None) };
    file.take(LARGEST).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LARGEST {
        return Err(ReadError::file(
            &name,
            "the file is larger than 64 MiB",
            format!("give a {} file, one a process", format.name()),
        ));
    }
    parse(&name, &bytes).map(Some)
}

/// Parses the content of a file that messages call `name`.
///
/// # Errors
/// When it is in none of the formats, or at fault.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Foreign, ReadError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let row = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        ReadError::file(name, "the line is not UTF-8", "save the file as UTF-8").in_row(row)
    })?;
    let Some(format) = Format::detect(text) else {
        return Err(ReadError::file(
            name,
            "this is no result file that is known",
            "give a CSV file of samples, a bench-hashes result or hyperfine's JSON",
        ));
    };
    let text = text.trim_start_matches('\u{feff}');
    let foreign = match format {
        Format::Text => text::parse(name, text),
        Format::Tables => tables::parse(name, text),
        Format::SamplesTsv => samples_tsv::parse(name, text),
        Format::Clocks => clocks::parse(name, text),
        Format::Hyperfine => hyperfine::parse(name, text),
    }?;
    if foreign.processes.iter().all(|process| process.figures.is_empty()) {
        return Err(ReadError::file(
            name,
            format!("the {} holds no figure", format.name()),
            "give a file whose run ended by itself",
        ));
    }
    Ok(foreign)
}

#[cfg(test)]
mod tests;
