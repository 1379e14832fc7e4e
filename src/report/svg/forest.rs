//! Effects side by side: one row a verdict, the interval as a bar, the estimate as a mark, the
//! smallest effect that counts as an edge.

use super::{Area, Canvas, Scale, Use, tick_label};
use crate::analysis::{Finding, Verdict};
use crate::report::words;

/// A verdict with the label that it has in the picture.
pub struct ForestRow<'a> {
    /// What the row is: a workload, a machine.
    pub label: String,
    /// The verdict.
    pub verdict: &'a Verdict,
}

const WIDTH: f64 = 720.0;
/// Rows drawn; further ones are counted below the last.
const ROWS: usize = 60;

/// The chart; `None` without any interval.
pub fn forest(rows: &[ForestRow], purpose: Use) -> Option<String> {
    let known: Vec<&ForestRow> =
        rows.iter().filter(|row| row.verdict.effect_high_percent.is_some()).collect();
    let highest =
        known.iter().filter_map(|row| row.verdict.effect_high_percent).reduce(f64::max)?;
    let longest = known.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let left = 16.0 + 7.0 * longest.clamp(8, 40) as f64;
    let shown = known.len().min(ROWS);
    let area = Area { x: left, y: 12.0, width: WIDTH - left - 130.0, height: 24.0 * shown as f64 };
    let min_effect = known.first()?.verdict.min_effect_percent;
    let high = highest.max(2.5 * min_effect);
    let x = Scale { low: 0.0, high, from: area.x, to: area.right() };
    let description =
        format!("{} verdicts; the smallest effect that counts is {min_effect} %.", known.len());
    let mut canvas = Canvas::new(
        purpose,
        WIDTH,
        area.bottom() + 58.0,
        "Effects with their intervals",
        &description,
    );
    let ticks = x.ticks(6);
    for tick in &ticks {
        canvas.line((x.at(*tick), area.y), (x.at(*tick), area.bottom()), "grid");
        canvas.text(x.at(*tick), area.bottom() + 16.0, "tick middle", &tick_label(*tick, &ticks));
    }
    canvas.line((x.at(min_effect), area.y), (x.at(min_effect), area.bottom()), "edge");
    let axis =
        "slowest band above the fastest, in percent; dashed: the smallest effect that counts";
    canvas.text((WIDTH / 2.0).max(280.0), area.bottom() + 40.0, "label middle", axis);
    for (index, row) in known.iter().take(ROWS).enumerate() {
        draw(&mut canvas, row, &x, area, area.y + 24.0 * (index as f64 + 0.5));
    }
    if known.len() > ROWS {
        canvas.text(16.0, area.bottom() + 16.0, "label", &format!("{} more", known.len() - ROWS));
    }
    Some(canvas.finish())
}

fn draw(canvas: &mut Canvas, row: &ForestRow, x: &Scale, area: Area, y: f64) {
    let verdict = row.verdict;
    let label: String = row.label.chars().take(40).collect();
    canvas.text(area.x - 10.0, y + 4.0, "tick end", &label);
    let low = verdict.effect_low_percent.unwrap_or(0.0).max(0.0);
    let high = verdict.effect_high_percent.unwrap_or(low);
    let class = if verdict.verdict == Finding::Affected { "bar affected" } else { "bar" };
    canvas.line((x.at(low), y), (x.at(high).max(x.at(low) + 1.5), y), class);
    if let Some(effect) = verdict.effect_percent {
        canvas.line((x.at(effect), y - 6.0), (x.at(effect), y + 6.0), class);
    }
    let effect =
        verdict.effect_percent.map(|e| format!(" {}", words::percent(e))).unwrap_or_default();
    canvas.text(
        area.right() + 8.0,
        y + 4.0,
        "tick strong",
        &format!("{}{effect}", verdict.verdict),
    );
    let interval = words::interval(verdict).unwrap_or_default();
    let tooltip = format!("{}: {}{effect} (interval {interval})", row.label, verdict.verdict);
    let hit = Area { x: 0.0, y: y - 12.0, width: WIDTH, height: 24.0 };
    canvas.rect(hit, "hit", None, Some(&tooltip));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_row_each_verdict_with_its_word() {
        let verdicts = fixture::verdicts();
        let rows: Vec<ForestRow> = verdicts
            .iter()
            .map(|verdict| ForestRow { label: verdict.workload.clone(), verdict })
            .collect();
        let svg = forest(&rows, Use::file()).expect("there are intervals");
        assert!(svg.contains(">affected 46.1 %</text>"), "{svg}");
        assert_eq!(svg.matches("class=\"hit\"").count(), 5);
        assert!(forest(&[], Use::file()).is_none());
    }
}
