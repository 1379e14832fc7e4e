//! Streams the rows of a samples file into thinned series.
//!
//! Columns are found by name and only those that a picture needs are read; a row is never held. A
//! row that cannot be read is counted and the first one named.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use csv::ByteRecord;

use super::run::{Key, RunData, SampleSeries};
use super::thin::{Dot, Thinned};

/// Series that are drawn; rows of further ones are counted.
const MOST_SERIES: usize = 256;

/// The columns of one file.
struct Columns {
    key: [Option<usize>; 8],
    placement_value: Option<usize>,
    launch: Option<usize>,
    buf: Option<usize>,
    residue: Option<usize>,
    ns: Option<usize>,
    value: Option<usize>,
    disturbed: Option<usize>,
    status: Option<usize>,
}

impl Columns {
    fn of(header: &ByteRecord) -> Self {
        let find = |names: &[&str]| {
            names.iter().find_map(|name| {
                header.iter().position(|cell| {
                    cell.strip_prefix(b"\xef\xbb\xbf").unwrap_or(cell).trim_ascii()
                        == name.as_bytes()
                })
            })
        };
        let one = |name| find(&[name]);
        Columns {
            key: ["probe", "workload", "len", "arm", "routine", "placement", "params", "unit"]
                .map(one),
            placement_value: one("placement_value"),
            // Foreign files say `process` for what is a launch here.
            launch: find(&["launch", "process"]),
            buf: one("buf"),
            residue: find(&["buf_mod64", "residue"]),
            ns: one("ns_per_op"),
            value: one("value"),
            disturbed: one("disturbed"),
            status: one("status"),
        }
    }
}

/// Reads the rows of `file` into `run`, and says there what could not be read.
pub fn read(file: &Path, run: &mut RunData) {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let reader = File::open(file).map_err(csv::Error::from).map(|file| {
        csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 18).from_reader(file)
    });
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => {
            run.missing.push(format!("{name} cannot be read ({error})."));
            return;
        }
    };
    let columns = match reader.byte_headers() {
        Ok(header) => Columns::of(header),
        Err(error) => {
            run.missing.push(format!("{name} cannot be read ({error})."));
            return;
        }
    };
    if columns.ns.is_none() && columns.value.is_none() {
        run.missing.push(format!(
            "{name} has neither a column ns_per_op nor a column value: no block of it can be drawn."
        ));
        return;
    }
    let mut rows = Rows { columns, run, index: HashMap::new(), bad: None, bad_rows: 0, beyond: 0 };
    let mut record = ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(true) => rows.take(&record),
            Ok(false) => break,
            Err(error) => {
                rows.run.missing.push(format!("{name} breaks off ({error})."));
                break;
            }
        }
    }
    let (bad, bad_rows, beyond) = (rows.bad, rows.bad_rows, rows.beyond);
    if let Some(first) = bad {
        run.missing.push(format!(
            "{bad_rows} rows of {name} cannot be read and are not drawn (the first: {first})."
        ));
    }
    if beyond > 0 {
        run.missing.push(format!(
            "{name} holds more than {MOST_SERIES} series: {beyond} rows of further ones are not drawn."
        ));
    }
}

struct Rows<'a> {
    columns: Columns,
    run: &'a mut RunData,
    /// Raw key cells, joined, to the series' place in the run.
    index: HashMap<Vec<u8>, usize>,
    bad: Option<String>,
    bad_rows: u64,
    beyond: u64,
}

