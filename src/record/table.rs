//! A CSV file of samples, row by row, with every fault named.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::ReadError;
use super::field::Fields;
use super::header::Header;
use super::rows::{RowError, Rows};

/// What the end of the file may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file is somebody's data: a row that is cut off is a fault.
    Whole,
    /// The file belongs to a run that may have been killed: the row in flight is dropped.
    MayBeTorn,
}

/// A file with its header read.
pub(crate) struct Table<R> {
    file: String,
    tail: Tail,
    header: Header,
    rows: Rows<R>,
    /// File offset behind the last row that was given out, the header included.
    kept: u64,
    torn: Option<u64>,
}

impl Table<File> {
    /// Opens the file `path`; `None` where even the header is torn or missing and may be.
    pub fn open(path: &Path, tail: Tail) -> Result<Option<Self>, ReadError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Table::new(name, file, tail),
            Err(error) => Err(cannot_read(&name, &error)),
        }
    }
}

impl<R: Read> Table<R> {
    /// Reads the header of `reader`, which messages call `file`.
    pub fn new(file: String, reader: R, tail: Tail) -> Result<Option<Self>, ReadError> {
        let mut rows = Rows::new(reader);
        let (header, kept) = match rows.next() {
            Ok(Some(row)) if row.terminated || tail == Tail::Whole => {
                (Header::read(&file, row)?, row.end)
            }
            Ok(_) if tail == Tail::MayBeTorn => return Ok(None),
            Err(error) if tail == Tail::MayBeTorn && is_torn(&error) => return Ok(None),
            Ok(_) => {
                return Err(ReadError::file(
                    file,
                    "the file is empty",
                    "give a CSV file with a header and at least one row",
                ));
            }
            Err(error) => return Err(fault(&file, &[], error)),
        };
        Ok(Some(Table { file, tail, header, rows, kept, torn: None }))
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// File offset behind the last whole row.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// The row that was dropped because it was in flight, if any.
    pub fn torn(&self) -> Option<u64> {
        self.torn
    }

    /// The next row, as many cells wide as the header.
    pub fn next(&mut self) -> Result<Option<Fields<'_>>, ReadError> {
        let row = match self.rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(None),
            Err(error) if self.tail == Tail::MayBeTorn && is_torn(&error) => {
                self.torn = row_of(&error);
                return Ok(None);
            }
            Err(error) => return Err(fault(&self.file, &self.header.names, error)),
        };
        if !row.terminated && self.tail == Tail::MayBeTorn {
            self.torn = Some(row.number);
            return Ok(None);
        }
        let (cells, columns) = (row.len(), self.header.names.len());
        // Our own rows always end their line; a number cut short would read as another number.
        let cut_off = !row.terminated && (cells < columns || self.header.complete);
        if cut_off || cells != columns {
            return Err(wrong_width(&self.file, &self.header.names, row.number, cells, cut_off));
        }
        self.kept = row.end;
        Ok(Some(Fields { file: &self.file, header: &self.header, row }))
    }
}

#[cold]
fn wrong_width(file: &str, names: &[String], row: u64, cells: usize, cut_off: bool) -> ReadError {
    let columns = names.len();
    let (problem, remedy) = if cut_off {
        (
            "the last row is cut off".to_owned(),
            "remove that row, or give the run directory, where it is dropped by itself",
        )
    } else if cells < columns {
        (
            format!("the row has {cells} cells where the header has {columns}"),
            "fill the row, leaving cells empty where nothing was measured",
        )
    } else {
        (
            format!("the row has {cells} cells where the header has {columns}"),
            "remove the surplus, and quote cells that hold a comma",
        )
    };
    let column = if cut_off { cells.saturating_sub(1) } else { cells.min(columns) };
    let error = ReadError::file(file, problem, remedy).in_row(row);
    match names.get(column).or(names.last()) {
        Some(name) => error.in_column(name),
        None => error,
    }
}

/// Whether the fault can come from a row that was being written when the process died.
fn is_torn(error: &RowError) -> bool {
    matches!(
        error,
        RowError::OpenQuote { lines: 1, .. } | RowError::NotUtf8 { terminated: false, .. }
    )
}

fn row_of(error: &RowError) -> Option<u64> {
    match error {
        RowError::Io(_) => None,
        RowError::NotUtf8 { row, .. } | RowError::OpenQuote { row, .. } => Some(*row),
        RowError::TooLong { row } => Some(*row),
    }
}

#[cold]
fn fault(file: &str, names: &[String], error: RowError) -> ReadError {
    match error {
        RowError::Io(error) => cannot_read(file, &error),
        RowError::NotUtf8 { row, cell, .. } => {
            let fault = ReadError::file(file, "the cell is not UTF-8", "save the file as UTF-8");
            match names.get(cell) {
                Some(name) => fault.in_row(row).in_column(name),
                None => fault.in_row(row).in_column(format!("{}", cell + 1)),
            }
        }
        RowError::OpenQuote { row, .. } => {
            ReadError::file(file, "a quote is never closed", "close it, or double it inside a cell")
                .in_row(row)
        }
        RowError::TooLong { row } => ReadError::file(
            file,
            "the row is longer than a mebibyte",
            "give a text file whose rows end in line ends",
        )
        .in_row(row),
    }
}

fn cannot_read(file: &str, error: &io::Error) -> ReadError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "change the permissions of the file",
        _ => "give a readable file",
    };
    ReadError::file(file, format!("cannot read: {error}"), remedy)
}
