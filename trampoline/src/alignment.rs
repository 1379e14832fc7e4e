//! From where a shift is counted.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::page_size;

/// How far below its page boundary [`Alignment::Page`] puts shift 0, in bytes: room for the frames between
/// the trampoline and the measured buffer, so that small shifts do not straddle the boundary just left.
const BELOW_PAGE: usize = 512;

/// What the stack pointer is aligned down to before the shift is subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alignment {
    /// Down to 64 bytes, then down by the shift. The offset within the page stays the caller's.
    Line,
    /// Down to the page (its size asked of the system), then down by 512 bytes and the shift. The whole
    /// phase within a page is then the same in every process.
    Page,
}

impl Alignment {
    /// The power of two that the stack pointer is rounded down to, in bytes.
    pub(crate) fn granule(self) -> usize {
        match self {
            Alignment::Line => 64,
            Alignment::Page => page_size(),
        }
    }

    /// The bytes to subtract after rounding, for a shift.
    pub(crate) fn drop_for(self, shift: usize) -> usize {
        match self {
            Alignment::Line => shift,
            Alignment::Page => BELOW_PAGE + shift,
        }
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Alignment::Line => "line",
            Alignment::Page => "page",
        })
    }
}

/// A text that names no [`Alignment`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown alignment {0:?}: use `line` or `page`")]
pub struct ParseAlignmentError(pub String);

impl FromStr for Alignment {
    type Err = ParseAlignmentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "line" => Ok(Alignment::Line),
            "page" => Ok(Alignment::Page),
            other => Err(ParseAlignmentError(other.to_owned())),
        }
    }
}
