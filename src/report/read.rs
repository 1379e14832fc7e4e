//! Reads a run directory as far as it goes.
//!
//! A killed run, an older version's or a stranger's directory still gives a report: whatever cannot
//! be read becomes a sentence in [`RunData::missing`], never an error. Only a path at which there is
//! nothing to read is one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::rows;
use super::run::RunData;
use crate::Failure;
use crate::analysis::{Verdict, VerdictDocument};

/// A document larger than this is left out: it is data, not something to look at.
const LARGEST: u64 = 64 << 20;
/// Documents of one directory that are read.
const MOST: usize = 64;

/// Reads the run in `path`: a run directory, or one CSV or JSON file.
///
/// # Errors
/// When there is nothing at `path`, or it may not be read.
pub fn run(path: &Path) -> Result<RunData, Failure> {
    let mut run = RunData { label: label(path), ..RunData::default() };
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    let files = if metadata.is_dir() { list(path)? } else { vec![path.to_owned()] };
    let with_extension = |wanted: &str| {
        let wanted = wanted.to_owned();
        files.iter().filter(move |f| f.extension().is_some_and(|e| e.eq_ignore_ascii_case(&wanted)))
    };
    for file in with_extension("json").take(MOST) {
        document(file, &mut run);
    }
    if with_extension("json").count() > MOST {
        run.missing.push(format!("More than {MOST} JSON files: the rest are left out."));
    }
    let own = files.iter().find(|file| file.file_name().is_some_and(|n| n == "samples.csv"));
    match own {
        Some(samples) => rows::read(samples, &mut run),
        None => with_extension("csv").take(MOST).for_each(|file| rows::read(file, &mut run)),
    }
    say_what_is_missing(&mut run, own.is_some());
    Ok(run)
}

/// The directory's own name: what stands before it is nobody's business.
fn label(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let resolved = || {
        let full = path.canonicalize().ok()?;
        Some(full.file_name()?.to_string_lossy().into_owned())
    };
    name.or_else(resolved).unwrap_or_else(|| "run".to_owned())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot read the run: {error}"),
        path.display().to_string(),
        "name a directory that stackphase wrote, or a CSV of samples",
    )
}

