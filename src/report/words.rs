//! What a verdict says, in words and figures that every format shares.

use crate::analysis::{Band, Finding, RuleOutcome, Verdict, VerdictDocument};
use crate::sample::{Grid, Placement, Role};

/// Makes foreign text harmless for one format; see [`super::escape`].
pub type Escape = fn(&str) -> String;

/// The run in one or two plain sentences: what was found of the code that is asked about.
///
/// Subjects come first, then whatever else was measured; the worst finding speaks for all.
/// `escape` makes the names, rules and reasons in it harmless for the format at hand.
pub fn headline(document: &VerdictDocument, escape: Escape) -> String {
    let Some(lead) = lead(document) else {
        return "Nothing was concluded: this run holds no verdict.".to_owned();
    };
    let mut text = sentence(lead, escape);
    if let Some(rule) = rule_sentence(lead, escape) {
        text.push(' ');
        text.push_str(&rule);
    }
    text
}

/// The verdict that the headline is about: subjects before exhibits before controls, affected
/// before inconclusive before clear, the largest effect first.
pub fn lead(document: &VerdictDocument) -> Option<&Verdict> {
    document.verdicts.iter().min_by(|a, b| {
        let effects =
            || b.effect_percent.unwrap_or(0.0).total_cmp(&a.effect_percent.unwrap_or(0.0));
        rank(a).cmp(&rank(b)).then_with(effects)
    })
}

/// How early a verdict is shown: subjects before exhibits before controls, affected before
/// inconclusive before clear.
pub fn rank(verdict: &Verdict) -> (u8, u8) {
    let role = match verdict.role {
        Role::Subject => 0,
        Role::Exhibit => 1,
        Role::Control => 2,
    };
    (role, severity(verdict.verdict))
}

/// Affected 0, inconclusive 1, clear 2.
fn severity(finding: Finding) -> u8 {
    match finding {
        Finding::Affected => 0,
        Finding::Inconclusive => 1,
        Finding::Clear => 2,
    }
}

/// One verdict in one plain sentence.
pub fn sentence(verdict: &Verdict, escape: Escape) -> String {
    let (name, what) = (name(verdict, escape), moved(verdict.placement));
    let min = percent(verdict.min_effect_percent);
    match verdict.verdict {
        Finding::Affected => {
            let difference = match verdict.effect_percent {
                Some(effect) if verdict.unit == "ns" => {
                    format!(
                        "its slowest placements take {} longer than its fastest",
                        percent(effect)
                    )
                }
                Some(effect) => {
                    format!("its worst placements are {} off its best", percent(effect))
                }
                None => "its placements differ".to_owned(),
            };
            let interval =
                interval(verdict).map(|i| format!(" (largest difference {i})")).unwrap_or_default();
            format!("The speed of {name} depends on where {what} is put: {difference}{interval}.")
        }
        Finding::Clear => {
            let high = verdict.effect_high_percent.map_or(String::new(), |high| {
                format!(" (upper end of the interval {})", percent(high))
            });
            format!(
                "The speed of {name} does not depend on where {what} is put, among the placements \
                 visited: no difference reaches {min}{high}."
            )
        }
        Finding::Inconclusive => {
            let reason = verdict.reasons.first();
            // The usual reason quotes the interval itself.
            let quoted = reason.is_some_and(|reason| reason.contains("interval"));
            let interval = interval(verdict)
                .filter(|_| !quoted)
                .map(|i| format!(" The interval is {i}; what counts begins at {min}."))
                .unwrap_or_default();
            let reason = reason.map(|r| format!(" {}", capitalised(&full_stop(&escape(r)))));
            format!(
                "Whether the speed of {name} depends on where {what} is put is not settled.\
                 {interval}{}",
                reason.unwrap_or_default()
            )
        }
    }
}

/// Which rule tells slow from fast, where there are bands and rules were tried.
pub fn rule_sentence(verdict: &Verdict, escape: Escape) -> Option<String> {
    if verdict.verdict != Finding::Affected {
        return None;
    }
    let best = best_rule(verdict)?;
    let held = best.held?;
    // Rules about objects read as a clause once they have their article.
    let article = if best.rule.starts_with(|c: char| c.is_ascii_digit()) { "a " } else { "" };
    let rule = format!("{article}{}", escape(&best.rule));
    Some(if held == best.of {
        format!("It is slow exactly when {rule} (held {held} of {}).", best.of)
    } else {
        format!(
            "No rule tried holds everywhere; the closest is {rule} (held {held} of {}).",
            best.of
        )
    })
}

/// The rule that held for the largest share of placements; the first of equals.
pub fn best_rule(verdict: &Verdict) -> Option<&RuleOutcome> {
    let share = |rule: &RuleOutcome| match rule.held {
        Some(held) if rule.of > 0 => held as f64 / rule.of as f64,
        _ => -1.0,
    };
    verdict
        .rules
        .iter()
        .filter(|rule| rule.held.is_some() && rule.of > 0)
        .rev()
        .max_by(|a, b| share(a).total_cmp(&share(b)))
}

/// A workload with its length: `blake3 at 64 bytes`, and the arm where it is not the default.
pub fn name(verdict: &Verdict, escape: Escape) -> String {
    let mut name = escape(&verdict.workload);
    if let Some(len) = verdict.len {
        name = format!("{name} at {}", bytes_in_words(len));
    }
    let routine = verdict.routine.as_deref().map(|r| format!(", copied by {}", escape(r)));
    let routine = routine.unwrap_or_default();
    if verdict.arm != "default" || !routine.is_empty() {
        name = format!("{name} (arm {}{routine})", escape(&verdict.arm));
    }
    name
}

