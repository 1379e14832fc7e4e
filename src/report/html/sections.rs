//! The sections of one run's page, in the order in which a person asks: what was found, where it
//! shows, why, whether to trust it, on what machine, how to repeat it, and what is missing.

use serde_json::Value;

use super::section::{Block, Cell, Section, Table};
use super::tree;
use crate::analysis::{Verdict, VerdictDocument};
use crate::report::run::{RunData, SampleSeries};
use crate::report::svg::{self, ForestRow, Use};
use crate::report::{facts, pairing, words};

/// Charts of one kind in the page; further ones stand in `plots/`.
const CHARTS: usize = 12;

/// The headline and the sections of `run`, with about `dots` dots in all charts.
pub(crate) fn of(run: &RunData, dots: usize) -> (String, Vec<Section>) {
    let verdict = match &run.verdicts {
        Some(document) => words::headline(document, str::to_owned),
        None => words::headline(&VerdictDocument::new(Vec::new()), str::to_owned),
    };
    let mut page = Page { run, dots: dots / 3, sections: Vec::new(), absent: Vec::new() };
    page.verdicts();
    page.residues();
    page.by_placement("page", "The page grid", in_page_grid, "stackphase phase --page");
    page.by_placement("padding", "Time by padding", |v| moved_by(v, "pad"), "stackphase pad");
    page.copies();
    page.forwarding();
    page.by_placement("input", "Input offsets", |v| moved_by(v, "offset"), "stackphase input");
    page.pairs();
    page.document("explanation", "explanation", "Explanation", "stackphase explain");
    page.document("trace", "trace", "Stores and loads of one call", "stackphase trace");
    page.document("writer", "writer", "Who writes the buffer", "stackphase writer");
    page.document("counters", "counters", "Counters", "stackphase counters");
    page.document("compare", "compare", "Two builds compared", "stackphase compare");
    page.throughput();
    page.document("controls", "controls", "Controls", "stackphase check");
    page.others();
    page.machine();
    page.method();
    page.repeat();
    page.missing();
    (verdict, page.sections)
}

/// Whether the series is a grid over whole pages.
fn in_page_grid(series: &SampleSeries) -> bool {
    series.key.placement == "shift" && series.key.param("grid") == Some("page")
}

fn moved_by(series: &SampleSeries, placement: &str) -> bool {
    series.key.placement == placement && series.key.probe != "pairs"
}

/// A page under construction.
struct Page<'a> {
    run: &'a RunData,
    /// Dots in all charts of one kind.
    dots: usize,
    sections: Vec<Section>,
    /// Sections that this run has nothing for, each with the command that would measure it.
    absent: Vec<String>,
}

