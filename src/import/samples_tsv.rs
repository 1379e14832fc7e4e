//! bench-hashes' samples, v2 and v4: `# key: value` lines, then one row a contender and point.
//!
//! v2 ends its rows with comma-joined picoseconds a unit; v4 with comma-joined `ns/units` and the
//! samples' starts in ms.

use super::names::{bad_cell, bytes, is_figure, workload};
use super::{Figure, Figures, Foreign, Format, Process};
use crate::record::ReadError;
use crate::sample::Params;

pub(super) fn parse(file: &str, text: &str) -> Result<Foreign, ReadError> {
    let first = text.lines().next().unwrap_or_default();
    let version = match first.trim().rsplit(' ').next() {
        Some("v2") => Version::V2,
        Some("v4") => Version::V4,
        _ => {
            return Err(ReadError::file(
                file,
                "this version of the samples is not known",
                "give samples of version v2 or v4",
            )
            .in_row(1));
        }
    };
    let mut process = Process::default();
    let mut notes = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let line = line.trim_end_matches('\r');
        if let Some(remark) = line.strip_prefix('#') {
            // What loaded the machine meanwhile qualifies every figure.
            if remark.to_lowercase().contains("load") {
                notes.push(format!("{file}:{remark}"));
            }
        } else if !line.trim().is_empty() && !line.starts_with("contender\t") {
            process.figures.push(row(file, index + 1, line, version)?);
        }
    }
    Ok(Foreign { format: Format::SamplesTsv, processes: vec![process], notes })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V2,
    V4,
}

fn row(file: &str, number: usize, line: &str, version: Version) -> Result<Figure, ReadError> {
    let cells: Vec<&str> = line.split('\t').collect();
    let (contender, scenario, use_case, point, unit, list) = match (version, &cells[..]) {
        // The last column of v4, when each sample began, qualifies no single figure.
        (Version::V2, &[a, b, c, d, e, f]) | (Version::V4, &[a, b, c, d, e, f, _]) => {
            (a, b, c, d, e, f)
        }
        _ => {
            return Err(ReadError::file(
                file,
                format!("the row has {} cells between tabs", cells.len()),
                "restore the file, or remove the row",
            )
            .in_row(number as u64));
        }
    };
    let len = bytes(point);
    let scale = match (unit, len) {
        ("B", Some(len)) => len as f64,
        ("B", None) => return Err(bad_cell(file, number, "point", point, "a size")),
        _ => 1.0,
    };
    let rounds = list
        .split(',')
        .map(|item| {
            let ns = match version {
                Version::V2 => item.trim().parse::<f64>().ok().map(|ps| ps / 1000.0),
                Version::V4 => item.trim().split_once('/').and_then(|(ns, units)| {
                    Some(ns.parse::<f64>().ok()? / units.parse::<f64>().ok()?)
                }),
            };
            ns.map(|ns| ns * scale)
                .filter(|ns| is_figure(*ns))
                .ok_or_else(|| bad_cell(file, number, "samples", item, "a time above 0"))
        })
        .collect::<Result<Vec<f64>, ReadError>>()?;
    let mut params = Params::new().with("scenario", scenario).with("use_case", use_case);
    if len.is_none() {
        params.set("point", point);
    }
    Ok(Figure {
        workload: workload(contender),
        len,
        arm: "default".to_owned(),
        params,
        unit: None,
        placement: None,
        figures: Figures::Rounds(rounds),
    })
}
