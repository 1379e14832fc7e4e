//! From recorded samples to printed verdicts: the end of every measuring subcommand.

use std::path::Path;

use super::Output;
use crate::Failure;
use crate::analysis::{Options, Verdict, VerdictDocument, judge_all};
use crate::record::RunDirectory;

/// Judges everything that a run directory holds.
///
/// # Errors
/// When the samples cannot be read back.
pub fn judge_directory(directory: &RunDirectory, seed: u64) -> Result<VerdictDocument, Failure> {
    let recording = directory.read_series()?;
    Ok(judge_all(&recording.series, &Options { seed, ..Options::default() }))
}

/// Prints the verdicts: one document under `--json`, else a table and where the run is kept.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_verdicts(
    document: &VerdictDocument,
    kept_in: Option<&Path>,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json() {
        return output.document(document);
    }
    let mut text = String::new();
    for verdict in &document.verdicts {
        text.push_str(&line(verdict));
    }
    if let Some(path) = kept_in {
        text.push_str(&format!("kept in {}\n", path.display()));
    }
    output.text(&text)
}

fn line(v: &Verdict) -> String {
    let mut text = format!(
        "{} {} {} {:?}: {} {:?} [{:?}, {:?}] period {:?}\n",
        v.workload,
        v.len.unwrap_or(0),
        v.arm,
        v.grid,
        v.verdict,
        v.effect_percent,
        v.effect_low_percent,
        v.effect_high_percent,
        v.period_bytes
    );
    for band in &v.bands {
        text.push_str(&format!(
            "   {:.2} ns +{:.1}% {:?}\n",
            band.ns_per_op, band.percent_above_fast, band.residues
        ));
    }
    for rule in v.rules.iter().take(3) {
        text.push_str(&format!("   rule {} {:?}/{}\n", rule.rule, rule.held, rule.of));
    }
    for reason in &v.reasons {
        text.push_str(&format!("   {reason}\n"));
    }
    text
}
