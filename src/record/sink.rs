//! The sink that keeps samples on disk: one row, one `write(2)`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::RecordError;
use super::cell::{put_header, put_sample};
use crate::sample::{Sample, Sink, SinkError};

/// What a file to be appended to was found to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Its length in bytes.
    pub length: u64,
    /// How many of them are complete rows.
    pub kept: u64,
}

/// Appends samples to a CSV file, each in a single write, so that a process that is killed has
/// kept every row it accepted. (Only a power failure can take rows back: nothing is synchronised
/// to the device while blocks are timed.)
#[derive(Debug)]
pub struct CsvSink {
    #[cfg(target_os = "linux")]
    file: nix::fcntl::Flock<File>,
    #[cfg(not(target_os = "linux"))]
    file: File,
    path: PathBuf,
    events: Vec<String>,
    /// Bytes up to the end of the last complete row.
    kept: u64,
    line: Vec<u8>,
}

impl CsvSink {
    /// Creates the file `path` with its header. `events` are the counters' names without
    /// `_per_op`; the columns are fixed from here on.
    ///
    /// # Errors
    /// When the file exists or cannot be created or written.
    pub fn create(path: &Path, events: &[String]) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|error| RecordError::io("create", path, error))?;
        let mut sink = CsvSink::new(lock(file, path)?, path, events, 0);
        sink.put_header()?;
        Ok(sink)
    }

    /// Goes on behind the complete rows; what follows them is cut off, provided that nobody has
    /// written since they were counted.
    pub(crate) fn append(
        path: &Path,
        events: &[String],
        Expected { length, kept }: Expected,
    ) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(|error| RecordError::io("open", path, error))?;
        let mut sink = CsvSink::new(lock(file, path)?, path, events, kept);
        let now = sink.file.metadata().map_err(|error| RecordError::io("inspect", path, error))?;
        if now.len() != length {
            return Err(RecordError::InUse(path.to_owned()));
        }
        sink.file.set_len(kept).map_err(|error| RecordError::io("truncate", path, error))?;
        if kept == 0 {
            sink.put_header()?;
        }
        Ok(sink)
    }

    #[cfg(target_os = "linux")]
    fn new(file: nix::fcntl::Flock<File>, path: &Path, events: &[String], kept: u64) -> Self {
        CsvSink { file, path: path.to_owned(), events: events.to_vec(), kept, line: Vec::new() }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(file: File, path: &Path, events: &[String], kept: u64) -> Self {
        CsvSink { file, path: path.to_owned(), events: events.to_vec(), kept, line: Vec::new() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The counters that have a column, without `_per_op`.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Appends one row.
    ///
    /// # Errors
    /// When the row could not be kept whole (the file then ends with the row before it), when the
    /// file was removed meanwhile, or when the sample claims what no reader would accept: a figure
    /// that is not finite and positive, or a counter without a column.
    pub fn push(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.check(sample)?;
        self.line.clear();
        put_sample(&mut self.line, sample, &self.events);
        self.write_line()
    }

    fn check(&self, sample: &Sample) -> Result<(), RecordError> {
        let mut figures = [sample.ns_per_op, sample.value].into_iter().flatten();
        if let Some(figure) = figures.find(|figure| !(figure.is_finite() && *figure > 0.0)) {
            return Err(RecordError::BadFigure { path: self.path.clone(), figure });
        }
        match sample.events.iter().find(|(name, _)| !self.events.contains(name)) {
            Some((event, _)) => {
                Err(RecordError::UnknownEvent { path: self.path.clone(), event: event.clone() })
            }
            None => Ok(()),
        }
    }

    fn put_header(&mut self) -> Result<(), RecordError> {
        self.line.clear();
        put_header(&mut self.line, &self.events);
        self.write_line()
    }

    /// A row that could be written in part only (a full disk) is taken back.
    fn write_line(&mut self) -> Result<(), RecordError> {
        if let Err(error) = self.file.write_all(&self.line) {
            // If this fails too the file ends in a torn row, which reading and resuming drop.
            let _ = self.file.set_len(self.kept);
            return Err(RecordError::io("write", &self.path, error));
        }
        self.kept += self.line.len() as u64;
        match is_linked(&self.file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RecordError::Removed(self.path.clone())),
            Err(error) => Err(RecordError::io("inspect", &self.path, error)),
        }
    }
}

impl Sink for CsvSink {
    fn accept(&mut self, sample: &Sample) -> Result<(), SinkError> {
        Ok(self.push(sample)?)
    }
}

/// Writing to a deleted file succeeds and keeps nothing.
#[cfg(unix)]
fn is_linked(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() > 0)
}

#[cfg(not(unix))]
fn is_linked(_file: &File) -> io::Result<bool> {
    Ok(true)
}

/// One writer at a time; the lock goes with the process, however it ends.
#[cfg(target_os = "linux")]
fn lock(file: File, path: &Path) -> Result<nix::fcntl::Flock<File>, RecordError> {
    use nix::errno::Errno;
    nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock).map_err(
        |(_, errno)| match errno {
            Errno::EWOULDBLOCK => RecordError::InUse(path.to_owned()),
            other => RecordError::io("lock", path, other.into()),
        },
    )
}

#[cfg(not(target_os = "linux"))]
fn lock(file: File, _path: &Path) -> Result<File, RecordError> {
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Placement;

    fn sample(round: u32) -> Sample {
        let mut sample = Sample::new("phase", "blake3", Placement::Shift, 0, 0, round);
        sample.ns_per_op = Some(59.25);
        sample
    }

    #[test]
    fn header_always_and_each_row_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        let mut sink = CsvSink::create(&path, &["cycles".into()]).unwrap();
        let header = std::fs::read_to_string(&path).unwrap();
        assert!(header.starts_with("probe,workload,") && header.ends_with(",cycles_per_op\n"));
        for round in 0..3 {
            sink.accept(&sample(round)).unwrap();
            let lines = std::fs::read_to_string(&path).unwrap().lines().count();
            assert_eq!(lines, 2 + round as usize);
        }
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("samples.csv");
        std::fs::write(&path, "mine").unwrap();
        assert!(CsvSink::create(&path, &[]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_row_that_no_reader_would_take_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = CsvSink::create(&dir.path().join("s.csv"), &[]).unwrap();
        for figure in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let mut bad = sample(0);
            bad.ns_per_op = Some(figure);
            assert!(matches!(sink.push(&bad), Err(RecordError::BadFigure { .. })));
        }
        let mut bad = sample(0);
        bad.events = vec![("cycles".into(), Some(1.0))];
        assert!(matches!(sink.push(&bad), Err(RecordError::UnknownEvent { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_removed_directory_is_noticed_at_the_next_row() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = CsvSink::create(&dir.path().join("s.csv"), &[]).unwrap();
        sink.push(&sample(0)).unwrap();
        dir.close().unwrap();
        let error = sink.accept(&sample(1)).unwrap_err();
        assert!(error.to_string().contains("removed"), "{error}");
        assert!(error.remedy.contains("--out"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_line_with_its_remedy() {
        // /dev/full refuses every write as a full disk does.
        let full = Path::new("/dev/full");
        if !full.exists() {
            eprintln!("skipped: no /dev/full");
            return;
        }
        let file = OpenOptions::new().append(true).open(full).unwrap();
        let mut sink = CsvSink::new(lock(file, full).unwrap(), full, &[], 0);
        let error = sink.accept(&sample(0)).unwrap_err();
        assert!(error.remedy.starts_with("free space"), "{error}");
    }
}
