//! The event table: which code counts what on which core. A data file, `events.csv`, with the
//! source of every code beside it.

use std::sync::OnceLock;

use super::event::{Encoding, Event, Fields};
use super::identify::{Core, CoreType};

struct Row {
    core: String,
    core_type: CoreType,
    event: Event,
}

/// The table's event called `name` on `core`, if the core has one.
pub fn lookup(core: &Core, name: &str) -> Option<Event> {
    rows()
        .iter()
        .find(|row| {
            row.core == core.name && row.core_type == core.core_type && row.event.name == name
        })
        .map(|row| row.event.clone())
}

#[cfg(test)]
pub(super) fn knows(core: &Core) -> bool {
    rows().iter().any(|row| row.core == core.name && row.core_type == core.core_type)
}

fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut reader = csv::Reader::from_reader(include_str!("events.csv").as_bytes());
        // A row that does not parse would silently be missing: a test compares the counts.
        reader.records().filter_map(|record| row(&record.ok()?)).collect()
    })
}

fn row(record: &csv::StringRecord) -> Option<Row> {
    let optional = |text: &str| if text.is_empty() { Some(0) } else { super::number(text) };
    let fields = Fields {
        event: super::number(record.get(4)?)?,
        umask: optional(record.get(5)?)?,
        cmask: optional(record.get(6)?)?,
        ..Fields::default()
    };
    Some(Row {
        core: record.get(1)?.to_owned(),
        core_type: CoreType::parse(record.get(2)?)?,
        event: Event {
            name: record.get(0)?.to_owned(),
            native: Some(record.get(3)?.to_owned()),
            source: Some(record.get(7)?.to_owned()),
            encoding: Encoding::Fields { pmu: None, fields },
        },
    })
}
