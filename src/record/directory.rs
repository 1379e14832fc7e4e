//! The run directory: `samples.csv` and the documents beside it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use super::stamp::{slug, utc_stamp};
use super::table::{Table, Tail};
use super::{CsvSink, ReadError, RecordError, Recording, samples, series};
use crate::sample::Sample;

/// The rows of a run.
pub const SAMPLES: &str = "samples.csv";
/// What a run was going to do; present from its first moment, so that it can be resumed.
pub const PLAN: &str = "plan.json";
/// What the host is, and what could not be held still.
pub const MACHINE: &str = "machine.json";
/// What was concluded; present when the run ended by itself.
pub const VERDICT: &str = "verdict.json";

/// A directory that holds one run, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes the directory `out`, or `results/<UTC stamp>-<cpu>` below the current directory.
    /// `cpu` is any name of the processor; it is made fit for a file name.
    ///
    /// # Errors
    /// When `out` exists and is not an empty directory, or cannot be made.
    pub fn create(out: Option<&Path>, cpu: &str) -> Result<Self, RecordError> {
        match out {
            Some(path) => RunDirectory::make(path),
            None => RunDirectory::make_stamped(Path::new("results"), cpu, SystemTime::now()),
        }
    }

    fn make(path: &Path) -> Result<Self, RecordError> {
        fs::create_dir_all(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => RecordError::NotADirectory(path.to_owned()),
            _ => RecordError::io("create", path, error),
        })?;
        let mut entries =
            fs::read_dir(path).map_err(|error| RecordError::io("read", path, error))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty(path.to_owned()));
        }
        let run = RunDirectory { path: path.to_owned() };
        run.probe_writable()?;
        Ok(run)
    }

    /// Two runs that start within one second get `-2`, `-3`, ….
    fn make_stamped(base: &Path, cpu: &str, now: SystemTime) -> Result<Self, RecordError> {
        fs::create_dir_all(base).map_err(|error| RecordError::io("create", base, error))?;
        let name = format!("{}-{}", utc_stamp(now), slug(cpu));
        let mut path = base.join(&name);
        let mut next = 2;
        loop {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunDirectory { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = base.join(format!("{name}-{next}"));
                    next += 1;
                }
                Err(error) => return Err(RecordError::io("create", &path, error)),
            }
        }
    }

    /// Finds out before anything is measured whether results can be kept here.
    fn probe_writable(&self) -> Result<(), RecordError> {
        let path = self.path.join(".writable");
        fs::File::create(&path)
            .and_then(|_| fs::remove_file(&path))
            .map_err(|error| RecordError::io("write in", &self.path, error))
    }

    /// Opens an existing directory to read from it.
    ///
    /// # Errors
    /// When it does not exist or is not a directory.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(RunDirectory { path: path.to_owned() }),
            Ok(_) => Err(RecordError::NotADirectory(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(RecordError::Missing(path.to_owned()))
            }
            Err(error) => Err(RecordError::io("read", path, error)),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of samples (which need not exist yet).
    pub fn samples_path(&self) -> PathBuf {
        self.path.join(SAMPLES)
    }

    /// Creates `samples.csv` with its header. `events` are the counters' names without `_per_op`.
    ///
    /// # Errors
    /// As [`CsvSink::create`].
    pub fn samples(&self, events: &[String]) -> Result<CsvSink, RecordError> {
        CsvSink::create(&self.samples_path(), events)
    }

    /// Reads every complete row back; the row that was in flight when a run was killed is left out.
    ///
    /// # Errors
    /// When there are no samples, or a complete row is at fault.
    pub fn read_samples(&self) -> Result<Vec<Sample>, ReadError> {
        Table::open(&self.samples_path(), Tail::MayBeTorn)?.map_or(Ok(Vec::new()), samples::collect)
    }

    /// As [`RunDirectory::read_samples`], straight into what analysis works on.
    ///
    /// # Errors
    /// As [`RunDirectory::read_samples`].
    pub fn read_series(&self) -> Result<Recording, ReadError> {
        Table::open(&self.samples_path(), Tail::MayBeTorn)?
            .map_or(Ok(Recording::default()), series::collect)
    }

    /// Writes a JSON document; a reader sees the old one or the new one, never a part.
    ///
    /// # Errors
    /// When it cannot be serialised or written.
    pub fn write_document(
        &self,
        name: &str,
        document: &impl Serialize,
    ) -> Result<PathBuf, RecordError> {
        let mut text = serde_json::to_string_pretty(document)
            .map_err(|source| RecordError::Json { path: self.path.join(name), source })?;
        text.push('\n');
        self.write_file(name, text.as_bytes())
    }

    /// Writes any file of the run, also in a subdirectory (`plots/bands.svg`), in the same way.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<PathBuf, RecordError> {
        let path = self.path.join(name);
        write_atomically(&path, content).map_err(|error| RecordError::io("write", &path, error))?;
        Ok(path)
    }

    /// Reads a JSON document back; `None` where the run has none of that name.
    ///
    /// # Errors
    /// When it exists and cannot be read, or is not JSON.
    pub fn read_document(&self, name: &str) -> Result<Option<serde_json::Value>, RecordError> {
        let path = self.path.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RecordError::io("read", &path, error)),
        };
        let value =
            serde_json::from_slice(&bytes).map_err(|source| RecordError::Json { path, source })?;
        Ok(Some(value))
    }
}

/// A temporary file in the same directory, renamed over the target.
fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}", std::process::id()));
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::json;

    use super::*;
    use crate::Failure;

    #[test]
    fn an_empty_directory_is_taken_and_a_used_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a/b");
        let run = RunDirectory::create(Some(&out), "x").unwrap();
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
        RunDirectory::create(Some(&out), "x").unwrap();
        run.write_document(PLAN, &json!({})).unwrap();
        let error = RunDirectory::create(Some(&out), "x").unwrap_err();
        assert!(matches!(error, RecordError::NotEmpty(_)));
        let failure = Failure::from(error);
        assert!(failure.usage && failure.remedy.contains("--resume"));
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDirectory::create(Some(&file), "x").unwrap_err();
        assert!(matches!(error, RecordError::NotADirectory(_)), "{error}");
    }

    #[test]
    fn two_runs_in_one_second_have_two_directories() {
        let dir = tempfile::tempdir().unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(951_782_400);
        let name = |_| {
            let run = RunDirectory::make_stamped(dir.path(), "AMD Zen 5", now).unwrap();
            run.path().file_name().unwrap().to_string_lossy().into_owned()
        };
        let stem = "20000229T000000Z-amd-zen-5";
        assert_eq!(
            (0..3).map(name).collect::<Vec<_>>(),
            [stem.to_owned(), format!("{stem}-2"), format!("{stem}-3")]
        );
    }

    #[test]
    fn documents_are_replaced_whole_and_leave_nothing_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(Some(dir.path()), "x").unwrap();
        assert_eq!(run.read_document(VERDICT).unwrap(), None);
        for n in 0..2 {
            run.write_document(VERDICT, &json!({ "n": n })).unwrap();
            assert_eq!(run.read_document(VERDICT).unwrap(), Some(json!({ "n": n })));
        }
        run.write_file("plots/bands.svg", b"<svg/>").unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        fs::write(dir.path().join(MACHINE), "{").unwrap();
        assert!(matches!(run.read_document(MACHINE), Err(RecordError::Json { .. })));
    }

    #[test]
    fn what_does_not_exist_is_said_to_be_missing() {
        let error = RunDirectory::open(Path::new("/nonexistent/run")).unwrap_err();
        assert!(matches!(error, RecordError::Missing(_)));
    }
}