fn list(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|p| p.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Reads one JSON file and puts its documents where they belong.
fn document(file: &Path, run: &mut RunData) {
    let name = label(file);
    let value = match parse(file) {
        Ok(value) => value,
        Err(why) => {
            run.missing.push(format!("{name} cannot be read ({why}): it is left out."));
            return;
        }
    };
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned();
    let stem = name.strip_suffix(".json").unwrap_or(&name).to_owned();
    let (kind, version) = match schema.strip_prefix("stackphase/").and_then(|s| s.split_once('/')) {
        Some((kind, version)) => (kind.to_owned(), version.to_owned()),
        None if KINDS.contains(&stem.as_str()) => {
            run.missing
                .push(format!("{name} names no schema: it is shown as far as it is understood."));
            (stem, "1".to_owned())
        }
        None => {
            run.missing.push(format!("{name} is not a document of stackphase: it is left out."));
            return;
        }
    };
    if version != "1" {
        run.missing.push(format!(
            "{name} has version {version} of its schema, this program knows 1: it is shown as far as \
             it is understood."
        ));
    }
    place(&kind, value, &name, run);
}

/// Kinds of document that are recognised by their file's name where they do not name themselves.
const KINDS: [&str; 13] = [
    "check",
    "compare",
    "controls",
    "copies",
    "counters",
    "explanation",
    "forwarding",
    "hash",
    "machine",
    "plan",
    "trace",
    "verdict",
    "writer",
];

fn place(kind: &str, mut value: Value, name: &str, run: &mut RunData) {
    if kind == "check" || kind == "verdict" {
        // `check` carries the verdicts with further documents around them.
        for part in ["machine", "controls", "explanation", "counters", "writer", "plan"] {
            if let Some(inner) = value.get_mut(part).map(Value::take)
                && !inner.is_null()
            {
                run.documents.entry(part.to_owned()).or_insert(inner);
            }
        }
        if run.verdicts.is_none() || kind == "verdict" {
            run.verdicts = Some(verdicts(value, name, &mut run.missing));
        }
        return;
    }
    let kind = if kind == "explain" { "explanation" } else { kind };
    run.documents.insert(kind.to_owned(), value);
}

fn parse(file: &Path) -> Result<Value, String> {
    let length = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > LARGEST {
        return Err(format!("{} MB, above the {} that are shown", length >> 20, LARGEST >> 20));
    }
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// The verdict entries that can be understood; each of the others is named.
pub fn verdicts(mut document: Value, name: &str, missing: &mut Vec<String>) -> VerdictDocument {
    let entries = match document.get_mut("verdicts").map(Value::take) {
        Some(Value::Array(entries)) => entries,
        _ => {
            missing.push(format!("{name} holds no list of verdicts."));
            Vec::new()
        }
    };
    let mut understood = Vec::new();
    let mut completed = 0;
    for (index, mut entry) in entries.into_iter().enumerate() {
        let lacking = complete(&mut entry);
        match serde_json::from_value::<Verdict>(entry) {
            Ok(verdict) => {
                completed += usize::from(lacking);
                understood.push(verdict);
            }
            Err(error) => missing.push(format!(
                "Entry {} of {name} is not understood ({error}): it is left out.",
                index + 1
            )),
        }
    }
    if completed > 0 {
        missing.push(format!(
            "Entries of {name} that lack fields (an older version?): {completed}; what they lack is \
             shown as not measured."
        ));
    }
    VerdictDocument::new(understood)
}

/// Gives an entry of an older version the members that it lacks, as "not known"; whether any was.
fn complete(entry: &mut Value) -> bool {
    let Value::Object(members) = entry else { return false };
    let mut lacking = false;
    let mut default = |members: &mut Map<String, Value>, name: &str, value: Value| {
        if !members.contains_key(name) {
            members.insert(name.to_owned(), value);
            lacking = true;
        }
    };
    for name in ["effect_percent", "effect_low_percent", "effect_high_percent"] {
        default(members, name, Value::Null);
    }
    for name in ["len", "routine", "grid", "period_bytes", "instructions_per_op"] {
        default(members, name, Value::Null);
    }
    for name in ["bands", "residues_visited", "rules", "reasons"] {
        default(members, name, Value::Array(Vec::new()));
    }
    default(members, "interval_method", Value::from("not recorded"));
    default(members, "arm", Value::from("default"));
    default(members, "role", Value::from("subject"));
    default(members, "probe", Value::from("unknown"));
    default(members, "min_effect_percent", Value::from(2.0));
    lacking
}

/// Says what a complete run would hold and this one does not.
fn say_what_is_missing(run: &mut RunData, has_samples: bool) {
    let mut say = |absent: bool, sentence: &str| {
        if absent {
            run.missing.push(sentence.to_owned());
        }
    };
    say(
        run.verdicts.is_none(),
        "There is no verdict.json: the run did not finish, or something else wrote this directory; \
         stackphase analyze makes a verdict from its samples.",
    );
    say(
        !has_samples && run.series.is_empty(),
        "There is no samples.csv: no block can be drawn; figures come from the verdict alone.",
    );
    say(
        !run.documents.contains_key("machine"),
        "There is no machine.json: it is not known what these figures were measured on.",
    );
    say(
        !run.documents.contains_key("plan"),
        "There is no plan.json: the command that made this run is not known.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn a_complete_run_misses_nothing() {
        let dir = fixture::run_directory();
        let run = run(dir.path()).expect("the fixture is readable");
        assert_eq!(run.missing, Vec::<String>::new());
        assert_eq!(run.verdicts(), fixture::verdicts());
        let zmm = run.series_of(&fixture::zmm()).expect("the samples of the zmm arm");
        assert_eq!(zmm.blocks.residues.keys().copied().collect::<Vec<_>>(), [0, 16, 32, 48]);
        assert!(run.series_of(&fixture::page()).is_some_and(|s| s.blocks.places.len() == 512));
    }

    #[test]
    fn an_empty_directory_says_what_is_missing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run = run(dir.path()).expect("an empty directory is readable");
        assert_eq!(run.missing.len(), 4, "{:?}", run.missing);
    }

    #[test]
    fn nothing_at_all_is_a_failure_with_a_remedy() {
        let failure = run(Path::new("/nonexistent/run")).expect_err("there is nothing");
        assert!(failure.to_string().contains("/nonexistent/run; name a directory"), "{failure}");
    }

    #[test]
    fn broken_foreign_and_newer_documents_are_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let write = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).expect("the fixture can be written");
        };
        write("machine.json", "{\"schema\": \"stackphase/machine/1\", ");
        write("hyperfine.json", "{\"results\": []}");
        write("plan.json", "{\"schema\":\"stackphase/plan/7\",\"seed\":1}");
        write(
            "verdict.json",
            r#"{"schema":"stackphase/verdict/1","verdicts":[
            {"workload":"blake3","placement":"shift","verdict":"clear"},
            {"workload":"blake3","placement":"sideways","verdict":"clear"}, 7]}"#,
        );
        write("deep.json", &"[".repeat(100_000));
        let run = run(dir.path()).expect("readable");
        let said = run.missing.join("\n");
        for part in [
            "machine.json cannot be read",
            "hyperfine.json is not a document of stackphase",
            "plan.json has version 7",
            "lack fields (an older version?): 1;",
            "Entry 2 of verdict.json is not understood",
            "Entry 3 of verdict.json is not understood",
            "deep.json cannot be read",
        ] {
            assert!(said.contains(part), "{part} in:\n{said}");
        }
        assert_eq!(run.verdicts().len(), 1);
        assert!(run.document("plan").is_some());
    }
}