/// What a placement moves.
fn moved(placement: Placement) -> &'static str {
    match placement {
        Placement::Offset => "its input",
        _ => "its stack",
    }
}

/// How the placements were made, in a few words for a table cell.
pub fn how_placed(verdict: &Verdict) -> String {
    match verdict.grid {
        Some(Grid::Line) => format!("{}/line", verdict.placement),
        Some(Grid::Page) => format!("{}/page", verdict.placement),
        None => verdict.placement.to_string(),
    }
}

/// `64 bytes`, `16 KiB`, `1 MiB`, `1 GiB`; what is no whole multiple stays in bytes.
pub fn bytes_in_words(bytes: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        (bytes >= unit && bytes.is_multiple_of(unit)).then(|| format!("{} {name}", bytes / unit))
    };
    // 4096 stays in bytes: it is known by that figure as the size of a page.
    scaled(1 << 30, "GiB")
        .or_else(|| scaled(1 << 20, "MiB"))
        .or_else(|| if bytes >= 8192 { scaled(1 << 10, "KiB") } else { None })
        .unwrap_or_else(|| format!("{bytes} bytes"))
}

/// `34.7 %`: one decimal, two below 1 (what is flat is flat to hundredths).
pub fn percent(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.2} %")
    } else {
        format!("{value:.1} %")
    }
}

/// `33.9 to 35.1 %`, where there is an interval.
pub fn interval(verdict: &Verdict) -> Option<String> {
    let (low, high) = (verdict.effect_low_percent?, verdict.effect_high_percent?);
    let digits = if high < 1.0 { 2 } else { 1 };
    Some(format!("{low:.digits$} to {high:.digits$} %"))
}

/// A figure with four significant digits or so: `0.5512`, `2.43`, `59.0`, `280.7`, `4101`.
pub fn figure(value: f64) -> String {
    match value.abs() {
        a if a >= 1000.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 1.0 || a == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The bands' times with their unit, fastest first; of many bands only the ends.
pub fn bands(verdict: &Verdict) -> String {
    let times: Vec<String> = verdict.bands.iter().map(|band| figure(band.ns_per_op)).collect();
    match times.as_slice() {
        [] => String::new(),
        [one] => format!("{one} {}", verdict.unit),
        [first, .., last] if times.len() > 4 => {
            format!("{first} … {last} {} ({} bands)", verdict.unit, times.len())
        }
        many => format!("{} {}", many.join(" / "), verdict.unit),
    }
}

/// Where a band lies: its residues with their modulus, or its placement values; cut after a few.
pub fn where_band(verdict: &Verdict, band: &Band) -> String {
    let list = |values: Vec<String>| match values.len() {
        0..=8 => values.join(", "),
        n => format!("{}, … ({n} in all)", values[..6].join(", ")),
    };
    match verdict.period_bytes {
        Some(period) if !band.residues.is_empty() => {
            let residues = list(band.residues.iter().map(u64::to_string).collect());
            format!("{residues} mod {period}")
        }
        _ if !band.placements.is_empty() => {
            let placements = list(band.placements.iter().map(i64::to_string).collect());
            format!("{} {placements}", verdict.placement)
        }
        _ => list(band.residues.iter().map(u64::to_string).collect()),
    }
}

/// The text as the beginning of a sentence.
fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// The text with a full stop, unless it ends in punctuation.
fn full_stop(text: &str) -> String {
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::escape::plain;
    use crate::report::fixture;

    #[test]
    fn affected_names_effect_interval_and_rule() {
        let verdict = fixture::zmm();
        assert_eq!(
            headline(&VerdictDocument::new(vec![verdict]), plain),
            "The speed of blake3 at 64 bytes (arm zmm) depends on where its stack is put: its \
             slowest placements take 46.1 % longer than its fastest (largest difference 45.2 to \
             47.0 %). It \
             is slow exactly when buf & 31 != 0 (held 16 of 16)."
        );
    }

    #[test]
    fn the_worst_subject_leads_before_any_exhibit() {
        let document = VerdictDocument::new(fixture::verdicts());
        let lead = lead(&document).map(|v| (v.workload.as_str(), v.arm.as_str()));
        assert_eq!(lead, Some(("blake3", "default")));
        assert!(headline(&VerdictDocument::new(vec![]), plain).contains("no verdict"));
    }

    #[test]
    fn inconclusive_says_why() {
        let text = sentence(&fixture::inconclusive(), plain);
        assert!(text.contains("not settled") && text.contains("1.0 to 6.0 %"), "{text}");
        assert!(text.to_lowercase().contains("order predicts placement"), "{text}");
    }

    #[test]
    fn figures_keep_about_four_digits() {
        let shown = [0.5512, 2.43, 59.04, 280.71, 4101.2, 0.0].map(figure);
        assert_eq!(shown, ["0.551", "2.43", "59.0", "280.7", "4101", "0.00"]);
        assert_eq!(bytes_in_words(64), "64 bytes");
        assert_eq!(bytes_in_words(4096), "4096 bytes");
        assert_eq!(bytes_in_words(1 << 20), "1 MiB");
    }
}
