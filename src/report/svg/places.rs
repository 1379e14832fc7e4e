//! Time by placement: the page grid, the padding sweep, input offsets.
//!
//! Dots are blocks, the line joins the medians of neighbouring placements. Where every placement
//! fixes the buffer's place in its page, that place is the axis, and two periods of a sweep lie on
//! each other.

use std::fmt::Write as _;

use super::{Area, Canvas, Scale, Use, frame, n, tick_label, time_range, unit_label};
use crate::analysis::Verdict;
use crate::report::run::SampleSeries;
use crate::report::thin::{Bucket, Place};
use crate::report::words;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 330.0;
const AREA: Area = Area { x: 56.0, y: 30.0, width: 820.0, height: 236.0 };

/// A place on the horizontal axis, in bytes, with what was measured there.
struct Point<'a> {
    at: f64,
    label: String,
    bucket: &'a Bucket,
}

/// The chart; `None` where no placement has a block.
pub fn places(series: &SampleSeries, verdict: Option<&Verdict>, purpose: Use) -> Option<String> {
    let (points, axis) = points(series);
    let min = points.iter().map(|p| p.bucket.min.value).reduce(f64::min)?;
    let max = points.iter().map(|p| p.bucket.max.value).reduce(f64::max)?;
    let bands: Vec<f64> =
        verdict.map_or(Vec::new(), |v| v.bands.iter().map(|band| band.ns_per_op).collect());
    let quiet = |p: &Point| {
        p.bucket.kept().iter().filter(|d| !d.disturbed).map(|d| d.value).collect::<Vec<_>>()
    };
    let (low, high) = time_range(points.iter().flat_map(quiet).collect(), min, max, &bands);
    let y = Scale { low, high, from: AREA.bottom(), to: AREA.y };
    let (first, last) = (points.first()?.at, points.last()?.at);
    let x = Scale { low: first, high: last, from: AREA.x + 4.0, to: AREA.right() - 4.0 };
    let key = &series.key;
    let what = verdict.map_or_else(|| key.workload.clone(), |v| words::name(v, str::to_owned));
    let title = format!("{what}, {} {}: time by {axis}", key.probe, key.params);
    let description = verdict.map_or(String::new(), |v| words::sentence(v, str::to_owned));
    let mut canvas = Canvas::new(purpose, WIDTH, HEIGHT, &title, &description);
    frame(&mut canvas, AREA, &y, &unit_label(&key.unit), &axis);
    horizontal(&mut canvas, &x);
    levels(&mut canvas, verdict, &y);
    draw(&mut canvas, &points, &x, &y, purpose.dots);
    hits(&mut canvas, &points, &x, &key.unit, purpose.dots);
    Some(canvas.finish())
}

/// The places in order along the axis, and what the axis is.
fn points(series: &SampleSeries) -> (Vec<Point<'_>>, String) {
    let places = &series.blocks.places;
    let placement =
        if series.key.placement.is_empty() { "placement" } else { &series.key.placement };
    let in_page = |place: &Place| place.page_offset.map(f64::from);
    let by_page = places.len() > 16 && places.values().all(|place| place.page_offset.is_some());
    let mut points: Vec<Point> = places
        .iter()
        .map(|(value, place)| Point {
            at: if by_page { in_page(place).unwrap_or_default() } else { *value as f64 },
            label: match place.page_offset {
                Some(offset) => format!("{placement} {value}, buf & 4095 = {offset}"),
                None if series.blocks.width > 1 => {
                    format!(
                        "{placement} {value} to {}",
                        value.saturating_add(series.blocks.width - 1)
                    )
                }
                None => format!("{placement} {value}"),
            },
            bucket: &place.bucket,
        })
        .collect();
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    let axis = if by_page {
        "the buffer's place in its page: buf & 4095".to_owned()
    } else {
        match placement {
            "pad" => "environment padding in bytes".to_owned(),
            "shift" => "trampoline shift in bytes".to_owned(),
            "offset" => "offset of the input in its slab, in bytes".to_owned(),
            "aslr" => "stack address modulo 8192".to_owned(),
            other => format!("{other}, in bytes"),
        }
    };
    (points, axis)
}

