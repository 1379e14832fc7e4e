//! The event table: which code counts what on which core.
//!
//! A data file, `events.csv`, with the source of every code beside it. Only codes on which two
//! listings agree are in it: a test holds each against the second listing in `tests/data/counters`.
//! What is missing there can be given with `--event`, and has to pass the same self-test.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Layout, STANDARD};

    const SECOND: &str = include_str!("../../tests/data/counters/second_listing.csv");

    /// Event, core and kind of core; code, umask and cmask; source.
    type Listed = ([String; 3], [u64; 3], String);

    fn listed(text: &str) -> Vec<Listed> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let number = |text: &str| {
            if text.is_empty() { 0 } else { super::super::number(text).expect("is a number") }
        };
        reader
            .records()
            .map(|record| {
                let record = record.expect("is a row");
                let key = [0, 1, 2].map(|column| record[column].to_owned());
                (key, [4, 5, 6].map(|column| number(&record[column])), record[7].to_owned())
            })
            .collect()
    }

    #[test]
    fn every_row_parses() {
        assert_eq!(rows().len(), include_str!("events.csv").lines().count() - 1);
    }

    #[test]
    fn every_code_is_that_of_a_second_listing_with_another_source() {
        let second = listed(SECOND);
        for (key, code, source) in listed(include_str!("events.csv")) {
            let others: Vec<&Listed> = second.iter().filter(|other| other.0 == key).collect();
            assert!(!others.is_empty(), "{key:?} stands in one listing only");
            for (_, other, from) in others {
                assert_eq!(&code, other, "{key:?}: {source} against {from}");
                assert_ne!(&source, from, "{key:?}");
            }
        }
    }

    #[test]
    fn forwarding_failures_have_the_published_codes_and_some_cores_have_none() {
        let raw = |core: &str, core_type| {
            let core = Core { name: core.into(), title: String::new(), core_type };
            lookup(&core, "store_forward_failures")
                .map(|event| event.raw(Layout::Intel).expect("fits"))
        };
        use CoreType::{Efficient, Performance, Uniform};
        for core in ["amdzen2", "amdzen3", "amdzen4", "amdzen5", "amdzen6"] {
            assert_eq!(raw(core, Uniform).as_deref(), Some("r0224"), "{core}");
        }
        for core in ["haswell", "skylakex", "icelakex", "rocketlake", "sierraforest"] {
            assert_eq!(raw(core, Uniform).as_deref(), Some("r0203"), "{core}");
        }
        for core in ["sapphirerapids", "emeraldrapids", "graniterapids"] {
            assert_eq!(raw(core, Uniform).as_deref(), Some("r8203"), "{core}");
        }
        for core in ["alderlake", "meteorlake", "lunarlake", "arrowlake", "pantherlake"] {
            assert_eq!(raw(core, Performance).as_deref(), Some("r8203"), "{core}");
        }
        for core in ["meteorlake", "lunarlake", "pantherlake"] {
            assert_eq!(raw(core, Efficient).as_deref(), Some("r0203"), "{core}");
        }
        assert_eq!(raw("alderlake", Efficient), None, "Gracemont");
        for core in ["neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2", "neoverse-v3"] {
            assert_eq!(raw(core, Uniform), None, "{core}");
        }
    }

    #[test]
    fn every_core_counts_instructions_and_cycles_under_names_of_the_documentation() {
        for row in rows() {
            assert!(STANDARD.iter().any(|(name, _)| *name == row.event.name), "{}", row.event.name);
            let core =
                Core { name: row.core.clone(), title: String::new(), core_type: row.core_type };
            assert!(lookup(&core, "instructions").is_some(), "{}", row.core);
            assert!(lookup(&core, "cycles").is_some(), "{}", row.core);
        }
    }
}
