//! Reads rows straight into what analysis works on, a million of them in well under a second.
//!
//! A row is split in place; the cells that name a series are compared as bytes with those of the
//! rows before, so that text is parsed once a series and only numbers once a row.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use super::ReadError;
use super::field::Fields;
use super::header::Column;
use super::samples::{UNNAMED_ARM, UNNAMED_PROBE, UNNAMED_WORKLOAD, placement_value};
use super::table::{Table, Tail};
use crate::analysis::{Observation, Series, SeriesKey};
use crate::sample::{Grid, Params, Placement, Role, Sample, Status};

/// What a file of samples holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// The series in the order in which they first appear, with their observations.
    pub series: Vec<Series>,
    /// Rows read.
    pub rows: u64,
    /// Rows that carry no figure: a block or launch that failed or was not measured.
    pub without_figure: u64,
    /// The row that was in flight when the run was killed, and is left out.
    pub torn: Option<u64>,
}

/// Reads a CSV file, whoever wrote it: columns are found by name, `placement_value` or a residue
/// (`buf_mod64`, `residue`) and `ns_per_op` or `value` must be among them; `process` is read as
/// `launch`. Rows without `round` are numbered by their visits to a placement within a launch.
///
/// # Errors
/// When the file cannot be read or a row is at fault; the error names file, row and column.
pub fn read_series(path: &Path) -> Result<Recording, ReadError> {
    Table::open(path, Tail::Whole)?.map_or(Ok(Recording::default()), collect)
}

/// As [`read_series`], from any reader that messages call `name`.
///
/// # Errors
/// As [`read_series`].
pub fn series_from_reader(name: &str, reader: impl Read) -> Result<Recording, ReadError> {
    Table::new(name.to_owned(), reader, Tail::Whole)?.map_or(Ok(Recording::default()), collect)
}

/// The series of samples that are in memory, in the order in which they first appear. Samples
/// without a figure are left out.
pub fn series_of(samples: &[Sample]) -> Vec<Series> {
    let mut series = SeriesSet::default();
    for sample in samples.iter().filter(|sample| sample.status == Status::Ok) {
        let Some(ns) = sample.ns_per_op.or(sample.value) else { continue };
        let observation = Observation {
            launch: sample.launch,
            round: sample.round,
            order: sample.order.and_then(|order| u32::try_from(order).ok()),
            placement: sample.placement_value,
            residue: sample.buf_mod64(),
            buf: sample.buf,
            sp: sample.sp,
            ns,
            disturbed: sample.disturbed.unwrap_or(false),
        };
        let at = series.at(SeriesKey::of(sample));
        series.list[at].observations.push(observation);
    }
    series.list
}

/// The cells that say which series a row belongs to.
const KEY: [Column; 8] = [
    Column::Probe,
    Column::Workload,
    Column::Len,
    Column::Arm,
    Column::Routine,
    Column::Placement,
    Column::Unit,
    Column::Params,
];

pub(crate) fn collect<R: Read>(mut table: Table<R>) -> Result<Recording, ReadError> {
    let mut recording = Recording::default();
    let mut index = Index::default();
    let mut visits: HashMap<(usize, u32, i64), u32> = HashMap::new();
    while let Some(fields) = table.next()? {
        recording.rows += 1;
        let Some(mut observation) = observation(&fields)? else {
            recording.without_figure += 1;
            continue;
        };
        let at = index.series_of(&fields)?;
        if fields.text(Column::Round).is_empty() {
            let visit = visits.entry((at, observation.launch, observation.placement)).or_insert(0);
            observation.round = *visit;
            *visit += 1;
        }
        index.series.list[at].observations.push(observation);
    }
    recording.torn = table.torn();
    recording.series = index.series.list;
    Ok(recording)
}

