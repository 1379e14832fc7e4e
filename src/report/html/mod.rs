//! `report.html`: one self-contained page, of one run or of several.
//!
//! No network, no fonts, no script: the page is text, tables and inline SVG with a style sheet for
//! light, dark and paper. Rust builds sections (only those whose data exist), the template lays
//! them out and escapes every text; charts and tables of foreign documents arrive already escaped.

mod compare;
mod section;
mod sections;
mod tree;

use minijinja::{Environment, Value, context};

use super::run::RunData;
use crate::Failure;

use section::Section;

/// Dots in all charts of one page: about a megabyte of paths.
const DOTS: usize = 60_000;

/// The page of one run, or the comparison of several. Self-contained HTML.
///
/// # Errors
/// When the template cannot be rendered, which is a fault of the program.
pub fn page(runs: &[RunData]) -> Result<String, Failure> {
    let (title, verdict, sections) = match runs {
        [run] => {
            let (verdict, sections) = sections::of(run, DOTS);
            (format!("stackphase: {}", run.label), verdict, sections)
        }
        many => {
            let (verdict, sections) = compare::of(many, DOTS);
            (format!("stackphase: {} runs compared", many.len()), verdict, sections)
        }
    };
    render(&title, &verdict, &sections).map_err(|error| {
        Failure::new(
            format!("cannot render the page: {error:#}"),
            "report.html",
            "report this as a fault",
        )
    })
}

fn render(title: &str, verdict: &str, sections: &[Section]) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    // The name ends in .html, so every value is escaped unless it is marked as safe.
    environment.add_template("report.html", include_str!("report.html"))?;
    let style = format!("{}{}", include_str!("style.css"), super::svg::STYLE);
    environment.get_template("report.html")?.render(context! {
        title => super::escape::plain(title),
        verdict => super::escape::plain(verdict),
        style => Value::from_safe_string(style),
        version => env!("CARGO_PKG_VERSION"),
        sections => sections.iter().map(Section::to_value).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::VerdictDocument;
    use crate::report::{fixture, read};

    fn fixture_run() -> RunData {
        let dir = fixture::run_directory();
        read::run(dir.path()).expect("the fixture is readable")
    }

    #[test]
    fn the_verdict_comes_first_and_every_section_with_data_is_there() {
        let page = page(&[fixture_run()]).expect("the template renders");
        let verdict = page.find("class=\"verdict\"").expect("there is a verdict");
        assert!(verdict < page.find("<nav").expect("there is a table of contents"));
        for id in [
            "verdicts",
            "residues",
            "page",
            "copies",
            "forwarding",
            "explanation",
            "controls",
            "machine",
            "method",
            "repeat",
            "missing",
        ] {
            assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
        }
        for absent in ["padding", "input", "pairs", "trace"] {
            assert!(!page.contains(&format!("<section id=\"{absent}\"")), "{absent}");
        }
        assert!(page.contains("stackphase pad measures it"), "what is missing names its command");
    }

    #[test]
    fn figures_equal_the_verdict_document() {
        let page = page(&[fixture_run()]).expect("the template renders");
        for effect in fixture::verdicts().iter().filter_map(|v| v.effect_percent) {
            assert!(page.contains(&format!("<data value=\"{effect}\">")), "{effect}");
        }
    }

    #[test]
    fn nothing_is_loaded_and_identifiers_are_unique() {
        let page = page(&[fixture_run()]).expect("the template renders");
        assert!(!page.contains("<script") && !page.contains("@import") && !page.contains("url("));
        for (at, _) in page.match_indices("http") {
            let rest = &page[at..at + 26];
            assert!(
                rest == "http://www.w3.org/2000/svg" || rest.starts_with("http-equiv"),
                "{rest}"
            );
        }
        let mut seen = std::collections::HashSet::new();
        for part in page.split(" id=\"").skip(1) {
            let id = part.split('"').next().unwrap_or_default();
            assert!(seen.insert(id), "{id} twice");
        }
    }

    #[test]
    fn empty_and_several_runs_are_pages() {
        let empty = page(&[RunData::default()]).expect("the template renders");
        assert!(empty.contains("Nothing was concluded"), "{empty}");
        let two = page(&[fixture_run(), RunData::default()]).expect("the template renders");
        assert!(
            two.contains(
                "Of 2 runs 1 is affected, 0 inconclusive and 0 clear, 1 without a verdict."
            )
        );
    }

    #[test]
    fn a_million_blocks_are_a_page_below_two_megabytes() {
        let mut run = fixture_run();
        for series in &mut run.series {
            let mut random = fastrand::Rng::with_seed(1);
            for n in 0..200_000_u32 {
                let dot = crate::report::Dot {
                    value: 59.0 + random.f64(),
                    launch: n % 3,
                    disturbed: false,
                };
                series.blocks.add(i64::from(n % 512) * 16, Some((n % 64) as u8), None, dot);
            }
        }
        let page = page(&[run]).expect("the template renders");
        assert!(page.len() < 2_000_000, "{}", page.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn hostile_text_is_text(text in "[\\x00-\\x7f\u{202e}]{0,40}") {
            let hostile = format!("</title></style><script>x</script>{text}");
            let mut verdict = fixture::zmm();
            verdict.workload.clone_from(&hostile);
            verdict.arm.clone_from(&hostile);
            verdict.unit.clone_from(&hostile);
            verdict.probe.clone_from(&hostile);
            verdict.rules[0].rule.clone_from(&hostile);
            verdict.interval_method.clone_from(&hostile);
            verdict.reasons = vec![hostile.clone()];
            let document = serde_json::json!({hostile.clone(): hostile, "command_line": hostile,
                "cells": [{"store_bytes": 8, "load_bytes": 8, "offset": 0, "ns": 1.0, "class": hostile, "form": hostile}]});
            let mut run = RunData {
                label: hostile.clone(),
                verdicts: Some(VerdictDocument::new(vec![verdict.clone(), fixture::zmm()])),
                missing: vec![hostile.clone()],
                ..RunData::default()
            };
            for kind in ["machine", "plan", "forwarding", "explanation", "odd"] {
                run.documents.insert(kind.to_owned(), document.clone());
            }
            let mut blocks = crate::report::Thinned::default();
            blocks.add(0, Some(0), None, crate::report::Dot { value: 1.0, launch: 0, disturbed: false });
            blocks.add(1, Some(1), None, crate::report::Dot { value: 2.0, launch: 0, disturbed: false });
            run.series.push(crate::report::SampleSeries { key: crate::report::Key::of(&verdict), blocks });
            for page in [page(&[run.clone()]), page(&[run.clone(), run])] {
                let page = page.expect("the template renders");
                prop_assert!(!page.contains("<script"));
                let commands = page.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
                prop_assert!(!commands);
            }
        }
    }
}
