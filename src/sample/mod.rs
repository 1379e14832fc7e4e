//! The sample: one timed block and everything that is known about where it ran.
//!
//! Pure types, no input or output. Every probe emits [`Sample`]s into a [`Sink`]; analysis reads
//! them back. A value that was not measured is `None` here, an empty cell in CSV and `null` in
//! JSON, never zero; where a person needs to know why, an [`Absence`] carries reason and remedy.

mod absence;
mod params;
mod placement;
mod row;
mod sink;

pub use absence::Absence;
pub use params::{BadParams, Params};
pub(crate) use placement::vocabulary;
pub use placement::{Grid, Placement, Role, Status, UnknownName};
pub use row::{COLUMNS, Sample, SampleKey};
pub use sink::{Sink, SinkError};
