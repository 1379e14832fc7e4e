//! A run on disk: rows that survive a kill, documents that are never half written, and readers
//! that name what is wrong with a file.
//!
//! ```no_run
//! use stackphase::record::{PLAN, RunDirectory};
//! use stackphase::sample::{Placement, Sample};
//!
//! let run = RunDirectory::create(None, "AMD EPYC 9R45")?;
//! run.write_document(PLAN, &serde_json::json!({ "schema": "stackphase/plan/1" }))?;
//! let mut sink = run.samples(&["cycles".to_owned()])?;
//! sink.push(&Sample::new("phase", "blake3", Placement::Shift, 16, 0, 0))?;
//! let recording = run.read_series()?;
//! # Ok::<(), stackphase::record::RecordError>(())
//! ```

mod cell;
mod directory;
mod error;
mod field;
mod header;
mod read_error;
mod resume;
mod rows;
mod samples;
mod series;
mod sink;
mod stamp;
mod table;

pub use directory::{MACHINE, PLAN, RunDirectory, SAMPLES, VERDICT};
pub use error::RecordError;
pub use read_error::ReadError;
pub use resume::Resumed;
pub use samples::{read_samples, samples_from_reader};
pub use series::{Recording, read_series, series_from_reader, series_of};
pub use sink::CsvSink;
#[cfg(feature = "cli")]
pub(crate) use stamp::utc_stamp;

#[cfg(test)]
mod tests;
