//! Verdicts and samples as pages that people read: one output format a file.
//!
//! Everything that comes from outside (names, cells, command lines) passes [`escape`]; the words
//! and figures that formats share stand in [`words`], so that every format says the same.

mod bandplot;
pub mod escape;
#[cfg(test)]
pub(crate) mod fixture;
pub mod text;
pub mod words;
