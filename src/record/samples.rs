//! Reads rows back as whole [`Sample`]s, for reports and for resuming.

use std::io::Read;
use std::path::Path;

use super::ReadError;
use super::field::Fields;
use super::header::Column;
use super::table::{Table, Tail};
use crate::sample::{Placement, Sample, Status};

/// Where a file does not say which experiment, code or variant a row belongs to.
pub(crate) const UNNAMED_PROBE: &str = "recorded";
pub(crate) const UNNAMED_WORKLOAD: &str = "unnamed";
pub(crate) const UNNAMED_ARM: &str = "default";

/// Reads every row of a CSV file. `process` is read as `launch`; a residue without an address
/// becomes the placement where there is no `placement_value`, and is otherwise left out, since a
/// [`Sample`] holds whole addresses only. ([`read_series`](super::read_series) keeps it.)
///
/// # Errors
/// When the file cannot be read or a row is at fault; the error names file, row and column.
pub fn read_samples(path: &Path) -> Result<Vec<Sample>, ReadError> {
    Table::open(path, Tail::Whole)?.map_or(Ok(Vec::new()), collect)
}

/// As [`read_samples`], from any reader that messages call `name`.
///
/// # Errors
/// As [`read_samples`].
pub fn samples_from_reader(name: &str, reader: impl Read) -> Result<Vec<Sample>, ReadError> {
    Table::new(name.to_owned(), reader, Tail::Whole)?.map_or(Ok(Vec::new()), collect)
}

pub(crate) fn collect<R: Read>(mut table: Table<R>) -> Result<Vec<Sample>, ReadError> {
    let mut samples = Vec::new();
    while let Some(fields) = table.next()? {
        samples.push(sample(&fields)?);
    }
    Ok(samples)
}

/// One row as a sample.
pub(crate) fn sample(fields: &Fields<'_>) -> Result<Sample, ReadError> {
    let placement = fields.word(Column::Placement)?.unwrap_or(Placement::Shift);
    let text = |column, default: &'static str| fields.some(column).unwrap_or(default);
    let mut sample = Sample::new(
        text(Column::Probe, UNNAMED_PROBE),
        text(Column::Workload, UNNAMED_WORKLOAD),
        placement,
        placement_value(fields)?,
        fields.number(Column::Launch)?.unwrap_or(0),
        fields.number(Column::Round)?.unwrap_or(0),
    );
    let owned = |column| fields.some(column).map(str::to_owned);
    sample.len = fields.number(Column::Len)?;
    sample.arm = text(Column::Arm, UNNAMED_ARM).to_owned();
    sample.routine = owned(Column::Routine);
    sample.order = fields.number(Column::Order)?;
    sample.sp = fields.address(Column::Sp)?;
    sample.buf = fields.address(Column::Buf)?;
    sample.src = fields.address(Column::Src)?;
    sample.heap_mod64 = fields.residue(Column::HeapMod64, 64)?;
    sample.text_mod64 = fields.residue(Column::TextMod64, 64)?;
    sample.env_bytes = fields.number(Column::EnvBytes)?;
    sample.argv_bytes = fields.number(Column::ArgvBytes)?;
    sample.cpu = fields.number(Column::Cpu)?;
    sample.iterations = fields.number(Column::Iterations)?;
    sample.status = fields.word(Column::Status)?.unwrap_or(Status::Ok);
    sample.ns_per_op = fields.figure(Column::NsPerOp)?;
    sample.value = fields.figure(Column::Value)?;
    sample.unit = owned(Column::Unit);
    sample.params = fields.word(Column::Params)?.unwrap_or_default();
    sample.guard_ns = fields.float(Column::GuardNs)?;
    sample.running_ratio = fields.float(Column::RunningRatio)?;
    sample.disturbed = fields.flag(Column::Disturbed)?;
    for (event, at) in &fields.header.events {
        let value = fields.float_at(fields.row.get(*at), &fields.header.names[*at])?;
        sample.events.push((event.clone(), value));
    }
    Ok(sample)
}

/// The placement, for which the residue stands in where the file has no other.
pub(crate) fn placement_value(fields: &Fields<'_>) -> Result<i64, ReadError> {
    let column = if fields.header.has(Column::PlacementValue) {
        Column::PlacementValue
    } else {
        Column::BufMod64
    };
    match fields.number(column)? {
        Some(value) => Ok(value),
        None => Err(ReadError::file(
            fields.file,
            "the placement is missing",
            "write where the code was placed, or remove the row",
        )
        .in_row(fields.row.number)
        .in_column(fields.header.name(column))),
    }
}
