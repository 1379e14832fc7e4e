//! What a person reads below the verdicts of a sweep.

use std::fmt::Write;
use std::path::Path;

use super::summary::Summary;
use crate::analysis::{Finding, PlacedLaunch};
use crate::report::escape::plain;
use crate::report::text::{TextOptions, wrap};
use crate::report::words;

/// Launches that are listed one by one in text; the document has all.
const LISTED: usize = 16;
/// How the reason about threads begins.
const THREADS: &str = "this axis does not move thread stacks";

fn arm_of(arm: &str) -> String {
    if arm == "default" { String::new() } else { format!(" ({})", plain(arm)) }
}

impl Summary {
    /// What a person reads below the verdicts. Ends in a line feed.
    pub fn text(&self, options: &TextOptions, kept_in: &Path) -> String {
        let mut lines = Vec::new();
        self.periods(&mut lines);
        self.averages(&mut lines);
        self.launches(&mut lines);
        self.controls(&mut lines);
        let mut out = String::from("\n");
        lines.iter().for_each(|line| out.push_str(&wrap(line, options.width, "  ")));
        // A path is not wrapped: it is to be copied.
        let _ = writeln!(out, "kept in {}", kept_in.display());
        out
    }

    fn periods(&self, lines: &mut Vec<String>) {
        for verdict in &self.verdicts.verdicts {
            let name = words::name(verdict, plain);
            if let Some(threads) = verdict.reasons.first().filter(|r| r.starts_with(THREADS)) {
                lines.push(format!("{name}: inconclusive: {}", plain(threads)));
            }
            let bands = verdict.bands.len();
            if bands > 1 {
                let period = verdict
                    .period_bytes
                    .map_or("no period was found".to_owned(), |p| format!("a period of {p} bytes"));
                lines.push(format!("{name}: {bands} bands, {period}"));
            }
            if let Some(launches) = &verdict.launches {
                let percent = |value: Option<f64>| {
                    value.map_or("not known".to_owned(), |value| format!("{value:.2} %"))
                };
                lines.push(format!(
                    "{name}: {} launches; spread within a launch {}, between launches of one class \
                     {}",
                    launches.count,
                    percent(launches.spread_within_percent),
                    percent(launches.spread_between_percent)
                ));
            }
        }
    }

    fn averages(&self, lines: &mut Vec<String>) {
        for average in &self.more.averages {
            lines.push(format!(
                "{}{}: averaged over {} layouts {} {} ({} to {}, {:.0} % interval)",
                plain(&average.workload),
                arm_of(&average.arm),
                average.placements,
                words::figure(average.mean),
                plain(&average.unit),
                words::figure(average.low),
                words::figure(average.high),
                average.confidence_percent
            ));
        }
        for factor in &self.more.factors {
            lines.push(format!(
                "{}: {} over {} is {:.3} ({:.3} to {:.3}, {:.0} % interval, {} pairs)",
                plain(&factor.workload),
                factor.arm,
                factor.over,
                factor.factor,
                factor.low,
                factor.high,
                factor.confidence_percent,
                factor.pairs
            ));
        }
    }

    fn launches(&self, lines: &mut Vec<String>) {
        for listed in &self.more.placed {
            let Some(held) = listed.held else { continue };
            lines.push(format!(
                "{}{}: {held} of {} launches are in the band that their residue predicts",
                plain(&listed.workload),
                arm_of(&listed.arm),
                listed.of
            ));
            lines.extend(by_residue(&listed.launches));
            let out = listed.launches.iter().filter(|launch| launch.held == Some(false));
            for launch in out.take(LISTED) {
                let residue = launch.residue.map_or("unknown".to_owned(), |r| r.to_string());
                lines.push(format!(
                    "  launch {} at placement {}, residue {residue}: {}",
                    launch.launch,
                    launch.placement,
                    words::figure(launch.figure)
                ));
            }
        }
    }

    fn controls(&self, lines: &mut Vec<String>) {
        for control in &self.more.controls {
            let residues: Vec<String> = control.residues.iter().map(u8::to_string).collect();
            let says = match (residues.len(), control.verdict) {
                (1, _) => "the same in every launch, so that it explains no band",
                (_, Finding::Clear) => "figures do not differ by it",
                (_, Finding::Affected) => "figures differ by it too: it is not excluded",
                (_, Finding::Inconclusive) => "whether figures differ by it is not settled",
            };
            lines.push(format!(
                "{}{}: control {} {} in {} launches: {says}",
                plain(&control.workload),
                arm_of(&control.arm),
                control.residue_of,
                residues.join(", "),
                control.launches
            ));
        }
        if !self.more.failed.is_empty() {
            lines.push(format!(
                "{} launches failed and are left out: the column status of samples.csv marks them",
                self.more.failed.len()
            ));
        }
        if super::any(&self.verdicts, Finding::Affected) {
            lines.push("next: `stackphase check` says why and what mends it".to_owned());
        }
    }
}

/// A line for each residue: its launches, the band that it predicts, and how many are in it.
fn by_residue(launches: &[PlacedLaunch]) -> Vec<String> {
    let mut residues: Vec<u64> = launches.iter().filter_map(|launch| launch.residue).collect();
    residues.sort_unstable();
    residues.dedup();
    if residues.len() > LISTED {
        return Vec::new();
    }
    let line = |residue: u64| {
        let of = || launches.iter().filter(move |launch| launch.residue == Some(residue));
        let band = of().find_map(|launch| launch.predicted_band)?;
        let held = of().filter(|launch| launch.held == Some(true)).count();
        Some(format!(
            "  residue {residue}: band {} predicted, {held} of {}",
            band + 1,
            of().count()
        ))
    };
    residues.into_iter().filter_map(line).collect()
}
