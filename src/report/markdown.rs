//! `report.md`: fits an issue thread. Verdict, one table, machine line, a collapsed details block;
//! below sixty lines whatever the run holds.

use super::escape::{markdown as escape, markdown_code};
use super::facts;
use super::run::RunData;
use super::words;
use crate::analysis::{Finding, Verdict};

/// Rows of the table; further verdicts are counted.
const ROWS: usize = 20;
/// Sentences of each list in the details block.
const SENTENCES: usize = 8;

/// One run as Markdown. Ends in a line feed.
pub fn run(run: &RunData) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    match &run.verdicts {
        Some(document) => line(&format!("**{}**", words::headline(document, escape))),
        None => line("**Nothing was concluded: this run holds no verdict.**"),
    }
    line("");
    if !run.verdicts().is_empty() {
        table(run.verdicts(), &mut line);
        line("");
    }
    let machine = facts::machine_line(run);
    line(&format!("Machine: {}", machine.map_or("not recorded".to_owned(), |m| escape(&m))));
    line("");
    details(run, &mut line);
    out
}

/// Several runs as Markdown: one table, a row each run and verdict. Ends in a line feed.
pub fn comparison(runs: &[RunData]) -> String {
    let mut out = format!("**{} runs side by side**\n\n", runs.len());
    out.push_str("| run | workload | arm | placement | verdict | effect | ns by band |\n");
    out.push_str("|---|---|---|---|---|---:|---|\n");
    let rows: Vec<(&RunData, &Verdict)> =
        runs.iter().flat_map(|run| run.verdicts().iter().map(move |v| (run, v))).collect();
    for (run, verdict) in rows.iter().take(2 * ROWS) {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            escape(&run.label),
            workload(verdict),
            escape(&verdict.arm),
            words::how_placed(verdict),
            finding(verdict),
            verdict.effect_percent.map_or("-".to_owned(), words::percent),
            escape(&words::bands(verdict)),
        ));
    }
    if rows.len() > 2 * ROWS {
        out.push_str(&format!("\n{} more verdicts stand in report.html.\n", rows.len() - 2 * ROWS));
    }
    out.push('\n');
    for run in runs.iter().take(SENTENCES) {
        let machine = facts::machine_line(run).map_or("not recorded".to_owned(), |m| escape(&m));
        out.push_str(&format!("- {}: {machine}\n", escape(&run.label)));
    }
    out
}

fn workload(verdict: &Verdict) -> String {
    match verdict.len {
        Some(len) => format!("{}, {}", escape(&verdict.workload), words::bytes_in_words(len)),
        None => escape(&verdict.workload),
    }
}

/// The word, in bold where something was found.
fn finding(verdict: &Verdict) -> String {
    match verdict.verdict {
        Finding::Affected => "**affected**".to_owned(),
        other => other.to_string(),
    }
}

fn table(verdicts: &[Verdict], line: &mut impl FnMut(&str)) {
    line("| workload | arm | placement | verdict | effect | interval | ns by band | rule |");
    line("|---|---|---|---|---:|---:|---|---|");
    for verdict in verdicts.iter().take(ROWS) {
        let rule = match words::best_rule(verdict) {
            Some(rule) if verdict.verdict == Finding::Affected => {
                format!("{} ({}/{})", escape(&rule.rule), rule.held.unwrap_or(0), rule.of)
            }
            _ => String::new(),
        };
        line(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {rule} |",
            workload(verdict),
            escape(&verdict.arm),
            words::how_placed(verdict),
            finding(verdict),
            verdict.effect_percent.map_or("-".to_owned(), words::percent),
            words::interval(verdict).unwrap_or_default(),
            escape(&words::bands(verdict)),
        ));
    }
    if verdicts.len() > ROWS {
        line("");
        line(&format!("{} more stand in `verdict.json`.", verdicts.len() - ROWS));
    }
}

fn details(run: &RunData, line: &mut impl FnMut(&str)) {
    line("<details><summary>Details</summary>");
    line("");
    match facts::command_line(run) {
        Some(command) => line(&format!("- Repeat: {}", markdown_code(&command))),
        None => line("- Repeat: the command is not recorded"),
    }
    if run.rows > 0 {
        line(&format!("- Recorded: {} rows in `samples.csv`", run.rows));
    }
    if let Some(lead) = run.verdicts.as_ref().and_then(words::lead) {
        line(&format!("- Interval: {}", escape(&lead.interval_method)));
        for band in lead.bands.iter().take(SENTENCES) {
            let above = words::percent(band.percent_above_fast);
            line(&format!(
                "- Band of {}: {} {}, +{above}, at {}",
                words::name(lead, escape),
                words::figure(band.ns_per_op),
                escape(&lead.unit),
                escape(&words::where_band(lead, band)),
            ));
        }
    }
    let mut reasons: Vec<&String> = Vec::new();
    for reason in run.verdicts().iter().flat_map(|verdict| &verdict.reasons) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    sentences(&reasons, "Note", line);
    sentences(&run.missing.iter().collect::<Vec<_>>(), "Missing", line);
    line("");
    line("</details>");
}

fn sentences(sentences: &[&String], heading: &str, line: &mut impl FnMut(&str)) {
    for sentence in sentences.iter().take(SENTENCES) {
        line(&format!("- {heading}: {}", escape(sentence)));
    }
    if sentences.len() > SENTENCES {
        line(&format!("- {heading}: {} more", sentences.len() - SENTENCES));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::VerdictDocument;
    use crate::report::{fixture, read};

    #[test]
    fn a_run_fits_an_issue_thread() {
        let dir = fixture::run_directory();
        let data = read::run(dir.path()).expect("the fixture is readable");
        insta::assert_snapshot!(run(&data));
    }

    #[test]
    fn nothing_measured_is_still_a_report() {
        let text = run(&RunData::default());
        assert!(text.contains("no verdict") && text.contains("Machine: not recorded"), "{text}");
    }

    proptest! {
        #[test]
        fn below_sixty_lines_and_without_foreign_markup(
            text in "[\\x00-\\x7f]{0,40}", verdicts in 0_usize..60, reasons in 0_usize..30,
        ) {
            let mut verdict = fixture::zmm();
            verdict.workload.clone_from(&text);
            verdict.arm.clone_from(&text);
            verdict.unit.clone_from(&text);
            verdict.rules[0].rule.clone_from(&text);
            verdict.interval_method.clone_from(&text);
            verdict.reasons = (0..reasons).map(|n| format!("{text}{n}")).collect();
            let data = RunData {
                label: text.clone(),
                verdicts: Some(VerdictDocument::new(vec![verdict; verdicts])),
                documents: [("machine".to_owned(), serde_json::json!({"cpu": text})),
                    ("plan".to_owned(), serde_json::json!({"command_line": text}))].into(),
                missing: (0..reasons).map(|n| format!("{text}{n}")).collect(),
                ..RunData::default()
            };
            for page in [run(&data), comparison(&[data.clone(), data])] {
                prop_assert!(page.lines().count() < 60, "{}", page);
                prop_assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
                let ours = ["<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>"];
                let rest = ours.iter().fold(page, |page, tag| page.replace(tag, ""));
                prop_assert!(!rest.contains('<'), "{}", rest);
            }
        }
    }
}