/// Ticks at multiples of 512, 64 or 16 bytes where these are few; else at round numbers.
fn horizontal(canvas: &mut Canvas, x: &Scale) {
    let span = x.high - x.low;
    let binary = [16.0, 64.0, 512.0, 1024.0].into_iter().find(|step| span / step <= 10.0);
    let ticks = match binary {
        Some(step) if span >= step => {
            let first = (x.low / step).ceil() as i64;
            (first..).map(|k| k as f64 * step).take_while(|tick| *tick <= x.high).collect()
        }
        _ => x.ticks(8),
    };
    for tick in &ticks {
        let at = x.at(*tick);
        canvas.line((at, AREA.bottom()), (at, AREA.bottom() + 4.0), "axis");
        canvas.text(at, AREA.bottom() + 18.0, "tick middle", &tick_label(*tick, &ticks));
    }
}

/// The verdict's bands as labels at the right edge, few of them.
fn levels(canvas: &mut Canvas, verdict: Option<&Verdict>, y: &Scale) {
    let Some(verdict) = verdict.filter(|v| !v.bands.is_empty() && v.bands.len() <= 6) else {
        return;
    };
    let mut last = f64::INFINITY;
    for (index, band) in verdict.bands.iter().enumerate() {
        let at = y.at(band.ns_per_op);
        canvas.line((AREA.x, at), (AREA.right(), at), "band");
        let label = (at + 4.0).min(last - 14.0);
        last = label;
        let above = if index == 0 {
            String::new()
        } else {
            format!(" +{}", words::percent(band.percent_above_fast))
        };
        canvas.text(
            AREA.right() + 6.0,
            label,
            "tick strong",
            &format!("{}{above}", words::figure(band.ns_per_op)),
        );
    }
}

fn draw(canvas: &mut Canvas, points: &[Point], x: &Scale, y: &Scale, dots: usize) {
    let room = (dots / points.len().max(1)).max(3);
    let (mut quiet, mut noisy, mut over, mut medians) =
        (String::new(), String::new(), String::new(), String::new());
    for point in points {
        let at = x.at(point.at);
        for dot in point.bucket.dots(room) {
            // Writing to a String cannot fail, here and below.
            let _ = if dot.value > y.high {
                write!(over, "M{} {}l3 6h-6z", n(at), n(y.to - 6.0))
            } else {
                let path = if dot.disturbed { &mut noisy } else { &mut quiet };
                write!(path, "M{} {}h0", n(at), n(y.at(dot.value)))
            };
        }
        let command = if medians.is_empty() { 'M' } else { 'L' };
        let _ =
            write!(medians, "{command}{} {}", n(at), n(y.at(point.bucket.median().min(y.high))));
    }
    canvas.path(&noisy, "even small noisy");
    canvas.path(&quiet, "odd small");
    canvas.path(&over, "over");
    canvas.path(&medians, "median");
}

/// Tooltips: one a place, or one for a few neighbours where there are more places than pixels.
fn hits(canvas: &mut Canvas, points: &[Point], x: &Scale, unit: &str, dots: usize) {
    let unit = if unit.is_empty() { "ns" } else { unit };
    // A tooltip takes as much room as ten dots.
    let room = (dots / 25).clamp(40, 300);
    let share = points.len().div_ceil(room).max(1);
    for group in points.chunks(share) {
        let slowest = group.iter().max_by(|a, b| a.bucket.median().total_cmp(&b.bucket.median()));
        let (Some(slowest), Some(first), Some(last)) = (slowest, group.first(), group.last())
        else {
            continue;
        };
        let count: u64 = group.iter().map(|p| p.bucket.count).sum();
        let (from, to) = (x.at(first.at) - 2.0, x.at(last.at) + 2.0);
        let more = if group.len() > 1 {
            format!(" (slowest of {} places)", group.len())
        } else {
            String::new()
        };
        let tooltip = format!(
            "{}{more}: {count} blocks, median {} {unit}, {} to {}",
            slowest.label,
            words::figure(slowest.bucket.median()),
            words::figure(slowest.bucket.min.value),
            words::figure(slowest.bucket.max.value),
        );
        canvas.rect(Area { x: from, width: to - from, ..AREA }, "hit", None, Some(&tooltip));
    }
}
