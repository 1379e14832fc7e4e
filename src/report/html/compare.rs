//! Several runs on one page: machines, C libraries, before and after a fix, a fleet.

use super::section::{Block, Cell, Section, Table};
use super::sections::{self, finding_class, short_name};
use crate::analysis::{Finding, Verdict};
use crate::report::run::RunData;
use crate::report::svg::{self, ForestRow, Use};
use crate::report::{facts, words};
use crate::sample::Role;

/// Charts of blocks by residue, one a run.
const CHARTS: usize = 24;

/// The headline and the sections of the comparison.
pub(crate) fn of(runs: &[RunData], dots: usize) -> (String, Vec<Section>) {
    let mut page = vec![verdicts(runs), machines(runs)];
    page.extend(throughput(runs));
    page.extend(residues(runs, dots));
    page.push(repeat(runs));
    page.extend(missing(runs));
    (headline(runs), page)
}

/// How many of the runs are affected, by what is asked about.
fn headline(runs: &[RunData]) -> String {
    let count = |finding: Finding| {
        let of = |run: &&RunData| {
            run.verdicts.as_ref().and_then(words::lead).is_some_and(|lead| lead.verdict == finding)
        };
        runs.iter().filter(of).count()
    };
    let without = runs.iter().filter(|run| run.verdicts().is_empty()).count();
    let mut text = format!(
        "Of {} runs {} affected, {} inconclusive and {} clear",
        runs.len(),
        are(count(Finding::Affected)),
        count(Finding::Inconclusive),
        count(Finding::Clear),
    );
    if without > 0 {
        text.push_str(&format!(", {without} without a verdict"));
    }
    text.push('.');
    text
}

fn are(count: usize) -> String {
    if count == 1 { "1 is".to_owned() } else { format!("{count} are") }
}

/// Every verdict of every run, those of one series beside each other.
fn rows(runs: &[RunData]) -> Vec<(&RunData, &Verdict)> {
    let mut rows: Vec<(&RunData, &Verdict)> =
        runs.iter().flat_map(|run| run.verdicts().iter().map(move |v| (run, v))).collect();
    let mut order: Vec<String> = Vec::new();
    for (_, verdict) in &rows {
        let name = short_name(verdict);
        if !order.contains(&name) {
            order.push(name);
        }
    }
    let place = |verdict: &Verdict| order.iter().position(|name| *name == short_name(verdict));
    let subject = |verdict: &Verdict| verdict.role != Role::Subject;
    rows.sort_by_key(|(_, verdict)| (subject(verdict), place(verdict)));
    rows
}

fn verdicts(runs: &[RunData]) -> Section {
    let mut section = Section::new("verdicts", "Verdicts");
    let rows = rows(runs);
    let cells = |(run, verdict): &(&RunData, &Verdict)| {
        vec![
            Cell::text(short_name(verdict)),
            Cell::text(&run.label),
            Cell { class: finding_class(verdict), ..Cell::text(verdict.verdict.to_string()) },
            Cell::figure(
                verdict.effect_percent.map_or("-".to_owned(), words::percent),
                verdict.effect_percent,
            ),
            Cell { class: "number", ..Cell::text(words::interval(verdict).unwrap_or_default()) },
            Cell { class: "number", ..Cell::text(words::bands(verdict)) },
        ]
    };
    section.push(Block::Table(Table {
        caption: "Every series, a row each run".to_owned(),
        head: ["series", "run", "verdict", "effect", "interval", "bands"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.iter().take(400).map(cells).collect(),
    }));
    let forest: Vec<ForestRow> = rows
        .iter()
        .map(|(run, verdict)| ForestRow {
            label: format!("{}: {}", run.label, short_name(verdict)),
            verdict,
        })
        .collect();
    if let Some(svg) = svg::forest(&forest, Use { inline: Some("forest"), dots: 0 }) {
        let caption = "Every interval, those of one series beside each other.".to_owned();
        section.push(Block::Chart { svg, caption, wide: true });
    }
    section
}

fn machines(runs: &[RunData]) -> Section {
    let mut section = Section::new("machines", "Machines");
    let row = |run: &RunData| {
        let machine = facts::machine_line(run).unwrap_or_else(|| "not recorded".to_owned());
        vec![Cell::text(&run.label), Cell::text(machine)]
    };
    section.push(Block::Table(Table {
        caption: "What each run was measured on".to_owned(),
        head: ["run", "machine"].map(str::to_owned).to_vec(),
        rows: runs.iter().map(row).collect(),
    }));
    section
}

/// The throughput tables of all runs in one.
fn throughput(runs: &[RunData]) -> Option<Section> {
    let mut joined: Option<Table> = None;
    for run in runs {
        let Some(mut table) = run.document("hash").and_then(sections::hash_table) else { continue };
        for row in &mut table.rows {
            row.insert(0, Cell::text(&run.label));
        }
        table.head.insert(0, "run".to_owned());
        match &mut joined {
            Some(joined) => joined.rows.extend(table.rows),
            None => joined = Some(table),
        }
    }
    let mut section = Section::new("hash", "Hash throughput");
    section.push(Block::Table(joined?));
    Some(section)
}

/// The blocks of each run's leading verdict.
fn residues(runs: &[RunData], dots: usize) -> Option<Section> {
    let mut section = Section::new("residues", "Blocks by residue");
    let dots = dots / runs.len().clamp(1, CHARTS);
    for (index, run) in runs.iter().take(CHARTS).enumerate() {
        let drawable = |v: &&Verdict| {
            run.series_of(v).is_some_and(|series| !series.blocks.residues.is_empty())
                && v.period_bytes.is_none_or(|period| period <= 64)
        };
        let Some(verdict) = run.verdicts().iter().filter(drawable).min_by_key(|v| words::rank(v))
        else {
            continue;
        };
        let prefix = format!("residue{index}");
        let purpose = Use { inline: Some(&prefix), dots: dots.min(4000) };
        let svg =
            run.series_of(verdict).and_then(|series| svg::residues(series, Some(verdict), purpose));
        if let Some(svg) = svg {
            let caption = format!("{}: {}, {}", run.label, short_name(verdict), verdict.verdict);
            section.push(Block::Chart { svg, caption, wide: false });
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn repeat(runs: &[RunData]) -> Section {
    let mut section = Section::new("repeat", "Repeat it");
    let row = |run: &RunData| {
        let command = facts::command_line(run).unwrap_or_else(|| "not recorded".to_owned());
        vec![Cell::text(&run.label), Cell::text(command)]
    };
    section.push(Block::Table(Table {
        caption: "The command of each run".to_owned(),
        head: ["run", "command"].map(str::to_owned).to_vec(),
        rows: runs.iter().map(row).collect(),
    }));
    section
}

fn missing(runs: &[RunData]) -> Option<Section> {
    let mut section = Section::new("missing", "What these runs do not hold");
    let sentences: Vec<String> = runs
        .iter()
        .flat_map(|run| run.missing.iter().take(10).map(|text| format!("{}: {text}", run.label)))
        .take(100)
        .collect();
    if sentences.is_empty() {
        return None;
    }
    section.push(Block::List(sentences));
    Some(section)
}