impl Page<'_> {
    fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    fn lacks(&mut self, title: &str, command: &str) {
        self.absent.push(format!("{title}: not in this run; {command} measures it."));
    }

    /// The verdict that the blocks of `series` led to.
    fn verdict_of(&self, series: &SampleSeries) -> Option<&Verdict> {
        let same =
            |v: &&Verdict| self.run.series_of(v).is_some_and(|found| std::ptr::eq(found, series));
        self.run.verdicts().iter().find(same)
    }

    fn verdicts(&mut self) {
        if self.run.verdicts().is_empty() {
            return;
        }
        let mut section = Section::new("verdicts", "Verdicts");
        section.push(Block::Table(verdict_table(self.run.verdicts())));
        let rows: Vec<ForestRow> = self
            .run
            .verdicts()
            .iter()
            .map(|verdict| ForestRow { label: short_name(verdict), verdict })
            .collect();
        if rows.len() > 1
            && let Some(svg) = svg::forest(&rows, Use { inline: Some("forest"), dots: 0 })
        {
            let caption = "Every verdict's interval, slowest band above the fastest.".to_owned();
            section.push(Block::Chart { svg, caption, wide: true });
        }
        let mut reasons: Vec<String> = Vec::new();
        for verdict in self.run.verdicts() {
            for reason in &verdict.reasons {
                let sentence = format!("{}: {reason}", short_name(verdict));
                if !reasons.contains(&sentence) {
                    reasons.push(sentence);
                }
            }
        }
        if !reasons.is_empty() {
            section.push(Block::Heading("What qualifies them".to_owned()));
            let more = reasons.len().saturating_sub(40);
            reasons.truncate(40);
            if more > 0 {
                reasons.push(format!("{more} more stand in verdict.json."));
            }
            section.push(Block::List(reasons));
        }
        self.add(section);
    }

    fn residues(&mut self) {
        let series: Vec<&SampleSeries> = self
            .run
            .series
            .iter()
            .filter(|s| !s.blocks.residues.is_empty() && !in_page_grid(s))
            .filter(|s| s.key.probe != "pairs" && s.key.placement != "offset")
            .collect();
        if series.is_empty() {
            self.lacks("Blocks by residue", "stackphase phase");
            return;
        }
        let mut section = Section::new("residues", "Every block by residue");
        section.push(Block::Text(
            "Each dot is one timed block, over the place of the buffer in its 64-byte line. Round dots on \
             the tinted columns have buf & 31 = 0, square dots have not. Pale dots were disturbed; a \
             triangle at the top edge is a block above the scale, which does not begin at zero."
                .to_owned(),
        ));
        let drawn = self.ordered(series);
        let dots = self.dots / drawn.len().clamp(1, CHARTS);
        for (index, (series, verdict)) in drawn.iter().take(CHARTS).enumerate() {
            let prefix = format!("residue{index}");
            let purpose = Use { inline: Some(&prefix), dots: dots.min(6000) };
            if let Some(svg) = svg::residues(series, *verdict, purpose) {
                section.push(Block::Chart { svg, caption: caption(series, *verdict), wide: false });
            }
        }
        rest(&mut section, drawn.len());
        self.add(section);
    }

    /// Series with their verdicts: what is asked about first, as in the table.
    fn ordered<'s>(
        &'s self,
        series: Vec<&'s SampleSeries>,
    ) -> Vec<(&'s SampleSeries, Option<&'s Verdict>)> {
        let mut all: Vec<_> = series.into_iter().map(|s| (s, self.verdict_of(s))).collect();
        let rank = |verdict: Option<&Verdict>| match verdict {
            Some(verdict) => words::rank(verdict),
            None => (u8::MAX, u8::MAX),
        };
        all.sort_by_key(|(_, verdict)| rank(*verdict));
        all
    }

    fn by_placement(
        &mut self,
        id: &'static str,
        title: &str,
        wanted: impl Fn(&SampleSeries) -> bool,
        command: &str,
    ) {
        let series: Vec<&SampleSeries> =
            self.run.series.iter().filter(|s| wanted(s) && s.blocks.places.len() > 1).collect();
        if series.is_empty() {
            self.lacks(title, command);
            return;
        }
        let mut section = Section::new(id, title);
        let drawn = self.ordered(series);
        let dots = self.dots / drawn.len().clamp(1, CHARTS);
        for (index, (series, verdict)) in drawn.iter().take(CHARTS).enumerate() {
            let prefix = format!("{id}{index}");
            let purpose = Use { inline: Some(&prefix), dots: dots.min(8000) };
            if let Some(svg) = svg::places(series, *verdict, purpose) {
                section.push(Block::Chart { svg, caption: caption(series, *verdict), wide: true });
            }
        }
        rest(&mut section, drawn.len());
        self.add(section);
    }

    fn copies(&mut self) {
        let tables = [svg::copies(self.run.verdicts()), svg::lengths(self.run.verdicts())];
        let mut section = Section::new("copies", "Copies by residue");
        for (index, table) in tables.into_iter().flatten().enumerate() {
            let prefix = format!("heat{index}");
            if let Some(svg) = svg::heat(&table, Use { inline: Some(&prefix), dots: 0 }) {
                let caption =
                    format!("{}: tint is time above the fastest cell of the row.", table.title);
                section.push(Block::Chart { svg, caption, wide: true });
            }
        }
        if section.blocks.is_empty() {
            self.lacks("Copy routines by residue", "stackphase copies");
        } else {
            self.add(section);
        }
    }

    fn forwarding(&mut self) {
        let Some(document) = self.run.document("forwarding") else {
            self.lacks("Forwarding map", "stackphase forwarding");
            return;
        };
        let mut section = Section::new("forwarding", "Forwarding map");
        section.push(Block::Text(
            "How long a load takes that reads what an earlier store wrote, by the load's offset in the \
             store and the store's place in its line; darker is slower, a letter gives the class (b \
             blocked, s slow forward, f forwards, r renamed, u unclear)."
                .to_owned(),
        ));
        match svg::forwarding(document, Use { inline: Some("map"), dots: 3000 }) {
            Some(svg) => {
                let caption = "Store-to-load forwarding of this core.".to_owned();
                section.push(Block::Chart { svg, caption, wide: true });
            }
            None => section
                .push(Block::Text("The document holds no cell that could be drawn.".to_owned())),
        }
        section.push(Block::Html(tree::html(document, &["cells"])));
        self.add(section);
    }

    fn pairs(&mut self) {
        let differences = pairing::differences(self.run);
        let svg = svg::pairs(&differences, Use { inline: Some("pairs"), dots: 0 });
        if svg.is_none() && self.run.document("pairs").is_none() {
            self.lacks("Pairs of long inputs", "stackphase pairs");
            return;
        }
        let mut section = Section::new("pairs", "Pairs of long inputs");
        if let Some(svg) = svg {
            let caption =
                "How much longer the first offset of each pair took, one mark a pass.".to_owned();
            section.push(Block::Chart { svg, caption, wide: true });
        }
        if let Some(document) = self.run.document("pairs") {
            section.push(Block::Html(tree::html(document, &[])));
        }
        self.add(section);
    }

    /// A section that shows one document as it is.
    fn document(&mut self, kind: &str, id: &'static str, title: &str, command: &str) {
        match self.run.document(kind) {
            Some(document) => {
                let mut section = Section::new(id, title);
                section.push(Block::Html(tree::html(document, &[])));
                self.add(section);
            }
            None => self.lacks(title, command),
        }
    }

    fn throughput(&mut self) {
        match self.run.document("hash").and_then(hash_table) {
            Some(table) => {
                let mut section = Section::new("hash", "Hash throughput");
                section.push(Block::Table(table));
                self.add(section);
            }
            None => self.lacks("Hash throughput", "stackphase hash"),
        }
    }

    /// Documents that no section above is about: from a newer version, perhaps.
    fn others(&mut self) {
        const SHOWN: [&str; 11] = [
            "compare",
            "controls",
            "counters",
            "explanation",
            "forwarding",
            "hash",
            "machine",
            "pairs",
            "plan",
            "trace",
            "writer",
        ];
        let mut section = Section::new("further", "Further documents");
        for (kind, document) in &self.run.documents {
            if !SHOWN.contains(&kind.as_str()) {
                section.push(Block::Heading(kind.clone()));
                section.push(Block::Html(tree::html(document, &[])));
            }
        }
        if !section.blocks.is_empty() {
            self.add(section);
        }
    }

    fn machine(&mut self) {
        let Some(machine) = self.run.document("machine") else { return };
        let mut section = Section::new("machine", "Machine");
        if let Some(line) = facts::machine_line(self.run) {
            section.push(Block::Text(line));
        }
        section.push(Block::Html(tree::html(machine, &[])));
        self.add(section);
    }

    fn method(&mut self) {
        let mut section = Section::new("method", "Method, and what it cannot tell");
        let mut methods: Vec<&str> = Vec::new();
        for verdict in self.run.verdicts() {
            if !methods.contains(&verdict.interval_method.as_str()) {
                methods.push(&verdict.interval_method);
            }
        }
        for method in methods.iter().take(6) {
            section.push(Block::Text(format!("Intervals: {method}.")));
        }
        section.push(Block::List(METHOD.iter().map(|sentence| (*sentence).to_owned()).collect()));
        self.add(section);
    }

    fn repeat(&mut self) {
        let Some(command) = facts::command_line(self.run) else { return };
        let mut section = Section::new("repeat", "Repeat it");
        section.push(Block::Code(command));
        if let Some(plan) = self.run.document("plan") {
            section.push(Block::Html(tree::html(plan, &["command_line", "argv"])));
        }
        self.add(section);
    }

    fn missing(&mut self) {
        let mut section = Section::new("missing", "What this run does not hold");
        let sentences: Vec<String> =
            self.run.missing.iter().take(40).chain(&self.absent).cloned().collect();
        if !sentences.is_empty() {
            section.push(Block::List(sentences));
            self.add(section);
        }
    }
}

