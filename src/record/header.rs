//! Finds the columns of a CSV file by name, whoever wrote it.

use super::ReadError;
use super::cell::EVENT_SUFFIX;
use super::read_error::shorten;
use super::rows::Row;
use crate::sample::COLUMNS;

/// The fixed columns, in the order of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Column {
    Probe,
    Workload,
    Len,
    Arm,
    Routine,
    Placement,
    PlacementValue,
    Launch,
    Round,
    Order,
    Sp,
    Buf,
    Src,
    BufMod64,
    #[expect(dead_code, reason = "holds its place in the order; the value follows from `buf`")]
    BufAnd31,
    HeapMod64,
    TextMod64,
    EnvBytes,
    ArgvBytes,
    Cpu,
    Iterations,
    NsPerOp,
    Value,
    Unit,
    Params,
    GuardNs,
    RunningRatio,
    Disturbed,
    Status,
}

/// Other names under which foreign files carry a column.
const ALSO: [(&str, Column); 2] = [("process", Column::Launch), ("residue", Column::BufMod64)];

/// Where each column stands.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// All names, in the order of the file.
    pub names: Vec<String>,
    /// Position of each fixed column; `usize::MAX` where the file has none, which reads as empty.
    at: [usize; COLUMNS.len()],
    /// Counters (without `_per_op`) and their positions.
    pub events: Vec<(String, usize)>,
    /// Whether the file has every fixed column: stackphase wrote it.
    pub complete: bool,
}

impl Header {
    /// Reads the header row of `file`.
    pub fn read(file: &str, row: Row<'_>) -> Result<Self, ReadError> {
        let names: Vec<String> = row.iter().map(|name| name.trim().to_owned()).collect();
        let mut header =
            Header { names, at: [usize::MAX; COLUMNS.len()], events: Vec::new(), complete: false };
        for index in 0..header.names.len() {
            header.place(index).map_err(|name| {
                ReadError::file(
                    file,
                    format!("the column `{}` stands there twice", shorten(&name)),
                    "keep one of the two",
                )
                .in_row(row.number)
            })?;
        }
        header.complete = header.at.iter().all(|at| *at != usize::MAX);
        header.require(file, row.number)?;
        Ok(header)
    }

    /// Notes what the name at `index` is; gives it back where it is there already.
    fn place(&mut self, index: usize) -> Result<(), String> {
        let name = &self.names[index];
        let fixed = COLUMNS
            .iter()
            .position(|column| column == name)
            .or_else(|| ALSO.iter().find(|(also, _)| also == name).map(|(_, c)| *c as usize));
        if let Some(column) = fixed {
            if self.at[column] != usize::MAX {
                return Err(name.clone());
            }
            self.at[column] = index;
        } else if let Some(event) = name.strip_suffix(EVENT_SUFFIX) {
            if self.events.iter().any(|(other, _)| other == event) {
                return Err(name.clone());
            }
            self.events.push((event.to_owned(), index));
        }
        Ok(())
    }

    /// A placement and a figure are what a verdict is made of.
    fn require(&self, file: &str, row: u64) -> Result<(), ReadError> {
        let has = |column: Column| self.at[column as usize] != usize::MAX;
        let one_cell = self.names.len() == 1;
        let remedy = match self.names.first() {
            Some(name) if one_cell && name.contains([';', '\t']) => {
                "separate the columns by commas"
            }
            _ => "name the columns in the first row, as sweeps/README.md lists them",
        };
        let missing = |what: &str, column: &str| {
            Err(ReadError::file(file, format!("no column gives {what}"), remedy)
                .in_row(row)
                .in_column(column))
        };
        if !has(Column::PlacementValue) && !has(Column::BufMod64) {
            return missing("the placement", "placement_value");
        }
        if !has(Column::NsPerOp) && !has(Column::Value) {
            return missing("a figure", "ns_per_op");
        }
        Ok(())
    }

    /// The cell of `column`; empty where the file has no such column.
    #[inline]
    pub fn cell<'a>(&self, row: &Row<'a>, column: Column) -> &'a str {
        row.get(self.at[column as usize])
    }

    /// Whether the file has `column`.
    pub fn has(&self, column: Column) -> bool {
        self.at[column as usize] != usize::MAX
    }

    /// The name of a column as this file spells it.
    pub fn name(&self, column: Column) -> &str {
        self.names.get(self.at[column as usize]).map_or(COLUMNS[column as usize], String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Rows;
    use super::*;

    fn header(line: &str) -> Result<Header, String> {
        let mut rows = Rows::new(line.as_bytes());
        Header::read("f.csv", rows.next().unwrap().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_numbered_as_the_schema_lists_them() {
        assert_eq!(COLUMNS[Column::Probe as usize], "probe");
        assert_eq!(COLUMNS[Column::PlacementValue as usize], "placement_value");
        assert_eq!(COLUMNS[Column::BufMod64 as usize], "buf_mod64");
        assert_eq!(COLUMNS[Column::NsPerOp as usize], "ns_per_op");
        assert_eq!(COLUMNS[Column::Status as usize], "status");
        let header = header(&COLUMNS.join(",")).unwrap();
        assert!(header.complete && header.events.is_empty());
    }

    #[test]
    fn found_by_name_in_any_order_and_by_other_names() {
        let header = header("cycles_per_op, residue ,process,value,remark").unwrap();
        assert_eq!(header.events, [("cycles".to_owned(), 0)]);
        assert_eq!(header.at[Column::BufMod64 as usize], 1);
        assert_eq!(header.at[Column::Launch as usize], 2);
        assert_eq!(header.name(Column::Launch), "process");
        assert!(!header.complete);
    }

    #[test]
    fn what_is_missing_or_double_is_named() {
        assert_eq!(
            header("ns_per_op").unwrap_err(),
            "no column gives the placement: f.csv, row 1, column placement_value; name the \
             columns in the first row, as sweeps/README.md lists them"
        );
        assert!(header("residue,x").unwrap_err().contains("column ns_per_op"));
        assert!(header("residue;value").unwrap_err().ends_with("separate the columns by commas"));
        assert!(header("value,launch,process,residue").unwrap_err().contains("twice"));
        assert!(header("value,residue,a_per_op,a_per_op").unwrap_err().contains("twice"));
    }
}
