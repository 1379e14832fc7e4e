//! Going on with a run that was stopped.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::directory::{PLAN, RunDirectory, VERDICT};
use super::samples::sample;
use super::sink::Expected;
use super::table::{Table, Tail};
use super::{CsvSink, RecordError};
use crate::sample::SampleKey;

/// An unfinished run as it was found.
#[derive(Debug)]
pub struct Resumed {
    /// Its directory.
    pub directory: RunDirectory,
    /// Its `plan.json`: what the run was going to do.
    pub plan: serde_json::Value,
    /// The samples that are complete, whatever became of them.
    pub finished: HashSet<SampleKey>,
    /// Bytes of the row that was in flight; [`Resumed::samples`] cuts them off.
    pub torn_bytes: u64,
    /// The counters that have a column, without `_per_op`; `None` where not even a header was
    /// written.
    pub events: Option<Vec<String>>,
    expected: Option<Expected>,
}

impl RunDirectory {
    /// Opens the run in `path` to go on with it. Nothing is changed yet.
    ///
    /// # Errors
    /// When it is no run directory, has no plan, or a complete row is at fault.
    pub fn resume(path: &Path) -> Result<Resumed, RecordError> {
        let directory = RunDirectory::open(path)?;
        let plan =
            directory.read_document(PLAN)?.ok_or_else(|| RecordError::NoPlan(path.to_owned()))?;
        let mut resumed = Resumed {
            directory,
            plan,
            finished: HashSet::new(),
            torn_bytes: 0,
            events: None,
            expected: None,
        };
        resumed.scan()?;
        Ok(resumed)
    }
}

impl Resumed {
    /// Whether the run had ended by itself.
    pub fn is_finished(&self) -> bool {
        self.directory.path().join(VERDICT).exists()
    }

    /// The sink that goes on behind the last complete row. `events` must be the counters of the
    /// recorded part, in any order; the columns stay as they are.
    ///
    /// # Errors
    /// When the counters differ, another process writes the file, or it cannot be written.
    pub fn samples(&self, events: &[String]) -> Result<CsvSink, RecordError> {
        let path = self.directory.samples_path();
        let Some(expected) = self.expected else { return CsvSink::create(&path, events) };
        let columns = self.events.as_deref().unwrap_or(events);
        let (old, new): (HashSet<_>, HashSet<_>) =
            (columns.iter().collect(), events.iter().collect());
        if old != new {
            return Err(RecordError::OtherEvents {
                path,
                recorded: columns.to_vec(),
                wanted: events.to_vec(),
            });
        }
        CsvSink::append(&path, columns, expected)
    }

    fn scan(&mut self) -> Result<(), RecordError> {
        let path = self.directory.samples_path();
        let length = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(RecordError::io("read", &path, error)),
        };
        let mut kept = 0;
        if let Some(mut table) = Table::open(&path, Tail::MayBeTorn)? {
            self.events =
                Some(table.header().events.iter().map(|(event, _)| event.clone()).collect());
            while let Some(fields) = table.next()? {
                self.finished.insert(sample(&fields)?.key());
            }
            kept = table.kept();
        }
        self.torn_bytes = length.saturating_sub(kept);
        self.expected = Some(Expected { length, kept });
        Ok(())
    }
}
