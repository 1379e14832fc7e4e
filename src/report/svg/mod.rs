//! Pictures as SVG: one chart a file, all drawn on one [`Canvas`].
//!
//! A chart stands alone (`plots/*.svg`, with its own style sheet) or inline in the HTML page, whose
//! style sheet has the same classes. Every mark that a person may ask about carries a `<title>`,
//! which browsers show as a tooltip. Colour is never the only carrier: shapes, places and words say
//! the same. Nothing is loaded from anywhere, and no foreign text reaches the file unescaped.

mod forest;
mod forwarding;
mod heat;
mod pairs;
mod places;
mod residues;

use std::fmt::Write as _;

pub use forest::{ForestRow, forest};
pub use forwarding::forwarding;
pub use heat::{Heat, copies, heat, lengths};
pub use pairs::{PairDifference, pairs};
pub use places::places;
pub use residues::residues;

use super::escape::xml;

/// How a chart is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use<'a> {
    /// `None` for a file of its own; in a page, the prefix of the identifiers, unique in the page.
    pub inline: Option<&'a str>,
    /// About how many dots may be drawn: blocks beyond are thinned, extremes kept.
    pub dots: usize,
}

impl Use<'_> {
    /// A file of its own.
    pub fn file() -> Use<'static> {
        Use { inline: None, dots: 8000 }
    }
}

/// The style sheet of the charts: classes on marks, colours by theme. The page carries it once.
pub const STYLE: &str = include_str!("style.css");

/// An SVG under construction, in user units of one CSS pixel at full size.
pub struct Canvas {
    out: String,
}

impl Canvas {
    /// Begins a picture of the size given, with its title and description for those who cannot see
    /// it. Both are escaped here.
    pub fn new(purpose: Use, width: f64, height: f64, title: &str, description: &str) -> Self {
        let prefix = purpose.inline.unwrap_or("chart");
        let (title, description) = (xml(title), xml(description));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"{prefix}-t {prefix}-d\">\n\
             <title id=\"{prefix}-t\">{title}</title>\n<desc id=\"{prefix}-d\">{description}</desc>\n"
        );
        if purpose.inline.is_none() {
            // Writing to a String cannot fail, here and below.
            let _ = write!(
                out,
                "<style>{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n"
            );
        }
        Canvas { out }
    }

    /// Text at a point; `class` may set anchor and weight.
    pub fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = writeln!(
            self.out,
            "<text x=\"{}\" y=\"{}\" class=\"{class}\">{}</text>",
            n(x),
            n(y),
            xml(text)
        );
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.out,
            "<path d=\"M{} {}L{} {}\" class=\"{class}\"/>",
            n(from.0),
            n(from.1),
            n(to.0),
            n(to.1)
        );
    }

    /// A path whose data are ours.
    pub fn path(&mut self, data: &str, class: &str) {
        if !data.is_empty() {
            let _ = writeln!(self.out, "<path d=\"{data}\" class=\"{class}\"/>");
        }
    }

    /// A rectangle with an optional tooltip; `opacity` below 1 tints it.
    pub fn rect(&mut self, area: Area, class: &str, opacity: Option<f64>, tooltip: Option<&str>) {
        let Area { x, y, width, height } = area;
        let tint = opacity.map(|o| format!(" fill-opacity=\"{o:.2}\"")).unwrap_or_default();
        let _ = write!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{class}\"{tint}",
            n(x),
            n(y),
            n(width),
            n(height)
        );
        match tooltip {
            Some(tooltip) => {
                let _ = writeln!(self.out, "><title>{}</title></rect>", xml(tooltip));
            }
            None => self.out.push_str("/>\n"),
        }
    }

    /// The finished picture.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// A rectangle's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width, at least 0.
    pub width: f64,
    /// Height, at least 0.
    pub height: f64,
}

impl Area {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// A coordinate with one decimal, without trailing zero: short, and finer than a pixel.
pub(super) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A linear scale from values to coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    pub fn at(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        let share = if span > 0.0 { (value - self.low) / span } else { 0.5 };
        self.from + share * (self.to - self.from)
    }