/// What every page says of the method.
const METHOD: [&str; 6] = [
    "Every round visits every placement once, in a fresh shuffle; processes (launches) are the unit \
     of every interval.",
    "A block counts as disturbed by the loops on both sides of it and by lost processor time, never \
     by its own time.",
    "An interval is that of the largest difference among all classes at once, so that looking at \
     many placements does not make an effect out of noise.",
    "A verdict speaks of the placements visited, on this machine, with this C library and this \
     build; nothing is known of others.",
    "Clear means that no difference reaches the smallest effect that counts, not that there is none.",
    "A rule that fits every placement visited names where code is slow, not why; the explanation and \
     the counters, where there are any, speak of the cause.",
];

/// The table of verdicts, each figure with its exact value.
pub(crate) fn verdict_table(verdicts: &[Verdict]) -> Table {
    let head = [
        "workload",
        "bytes",
        "probe",
        "arm",
        "placement",
        "verdict",
        "effect",
        "interval",
        "bands",
        "period",
        "rule",
        "instructions",
    ];
    Table {
        caption: "What was found, a row each series".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: verdicts.iter().map(verdict_row).collect(),
    }
}

fn verdict_row(verdict: &Verdict) -> Vec<Cell> {
    let rule = match words::best_rule(verdict) {
        Some(rule) if verdict.bands.len() > 1 => {
            let also = if rule.also.is_empty() {
                String::new()
            } else {
                format!("; the same here: {}", rule.also.join(", "))
            };
            format!("{} ({}/{}){also}", rule.rule, rule.held.unwrap_or(0), rule.of)
        }
        _ => String::new(),
    };
    let effect = verdict.effect_percent.map_or("-".to_owned(), words::percent);
    let instructions = verdict.instructions_per_op;
    vec![
        Cell::text(&verdict.workload),
        Cell {
            class: "number",
            ..Cell::text(verdict.len.map_or(String::new(), |len| len.to_string()))
        },
        Cell::text(&verdict.probe),
        Cell::text(match &verdict.routine {
            Some(routine) => format!("{} ({routine})", verdict.arm),
            None => verdict.arm.clone(),
        }),
        Cell::text(words::how_placed(verdict)),
        Cell { class: finding_class(verdict), ..Cell::text(verdict.verdict.to_string()) },
        Cell::figure(effect, verdict.effect_percent),
        Cell { class: "number", ..Cell::text(words::interval(verdict).unwrap_or_default()) },
        Cell { class: "number", ..Cell::text(words::bands(verdict)) },
        Cell {
            class: "number",
            ..Cell::text(verdict.period_bytes.map_or(String::new(), |p| p.to_string()))
        },
        Cell::text(rule),
        Cell::figure(
            instructions.map_or(String::new(), |i| words::figure(i.value)),
            instructions.map(|i| i.value),
        ),
    ]
}

