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

/// The chart of a `stackphase/forwarding/1` document; `None` where it has no cells.
///
/// Where the whole product would be too much to look at, the panels with the largest contrast are
/// drawn, and the picture says how many are not.
pub fn forwarding(document: &Value, purpose: Use) -> Option<String> {
    let panels = panels(document);
    if panels.is_empty() {
        return None;
    }
    let total: usize = panels.values().map(BTreeMap::len).sum();
    let shown = chosen(&panels, purpose.dots);
    // Two panels a row: a phone scrolls, a desktop sees both.
    let heights: Vec<f64> = shown.iter().map(|(_, cells)| height(cells)).collect();
    let rows: Vec<f64> =
        heights.chunks(2).map(|pair| pair.iter().copied().fold(0.0, f64::max)).collect();
    let bottom: f64 = rows.iter().sum();
    let left_out = panels.len() - shown.len();
    let note = if left_out > 0 { 24.0 } else { 0.0 };
    let description = format!(
        "{total} cells in {} panels by store width, load width and form. Letters: b blocked, s slow \
         forward, f forwards, r renamed, u unclear.",
        panels.len()
    );
    let title = "Store-to-load forwarding map";
    let mut canvas = Canvas::new(purpose, 960.0, bottom + 8.0 + note, title, &description);
    let mut top = 0.0;
    for (row, pair) in shown.chunks(2).enumerate() {
        for (column, (panel, cells)) in pair.iter().enumerate() {
            let area = Area { x: 480.0 * column as f64, y: top, width: 480.0, height: rows[row] };
            draw(&mut canvas, panel, cells, area);
        }
        top += rows[row];
    }
    if left_out > 0 {
        let text = format!("{left_out} panels of less contrast stand in forwarding.json.");
        canvas.text(16.0, bottom + 20.0, "label", &text);
    }
    Some(canvas.finish())
}

type Cells = BTreeMap<(u64, i64), Cell>;

/// As many panels as have room, those with the largest contrast first, in their own order.
fn chosen(panels: &BTreeMap<Panel, Cells>, room: usize) -> Vec<(&Panel, &Cells)> {
    let contrast = |cells: &Cells| {
        let (low, high) = cells
            .values()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), c| (low.min(c.ns), high.max(c.ns)));
        high / low
    };
    let mut order: Vec<(&Panel, &Cells)> = panels.iter().collect();
    order.sort_by(|a, b| contrast(b.1).total_cmp(&contrast(a.1)));
    let mut used = 0;
    let mut kept: Vec<(&Panel, &Cells)> = Vec::new();
    for (panel, cells) in order {
        used += runs(cells).len();
        if used > room && !kept.is_empty() {
            break;
        }
        kept.push((panel, cells));
    }
    kept.sort_by(|a, b| a.0.cmp(b.0));
    kept
}

/// Neighbouring cells of one residue, one class and nearly one time: they are drawn as one.
struct Run<'a> {
    residue: u64,
    first: i64,
    last: i64,
    cell: &'a Cell,
    slowest: f64,
}

fn runs(cells: &Cells) -> Vec<Run<'_>> {
    let mut offsets: Vec<i64> = cells.keys().map(|key| key.1).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let next = |offset: i64| offsets.get(offsets.partition_point(|o| *o <= offset)).copied();
    let mut runs: Vec<Run> = Vec::new();
    for ((residue, offset), cell) in cells {
        let extends = runs.last().is_some_and(|run| {
            run.residue == *residue
                && next(run.last) == Some(*offset)
                && (&run.cell.class, &run.cell.crosses) == (&cell.class, &cell.crosses)
                && (cell.ns / run.cell.ns - 1.0).abs() < 0.02
        });
        match runs.last_mut().filter(|_| extends) {
            Some(run) => {
                run.last = *offset;
                run.slowest = run.slowest.max(cell.ns);
            }
            None => runs.push(Run {
                residue: *residue,
                first: *offset,
                last: *offset,
                cell,
                slowest: cell.ns,
            }),
        }
    }
    runs
}

fn panels(document: &Value) -> BTreeMap<Panel, Cells> {
    let mut panels: BTreeMap<Panel, Cells> = BTreeMap::new();
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
        // At a page's end several places share a residue.
        let page = cell.get("page_offset").and_then(Value::as_u64);
        let page = page.map_or_else(String::new, |offset| format!("at page offset {offset}"));
        let form = [text("form").as_str(), stores, &page]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let residue = whole("residue").unwrap_or(0);
        let cell = Cell { ns, class: text("class"), crosses: text("crosses") };
        panels.entry((store, load, form)).or_default().insert((residue, offset), cell);
    }
    panels
}

fn height(cells: &Cells) -> f64 {
    let residues = cells.keys().map(|key| key.0).collect::<BTreeSet<_>>().len();
    74.0 + row_height(residues) * residues as f64
}

