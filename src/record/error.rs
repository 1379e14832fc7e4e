//! What can go wrong between memory and disk, each with what mends it.

use std::io;
use std::path::{Path, PathBuf};

use super::ReadError;
use crate::Failure;
use crate::sample::SinkError;

/// A run directory, row or document that could not be made, kept or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// `--out` names a directory that holds something already.
    #[error("the run directory is not empty: {}", .0.display())]
    NotEmpty(PathBuf),
    /// The path exists and is no directory.
    #[error("not a directory: {}", .0.display())]
    NotADirectory(PathBuf),
    /// `--resume` names a directory that does not exist.
    #[error("no such run directory: {}", .0.display())]
    Missing(PathBuf),
    /// `--resume` names a directory without `plan.json`: it was never a run.
    #[error("no plan to go on with: {}", .0.display())]
    NoPlan(PathBuf),
    /// Another process is writing the same samples.
    #[error("another run is writing here: {}", .0.display())]
    InUse(PathBuf),
    /// The file was deleted while rows were appended to it.
    #[error("the file was removed during the run: {}", .0.display())]
    Removed(PathBuf),
    /// The recorded part has other counter columns than the part that would follow.
    #[error("other counter columns than before: {}", path.display())]
    OtherEvents {
        /// The samples.
        path: PathBuf,
        /// Columns that the recorded part has.
        recorded: Vec<String>,
        /// Columns that were to follow.
        wanted: Vec<String>,
    },
    /// A sample carries a counter for which there is no column.
    #[error("no column for counter {event}: {}", path.display())]
    UnknownEvent {
        /// The samples.
        path: PathBuf,
        /// The counter.
        event: String,
    },
    /// A sample claims a figure that is not a positive, finite number.
    #[error("figure {figure} is not a positive number: {}", path.display())]
    BadFigure {
        /// The samples.
        path: PathBuf,
        /// The figure.
        figure: f64,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb: `create`, `write`, `read`, `truncate`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A document could not be turned into JSON, or a file is not JSON.
    #[error("not a JSON document: {}: {source}", path.display())]
    Json {
        /// The document.
        path: PathBuf,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// The recorded rows cannot be read.
    #[error(transparent)]
    Rows(#[from] ReadError),
}

impl RecordError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        RecordError::Io { action, path: path.to_owned(), source }
    }
}

/// What mends a refusal of the file system.
pub(crate) fn io_remedy(error: &io::Error) -> &'static str {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => {
            "free space there, then go on with --resume and the run directory"
        }
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            "choose a writable directory with --out, or change the permissions"
        }
        Kind::NotFound => "check the path, or choose another directory with --out",
        Kind::NotADirectory | Kind::AlreadyExists => "choose another directory with --out",
        _ => "see to the file system, then go on with --resume and the run directory",
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let at = |path: &Path| path.display().to_string();
        match error {
            RecordError::NotEmpty(path) => Failure::usage(
                "the run directory is not empty and is never overwritten",
                at(&path),
                "name a new directory with --out, or go on with the run in it with --resume",
            ),
            RecordError::NotADirectory(path) => Failure::usage(
                "this is not a directory",
                at(&path),
                "name a directory that does not exist yet",
            ),
            RecordError::Missing(path) => Failure::usage(
                "there is no such run directory",
                at(&path),
                "check the path; results/ holds the runs made here",
            ),
            RecordError::NoPlan(path) => Failure::usage(
                "this directory holds no plan.json to go on with",
                at(&path),
                "name the directory of an unfinished run, or start a new one with --out",
            ),
            RecordError::InUse(path) => Failure::new(
                "another run is writing these samples",
                at(&path),
                "wait for it or stop it, or start a new run with --out",
            ),
            RecordError::Removed(path) => Failure::new(
                "the samples were removed while the run wrote them",
                at(&path),
                "start again with --out in a directory that stays",
            ),
            RecordError::OtherEvents { path, recorded, wanted } => Failure::new(
                format!(
                    "the recorded part has the counters [{}], this machine now has [{}]",
                    recorded.join(", "),
                    wanted.join(", ")
                ),
                at(&path),
                "resume where the run was started, or start a new run with --out",
            ),
            RecordError::UnknownEvent { path, event } => Failure::new(
                format!("a sample carries the counter {event}, which has no column"),
                at(&path),
                "name every counter when the samples are created",
            ),
            RecordError::BadFigure { path, figure } => Failure::new(
                format!("a block came out at {figure}, which is no measurement"),
                at(&path),
                "report this as a fault; leave the figure empty where nothing was measured",
            ),
            RecordError::Io { action, path, source } => {
                Failure::new(format!("cannot {action}: {source}"), at(&path), io_remedy(&source))
            }
            RecordError::Json { path, source } => Failure::new(
                format!("this is not a JSON document: {source}"),
                at(&path),
                "restore the file, or start a new run with --out",
            ),
            RecordError::Rows(error) => error.into(),
        }
    }
}

impl From<RecordError> for SinkError {
    fn from(error: RecordError) -> Self {
        let Failure { what, place, remedy, .. } = error.into();
        SinkError { what, place, remedy }
    }
}