pub(crate) fn finding_class(verdict: &Verdict) -> &'static str {
    match verdict.verdict {
        crate::analysis::Finding::Affected => "affected",
        crate::analysis::Finding::Clear => "clear",
        crate::analysis::Finding::Inconclusive => "inconclusive",
    }
}

/// A verdict's series in a few words.
pub(crate) fn short_name(verdict: &Verdict) -> String {
    let len = verdict.len.map(|len| format!(" {len} B")).unwrap_or_default();
    let arm = if verdict.arm == "default" { String::new() } else { format!(", {}", verdict.arm) };
    let params =
        if verdict.params.is_empty() { String::new() } else { format!(", {}", verdict.params) };
    format!("{}{len}{arm}, {}{params}", verdict.workload, words::how_placed(verdict))
}

/// What a chart shows, with the bands in words: the chart's text alternative.
fn caption(series: &SampleSeries, verdict: Option<&Verdict>) -> String {
    let Some(verdict) = verdict else {
        let key = &series.key;
        return format!("{} {}, {} {}: no verdict.", key.workload, key.len, key.arm, key.params);
    };
    let bands: Vec<String> = verdict
        .bands
        .iter()
        .take(4)
        .map(|band| {
            let time = format!("{} {}", words::figure(band.ns_per_op), verdict.unit);
            let place = words::where_band(verdict, band);
            if band.percent_above_fast > 0.0 {
                format!("{time} (+{}) at {place}", words::percent(band.percent_above_fast))
            } else {
                format!("{time} at {place}")
            }
        })
        .collect();
    let thinned = match series.blocks.residues.values().all(|bucket| bucket.is_whole()) {
        true => String::new(),
        false => format!(" {} blocks, thinned: extremes are kept.", series.blocks.rows),
    };
    format!("{}: {}. {}.{thinned}", short_name(verdict), verdict.verdict, bands.join("; "))
}

fn rest(section: &mut Section, charts: usize) {
    if charts > CHARTS {
        let text = format!("{} more plots stand in plots/.", charts - CHARTS);
        section.push(Block::Text(text));
    }
}

/// The throughput table of a `stackphase/hash/1` document.
pub(crate) fn hash_table(document: &Value) -> Option<Table> {
    let results = document.get("results")?.as_array()?;
    let figure = |result: &Value, name: &str| {
        let value = result.get(name).and_then(Value::as_f64);
        Cell::figure(value.map_or("-".to_owned(), words::figure), value)
    };
    let rows: Vec<Vec<Cell>> = results
        .iter()
        .take(200)
        .map(|result| {
            let median = result.get("median_ns_per_byte").and_then(Value::as_f64);
            let rate = median.filter(|m| *m > 0.0).map(|median| 1.0 / median);
            vec![
                Cell::text(result.get("algorithm").and_then(facts::scalar).unwrap_or_default()),
                Cell {
                    class: "number",
                    ..Cell::text(result.get("bytes").and_then(facts::scalar).unwrap_or_default())
                },
                figure(result, "median_ns_per_byte"),
                figure(result, "min_ns_per_byte"),
                figure(result, "max_ns_per_byte"),
                Cell { class: "number", ..Cell::text(rate.map_or("-".to_owned(), words::figure)) },
            ]
        })
        .collect();
    let head =
        ["algorithm", "bytes", "median ns/B", "min", "max", "GB/s"].map(str::to_owned).to_vec();
    (!rows.is_empty()).then(|| Table {
        caption: "Time per byte and throughput".to_owned(),
        head,
        rows,
    })
}