/// Many residues get thin rows: the picture stays on a screen.
fn row_height(residues: usize) -> f64 {
    if residues <= 8 { 20.0 } else { (256.0 / residues as f64).max(4.0) }
}

fn draw(canvas: &mut Canvas, panel: &Panel, cells: &Cells, area: Area) {
    let offsets: Vec<i64> =
        cells.keys().map(|key| key.1).collect::<BTreeSet<_>>().into_iter().collect();
    let residues: Vec<u64> =
        cells.keys().map(|key| key.0).collect::<BTreeSet<_>>().into_iter().collect();
    let fastest = cells.values().map(|cell| cell.ns).fold(f64::INFINITY, f64::min);
    let (store, load, form) = panel;
    let heading = format!("{store}-byte store, {load}-byte load, {form}");
    canvas.text(area.x + 48.0, area.y + 20.0, "label strong", &heading);
    let (left, top) = (area.x + 48.0, area.y + 28.0);
    let (width, height) = ((area.width - 64.0) / offsets.len() as f64, row_height(residues.len()));
    for (row, residue) in residues.iter().enumerate() {
        if height >= 11.0 || row % 8 == 0 {
            let y = top + height * (row as f64 + 0.5) + 4.0;
            canvas.text(left - 6.0, y, "tick end", &residue.to_string());
        }
    }
    for run in runs(cells) {
        let row = residues.partition_point(|residue| *residue < run.residue) as f64;
        let from = offsets.partition_point(|offset| *offset < run.first) as f64;
        let to = offsets.partition_point(|offset| *offset <= run.last) as f64;
        let place = Area {
            x: left + width * from,
            y: top + height * row,
            width: (width * (to - from) - 0.5).max(0.5),
            height: height - 0.5,
        };
        // Twice the fastest has the full tint.
        let tint = 0.05 + 0.6 * (run.cell.ns / fastest - 1.0).clamp(0.0, 1.0);
        canvas.rect(place, "cell", Some(tint), Some(&tooltip(&run)));
        if place.width >= 9.0
            && height >= 16.0
            && let Some(letter) = run.cell.class.chars().next()
        {
            let (x, y) = (place.x + place.width / 2.0, place.y + height / 2.0 + 4.0);
            canvas.text(x, y, "tick middle", &letter.to_string());
        }
    }
    let bottom = top + height * residues.len() as f64;
    for (column, offset) in offsets.iter().enumerate().step_by(offsets.len().div_ceil(9).max(1)) {
        let x = left + width * (column as f64 + 0.5);
        canvas.text(x, bottom + 14.0, "tick middle", &offset.to_string());
    }
    let middle = left + (area.width - 64.0) / 2.0;
    canvas.text(middle, bottom + 30.0, "tick middle", "load address minus store address");
}

fn tooltip(run: &Run) -> String {
    let crosses = match run.cell.crosses.as_str() {
        "" => String::new(),
        what => format!(", crosses a {what}"),
    };
    let offsets = if run.first == run.last {
        format!("{:+}", run.first)
    } else {
        format!("{:+} to {:+}", run.first, run.last)
    };
    format!(
        "store at residue {}, load at {offsets}: {} ns, {}{crosses}",
        run.residue,
        words::figure(run.slowest),
        run.cell.class
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
        // The paper, and one run of equal cells for each of the four residues.
        assert_eq!(svg.matches("<rect").count(), 1 + 4);
        assert!(svg.contains("store at residue 16, load at +0 to +48: 7.80 ns, blocked"), "{svg}");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let svg = forwarding(&fixture::forwarding(), Use { inline: Some("f"), dots: 0 });
        assert!(svg.is_some_and(|svg| !svg.contains("less contrast")), "one panel is always drawn");
        let cells: Vec<Value> = (0..64)
            .flat_map(|load| (0..64).map(move |offset| (load, offset)))
            .map(|(load, offset)| {
                json!({"store_bytes": 64, "load_bytes": load, "offset": offset, "residue": 0,
                    "form": "chained", "ns": 4 + (offset % 2) * (1 + load), "class": "x"})
            })
            .collect();
        let purpose = Use { inline: Some("f"), dots: 128 };
        let svg = forwarding(&json!({"cells": cells}), purpose).expect("there are cells");
        assert!(
            svg.contains("62 panels of less contrast") && svg.contains("63-byte load"),
            "{svg}"
        );
    }

    #[test]
    fn foreign_cells_are_skipped_and_nothing_is_drawn_of_nothing() {
        assert!(forwarding(&json!({"cells": [7, {"store_bytes": "x"}]}), Use::file()).is_none());
        assert!(forwarding(&json!(null), Use::file()).is_none());
    }
}
