//! Long inputs in pairs: for each pairing of two offsets, how much the second side takes more than
//! the first, one mark a pass.

use super::{Area, Canvas, Scale, Use, tick_label};

/// One comparison of two offsets in one pass.
#[derive(Clone, Debug, PartialEq)]
pub struct PairDifference {
    /// The pairing: `0 / 1`.
    pub label: String,
    /// Time of the first over the second, minus one, in percent: positive where the first loses.
    pub percent: f64,
}

const WIDTH: f64 = 720.0;
/// Pairings drawn.
const ROWS: usize = 60;

/// The chart; `None` without comparisons.
pub fn pairs(differences: &[PairDifference], purpose: Use) -> Option<String> {
    let mut labels: Vec<&str> = Vec::new();
    for difference in differences {
        if !labels.contains(&difference.label.as_str()) && labels.len() < ROWS {
            labels.push(&difference.label);
        }
    }
    let values = || differences.iter().map(|d| d.percent).filter(|p| p.is_finite());
    let (low, high) = (values().reduce(f64::min)?.min(0.0), values().reduce(f64::max)?.max(0.0));
    let margin = ((high - low) * 0.05).max(0.1);
    let area = Area { x: 190.0, y: 12.0, width: WIDTH - 220.0, height: 22.0 * labels.len() as f64 };
    let x = Scale { low: low - margin, high: high + margin, from: area.x, to: area.right() };
    let lost = values().filter(|p| *p > 0.0).count();
    let description =
        format!("The first offset took longer in {lost} of {} comparisons.", values().count());
    let mut canvas =
        Canvas::new(purpose, WIDTH, area.bottom() + 58.0, "Pairs of input offsets", &description);
    let ticks = x.ticks(6);
    for tick in &ticks {
        canvas.line((x.at(*tick), area.y), (x.at(*tick), area.bottom()), "grid");
        canvas.text(x.at(*tick), area.bottom() + 16.0, "tick middle", &tick_label(*tick, &ticks));
    }
    canvas.line((x.at(0.0), area.y), (x.at(0.0), area.bottom()), "axis");
    let axis = "first offset slower than the second, in percent; one mark a pass";
    canvas.text(area.x + area.width / 2.0, area.bottom() + 40.0, "label middle", axis);
    for (row, label) in labels.iter().enumerate() {
        let y = area.y + 22.0 * (row as f64 + 0.5);
        let short: String = label.chars().take(26).collect();
        canvas.text(area.x - 10.0, y + 4.0, "tick end", &short);
        let marks: Vec<&PairDifference> =
            differences.iter().filter(|d| d.label == *label && d.percent.is_finite()).collect();
        for mark in &marks {
            canvas.line((x.at(mark.percent), y - 6.0), (x.at(mark.percent), y + 6.0), "bar");
        }
        let list: Vec<String> =
            marks.iter().take(12).map(|mark| format!("{:+.2} %", mark.percent)).collect();
        let hit = Area { x: 0.0, y: y - 11.0, width: WIDTH, height: 22.0 };
        canvas.rect(hit, "hit", None, Some(&format!("{label}: {}", list.join(", "))));
    }
    Some(canvas.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mark_a_pass() {
        let differences: Vec<PairDifference> = (0..9)
            .flat_map(|k| (0..3).map(move |pass| (k, pass)))
            .map(|(k, pass)| PairDifference {
                label: format!("{} / {}", k * 64, k * 64 + 1),
                percent: 4.0 + f64::from(pass) * 0.5,
            })
            .collect();
        let svg = pairs(&differences, Use::file()).expect("there are pairs");
        assert_eq!(svg.matches("class=\"bar\"").count(), 27);
        assert!(svg.contains("took longer in 27 of 27"), "{svg}");
        assert!(pairs(&[], Use::file()).is_none());
    }
}
