//! From recorded samples to printed verdicts: the end of every measuring subcommand.

use std::path::Path;

use super::Output;
use crate::Failure;
use crate::analysis::{Options, VerdictDocument, judge_all};
use crate::record::RunDirectory;
use crate::report::text::verdicts;

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
    let mut text = verdicts(document, &output.text_options());
    if let Some(path) = kept_in {
        text.push_str(&format!("\nkept in {}\n", path.display()));
    }
    output.text(&text)
}
