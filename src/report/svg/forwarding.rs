//! The forwarding map: a small heat map for each store width, load width and form; residue of the
//! store down, offset of the load across.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Area, Canvas, Use};
use crate::report::words;

/// One panel's identity: store bytes, load bytes, form.
type Panel = (u64, u64, String);

/// One cell as far as it is drawn.
struct Cell {
    ns: f64,
    class: String,
    crosses: String,
}

/// Panels drawn; further ones are counted below the last.
const PANELS: usize = 48;
/// Tooltips of single cells, up to this many cells in the whole picture.
const TOOLTIPS: usize = 6000;

/// The chart of a `stackphase/forwarding/1` document; `None` where it has no cells.
pub fn forwarding(document: &Value, purpose: Use) -> Option<String> {
    let panels = panels(document);
    if panels.is_empty() {
        return None;
    }
    let total: usize = panels.values().map(BTreeMap::len).sum();
    let shown: Vec<_> = panels.iter().take(PANELS).collect();
    // Two panels a row: a phone scrolls, a desktop sees both.
    let heights: Vec<f64> = shown.iter().map(|(_, cells)| height(cells)).collect();
    let rows: Vec<f64> =
        heights.chunks(2).map(|pair| pair.iter().copied().fold(0.0, f64::max)).collect();
    let bottom: f64 = rows.iter().sum();
    let note = if panels.len() > PANELS { 24.0 } else { 0.0 };
    let description = format!(
        "{total} cells in {} panels by store width, load width and form. Letters: b blocked, s slow \
         forward, f forwards, r renamed, u unclear.",
        panels.len()
    );
    let mut canvas = Canvas::new(
        purpose,
        960.0,
        bottom + 8.0 + note,
        "Store-to-load forwarding map",
        &description,
    );
    let mut top = 0.0;
    for (row, pair) in shown.chunks(2).enumerate() {
        for (column, (panel, cells)) in pair.iter().enumerate() {
            let area = Area { x: 480.0 * column as f64, y: top, width: 480.0, height: rows[row] };
            draw(&mut canvas, panel, cells, area, total <= TOOLTIPS);
        }
        top += rows[row];
    }
    if panels.len() > PANELS {
        let text = format!("{} more panels stand in forwarding.json.", panels.len() - PANELS);
        canvas.text(16.0, bottom + 20.0, "label", &text);
    }
    Some(canvas.finish())
}

fn panels(document: &Value) -> BTreeMap<Panel, BTreeMap<(u64, i64), Cell>> {
    let mut panels: BTreeMap<Panel, BTreeMap<(u64, i64), Cell>> = BTreeMap::new();
    let cells = document.get("cells").and_then(Value::as_array);
    for cell in cells.into_iter().flatten() {
        let text =
            |name: &str| cell.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let whole = |name: &str| cell.get(name).and_then(Value::as_u64);
        let (Some(store), Some(load), Some(offset), Some(ns)) = (
            whole("store_bytes"),
            whole("load_bytes"),
            cell.get("offset").and_then(Value::as_i64),
            cell.get("ns").and_then(Value::as_f64),
        ) else {
            continue;
        };
        // Panels are also told apart by whatever else a form may carry (pairs, gaps).
        let stores = cell
            .get("stores")
            .or_else(|| cell.get("pair"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let form = format!("{} {stores}", text("form")).trim().to_owned();
        let residue = whole("residue").unwrap_or(0);
        let cell = Cell { ns, class: text("class"), crosses: text("crosses") };
        panels.entry((store, load, form)).or_default().insert((residue, offset), cell);
    }
    panels
}

fn height(cells: &BTreeMap<(u64, i64), Cell>) -> f64 {
    let residues = cells.keys().map(|key| key.0).collect::<BTreeSet<_>>().len();
    74.0 + row_height(residues) * residues as f64
}

/// Many residues get thin rows: the picture stays on a screen.
fn row_height(residues: usize) -> f64 {
    if residues <= 8 { 20.0 } else { (256.0 / residues as f64).max(4.0) }
}

fn draw(
    canvas: &mut Canvas,
    panel: &Panel,
    cells: &BTreeMap<(u64, i64), Cell>,
    area: Area,
    tooltips: bool,
) {
    let offsets: Vec<i64> =
        cells.keys().map(|key| key.1).collect::<BTreeSet<_>>().into_iter().collect();
    let residues: Vec<u64> =
        cells.keys().map(|key| key.0).collect::<BTreeSet<_>>().into_iter().collect();
    let fastest = cells.values().map(|cell| cell.ns).fold(f64::INFINITY, f64::min);
    let (store, load, form) = panel;
    canvas.text(
        area.x + 48.0,
        area.y + 20.0,
        "label strong",
        &format!("{store}-byte store, {load}-byte load, {form}"),
    );
    let (left, top) = (area.x + 48.0, area.y + 28.0);
    let (width, height) = ((area.width - 64.0) / offsets.len() as f64, row_height(residues.len()));
    for (row, residue) in residues.iter().enumerate() {
        let y = top + height * row as f64;
        if height >= 11.0 || row % 8 == 0 {
            canvas.text(left - 6.0, y + height / 2.0 + 4.0, "tick end", &residue.to_string());
        }
        for (column, offset) in offsets.iter().enumerate() {
            let Some(cell) = cells.get(&(*residue, *offset)) else { continue };
            let place = Area {
                x: left + width * column as f64,
                y,
                width: (width - 0.5).max(0.5),
                height: height - 0.5,
            };
            // Twice the fastest has the full tint.
            let tint = 0.05 + 0.6 * (cell.ns / fastest - 1.0).clamp(0.0, 1.0);
            let tooltip = tooltips.then(|| tooltip(cell, *residue, *offset));
            canvas.rect(place, "cell", Some(tint), tooltip.as_deref());
            if width >= 9.0
                && height >= 16.0
                && let Some(letter) = cell.class.chars().next()
            {
                canvas.text(
                    place.x + width / 2.0,
                    y + height / 2.0 + 4.0,
                    "tick middle",
                    &letter.to_string(),
                );
            }
        }
    }
    let bottom = top + height * residues.len() as f64;
    for (column, offset) in offsets.iter().enumerate().step_by(offsets.len().div_ceil(9).max(1)) {
        canvas.text(
            left + width * (column as f64 + 0.5),
            bottom + 14.0,
            "tick middle",
            &offset.to_string(),
        );
    }
    canvas.text(
        left + (area.width - 64.0) / 2.0,
        bottom + 30.0,
        "tick middle",
        "load address minus store address",
    );
}

fn tooltip(cell: &Cell, residue: u64, offset: i64) -> String {
    let crosses = if cell.crosses.is_empty() {
        String::new()
    } else {
        format!(", crosses a {}", cell.crosses)
    };
    format!(
        "store at residue {residue}, load at +{offset}: {} ns, {}{crosses}",
        words::figure(cell.ns),
        cell.class
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn every_cell_is_drawn_with_its_class() {
        let svg = forwarding(&fixture::forwarding(), Use::file()).expect("there are cells");
        assert_eq!(svg.matches("<rect").count(), 1 + 4 * 13);
        assert!(svg.contains("store at residue 16, load at +4: 7.80 ns, blocked"), "{svg}");
    }

    #[test]
    fn foreign_cells_are_skipped_and_nothing_is_drawn_of_nothing() {
        assert!(forwarding(&json!({"cells": [7, {"store_bytes": "x"}]}), Use::file()).is_none());
        assert!(forwarding(&json!(null), Use::file()).is_none());
    }
}
