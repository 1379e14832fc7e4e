//! A table of figures as a heat map: copies × residues, lengths × residues.
//!
//! The figures come from the verdict, so that they equal it; each row is compared with its own
//! fastest cell, and a few columns leave room to print the figure in its cell.

use super::{Area, Canvas, Use};
use crate::analysis::Verdict;
use crate::report::words;

/// A table to be shown as a heat map.
#[derive(Clone, Debug, Default)]
pub struct Heat {
    /// What the picture shows.
    pub title: String,
    /// What the columns are.
    pub columns_title: String,
    /// One label a column.
    pub columns: Vec<String>,
    /// A label and one figure a column; `None` where nothing was measured.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// The unit of the figures.
    pub unit: String,
}

/// Figures fit into their cells up to this many columns.
const PRINTED: usize = 18;
/// A row this much slower than its fastest cell (in percent) has the full tint.
const FULL: f64 = 60.0;

/// The chart; `None` for a table without figures.
pub fn heat(table: &Heat, purpose: Use) -> Option<String> {
    if table.columns.is_empty() || table.rows.iter().all(|row| row.1.iter().all(Option::is_none)) {
        return None;
    }
    let longest = table.rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0);
    let left = 16.0 + 7.2 * longest.clamp(4, 34) as f64;
    let printed = table.columns.len() <= PRINTED;
    let cell = if printed { 54.0 } else { (704.0 / table.columns.len() as f64).max(3.0) };
    let height = if printed { 26.0 } else { 18.0 };
    let width = (left + cell * table.columns.len() as f64 + 16.0).max(320.0);
    let bottom = 30.0 + height * table.rows.len() as f64;
    let description = format!(
        "{} rows by {} columns; tint and tooltip give each cell above the fastest of its row.",
        table.rows.len(),
        table.columns.len()
    );
    let mut canvas = Canvas::new(purpose, width, bottom + 46.0, &table.title, &description);
    let every = table.columns.len().div_ceil(PRINTED);
    for (index, label) in table.columns.iter().enumerate().step_by(every.max(1)) {
        let x = left + cell * (index as f64 + 0.5);
        canvas.text(x, bottom + 16.0, "tick middle", label);
    }
    canvas.text(
        left + cell * table.columns.len() as f64 / 2.0,
        bottom + 38.0,
        "label middle",
        &table.columns_title,
    );
    for (index, (label, values)) in table.rows.iter().enumerate() {
        let y = 24.0 + height * index as f64;
        let short: String = label.chars().take(34).collect();
        canvas.text(left - 8.0, y + height / 2.0 + 4.0, "tick end", &short);
        let row = Row { label, values, printed, area: Area { x: left, y, width: cell, height } };
        row.draw(&mut canvas, table);
    }
    Some(canvas.finish())
}

struct Row<'a> {
    label: &'a str,
    values: &'a [Option<f64>],
    printed: bool,
    area: Area,
}

impl Row<'_> {
    fn draw(&self, canvas: &mut Canvas, table: &Heat) {
        let Some(fastest) = self.values.iter().flatten().copied().reduce(f64::min) else { return };
        for (index, value) in self.values.iter().enumerate() {
            let area = Area { x: self.area.x + self.area.width * index as f64, ..self.area };
            let inner =
                Area { width: (area.width - 1.0).max(1.0), height: area.height - 1.0, ..area };
            let Some(value) = value else {
                canvas.rect(inner, "none", None, None);
                continue;
            };
            let above = (value / fastest - 1.0) * 100.0;
            let column = table.columns.get(index).map_or("", String::as_str);
            let tooltip = format!(
                "{}, {column}: {} {} (+{})",
                self.label,
                words::figure(*value),
                table.unit,
                words::percent(above)
            );
            let tint = 0.05 + 0.6 * (above / FULL).clamp(0.0, 1.0);
            canvas.rect(inner, "cell", Some(tint), Some(&tooltip));
            if self.printed {
                let (x, y) = (area.x + area.width / 2.0, area.y + area.height / 2.0 + 4.0);
                canvas.text(x, y, "tick middle", &words::figure(*value));
            }
        }
    }
}

/// Copies × residues: a row each copy routine (arm) and workload that has more than one.
pub fn copies(verdicts: &[Verdict]) -> Option<Heat> {
    let chosen: Vec<&Verdict> = verdicts
        .iter()
        .filter(|v| v.period_bytes.is_none_or(|p| p <= 64) && v.probe != "readback")
        .filter(|v| {
            v.probe == "copies"
                || verdicts.iter().any(|o| {
                    (o.arm != v.arm || o.routine != v.routine)
                        && (&o.workload, o.len, &o.probe, o.grid)
                            == (&v.workload, v.len, &v.probe, v.grid)
                })
        })
        .collect();
    let label = |v: &Verdict| {
        let routine = v.routine.as_deref().map(|r| format!(", {r}")).unwrap_or_default();
        format!("{} {}, {}{routine}", v.workload, v.len.unwrap_or(0), v.arm)
    };
    by_residue(&chosen, "Copy routines by residue", label)
}

/// Lengths × residues of the read-back probe: a row each length and form.
pub fn lengths(verdicts: &[Verdict]) -> Option<Heat> {
    let chosen: Vec<&Verdict> = verdicts.iter().filter(|v| v.probe == "readback").collect();
    let label = |v: &Verdict| format!("{} B {} {}", v.len.unwrap_or(0), v.arm, v.params);
    by_residue(&chosen, "Read-back by length and residue", label)
}

fn by_residue(
    verdicts: &[&Verdict],
    title: &str,
    label: impl Fn(&Verdict) -> String,
) -> Option<Heat> {
    let mut residues: Vec<u64> =
        verdicts.iter().flat_map(|v| &v.bands).flat_map(|band| &band.residues).copied().collect();
    residues.sort_unstable();
    residues.dedup();
    if verdicts.len() < 2 || residues.is_empty() {
        return None;
    }
    let row = |v: &&Verdict| {
        let at = |r: &u64| {
            v.bands.iter().find(|band| band.residues.contains(r)).map(|band| band.ns_per_op)
        };
        (label(v), residues.iter().map(at).collect())
    };
    Some(Heat {
        title: title.to_owned(),
        columns_title: "residue of the buffer in its line: buf & 63".to_owned(),
        columns: residues.iter().map(u64::to_string).collect(),
        rows: verdicts.iter().take(120).map(row).collect(),
        unit: "ns".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn two_arms_become_two_rows_with_the_verdicts_own_figures() {
        let table = copies(&[fixture::zmm(), fixture::ymm(), fixture::page()]).expect("two arms");
        assert_eq!(table.columns, ["0", "16", "32", "48"]);
        assert_eq!(
            table.rows,
            [
                ("blake3 64, zmm".to_owned(), vec![Some(59.0), Some(79.7), Some(59.0), Some(86.2)]),
                ("blake3 64, ymm".to_owned(), vec![Some(59.0); 4]),
            ]
        );
        let svg = heat(&table, Use::file()).expect("there are figures");
        assert!(svg.contains(">86.2</text>") && svg.contains("(+46.1 %)"), "{svg}");
    }

    #[test]
    fn one_arm_alone_is_no_comparison() {
        assert!(copies(&[fixture::zmm()]).is_none());
        assert!(heat(&Heat::default(), Use::file()).is_none());
    }
}
