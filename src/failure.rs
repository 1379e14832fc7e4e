//! What a person reads when something could not be done: one line that says what, where, and what
//! mends it.
//!
//! Every module keeps its own typed error; each converts into a [`Failure`], and the command line
//! prints nothing else.

use std::fmt;

use serde::Serialize;

/// A failure in the three parts that a person needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What could not be done, a clause without a full stop.
    pub what: String,
    /// Where: a file with row and column, a launch with its padding, a processor, an option.
    #[serde(rename = "where")]
    pub place: String,
    /// What mends it, in the imperative.
    pub remedy: String,
    /// Whether the command line itself was wrong (exit status 2 instead of 1).
    #[serde(skip)]
    pub usage: bool,
}

impl Failure {
    /// A failure to measure, read or write (exit status 1).
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Failure { what: what.into(), place: place.into(), remedy: remedy.into(), usage: false }
    }

    /// A mistake in how the command was called (exit status 2).
    pub fn usage(
        what: impl Into<String>,
        place: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Failure { usage: true, ..Failure::new(what, place, remedy) }
    }

    /// The JSON document that stands on stdout under `--json` (`stackphase/error/1`).
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": "stackphase/error/1",
            "what": self.what,
            "where": self.place,
            "remedy": self.remedy,
        })
    }
}

impl fmt::Display for Failure {
    /// One line: control characters of foreign text (a CSV cell, a file name) are escaped, so that
    /// they can neither break the line nor reach a terminal as a command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = format!("{}: {}; {}", self.what, self.place, self.remedy);
        for c in line.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_line_without_control_characters() {
        let failure = Failure::new("cannot read", "a\nb\u{1b}[31m.csv, row 2", "mend the row");
        assert_eq!(failure.to_string(), "cannot read: a\\nb\\u{1b}[31m.csv, row 2; mend the row");
    }

    #[test]
    fn json_names_its_schema() {
        let value = Failure::usage("a", "b", "c").to_json();
        assert_eq!(value["schema"], "stackphase/error/1");
        assert_eq!(value["where"], "b");
    }
}
