//! One cell of the map: which bytes are stored and loaded, what it cost, and what that is called.

use serde::{Deserialize, Serialize};

use crate::kernels::pairs;

/// How a load got its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Faster than a load from the cache: the core never went to memory.
    #[serde(rename = "renamed")]
    Renamed,
    /// As fast as from a store of the load's own width.
    #[serde(rename = "forwards")]
    Forwards,
    /// Between a store of the load's own width and a store narrower than the load.
    #[serde(rename = "slow forward")]
    SlowForward,
    /// As slow as from a store narrower than the load, which nothing can forward.
    #[serde(rename = "blocked")]
    Blocked,
    /// Between two classes, or too noisy to say.
    #[serde(rename = "unclear")]
    Unclear,
}

impl Class {
    /// The one spelling used in CSV, JSON and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Renamed => "renamed",
            Class::Forwards => "forwards",
            Class::SlowForward => "slow forward",
            Class::Blocked => "blocked",
            Class::Unclear => "unclear",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether the next iteration waits for the loaded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// It does: latency.
    Chained,
    /// It does not: throughput.
    Independent,
}

impl From<Form> for pairs::Form {
    fn from(form: Form) -> Self {
        match form {
            Form::Chained => pairs::Form::Chained,
            Form::Independent => pairs::Form::Independent,
        }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Form::Chained => "chained",
            Form::Independent => "independent",
        })
    }
}

/// What stands between the stores and the load, and before the stores.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(default)]
pub struct Gap {
    /// Independent instructions between store and load.
    pub instructions: u16,
    /// Dependent cycles before the load's address is known.
    pub cycles: u16,
    /// Older stores to other lines queued in every iteration.
    pub older_stores: u16,
}

/// The widest boundary that an access crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crosses {
    /// A boundary of 64 bytes.
    Line,
    /// A boundary of 4096 bytes.
    Page,
}

impl Crosses {
    /// What `bytes` bytes from `address` cross.
    pub fn of(address: usize, bytes: usize) -> Option<Crosses> {
        let differs = |unit: usize| address / unit != (address + bytes - 1) / unit;
        match (differs(4096), differs(64)) {
            (true, _) => Some(Crosses::Page),
            (false, true) => Some(Crosses::Line),
            (false, false) => None,
        }
    }

    /// The spelling in CSV and text.
    pub fn as_str(self) -> &'static str {
        match self {
            Crosses::Line => "line",
            Crosses::Page => "page",
        }
    }
}

/// Where the bytes of the load come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cover {
    /// All from one store, the youngest that wrote each of them.
    One,
    /// All from stores, but from more than one.
    Several,
    /// Some from stores, others older.
    Partly,
    /// None: load and stores do not touch.
    Nothing,
}

/// One store of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StorePart {
    /// Its width.
    pub bytes: u8,
    /// Where it starts, in bytes above the start of the first.
    pub at: u8,
}

/// One cell of the map. A cell without a figure for something has `None` there, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes from the first stored to the last stored: the store's width where there is one store.
    pub store_bytes: u16,
    /// The stores in program order, where there are two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<StorePart>,
    /// Width of the load.
    pub load_bytes: u8,
    /// Address of the load minus address of the first store.
    pub offset: i16,
    /// Address of the first store modulo 64.
    pub residue: u8,
    /// Address of the first store modulo 4096, where the cell stands at the end of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_offset: Option<u16>,
    /// The widest boundary that stores or load cross.
    pub crosses: Option<Crosses>,
    /// Chained or independent.
    pub form: Form,
    /// What stands between store and load.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gap: Gap,
    /// Median time of an iteration.
    pub ns: f64,
    /// Distance of the quartiles of that time, in percent of it.
    pub spread_percent: f64,
    /// Median time of an iteration of the twin.
    #[serde(default)]
    pub twin_ns: Option<f64>,
    /// `ns` minus `twin_ns`, in cycles of the measured clock.
    #[serde(default)]
    pub net_cycles: Option<f64>,
    /// What that is called; `None` where load and store do not touch.
    pub class: Option<Class>,
}

fn is_default(gap: &Gap) -> bool {
    *gap == Gap::default()
}

impl Cell {
    /// The stores as the kernels take them.
    pub fn parts(&self) -> Vec<StorePart> {
        if self.stores.is_empty() {
            // A single store is at most 64 bytes wide.
            vec![StorePart { bytes: self.store_bytes.min(64) as u8, at: 0 }]
        } else {
            self.stores.clone()
        }
    }

    /// Where the load's bytes come from.
    pub fn cover(&self) -> Cover {
        cover(&self.parts(), self.offset, self.load_bytes)
    }

    /// The stores in words: `8`, `8+8@8` (the second starts 8 bytes above the first).
    pub fn stores_text(&self) -> String {
        match self.parts()[..] {
            [first, second] => format!("{}+{}@{}", first.bytes, second.bytes, second.at),
            _ => self.store_bytes.to_string(),
        }
    }
}

/// Where the bytes of a load at `offset` come from.
pub(super) fn cover(parts: &[StorePart], offset: i16, load_bytes: u8) -> Cover {
    let writer = |byte: i16| {
        parts.iter().rposition(|part| {
            let start = i16::from(part.at);
            (start..start + i16::from(part.bytes)).contains(&byte)
        })
    };
    let writers: Vec<_> = (offset..offset + i16::from(load_bytes)).map(writer).collect();
    match (writers.iter().any(Option::is_some), writers.iter().all(Option::is_some)) {
        (false, _) => Cover::Nothing,
        (true, false) => Cover::Partly,
        (true, true) if writers.iter().all(|w| *w == writers[0]) => Cover::One,
        (true, true) => Cover::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_writer_of_each_byte_decides() {
        let part = |bytes, at| StorePart { bytes, at };
        let halves = [part(8, 0), part(8, 8)];
        assert_eq!(cover(&halves, 0, 16), Cover::Several);
        assert_eq!(cover(&halves, 8, 8), Cover::One);
        assert_eq!(cover(&halves, 12, 8), Cover::Partly);
        assert_eq!(cover(&halves, -8, 8), Cover::Nothing);
        // The second of two overlapping stores holds all that the load wants.
        let overlap = [part(64, 0), part(64, 0)];
        assert_eq!(cover(&overlap, 48, 16), Cover::One);
        // An 8-byte store, a 4-byte store over its last byte, and a load of the first.
        assert_eq!(cover(&[part(8, 0), part(4, 7)], 0, 8), Cover::Several);
    }

    #[test]
    fn a_page_boundary_is_also_one_of_a_line() {
        assert_eq!(Crosses::of(4090, 8), Some(Crosses::Page));
        assert_eq!(Crosses::of(60, 8), Some(Crosses::Line));
        assert_eq!(Crosses::of(56, 8), None);
    }
}
