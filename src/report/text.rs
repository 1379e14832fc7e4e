//! The terminal: one or two sentences, a table that a person understands at once, and notes.
//!
//! Words carry the meaning; colour only repeats it, and only when it is asked for. Lines keep to
//! the width given: columns that say least are left out first, and below about fifty columns each
//! verdict becomes a few short lines.

use super::escape::plain;
use super::facts;
use super::run::RunData;
use super::words;
use crate::analysis::{Finding, Verdict, VerdictDocument};

pub use super::bandplot::band_plot;

/// How wide text may be, and whether it may carry colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal; 80 where it is unknown.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub color: bool,
}

impl Default for TextOptions {
    /// 80 columns without colour: what a file or a pipe gets.
    fn default() -> Self {
        TextOptions { width: 80, color: false }
    }
}

/// Reasons shown below the table; further ones stand in the document.
const NOTES: usize = 6;
/// Band plots of one run.
const PLOTS: usize = 6;

/// The verdicts as text: the headline, the table, and what qualifies them. Ends in a line feed.
pub fn verdicts(document: &VerdictDocument, options: &TextOptions) -> String {
    let mut out = wrap(&words::headline(document, plain), options.width, "");
    if document.verdicts.is_empty() {
        return out;
    }
    out.push('\n');
    out.push_str(&table(&document.verdicts, options));
    let notes = notes(document);
    if !notes.is_empty() {
        out.push('\n');
        for note in notes.iter().take(NOTES) {
            out.push_str(&wrap(&format!("note: {note}"), options.width, "  "));
        }
        if notes.len() > NOTES {
            out.push_str(&format!("note: {} more in verdict.json\n", notes.len() - NOTES));
        }
    }
    out
}

/// One run as text: its verdicts, the bands of those that are affected, its machine, and what is
/// missing. Ends in a line feed.
pub fn run(run: &RunData, options: &TextOptions) -> String {
    let mut out = match &run.verdicts {
        Some(document) => verdicts(document, options),
        None => verdicts(&VerdictDocument::new(Vec::new()), options),
    };
    let banded = run.verdicts().iter().filter(|v| v.verdict == Finding::Affected);
    for verdict in banded.take(PLOTS) {
        out.push('\n');
        out.push_str(&band_plot(verdict, options));
    }
    out.push('\n');
    let machine = facts::machine_line(run).unwrap_or_else(|| "not recorded".to_owned());
    out.push_str(&wrap(&format!("machine: {}", plain(&machine)), options.width, "  "));
    for sentence in run.missing.iter().take(NOTES) {
        out.push_str(&wrap(&format!("missing: {}", plain(sentence)), options.width, "  "));
    }
    out
}

/// What qualifies the verdicts: each reason once, with the verdict it belongs to unless all share it.
fn notes(document: &VerdictDocument) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for verdict in &document.verdicts {
        for reason in &verdict.reasons {
            let shared = document.verdicts.iter().all(|v| v.reasons.contains(reason));
            let note = if shared {
                plain(reason)
            } else {
                format!(
                    "{}, {}: {}",
                    words::name(verdict, plain),
                    words::how_placed(verdict),
                    plain(reason)
                )
            };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// A column of the table: its heading, how readily it is left out (0 never), and its cells.
struct Column {
    heading: &'static str,
    expendable: u8,
    right: bool,
    cells: Vec<String>,
}

impl Column {
    fn new(
        heading: &'static str,
        expendable: u8,
        verdicts: &[Verdict],
        cell: impl Fn(&Verdict) -> String,
    ) -> Self {
        let cells = verdicts.iter().map(cell).collect();
        Column { heading, expendable, right: false, cells }
    }

    fn right(mut self) -> Self {
        self.right = true;
        self
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.heading.len()]).max().unwrap_or(0)
    }
}