    /// Round values within the scale, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let span = self.high - self.low;
        if !(span.is_finite() && span > 0.0) {
            return vec![self.low];
        }
        let rough = span / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * power)
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        (first..)
            .map(|k| k as f64 * step)
            .take_while(|tick| *tick <= self.high + step * 1e-9)
            .collect()
    }
}

/// A tick's label: as many decimals as its neighbours need.
pub(super) fn tick_label(value: f64, ticks: &[f64]) -> String {
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let decimals = (0..4).find(|d| {
        let scaled = step * 10f64.powi(*d);
        !scaled.is_finite() || (scaled - scaled.round()).abs() < 1e-6
    });
    format!("{value:.*}", decimals.unwrap_or(4) as usize)
}

/// The range of times to show, and what lies above it.
///
/// A few disturbed blocks may be many times slower than every band; with them on a linear scale no
/// band could be seen. The range ends above the slowest band and all but the highest 2 % of the
/// undisturbed blocks; what is above is drawn as a mark on the upper edge.
pub(super) fn time_range(mut values: Vec<f64>, min: f64, max: f64, bands: &[f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let quantile = values.get(values.len().saturating_sub(1) * 98 / 100).copied().unwrap_or(max);
    let top = bands.iter().copied().fold(quantile, f64::max);
    let high = if max > top * 1.15 { top * 1.05 } else { max };
    let span = (high - min).max(high * 0.02);
    (min - 0.06 * span, high + 0.06 * span)
}

/// Axes of a chart of times: horizontal grid lines with labels, and the axis titles.
pub(super) fn frame(canvas: &mut Canvas, area: Area, y: &Scale, y_title: &str, x_title: &str) {
    let ticks = y.ticks(5);
    for tick in &ticks {
        let at = y.at(*tick);
        canvas.line((area.x, at), (area.right(), at), "grid");
        canvas.text(area.x - 6.0, at + 4.0, "tick end", &tick_label(*tick, &ticks));
    }
    canvas.line((area.x, area.bottom()), (area.right(), area.bottom()), "axis");
    canvas.text(area.x - 44.0, area.y - 10.0, "label", y_title);
    canvas.text(area.x + area.width / 2.0, area.bottom() + 52.0, "label middle", x_title);
}

/// `ns an operation`, or the metric's own unit.
pub(super) fn unit_label(unit: &str) -> String {
    if unit.is_empty() || unit == "ns" { "ns an operation".to_owned() } else { unit.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let scale = Scale { low: 57.3, high: 91.0, from: 0.0, to: 1.0 };
        let ticks = scale.ticks(5);
        assert_eq!(ticks, [60.0, 70.0, 80.0, 90.0]);
        assert_eq!(tick_label(60.0, &ticks), "60");
        let fine = Scale { low: 0.55, high: 0.61, from: 0.0, to: 1.0 }.ticks(5);
        assert_eq!(tick_label(fine[0], &fine), "0.56");
        assert_eq!(Scale { low: 1.0, high: 1.0, from: 0.0, to: 1.0 }.ticks(5), [1.0]);
    }

    #[test]
    fn bands_stay_visible_under_a_far_outlier() {
        let mut values: Vec<f64> = (0..1000).map(|n| 59.0 + f64::from(n % 2) * 20.0).collect();
        values.push(900.0);
        let (low, high) = time_range(values, 59.0, 900.0, &[59.0, 79.0]);
        assert!(low < 59.0 && high > 79.0 && high < 100.0, "{low} {high}");
    }

    #[test]
    fn foreign_text_is_text() {
        let mut canvas = Canvas::new(Use::file(), 10.0, 10.0, "<script>", "\u{1b}");
        canvas.text(0.0, 0.0, "label", "</text><script>");
        let svg = canvas.finish();
        assert!(!svg.contains("<script>") && !svg.contains('\u{1b}'), "{svg}");
    }
}
