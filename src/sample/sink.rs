//! Where samples go: a file, a channel, a vector.

use super::Sample;

/// A sample that could not be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {place}; {remedy}")]
pub struct SinkError {
    /// What could not be done.
    pub what: String,
    /// The file or channel.
    pub place: String,
    /// What mends it.
    pub remedy: String,
}

/// Takes samples as they are measured, one by one.
///
/// A sample that was accepted survives the death of the process: a sink that writes, flushes.
pub trait Sink {
    /// Keeps one sample.
    ///
    /// # Errors
    /// When the sample could not be kept; what was accepted before stays kept.
    fn accept(&mut self, sample: &Sample) -> Result<(), SinkError>;
}

impl Sink for Vec<Sample> {
    fn accept(&mut self, sample: &Sample) -> Result<(), SinkError> {
        self.push(sample.clone());
        Ok(())
    }
}
