//! The map as a picture: one panel a store and load width, offset across, residue down.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cell::{Cell, Class, Form, Gap};
use super::map::Map;

/// Colours that stay apart in grey and for the colour-blind; a letter says the same once more.
fn look(class: Option<Class>) -> (&'static str, &'static str) {
    match class {
        Some(Class::Renamed) => ("#2c7bb6", "r"),
        Some(Class::Forwards) => ("#abd9e9", ""),
        Some(Class::SlowForward) => ("#fdae61", "s"),
        Some(Class::Blocked) => ("#d7191c", "x"),
        Some(Class::Unclear) => ("#999999", "?"),
        None => ("#f0f0f0", ""),
    }
}

const SIDE: usize = 10;
const TOP: usize = 34;
const LEFT: usize = 44;

/// Draws the chained cells of single stores that have nothing between.
pub fn heat_map(map: &Map) -> String {
    let mut panels: BTreeMap<(u16, u8), Vec<&Cell>> = BTreeMap::new();
    let plain = |cell: &&Cell| cell.form == Form::Chained && cell.gap == Gap::default();
    for cell in map.cells.iter().filter(plain) {
        panels.entry((cell.store_bytes, cell.load_bytes)).or_default().push(cell);
    }
    let mut body = String::new();
    let mut y = 44;
    let mut width = 420;
    for ((store, load), cells) in &panels {
        let panel = Panel::new(cells, map.grid.is_some());
        body.push_str(&panel.draw(*store, *load, y));
        width = width.max(LEFT + panel.columns.len() * SIDE + 20);
        y += TOP + panel.rows.len() * SIDE + 14;
    }
    let title = map.machine.as_deref().unwrap_or("store-to-load forwarding");
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" \
         viewBox=\"0 0 {width} {y}\" font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"8\" y=\"14\" font-size=\"12\">{}</text>\n",
        escaped(title)
    );
    svg.push_str(&legend());
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

fn legend() -> String {
    let classes =
        [Class::Renamed, Class::Forwards, Class::SlowForward, Class::Blocked, Class::Unclear];
    let mut svg = String::new();
    for (index, class) in classes.into_iter().enumerate() {
        let x = 8 + index * 84;
        let (colour, letter) = look(Some(class));
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"22\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"31\">{letter} {class}</text>",
            x + SIDE + 3
        );
    }
    svg
}

/// One store and load width.
struct Panel<'a> {
    cells: &'a [&'a Cell],
    rows: Vec<i32>,
    columns: Vec<i32>,
    /// In a grid the columns are the load's offsets in the line of the store.
    grid: bool,
}

impl<'a> Panel<'a> {
    fn new(cells: &'a [&'a Cell], grid: bool) -> Self {
        let sorted = |of: &dyn Fn(&Cell) -> i32| {
            let mut values: Vec<i32> = cells.iter().map(|cell| of(cell)).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let rows = sorted(&row_of);
        let columns = sorted(&|cell| column_of(cell, grid));
        Panel { cells, rows, columns, grid }
    }

    fn draw(&self, store: u16, load: u8, y: usize) -> String {
        let columns = if self.grid { "load's place in the line" } else { "offset" };
        let mut svg = format!(
            "<text x=\"8\" y=\"{}\" font-weight=\"bold\">{store}-byte store, {load}-byte load</text>\n\
             <text x=\"{LEFT}\" y=\"{}\" fill=\"#555\">{columns} {} to {} across, store's place down</text>\n",
            y + 12,
            y + 26,
            self.columns.first().copied().unwrap_or_default(),
            self.columns.last().copied().unwrap_or_default(),
        );
        for (index, row) in self.rows.iter().enumerate() {
            let label = if *row < 64 { row.to_string() } else { format!("@{row}") };
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-size=\"8\">{label}</text>",
                LEFT - 4,
                y + TOP + index * SIDE + 8,
            );
        }
        for cell in self.cells {
            svg.push_str(&self.square(cell, y));
        }
        svg
    }

    fn square(&self, cell: &Cell, y: usize) -> String {
        let place = |list: &[i32], value: i32| list.binary_search(&value).unwrap_or_default();
        let x = LEFT + place(&self.columns, column_of(cell, self.grid)) * SIDE;
        let y = y + TOP + place(&self.rows, row_of(cell)) * SIDE;
        let (colour, letter) = look(cell.class);
        let net = cell.net_cycles.map_or_else(String::new, |net| format!(", net {net:.1} cycles"));
        let class = cell.class.map_or("no common byte", |class| class.as_str());
        let mut svg = format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{colour}\">\
             <title>offset {}, {:.2} ns{net}: {class}</title></rect>",
            SIDE - 1,
            SIDE - 1,
            cell.offset,
            cell.ns,
        );
        if !letter.is_empty() {
            let _ = write!(
                svg,
                "<text x=\"{}\" y=\"{}\" font-size=\"7\" text-anchor=\"middle\">{letter}</text>",
                x + SIDE / 2,
                y + SIDE - 3,
            );
        }
        svg.push('\n');
        svg
    }
}

/// Residues first, then the places at a page's end.
fn row_of(cell: &Cell) -> i32 {
    cell.page_offset.map_or(i32::from(cell.residue), i32::from)
}

fn column_of(cell: &Cell, grid: bool) -> i32 {
    i32::from(cell.offset) + if grid { i32::from(cell.residue) } else { 0 }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
