//! bench-hashes' clocks: one row a sample, wall time with the counters of both core types.

use super::names::{bad_cell, bytes, is_figure, workload};
use super::{Figure, Figures, Foreign, Format, Process};
use crate::record::ReadError;
use crate::sample::Params;

pub(super) fn parse(file: &str, text: &str) -> Result<Foreign, ReadError> {
    let mut rows = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let header: Vec<&str> = rows.next().map_or(Vec::new(), |(_, line)| line.split(',').collect());
    let find = |name: &str| {
        header.iter().position(|column| column.trim() == name).ok_or_else(|| {
            ReadError::file(file, format!("there is no column {name}"), "restore the header")
                .in_row(1)
                .in_column(name)
        })
    };
    let columns =
        [find("contender")?, find("length")?, find("completed_hashes")?, find("wall_ns")?];
    let mut process = Process::default();
    for (row, line) in rows.filter(|(_, line)| !line.is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != header.len() {
            return Err(ReadError::file(
                file,
                format!("the row has {} cells where the header has {}", cells.len(), header.len()),
                "restore the file, or remove the row",
            )
            .in_row(row as u64));
        }
        let [contender, length, hashes, wall] = columns.map(|at| cells[at]);
        let len = bytes(length).ok_or_else(|| bad_cell(file, row, "length", length, "a size"))?;
        let hashes: f64 =
            hashes.parse().ok().filter(|hashes| is_figure(*hashes)).ok_or_else(|| {
                bad_cell(file, row, "completed_hashes", hashes, "a count above 0")
            })?;
        let ns = wall.parse::<f64>().ok().map(|wall| wall / hashes).filter(|ns| is_figure(*ns));
        let ns = ns.ok_or_else(|| bad_cell(file, row, "wall_ns", wall, "a time above 0"))?;
        push(&mut process, workload(contender), len, ns);
    }
    Ok(Foreign { format: Format::Clocks, processes: vec![process], notes: Vec::new() })
}

fn push(process: &mut Process, workload: String, len: u64, ns: f64) {
    let known = process
        .figures
        .iter_mut()
        .find(|figure| figure.workload == workload && figure.len == Some(len));
    match known {
        Some(Figure { figures: Figures::Rounds(rounds), .. }) => rounds.push(ns),
        _ => process.figures.push(Figure {
            workload,
            len: Some(len),
            arm: "default".to_owned(),
            params: Params::new(),
            unit: None,
            placement: None,
            figures: Figures::Rounds(vec![ns]),
        }),
    }
}
