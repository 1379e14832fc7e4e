//! From a run to the files that stand beside it: every format behind one trait.

use std::fs;
use std::path::{Path, PathBuf};

use super::run::{RunData, SampleSeries};
use super::svg::{self, Use};
use super::text::TextOptions;
use super::{facts, html, markdown, read, text};
use crate::Failure;

/// A file of a report: its name below the report's directory, and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// `report.html`, `report.md`, `plots/….svg`.
    pub name: String,
    /// What stands in it.
    pub content: String,
}

/// An output format: makes the files of one run, or of several compared.
pub trait Format {
    /// The files, none where the format has nothing to show.
    ///
    /// # Errors
    /// When the format cannot be made, which is a fault of the program.
    fn files(&self, runs: &[RunData]) -> Result<Vec<ReportFile>, Failure>;
}

/// `report.html`.
pub struct Html;
/// `report.md`.
pub struct Markdown;
/// `plots/*.svg`.
pub struct Svg;
/// `report.txt`: what the terminal shows.
pub struct Text(pub TextOptions);

fn one(name: &str, content: String) -> Vec<ReportFile> {
    vec![ReportFile { name: name.to_owned(), content }]
}

impl Format for Html {
    fn files(&self, runs: &[RunData]) -> Result<Vec<ReportFile>, Failure> {
        Ok(one("report.html", html::page(runs)?))
    }
}

impl Format for Markdown {
    fn files(&self, runs: &[RunData]) -> Result<Vec<ReportFile>, Failure> {
        let content = match runs {
            [run] => markdown::run(run),
            many => markdown::comparison(many),
        };
        Ok(one("report.md", content))
    }
}

impl Format for Text {
    fn files(&self, runs: &[RunData]) -> Result<Vec<ReportFile>, Failure> {
        let content: Vec<String> = runs
            .iter()
            .map(|run| {
                let heading = format!("{}\n\n", super::escape::plain(&run.label));
                let body = text::run(run, &self.0);
                if runs.len() > 1 { heading + &body } else { body }
            })
            .collect();
        Ok(one("report.txt", content.join("\n")))
    }
}

impl Format for Svg {
    fn files(&self, runs: &[RunData]) -> Result<Vec<ReportFile>, Failure> {
        Ok(runs.iter().flat_map(plots).collect())
    }
}

/// Every chart of one run as a file of its own.
fn plots(run: &RunData) -> Vec<ReportFile> {
    let mut files = Vec::new();
    let mut add = |name: String, content: Option<String>| {
        files.extend(
            content.map(|content| ReportFile { name: format!("plots/{name}.svg"), content }),
        );
    };
    for (index, series) in run.series.iter().enumerate() {
        let verdict = run
            .verdicts()
            .iter()
            .find(|v| run.series_of(v).is_some_and(|found| std::ptr::eq(found, series)));
        let slug = slug(series, index);
        add(format!("residues-{slug}"), svg::residues(series, verdict, Use::file()));
        if series.blocks.places.len() > 1 {
            add(format!("placements-{slug}"), svg::places(series, verdict, Use::file()));
        }
    }
    for (name, table) in
        [("copies", svg::copies(run.verdicts())), ("readback", svg::lengths(run.verdicts()))]
    {
        add(name.to_owned(), table.and_then(|table| svg::heat(&table, Use::file())));
    }
    let map = run.document("forwarding").and_then(|map| svg::forwarding(map, Use::file()));
    add("forwarding".to_owned(), map);
    add("pairs".to_owned(), svg::pairs(&super::pairing::differences(run), Use::file()));
    files
}

/// A file name from foreign words: lower-case letters, digits and hyphens, with the series' number
/// so that two never meet.
fn slug(series: &SampleSeries, index: usize) -> String {
    let key = &series.key;
    let words = [&key.probe, &key.workload, &key.len, &key.arm, &key.params];
    let joined = words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join("-");
    let mut slug = String::new();
    for c in joined.chars().take(80) {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        if !(c == '-' && slug.ends_with('-')) {
            slug.push(c);
        }
    }
    format!("{index:02}-{}", slug.trim_matches('-'))
}

/// Reads the runs at `paths`, without private matter unless `redact` is off.
///
/// # Errors
/// When there is nothing to read at one of the paths.
pub fn read_runs(paths: &[PathBuf], redact: bool) -> Result<Vec<RunData>, Failure> {
    paths
        .iter()
        .map(|path| {
            let mut run = read::run(path)?;
            if redact {
                facts::redact_run(&mut run);
            }
            Ok(run)
        })
        .collect()
}

/// Writes `files` below `out`, each whole or not at all, and gives their paths.
///
/// # Errors
/// When a directory cannot be made or a file not written.
pub fn write(out: &Path, files: &[ReportFile]) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for file in files {
        let path = out.join(&file.name);
        let partial = path.with_extension("partial");
        let kept = (|| {
            fs::create_dir_all(path.parent().unwrap_or(out))?;
            fs::write(&partial, &file.content)?;
            fs::rename(&partial, &path)
        })();
        if let Err(error) = kept {
            // What is half written is of no use; that it could not be written is the failure.
            let _ = fs::remove_file(&partial);
            return Err(Failure::new(
                format!("cannot write the report: {error}"),
                path.display().to_string(),
                "choose a writable directory with --out, or free space",
            ));
        }
        written.push(path);
    }
    Ok(written)
}

/// Makes `report.html`, `report.md` and `plots/` of the run in `directory`, beside its samples.
///
/// # Errors
/// As [`read_runs`] and [`write()`].
pub fn write_beside(directory: &Path, redact: bool) -> Result<Vec<PathBuf>, Failure> {
    let runs = read_runs(&[directory.to_owned()], redact)?;
    let formats: [&dyn Format; 3] = [&Html, &Markdown, &Svg];
    let mut files = Vec::new();
    for format in formats {
        files.extend(format.files(&runs)?);
    }
    write(directory, &files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_run_gets_its_page_its_post_and_its_plots() {
        let dir = fixture::run_directory();
        let written = write_beside(dir.path(), true).expect("the directory is writable");
        let names: Vec<String> = written
            .iter()
            .map(|p| p.strip_prefix(dir.path()).unwrap_or(p).display().to_string())
            .collect();
        for name in [
            "report.html",
            "report.md",
            "plots/residues-03-phase-blake3-64-zmm-grid-line.svg",
            "plots/placements-04-phase-blake3-64-default-grid-page.svg",
            "plots/copies.svg",
            "plots/forwarding.svg",
        ] {
            assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
        }
        assert!(written.iter().all(|path| path.is_file()));
        // A report is no part of the run: reading it again gives the same report.
        let before = fs::read(dir.path().join("report.html")).expect("it was written");
        write_beside(dir.path(), true).expect("the directory is writable");
        assert_eq!(fs::read(dir.path().join("report.html")).expect("it was written"), before);
    }

    #[test]
    fn what_cannot_be_written_says_where() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("plots"), "a file").expect("writable");
        let files = one("plots/a.svg", String::new());
        let failure = write(dir.path(), &files).expect_err("plots is a file");
        assert!(failure.to_string().contains("plots/a.svg"), "{failure}");
    }
}
