//! Every block as a dot over the buffer's residue 0 to 63, with `buf & 31` marked.
//!
//! Dots of one launch stand beside those of the next, so that a launch that went its own way can be
//! seen. Round dots are buffers at a multiple of 32, square ones are not.

use std::fmt::Write as _;

use super::{Area, Canvas, Scale, Use, frame, n, time_range, unit_label};
use crate::analysis::Verdict;
use crate::report::run::SampleSeries;
use crate::report::thin::{Bucket, Dot};
use crate::report::words;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 330.0;
const AREA: Area = Area { x: 56.0, y: 30.0, width: 420.0, height: 232.0 };

/// The chart; `None` where no block has a residue.
pub fn residues(series: &SampleSeries, verdict: Option<&Verdict>, purpose: Use) -> Option<String> {
    let buckets = &series.blocks.residues;
    let min = buckets.values().map(|b| b.min.value).reduce(f64::min)?;
    let max = buckets.values().map(|b| b.max.value).reduce(f64::max)?;
    // Bands are levels of this chart only where they are classes of residues within a line.
    let verdict = verdict.filter(|v| v.period_bytes.is_none_or(|period| period <= 64));
    let bands: Vec<f64> =
        verdict.map_or(Vec::new(), |v| v.bands.iter().map(|band| band.ns_per_op).collect());
    let quiet =
        |b: &Bucket| b.kept().iter().filter(|d| !d.disturbed).map(|d| d.value).collect::<Vec<_>>();
    let (low, high) = time_range(buckets.values().flat_map(quiet).collect(), min, max, &bands);
    let y = Scale { low, high, from: AREA.bottom(), to: AREA.y };
    let title = title(series, verdict);
    let mut canvas = Canvas::new(purpose, WIDTH, HEIGHT, &title, &description(series, verdict));
    halves(&mut canvas);
    frame(
        &mut canvas,
        AREA,
        &y,
        &unit_label(&series.key.unit),
        "residue of the buffer in its line: buf & 63",
    );
    axis(&mut canvas, buckets.keys().copied());
    band_lines(&mut canvas, verdict, &y);
    let room = (purpose.dots / buckets.len()).max(8);
    for (residue, bucket) in buckets {
        let column = Column {
            residue: *residue,
            launches: series.blocks.launches,
            spread: spread(buckets.keys()),
        };
        column.draw(&mut canvas, bucket, &y, room, &series.key.unit);
    }
    Some(canvas.finish())
}

fn title(series: &SampleSeries, verdict: Option<&Verdict>) -> String {
    let key = &series.key;
    let what = verdict.map_or_else(|| key.workload.clone(), |v| words::name(v, str::to_owned));
    format!("{what}, {} {}: every block by residue", key.probe, key.params)
}

fn description(series: &SampleSeries, verdict: Option<&Verdict>) -> String {
    let drawn = if series.blocks.residues.values().all(Bucket::is_whole) {
        format!("All {} blocks.", series.blocks.rows)
    } else {
        format!(
            "A uniform sample of {} blocks; the fastest and the slowest of each residue are always drawn.",
            series.blocks.rows
        )
    };
    let found = verdict.map(|v| format!(" {}", words::sentence(v, str::to_owned)));
    drawn + &found.unwrap_or_default()
}

fn x_of(residue: u8) -> f64 {
    AREA.x + (f64::from(residue) + 0.5) / 64.0 * AREA.width
}

/// How far dots may stand from their residue: less than half the distance to the next one.
fn spread<'a>(residues: impl Iterator<Item = &'a u8>) -> f64 {
    let all: Vec<u8> = residues.copied().collect();
    let nearest = all.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(64);
    (f64::from(nearest) * 0.35).min(3.0) * AREA.width / 64.0
}

/// Tints the two residues at which `buf & 31` is 0: what the rule calls aligned.
fn halves(canvas: &mut Canvas) {
    let width = 7.0 * AREA.width / 64.0;
    for residue in [0, 32] {
        let x = (x_of(residue) - width / 2.0).max(AREA.x);
        let area = Area { x, width: x_of(residue) + width / 2.0 - x, ..AREA };
        canvas.rect(area, "half", None, Some("buf & 31 = 0: the buffer is aligned to 32 bytes"));
    }
}