/// Columns in the order in which they are shown. A column that would say the same obvious thing in
/// every row is not among them.
fn columns(verdicts: &[Verdict]) -> Vec<Column> {
    let bytes = |v: &Verdict| v.len.map_or(String::new(), |len| len.to_string());
    let effect = |v: &Verdict| v.effect_percent.map_or("-".to_owned(), words::percent);
    let rule = |v: &Verdict| match words::best_rule(v) {
        Some(rule) if v.verdict == Finding::Affected => {
            format!("{}/{} {}", rule.held.unwrap_or(0), rule.of, plain(&rule.rule))
        }
        _ => String::new(),
    };
    let nanoseconds = verdicts.iter().all(|v| v.unit == "ns");
    let bands = |v: &Verdict| match plain(&words::bands(v)) {
        text if nanoseconds => text.replace(" ns", ""),
        text => text,
    };
    let mut columns = vec![
        Column::new("workload", 0, verdicts, |v| plain(&v.workload)),
        Column::new("bytes", 0, verdicts, bytes).right(),
        Column::new("probe", 3, verdicts, |v| plain(&v.probe)),
        Column::new("arm", 1, verdicts, |v| plain(&v.arm)),
        Column::new("placement", 1, verdicts, words::how_placed),
        Column::new("verdict", 0, verdicts, |v| v.verdict.to_string()),
        Column::new("effect", 0, verdicts, effect).right(),
        Column::new("interval", 4, verdicts, |v| words::interval(v).unwrap_or_default()).right(),
        Column::new(if nanoseconds { "ns by band" } else { "bands" }, 2, verdicts, bands),
        Column::new("rule", 5, verdicts, rule),
    ];
    columns.retain(|column| {
        let trivial =
            |cell: &String| cell.is_empty() || (column.heading == "arm" && cell == "default");
        column.expendable == 0 && column.heading != "bytes" || !column.cells.iter().all(trivial)
    });
    columns
}

/// Space between columns.
const GAP: usize = 2;

