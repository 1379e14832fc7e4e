//! Splits a stream of CSV (RFC 4180, UTF-8) into rows and cells.
//!
//! Almost no row of a sweep holds a quote, so the common path only looks for line ends and commas
//! and copies nothing; a row with a quote goes through a plain state machine. What both make of a
//! file is defined by the `csv` crate, which the tests use as the reference.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes asked of the reader at once.
const CHUNK: usize = 1 << 18;
/// No row of samples is longer; a binary file without line ends must not fill the memory.
const LONGEST_ROW: usize = 1 << 20;

/// Why there is no next row.
#[derive(Debug)]
pub(crate) enum RowError {
    /// The reader failed.
    Io(io::Error),
    /// A cell is not UTF-8; cells are counted from 0. `terminated` as in [`Row`].
    NotUtf8 { row: u64, cell: usize, terminated: bool },
    /// The file ends inside a quoted cell; `lines` lines of it lie in the open row.
    OpenQuote { row: u64, lines: u64 },
    /// No line end within the longest row allowed.
    TooLong { row: u64 },
}

/// The rows of a stream, one after the other.
pub(crate) struct Rows<R> {
    reader: R,
    buffer: Vec<u8>,
    /// What of `buffer` is read and not yet consumed.
    pending: Range<usize>,
    at_end: bool,
    /// File offset of `pending.start`.
    offset: u64,
    /// Row number of the line that starts at `pending.start`.
    line: u64,
    cells: Vec<(u32, u32)>,
    unquoted: Vec<u8>,
}

/// One row, borrowed from the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    text: &'a str,
    cells: &'a [(u32, u32)],
    /// The line that it begins on; the header is row 1.
    pub number: u64,
    /// File offset behind the row and its line end.
    pub end: u64,
    /// Whether it ended in a line end, and not with the file.
    pub terminated: bool,
}

impl<'a> Row<'a> {
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The cell, or an empty one where the row has no such cell.
    pub fn get(&self, index: usize) -> &'a str {
        let range = self.cells.get(index).map(|&(start, end)| start as usize..end as usize);
        // Cells are cut at ASCII bytes, hence always at character boundaries.
        range.and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        (0..self.len()).map(move |index| self.get(index))
    }
}

impl<R: Read> Rows<R> {
    pub fn new(reader: R) -> Self {
        Rows {
            reader,
            buffer: vec![0; CHUNK],
            pending: 0..0,
            at_end: false,
            offset: 0,
            line: 1,
            cells: Vec::new(),
            unquoted: Vec::new(),
        }
    }

