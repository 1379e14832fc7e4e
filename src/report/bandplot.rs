//! Bands by residue, drawn in plain characters.
//!
//! A few classes become one horizontal bar each, which starts at zero; many become one column each
//! over a scale from the fastest to the slowest band. Figures and words stand beside every mark.

use super::escape::plain;
use super::text::TextOptions;
use super::words;
use crate::analysis::Verdict;

/// Classes up to which each is a bar of its own.
const BARS: usize = 16;
/// Lines of the column plot between its scale and its axis.
const HEIGHT: usize = 8;

/// One class of placements and the band that it belongs to.
struct Class {
    at: i64,
    band: usize,
}

/// The bands of one verdict over residues (or placements). Ends in a line feed; empty where there
/// are no bands.
pub fn band_plot(verdict: &Verdict, options: &TextOptions) -> String {
    let classes = classes(verdict);
    if classes.is_empty() {
        return String::new();
    }
    let axis = match verdict.period_bytes {
        Some(period) => format!("buf mod {period}"),
        None => verdict.placement.to_string(),
    };
    if classes.len() <= BARS {
        bars(verdict, &classes, &axis, options)
    } else {
        columns(verdict, &classes, &axis, options)
    }
}

/// Every class with its band, in order of place; residues where the verdict has a period.
fn classes(verdict: &Verdict) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    for (band, members) in verdict.bands.iter().enumerate() {
        let by_residue = verdict.period_bytes.is_some() && !members.residues.is_empty();
        if by_residue || members.placements.is_empty() {
            let place = |r: &u64| i64::try_from(*r).unwrap_or(i64::MAX);
            classes.extend(members.residues.iter().map(|r| Class { at: place(r), band }));
        } else {
            classes.extend(members.placements.iter().map(|p| Class { at: *p, band }));
        }
    }
    classes.sort_by_key(|class| class.at);
    classes
}

fn title(verdict: &Verdict, axis: &str) -> String {
    let unit =
        if verdict.unit == "ns" { "ns an operation".to_owned() } else { plain(&verdict.unit) };
    let how = words::how_placed(verdict);
    format!("{}, {how}: {unit} by {axis}", words::name(verdict, plain))
}

fn bars(verdict: &Verdict, classes: &[Class], axis: &str, options: &TextOptions) -> String {
    let slowest = verdict.bands.iter().map(|band| band.ns_per_op).fold(0.0, f64::max);
    let roomy = options.width >= 60;
    let rows: Vec<(String, f64, String)> = classes
        .iter()
        .map(|class| {
            let band = &verdict.bands[class.band];
            // Where the period is a line, whether the buffer is 32-byte aligned is what the rule
            // is about.
            let aligned = match verdict.period_bytes {
                Some(64) if roomy => format!(" & 31 = {:<2}", class.at & 31),
                _ => String::new(),
            };
            let above = if class.band == 0 {
                if roomy { "fastest band".to_owned() } else { "fastest".to_owned() }
            } else {
                format!("+{}", words::percent(band.percent_above_fast))
            };
            let label = format!("{:>6}{aligned}", class.at);
            (label, band.ns_per_op, format!("{:>7}  {above}", words::figure(band.ns_per_op)))
        })
        .collect();
    let widest = |part: fn(&(String, f64, String)) -> &str| {
        rows.iter().map(|row| part(row).chars().count()).max().unwrap_or(0)
    };
    let around = widest(|row| &row.0) + widest(|row| &row.2) + " |".len() + " ".len();
    let room = options.width.min(100).saturating_sub(around);
    let mut out = super::text::wrap(&title(verdict, axis), options.width, "  ");
    for (label, value, figures) in rows {
        let length =
            if slowest > 0.0 { (value / slowest * room as f64).round() as usize } else { 0 };
        let bar = "#".repeat(length.min(room));
        out.push_str(format!("{label} |{bar:<room$} {figures}").trim_end());
        out.push('\n');
    }
    out
}

fn columns(verdict: &Verdict, classes: &[Class], axis: &str, options: &TextOptions) -> String {
    let times: Vec<f64> = verdict.bands.iter().map(|band| band.ns_per_op).collect();
    let low = times.iter().copied().fold(f64::INFINITY, f64::min);
    let high = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = words::figure(high).len().max(words::figure(low).len()).max(4);
    let room = options.width.min(140).saturating_sub(scale + " |".len()).max(8);
    // Several classes share a column where there are more than columns: every band among them gets
    // its mark, so that a single slow placement cannot vanish; the caption says how many share.
    let share = classes.len().div_ceil(room);
    let shared: Vec<&[Class]> = classes.chunks(share).collect();
    let level = |band: usize| {
        let span = high - low;
        if span > 0.0 {
            ((times[band] - low) / span * (HEIGHT - 1) as f64).round() as usize
        } else {
            0
        }
    };
    let mut out = super::text::wrap(&title(verdict, axis), options.width, "  ");
    for row in (0..HEIGHT).rev() {
        let here = (0..times.len()).find(|band| level(*band) == row);
        let label = here.map(|band| words::figure(times[band])).unwrap_or_default();
        let marks: String = shared
            .iter()
            .map(|column| column.iter().map(|class| class.band).filter(|b| level(*b) == row).max())
            .map(|band| band.map_or(' ', mark))
            .collect();
        out.push_str(format!("{label:>scale$} |{marks}").trim_end());
        out.push('\n');
    }
    let (first, last) = (classes[0].at.to_string(), classes[classes.len() - 1].at.to_string());
    let space = shared.len().saturating_sub(first.len()).max(last.len() + 1);
    out.push_str(&format!("{:>scale$} +{}\n", "", "-".repeat(shared.len())));
    out.push_str(&format!("{:>scale$}  {first}{last:>space$}\n", ""));
    let mut caption = String::from("  1 = fastest band");
    if share > 1 {
        caption.push_str(&format!("; each column holds {share} places"));
    }
    out.push_str(&super::text::wrap(&caption, options.width, "  "));
    out
}

/// The mark of a band: its number, then letters, so that bands are told apart without colour.
fn mark(band: usize) -> char {
    u32::try_from(band + 1).ok().and_then(|n| char::from_digit(n, 36)).unwrap_or('*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_line_is_four_bars() {
        insta::assert_snapshot!(band_plot(&fixture::zmm(), &TextOptions::default()));
    }

    #[test]
    fn a_page_is_columns_that_keep_the_slow_ones() {
        let plot = band_plot(&fixture::page(), &TextOptions::default());
        insta::assert_snapshot!(plot);
        // Two slow placements among 256: thinning four to a column must not lose them.
        assert!(plot.contains('2') && plot.contains('3'), "{plot}");
    }

    #[test]
    fn widths_are_respected_and_nothing_is_drawn_of_nothing() {
        for width in 30..160 {
            let options = TextOptions { width, color: false };
            for verdict in fixture::verdicts() {
                let plot = band_plot(&verdict, &options);
                assert!(plot.lines().all(|line| line.chars().count() <= width), "{width}\n{plot}");
            }
        }
        let mut empty = fixture::zmm();
        empty.bands.clear();
        assert_eq!(band_plot(&empty, &TextOptions::default()), "");
    }
}