fn table(verdicts: &[Verdict], options: &TextOptions) -> String {
    let mut columns = columns(verdicts);
    let total = |columns: &[Column]| {
        columns.iter().map(Column::width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
    };
    // The rule comes last and may be cut: its beginning still tells.
    if let Some(excess) = total(&columns).checked_sub(options.width + 1)
        && let Some(rule) = columns.last_mut().filter(|column| column.heading == "rule")
    {
        let room = rule.width().saturating_sub(excess + 1);
        if room >= 16 {
            rule.cells.iter_mut().for_each(|cell| *cell = cut(cell, room));
        }
    }
    while total(&columns) > options.width {
        let Some(most) = columns.iter().map(|c| c.expendable).max().filter(|most| *most > 1) else {
            return stacked(verdicts, options);
        };
        columns.retain(|column| column.expendable != most);
    }
    let mut out = line(&columns, options, |column| column.heading);
    for row in 0..verdicts.len() {
        out.push_str(&line(&columns, options, |column| &column.cells[row]));
    }
    out
}

/// The first `room` characters, the last of them `…` where something is missing.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn line<'a>(
    columns: &'a [Column],
    options: &TextOptions,
    cell: impl Fn(&'a Column) -> &'a str,
) -> String {
    let mut out = String::new();
    let mut pending = 0;
    for column in columns {
        let text = cell(column);
        let pad = column.width() - text.chars().count();
        let (before, after) = if column.right { (pad, 0) } else { (0, pad) };
        if !text.is_empty() {
            out.extend(std::iter::repeat_n(' ', pending + before));
            out.push_str(&painted(text, column.heading == "verdict" && options.color));
            pending = after + GAP;
        } else {
            pending += pad + GAP;
        }
    }
    out.push('\n');
    out
}

/// The word of a verdict in its colour: red, yellow and green, as everywhere.
fn painted(word: &str, color: bool) -> String {
    let code = match word {
        _ if !color => return word.to_owned(),
        "affected" => "1;31",
        "inconclusive" => "33",
        "clear" => "32",
        _ => return word.to_owned(),
    };
    format!("\u{1b}[{code}m{word}\u{1b}[0m")
}

/// Every verdict as a few lines, where there is no room for a table.
fn stacked(verdicts: &[Verdict], options: &TextOptions) -> String {
    let mut out = String::new();
    for verdict in verdicts {
        let heading = format!("{}, {}", words::name(verdict, plain), words::how_placed(verdict));
        out.push_str(&wrap(&heading, options.width, "  "));
        out.push_str(&format!("  {}\n", painted(&verdict.verdict.to_string(), options.color)));
        let effect = verdict.effect_percent.map(|effect| match words::interval(verdict) {
            Some(interval) => format!("  effect {} ({interval})", words::percent(effect)),
            None => format!("  effect {}", words::percent(effect)),
        });
        let bands = Some(format!("  {}", plain(&words::bands(verdict)))).filter(|b| b.len() > 2);
        for text in effect.into_iter().chain(bands) {
            out.push_str(&wrap(&text, options.width, "    "));
        }
    }
    out
}

/// `text` broken at spaces into lines of at most `width` characters; every line but the first
/// begins with `indent`. A word longer than the line is broken where the line ends.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let width = width.max(indent.chars().count() + 10);
    let leading: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut out = leading.clone();
    let mut used = leading.chars().count();
    let mut fresh = true;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if !fresh && used + 1 + word.len() > width {
            out.push('\n');
            out.push_str(indent);
            used = indent.chars().count();
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            used += 1;
        }
        while used + word.len() > width {
            let rest = word.split_off((width - used).min(word.len()));
            out.extend(word);
            out.push('\n');
            out.push_str(indent);
            used = indent.chars().count();
            word = rest;
        }
        used += word.len();
        out.extend(word);
        fresh = false;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::fixture;

    fn options(width: usize) -> TextOptions {
        TextOptions { width, color: false }
    }

    #[test]
    fn a_wide_terminal_has_every_column() {
        let text = verdicts(&VerdictDocument::new(fixture::verdicts()), &options(160));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn eighty_columns_keep_the_verdict_and_the_effect() {
        let text = verdicts(&VerdictDocument::new(fixture::verdicts()), &options(80));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn every_width_is_respected() {
        let document = VerdictDocument::new(fixture::verdicts());
        for width in 30..200 {
            let text = verdicts(&document, &options(width));
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} of {width}:\n{text}");
            assert!(text.contains("affected") && text.contains("inconclusive"), "{text}");
        }
    }

    #[test]
    fn colour_only_repeats_what_the_words_say() {
        let document = VerdictDocument::new(fixture::verdicts());
        let colored = verdicts(&document, &TextOptions { width: 100, color: true });
        assert!(colored.contains("\u{1b}[1;31maffected\u{1b}[0m"), "{colored}");
        let stripped = ["1;31", "33", "32", "0"]
            .iter()
            .fold(colored, |text, code| text.replace(&format!("\u{1b}[{code}m"), ""));
        assert_eq!(stripped, verdicts(&document, &options(100)));
    }

    #[test]
    fn notes_beyond_a_handful_are_counted() {
        let mut verdict = fixture::zmm();
        verdict.reasons = (0..9).map(|n| format!("reason {n}")).collect();
        let text = verdicts(&VerdictDocument::new(vec![verdict]), &options(80));
        assert!(text.ends_with("note: 3 more in verdict.json\n"), "{text}");
    }

    proptest! {
        #[test]
        fn hostile_names_cannot_command_the_terminal(
            name in "[\\x00-\\x7f\u{80}-\u{9f}\u{202e}]{0,30}", width in 20_usize..150,
        ) {
            let mut verdict = fixture::zmm();
            verdict.workload.clone_from(&name);
            verdict.arm.clone_from(&name);
            verdict.unit.clone_from(&name);
            verdict.reasons = vec![name.clone()];
            verdict.rules[0].rule = name;
            let text = verdicts(&VerdictDocument::new(vec![verdict.clone()]), &options(width));
            let plot = band_plot(&verdict, &options(width));
            for text in [text, plot] {
                prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
                let reorders = text.contains('\u{202e}');
                prop_assert!(!reorders);
            }
        }

        #[test]
        fn wrapping_keeps_every_character(text in "[a-z]{0,30}( [a-z]{1,40}){0,10}", width in 12_usize..60) {
            let wrapped = wrap(&text, width, "  ");
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= width));
            let squeezed = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(squeezed(&wrapped), squeezed(&text));
        }
    }
}
