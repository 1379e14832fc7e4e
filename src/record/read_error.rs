//! A recorded file that cannot be read: which file, which row, which column, and what mends it.

use std::fmt;

use crate::Failure;

/// Why a file could not be read as samples.
///
/// Rows are counted as an editor counts lines: the header is row 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The file, as it was named.
    pub file: String,
    /// The row, where the fault lies in one.
    pub row: Option<u64>,
    /// The column's name, where the fault lies in one.
    pub column: Option<String>,
    /// What is wrong, a clause without a full stop.
    pub problem: String,
    /// What mends it, in the imperative.
    pub remedy: String,
}

impl ReadError {
    /// A fault of the whole file.
    pub fn file(
        file: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        ReadError {
            file: file.into(),
            row: None,
            column: None,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// The same fault, in a row.
    pub fn in_row(mut self, row: u64) -> Self {
        self.row = Some(row);
        self
    }

    /// The same fault, in a column.
    pub fn in_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// File, row and column as a person names them.
    pub fn place(&self) -> String {
        let mut place = self.file.clone();
        if let Some(row) = self.row {
            place.push_str(&format!(", row {row}"));
        }
        if let Some(column) = &self.column {
            place.push_str(&format!(", column {}", shorten(column)));
        }
        place
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Failure::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for ReadError {}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        let place = error.place();
        Failure::new(error.problem, place, error.remedy)
    }
}

/// Foreign text in a message: at most forty characters, so that one line stays one line.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(39).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_file_row_and_column() {
        let error = ReadError::file("a.csv", "`x` is not a number", "write one")
            .in_row(7)
            .in_column("ns_per_op");
        assert_eq!(
            error.to_string(),
            "`x` is not a number: a.csv, row 7, column ns_per_op; write one"
        );
    }

    #[test]
    fn long_cells_are_shortened_at_a_character() {
        assert_eq!(shorten(&"é".repeat(50)), format!("{}…", "é".repeat(39)));
    }
}
