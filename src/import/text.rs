//! bench-hashes' first form: `KEY: value` lines, then a summary with one block a size.
//!
//! ```text
//! BENCHMARK SUMMARY
//! ns/B; median (minimum–maximum)
//!   64 B:
//!     BLAKE3  :  0.89 ( 0.88– 0.95)
//! ```

use super::names::{bad_cell, bytes, is_figure, printed, workload};
use super::{Figure, Figures, Foreign, Format, Process};
use crate::record::ReadError;
use crate::sample::Params;

pub(super) fn parse(file: &str, text: &str) -> Result<Foreign, ReadError> {
    let mut process = Process::default();
    let mut len = None;
    let rows = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    for (row, line) in rows.skip_while(|(_, line)| *line != "BENCHMARK SUMMARY").skip(1) {
        let Some((name, rest)) = line.split_once(':') else { continue };
        if rest.trim().is_empty() {
            // The file gives ns a byte; a message of no bytes has no such figure.
            let size = bytes(name).filter(|len| *len > 0);
            len = Some(size.ok_or_else(|| bad_cell(file, row, "size", name, "a size above 0"))?);
        } else if let Some(len) = len {
            process.figures.push(figure(file, row, name, rest, len)?);
        }
    }
    Ok(Foreign { format: Format::Text, processes: vec![process], notes: Vec::new() })
}

fn figure(file: &str, row: usize, name: &str, rest: &str, len: u64) -> Result<Figure, ReadError> {
    let (median, fastest, resolution) = cells(rest)
        .filter(|(_, fastest, _)| is_figure(fastest * len as f64))
        .ok_or_else(|| bad_cell(file, row, name.trim(), rest.trim(), "median (minimum–maximum)"))?;
    let bytes = len as f64;
    Ok(Figure {
        workload: workload(name),
        len: Some(len),
        arm: "default".to_owned(),
        params: Params::new(),
        unit: None,
        placement: None,
        figures: Figures::Summary {
            median: median * bytes,
            fastest: fastest * bytes,
            resolution: resolution * bytes,
        },
    })
}

/// Median, minimum and resolution of ` 0.89 ( 0.88– 0.95)`; the dash is an en dash or a hyphen.
fn cells(rest: &str) -> Option<(f64, f64, f64)> {
    let (median, range) = rest.split_once('(')?;
    let (fastest, slowest) = range.trim_end().strip_suffix(')')?.split_once(['–', '-'])?;
    let (median, resolution) = printed(median.trim())?;
    let (fastest, _) = printed(fastest.trim())?;
    let (slowest, _) = printed(slowest.trim())?;
    (fastest <= median && median <= slowest).then_some((median, fastest, resolution))
}