/// The numbers of one row; `None` where it has no figure.
fn observation(fields: &Fields<'_>) -> Result<Option<Observation>, ReadError> {
    let status = fields.text(Column::Status);
    if !matches!(status, "" | "ok") && fields.word::<Status>(Column::Status)? != Some(Status::Ok) {
        return Ok(None);
    }
    let ns = match fields.figure(Column::NsPerOp)? {
        Some(ns) => Some(ns),
        None => fields.figure(Column::Value)?,
    };
    let buf = fields.address(Column::Buf)?;
    let residue = match buf {
        Some(address) => Some((address % 64) as u8),
        None => fields.residue(Column::BufMod64, 64)?,
    };
    let observation = Observation {
        launch: fields.number(Column::Launch)?.unwrap_or(0),
        round: fields.number(Column::Round)?.unwrap_or(0),
        order: fields.number(Column::Order)?,
        placement: placement_value(fields)?,
        residue,
        buf,
        sp: fields.address(Column::Sp)?,
        ns: ns.unwrap_or(f64::NAN),
        disturbed: fields.flag(Column::Disturbed)?.unwrap_or(false),
    };
    Ok(ns.is_some().then_some(observation))
}

/// Series by the bytes of their cells.
#[derive(Default)]
struct Index {
    series: SeriesSet,
    by_cells: HashMap<Vec<u8>, usize>,
    /// The cells of the row before and its series: rows of one series mostly follow each other.
    last: Option<(Vec<u8>, usize)>,
    cells: Vec<u8>,
}

impl Index {
    fn series_of(&mut self, fields: &Fields<'_>) -> Result<usize, ReadError> {
        self.cells.clear();
        for column in KEY {
            self.cells.extend_from_slice(fields.text(column).as_bytes());
            // A byte that no UTF-8 text contains.
            self.cells.push(0xff);
        }
        if let Some((cells, at)) = &self.last
            && *cells == self.cells
        {
            return Ok(*at);
        }
        let at = match self.by_cells.get(&self.cells) {
            Some(at) => *at,
            None => {
                let at = self.series.at(key(fields)?);
                self.by_cells.insert(self.cells.clone(), at);
                at
            }
        };
        match &mut self.last {
            Some((cells, last)) => {
                cells.clone_from(&self.cells);
                *last = at;
            }
            None => self.last = Some((self.cells.clone(), at)),
        }
        Ok(at)
    }
}

/// Series in the order of their first appearance.
#[derive(Default)]
struct SeriesSet {
    list: Vec<Series>,
    by_key: HashMap<SeriesKey, usize>,
}

impl SeriesSet {
    fn at(&mut self, key: SeriesKey) -> usize {
        *self.by_key.entry(key).or_insert_with_key(|key| {
            self.list.push(Series {
                role: Role::of(&key.workload, &key.arm),
                higher_is_better: is_rate(key),
                key: key.clone(),
                observations: Vec::new(),
            });
            self.list.len() - 1
        })
    }
}

/// The key of a row, as [`SeriesKey::of`] makes it of a sample.
fn key(fields: &Fields<'_>) -> Result<SeriesKey, ReadError> {
    let text = |column, default: &str| fields.some(column).unwrap_or(default).to_owned();
    let all: Params = fields.word(Column::Params)?.unwrap_or_default();
    let mut params = Params::new();
    for (name, value) in all.iter().filter(|(name, _)| *name != "grid") {
        params.set(name, value);
    }
    Ok(SeriesKey {
        probe: text(Column::Probe, UNNAMED_PROBE),
        workload: text(Column::Workload, UNNAMED_WORKLOAD),
        len: fields.number(Column::Len)?,
        arm: text(Column::Arm, UNNAMED_ARM),
        routine: fields.some(Column::Routine).map(str::to_owned),
        placement: fields.word(Column::Placement)?.unwrap_or(Placement::Shift),
        grid: all.get("grid").and_then(|grid| grid.parse::<Grid>().ok()),
        params,
        unit: fields.some(Column::Unit).map(str::to_owned),
    })
}

/// Whether a larger figure is better: `better=higher` in `params`, or a unit per time.
fn is_rate(key: &SeriesKey) -> bool {
    match key.params.get("better") {
        Some(better) => better == "higher",
        None => key.unit.as_deref().is_some_and(|unit| unit.ends_with("/s")),
    }
}
