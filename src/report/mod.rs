//! Verdicts and samples as pages that people read: one output format a file.
//!
//! Everything that comes from outside (names, cells, command lines) passes [`escape`]; the words
//! and figures that formats share stand in [`words`], so that every format says the same.

mod bandplot;
pub mod escape;
pub mod facts;
mod files;
#[cfg(test)]
pub(crate) mod fixture;
pub mod html;
pub mod markdown;
mod pairing;
pub mod read;
pub mod redact;
mod rows;
mod run;
pub mod svg;
pub mod text;
mod thin;
pub mod words;

pub use files::{Format, Html, Markdown, ReportFile, Svg, Text, read_runs, write, write_beside};
pub use run::{Key, RunData, SampleSeries};
pub use thin::{Bucket, Dot, Place, Thinned};