impl Rows<'_> {
    fn take(&mut self, record: &ByteRecord) {
        self.run.rows += 1;
        match self.block(record) {
            // A failed launch has no figure: nothing to draw, and nothing wrong with the row.
            Ok(None) => {}
            Ok(Some((placement, residue, page, dot))) => match self.series(record) {
                Some(at) => self.run.series[at].blocks.add(placement, residue, page, dot),
                None => self.beyond += 1,
            },
            Err(column) => {
                self.bad_rows += 1;
                let row = record.position().map_or(0, csv::Position::line);
                self.bad.get_or_insert_with(|| format!("line {row}, column {column}"));
            }
        }
    }

    /// What is drawn of a row; the column's name where a cell is not what it should be.
    #[allow(clippy::type_complexity)] // Private, and named by the only caller at once.
    fn block(
        &self,
        record: &ByteRecord,
    ) -> Result<Option<(i64, Option<u8>, Option<u16>, Dot)>, &'static str> {
        let columns = &self.columns;
        let value = match (cell(record, columns.ns), cell(record, columns.value)) {
            (Some(text), _) => number(text).ok_or("ns_per_op")?,
            (None, Some(text)) => number(text).ok_or("value")?,
            (None, None) if cell(record, columns.status).is_some_and(|s| s != b"ok") => {
                return Ok(None);
            }
            (None, None) => return Err("ns_per_op"),
        };
        let placement = match cell(record, columns.placement_value) {
            Some(text) => parse::<i64>(text).ok_or("placement_value")?,
            None => 0,
        };
        let launch = match cell(record, columns.launch) {
            Some(text) => parse::<u32>(text).ok_or("launch")?,
            None => 0,
        };
        let buf = match cell(record, columns.buf) {
            Some(text) => Some(address(text).ok_or("buf")?),
            None => None,
        };
        let residue = match (buf, cell(record, columns.residue)) {
            (Some(buf), _) => Some((buf % 64) as u8),
            (None, Some(text)) => Some(parse::<u8>(text).filter(|r| *r < 64).ok_or("buf_mod64")?),
            (None, None) => None,
        };
        let disturbed = cell(record, columns.disturbed).is_some_and(|d| d == b"true" || d == b"1");
        let page = buf.map(|buf| (buf % 4096) as u16);
        Ok(Some((placement, residue, page, Dot { value, launch, disturbed })))
    }

    /// The series that the row belongs to, made where it is the first; none beyond the limit.
    fn series(&mut self, record: &ByteRecord) -> Option<usize> {
        let mut joined = Vec::with_capacity(96);
        for column in self.columns.key {
            joined.extend_from_slice(cell(record, column).unwrap_or_default());
            // No cell can hold this byte and be text, so joined keys stay apart.
            joined.push(0xff);
        }
        if let Some(at) = self.index.get(&joined) {
            return Some(*at);
        }
        if self.run.series.len() >= MOST_SERIES {
            return None;
        }
        // What a foreign file does not name is named as analysis names it, so that verdict and
        // blocks find each other.
        let text = |at: usize, default: &str| match cell(record, self.columns.key[at]) {
            Some(cell) => String::from_utf8_lossy(cell).into_owned(),
            None => default.to_owned(),
        };
        let key = Key {
            probe: text(0, "recorded"),
            workload: text(1, "unnamed"),
            len: text(2, ""),
            arm: text(3, "default"),
            routine: text(4, ""),
            placement: text(5, "shift"),
            params: text(6, ""),
            unit: text(7, ""),
        };
        let at = self.run.series.len();
        self.run.series.push(SampleSeries { key, blocks: Thinned::default() });
        self.index.insert(joined, at);
        Some(at)
    }
}

/// A cell with something in it.
fn cell(record: &ByteRecord, column: Option<usize>) -> Option<&[u8]> {
    let cell = record.get(column?)?.trim_ascii();
    (!cell.is_empty()).then_some(cell)
}

fn parse<T: std::str::FromStr>(cell: &[u8]) -> Option<T> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// A figure: finite and above zero.
fn number(cell: &[u8]) -> Option<f64> {
    parse::<f64>(cell).filter(|value| value.is_finite() && *value > 0.0)
}

/// A whole address, hexadecimal with or without its prefix.
fn address(cell: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(cell).ok()?;
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &[u8]) -> RunData {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("samples.csv");
        std::fs::write(&file, text).expect("the fixture can be written");
        let mut run = RunData::default();
        read(&file, &mut run);
        run
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let run = read_text(
            b"ns_per_op,process,placement_value,buf,workload\n59.0,2,16,0x7ffe10,blake3\n79.7,0,32,7ffe20,blake3\n",
        );
        assert!(run.missing.is_empty(), "{:?}", run.missing);
        let blocks = &run.series[0].blocks;
        assert_eq!((blocks.rows, blocks.launches), (2, 3));
        assert_eq!(blocks.residues.keys().copied().collect::<Vec<_>>(), [16, 32]);
        assert_eq!(blocks.places[&16].page_offset, Some(0xe10));
    }

    #[test]
    fn bad_rows_are_counted_and_the_first_is_named() {
        let run = read_text(
            b"placement_value,ns_per_op,status\n0,59.0,ok\n16,NaN,ok\n32,-1,ok\nx,59.0,ok\n48,,failed\n64,,ok\n",
        );
        assert_eq!(run.series[0].blocks.rows, 1);
        assert_eq!(
            run.missing,
            [
                "4 rows of samples.csv cannot be read and are not drawn (the first: line 3, column ns_per_op)."
            ]
        );
    }

    #[test]
    fn what_is_not_text_or_not_samples_does_not_stop_the_report() {
        let run = read_text(b"\xff\xfe,ns_per_op\n\xff,59.0\n\"open quote,1\n");
        assert_eq!(run.rows, 2);
        assert!(read_text(b"").missing[0].contains("neither"));
        assert!(read_text(b"a,b\n1,2\n").missing[0].contains("neither"));
    }

    #[test]
    fn series_beyond_the_limit_are_counted() {
        let mut text = b"workload,placement_value,ns_per_op\n".to_vec();
        for n in 0..300 {
            text.extend_from_slice(format!("w{n},0,1.0\n").as_bytes());
        }
        let run = read_text(&text);
        assert_eq!(run.series.len(), MOST_SERIES);
        assert!(run.missing[0].contains("44 rows"), "{:?}", run.missing);
    }
}