fn axis(canvas: &mut Canvas, visited: impl Iterator<Item = u8>) {
    let visited: Vec<u8> = visited.collect();
    let labelled: Vec<u8> =
        if visited.len() <= 8 { visited } else { vec![0, 8, 16, 24, 32, 40, 48, 56, 63] };
    for residue in labelled {
        let x = x_of(residue);
        canvas.line((x, AREA.bottom()), (x, AREA.bottom() + 4.0), "axis");
        canvas.text(x, AREA.bottom() + 17.0, "tick middle", &residue.to_string());
        canvas.text(x, AREA.bottom() + 33.0, "tick middle", &(residue & 31).to_string());
    }
    canvas.text(AREA.x - 6.0, AREA.bottom() + 17.0, "tick end", "& 63");
    canvas.text(AREA.x - 6.0, AREA.bottom() + 33.0, "tick end", "& 31");
}

/// The verdict's bands as dashed levels, each with its figures at the right.
fn band_lines(canvas: &mut Canvas, verdict: Option<&Verdict>, y: &Scale) {
    let Some(verdict) = verdict.filter(|v| !v.bands.is_empty() && v.bands.len() <= 6) else {
        return;
    };
    let mut last = f64::INFINITY;
    for (index, band) in verdict.bands.iter().enumerate() {
        let at = y.at(band.ns_per_op);
        canvas.line((AREA.x, at), (AREA.right(), at), "band");
        // Labels of near bands would overprint: each keeps a line's distance from the one below.
        let label = (at + 4.0).min(last - 14.0);
        last = label;
        let above = if index == 0 {
            String::new()
        } else {
            format!(" +{}", words::percent(band.percent_above_fast))
        };
        let text = format!("{}{above}", words::figure(band.ns_per_op));
        canvas.text(AREA.right() + 6.0, label, "tick strong", &text);
    }
}

/// One residue's dots.
struct Column {
    residue: u8,
    launches: u32,
    spread: f64,
}

impl Column {
    fn draw(&self, canvas: &mut Canvas, bucket: &Bucket, y: &Scale, room: usize, unit: &str) {
        let (mut quiet, mut noisy, mut over) = (String::new(), String::new(), String::new());
        for (index, dot) in bucket.dots(room).iter().enumerate() {
            let x = self.x(dot, index);
            // Writing to a String cannot fail.
            let _ = if dot.value > y.high {
                write!(over, "M{} {}l3 6h-6z", n(x), n(y.to - 6.0))
            } else {
                let path = if dot.disturbed { &mut noisy } else { &mut quiet };
                write!(path, "M{} {}h0", n(x), n(y.at(dot.value)))
            };
        }
        let class = if self.residue.is_multiple_of(32) { "even" } else { "odd" };
        canvas.path(&noisy, &format!("{class} noisy"));
        canvas.path(&quiet, class);
        canvas.path(&over, "over");
        let width = (self.spread * 2.0).max(AREA.width / 64.0);
        let area = Area { x: x_of(self.residue) - width / 2.0, width, ..AREA };
        canvas.rect(area, "hit", None, Some(&self.tooltip(bucket, unit)));
    }

    /// Launches side by side, and the blocks of one launch in a narrow stripe.
    fn x(&self, dot: &Dot, index: usize) -> f64 {
        let lanes = f64::from(self.launches.clamp(1, 12));
        let lane = f64::from(dot.launch % 12) + 0.2 + 0.6 * ((index * 7) % 11) as f64 / 11.0;
        x_of(self.residue) + self.spread * (2.0 * lane / lanes - 1.0)
    }

    fn tooltip(&self, bucket: &Bucket, unit: &str) -> String {
        let unit = if unit.is_empty() { "ns" } else { unit };
        let estimate = if bucket.is_whole() { "median" } else { "median about" };
        let disturbed = match bucket.disturbed {
            0 => String::new(),
            n => format!("; {n} disturbed, drawn pale"),
        };
        format!(
            "residue {} (buf & 31 = {}): {} blocks, {} to {} {unit}, {estimate} {}{disturbed}",
            self.residue,
            self.residue & 31,
            bucket.count,
            words::figure(bucket.min.value),
            words::figure(bucket.max.value),
            words::figure(bucket.median()),
        )
    }
}
