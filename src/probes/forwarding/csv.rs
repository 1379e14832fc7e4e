//! The map as CSV: one row a cell.

use super::cell::{Cell, Crosses};
use super::map::Map;

const HEADER: &str = "store_bytes,stores,load_bytes,offset,residue,page_offset,crosses,form,\
                      gap_instructions,gap_cycles,older_stores,ns,spread_percent,twin_ns,\
                      net_cycles,class";

/// All cells of `map` as CSV with a header; an empty cell was not measured.
pub fn to_csv(map: &Map) -> String {
    let mut text = String::from(HEADER);
    text.push('\n');
    for cell in map.all() {
        text.push_str(&row(cell));
        text.push('\n');
    }
    text
}

fn row(cell: &Cell) -> String {
    let optional = |figure: Option<f64>| figure.map_or_else(String::new, |f| format!("{f:.4}"));
    [
        cell.store_bytes.to_string(),
        cell.stores_text(),
        cell.load_bytes.to_string(),
        cell.offset.to_string(),
        cell.residue.to_string(),
        cell.page_offset.map_or_else(String::new, |offset| offset.to_string()),
        cell.crosses.map_or("", Crosses::as_str).to_owned(),
        cell.form.to_string(),
        cell.gap.instructions.to_string(),
        cell.gap.cycles.to_string(),
        cell.gap.older_stores.to_string(),
        format!("{:.4}", cell.ns),
        format!("{:.3}", cell.spread_percent),
        optional(cell.twin_ns),
        optional(cell.net_cycles),
        cell.class.map_or("", |class| class.as_str()).to_owned(),
    ]
    .join(",")
}