    /// The next row that is not blank, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Row<'_>>, RowError> {
        if self.offset == 0 && self.line == 1 {
            self.skip_byte_order_mark()?;
        }
        loop {
            let Some(line) = self.whole_line(0)? else { return Ok(None) };
            let bytes = without_line_end(&self.buffer[self.ahead(&line)]);
            if !bytes.is_empty() {
                break;
            }
            self.consume(line.len(), 1);
        }
        self.next_row().map(Some)
    }

    /// Splits the row at the front, which is known to begin with a line that is not blank.
    fn next_row(&mut self) -> Result<Row<'_>, RowError> {
        let number = self.line;
        let mut line = self.whole_line(0)?.unwrap_or(0..0);
        let quoted = self.buffer[self.ahead(&line)].contains(&b'"');
        let mut lines = 1;
        if quoted {
            // A quoted cell may run on over further lines.
            while !unquote(
                without_line_end(&self.buffer[self.ahead(&line)]),
                &mut self.unquoted,
                &mut self.cells,
            ) {
                match self.whole_line(line.end)? {
                    Some(longer) => line = longer,
                    None => return Err(RowError::OpenQuote { row: number, lines }),
                }
                lines += 1;
            }
        }
        let raw = self.ahead(&line);
        let terminated = self.buffer[raw.clone()].ends_with(b"\n");
        self.consume(line.len(), lines);
        let bytes = if quoted {
            self.unquoted.as_slice()
        } else {
            let bytes = without_line_end(&self.buffer[raw]);
            split(bytes, &mut self.cells);
            bytes
        };
        let text = std::str::from_utf8(bytes).map_err(|error| RowError::NotUtf8 {
            row: number,
            terminated,
            cell: self.cells.iter().take_while(|c| (c.1 as usize) <= error.valid_up_to()).count(),
        })?;
        Ok(Row { text, cells: &self.cells, number, end: self.offset, terminated })
    }

    /// The range, relative to the front, up to and including the first line end at or behind
    /// `from`, or up to the end of the stream; `None` when nothing lies behind `from`.
    fn whole_line(&mut self, from: usize) -> Result<Option<Range<usize>>, RowError> {
        let mut searched = from;
        loop {
            let unread = &self.buffer[self.pending.clone()];
            if let Some(at) = find_line_end(&unread[searched..]) {
                return Ok(Some(0..searched + at + 1));
            }
            searched = unread.len();
            if self.at_end {
                return Ok((searched > from).then_some(0..searched));
            }
            if searched > LONGEST_ROW {
                return Err(RowError::TooLong { row: self.line });
            }
            self.fill()?;
        }
    }

    fn ahead(&self, relative: &Range<usize>) -> Range<usize> {
        self.pending.start + relative.start..self.pending.start + relative.end
    }

    fn consume(&mut self, bytes: usize, lines: u64) {
        self.pending.start += bytes;
        self.offset += bytes as u64;
        self.line += lines;
    }

    /// Reads on, moving what is pending to the front of the buffer first.
    fn fill(&mut self) -> Result<(), RowError> {
        self.buffer.copy_within(self.pending.clone(), 0);
        self.pending = 0..self.pending.len();
        if self.buffer.len() < self.pending.end + CHUNK / 2 {
            self.buffer.resize(self.pending.end + CHUNK, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.pending.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.pending.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(RowError::Io(error)),
            }
            return Ok(());
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<(), RowError> {
        while self.pending.len() < 3 && !self.at_end {
            self.fill()?;
        }
        if self.buffer[self.pending.clone()].starts_with(b"\xef\xbb\xbf") {
            self.consume(3, 0);
        }
        Ok(())
    }
}

fn find_line_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Cuts a row without quotes at its commas. Rows are at most a few chunks long, so 32 bits hold
/// every position.
fn split(row: &[u8], cells: &mut Vec<(u32, u32)>) {
    cells.clear();
    let mut start = 0;
    for comma in memchr::memchr_iter(b',', row) {
        cells.push((start, comma as u32));
        start = comma as u32 + 1;
    }
    cells.push((start, row.len() as u32));
}

/// Cuts a row with quotes, writing its cells without them to `text`; false when the row ends
/// inside a quoted cell. A quote opens only at the start of a cell; what follows a closing quote
/// is taken as it stands.
fn unquote(row: &[u8], text: &mut Vec<u8>, cells: &mut Vec<(u32, u32)>) -> bool {
    text.clear();
    cells.clear();
    let mut start = 0;
    let mut at = 0;
    let mut inside = false;
    let mut at_cell_start = true;
    while let Some(&byte) = row.get(at) {
        at += 1;
        match byte {
            b'"' if inside && row.get(at) == Some(&b'"') => {
                text.push(b'"');
                at += 1;
            }
            b'"' if inside => inside = false,
            b'"' if at_cell_start => inside = true,
            b',' if !inside => {
                cells.push((start, text.len() as u32));
                start = text.len() as u32;
                at_cell_start = true;
                continue;
            }
            other => text.push(other),
        }
        at_cell_start = false;
    }
    cells.push((start, text.len() as u32));
    !inside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that gives a few bytes at a time, so that rows straddle reads.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(into.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn ours(bytes: &[u8], step: usize) -> Result<Vec<Vec<String>>, RowError> {
        let mut rows = Rows::new(Trickle(bytes, step));
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            assert_eq!(row.iter().count(), row.len());
            all.push(row.iter().map(str::to_owned).collect());
        }
        Ok(all)
    }

    fn reference(bytes: &[u8]) -> Vec<Vec<String>> {
        csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes)
            .records()
            .map(|record| record.unwrap().iter().map(str::to_owned).collect())
            .collect()
    }

    #[test]
    fn rows_numbers_and_offsets() {
        let text = "a,b\r\n\n\"x\ny\",2\nlast,";
        let mut rows = Rows::new(text.as_bytes());
        let mut seen = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<&str> = row.iter().collect();
            seen.push((cells.join("|"), row.number, row.end, row.terminated));
        }
        let expected = [("a|b", 1, 5, true), ("x\ny|2", 3, 14, true), ("last|", 5, 19, false)];
        assert_eq!(seen, expected.map(|(cells, n, end, t)| (cells.to_owned(), n, end, t)));
    }

    #[test]
    fn faults_name_their_row() {
        assert!(matches!(ours(b"a\n\"b\nc", 3), Err(RowError::OpenQuote { row: 2, lines: 2 })));
        assert!(matches!(
            ours(b"a,b\n1,\xff\xff", 9),
            Err(RowError::NotUtf8 { row: 2, cell: 1, terminated: false })
        ));
        let endless = vec![b'a'; LONGEST_ROW + CHUNK + 2];
        assert!(matches!(ours(&endless, CHUNK), Err(RowError::TooLong { row: 1 })));
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_name() {
        assert_eq!(ours(b"\xef\xbb\xbfa,b\n", 1).unwrap(), [["a", "b"]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn equals_the_csv_crate(text in "([a,é\"]|\n|\r\n){0,40}", step in 1usize..9) {
            match ours(text.as_bytes(), step) {
                Ok(rows) => prop_assert_eq!(rows, reference(text.as_bytes())),
                // The crate closes an open quote at the end of the file by itself.
                Err(RowError::OpenQuote { .. }) => {}
                Err(error) => prop_assert!(false, "{error:?}"),
            }
        }

        #[test]
        fn no_bytes_are_fatal(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..9) {
            let _ = ours(&bytes, step);
        }
    }
}
