//! The map as a document, `stackphase/forwarding/1`: measured here, or read from a file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Class, Cover, Crosses, Form, Gap};
use super::classify::{Point, References, classify};
use super::rules::rules;
use crate::kernels::pairs::PairError;
use crate::sample::Absence;

/// The schema of [`Map`].
pub const SCHEMA: &str = "stackphase/forwarding/1";

/// Both ends of the scale for one load width and one form, in cycles net of their twins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Width of the load.
    pub load_bytes: u8,
    /// Chained or independent.
    pub form: Form,
    /// One store of the load's own width, at offset 0.
    pub own_width_cycles: f64,
    /// A load wider than its only store, at offset 0.
    pub wider_load_cycles: f64,
    /// The widths of the latter (a 1-byte load has none narrower and borrows the next width's).
    pub wider_load: String,
}

/// A width that the machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WidthAbsence {
    /// The width in bytes.
    pub bytes: u8,
    /// Why, and what would mend it.
    #[serde(flatten)]
    pub absence: Absence,
}

/// The map of a core. Cells and classes are what a reader needs; everything else is optional, so
/// that a map can be written by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The machine that it was measured on, in one line.
    #[serde(default)]
    pub machine: Option<String>,
    /// The command that measured it.
    #[serde(default)]
    pub command: Option<String>,
    /// When, as UTC stamp.
    #[serde(default)]
    pub measured: Option<String>,
    /// The grid's preset, where the map is one.
    #[serde(default)]
    pub grid: Option<String>,
    /// Visits to each cell.
    #[serde(default)]
    pub repeats: Option<u32>,
    /// Seed of the visiting order.
    #[serde(default)]
    pub seed: Option<u64>,
    /// One cycle of the measured clock, in ns.
    #[serde(default)]
    pub cycle_ns: Option<f64>,
    /// Latency of a load from the first-level cache, in cycles.
    #[serde(default)]
    pub load_to_use_cycles: Option<f64>,
    /// Widths that are absent, each with its reason.
    #[serde(default)]
    pub widths_absent: Vec<WidthAbsence>,
    /// The ends of the scale.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// Rules in words.
    #[serde(default)]
    pub rules: Vec<String>,
    /// What qualifies the map; each ends in its remedy.
    #[serde(default)]
    pub notes: Vec<String>,
    /// One store, nothing between.
    pub cells: Vec<Cell>,
    /// Two stores, nothing between.
    #[serde(default)]
    pub pairs: Vec<Cell>,
    /// Something between store and load, or older stores queued.
    #[serde(default)]
    pub spaced: Vec<Cell>,
}

/// A map that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// A loop that cannot run here.
    #[error("cannot time a store and a load: {0}")]
    Pair(#[from] PairError),
    /// A file that cannot be read.
    #[error("cannot read the map {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not JSON of this form.
    #[error("{path} is not a forwarding map: {source}")]
    Json {
        /// The file.
        path: String,
        /// Why, with line and column.
        source: serde_json::Error,
    },
    /// A document of another kind.
    #[error("{path} has the schema `{found}`")]
    Schema {
        /// The file.
        path: String,
        /// Its schema.
        found: String,
    },
}

impl From<MapError> for crate::Failure {
    fn from(error: MapError) -> Self {
        let what = error.to_string();
        match error {
            MapError::Pair(_) => {
                crate::Failure::new(what, "forwarding map", "choose widths that this machine has")
            }
            MapError::Read { path, .. } => {
                crate::Failure::new(what, path, "give a file that stackphase forwarding wrote")
            }
            MapError::Json { path, .. } | MapError::Schema { path, .. } => {
                crate::Failure::new(what, path, format!("give a document with the schema {SCHEMA}"))
            }
        }
    }
}

impl Map {
    /// A map of `cells`, not yet classified.
    pub fn new(cycle_ns: f64, references: Vec<Reference>, cells: Vec<Cell>) -> Self {
        let (plain, spaced): (Vec<_>, Vec<_>) =
            cells.into_iter().partition(|cell| cell.gap == Gap::default());
        let (cells, pairs) = plain.into_iter().partition(|cell| cell.stores.is_empty());
        Map {
            schema: SCHEMA.to_owned(),
            machine: None,
            command: None,
            measured: None,
            grid: None,
            repeats: None,
            seed: None,
            cycle_ns: Some(cycle_ns),
            load_to_use_cycles: None,
            widths_absent: Vec::new(),
            references,
            rules: Vec::new(),
            notes: Vec::new(),
            cells,
            pairs,
            spaced,
        }
    }

    /// Reads a map from a file; only `schema` and `cells` must be there.
    ///
    /// # Errors
    /// When the file cannot be read, is not JSON of this form, or has another schema.
    pub fn read(path: &Path) -> Result<Self, MapError> {
        let name = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|source| MapError::Read { path: name.clone(), source })?;
        Map::from_slice(&name, &bytes)
    }

    /// Reads a map from the bytes of the file `name`.
    ///
    /// # Errors
    /// As [`Map::read`].
    pub fn from_slice(name: &str, bytes: &[u8]) -> Result<Self, MapError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let json = |source| MapError::Json { path: name.to_owned(), source };
        // The schema first: a verdict document must not be blamed for having no cells.
        let head: Head = serde_json::from_slice(bytes).map_err(json)?;
        if head.schema != SCHEMA {
            return Err(MapError::Schema { path: name.to_owned(), found: head.schema });
        }
        serde_json::from_slice(bytes).map_err(json)
    }

    /// All cells: single stores, pairs, and those with something between.
    pub fn all(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.pairs).chain(&self.spaced)
    }

    /// Names what every cell cost, load width by load width, and reads the rules off.
    pub fn classify(&mut self) {
        let cycle_ns = self.cycle_ns.unwrap_or(f64::NAN);
        for index in 0..self.references.len() {
            let Reference { load_bytes, form, own_width_cycles, wider_load_cycles, .. } =
                self.references[index];
            let mut cells: Vec<&mut Cell> = self
                .cells
                .iter_mut()
                .chain(&mut self.pairs)
                .chain(&mut self.spaced)
                .filter(|cell| cell.load_bytes == load_bytes && cell.form == form)
                .filter(|cell| cell.cover() != Cover::Nothing && cell.net_cycles.is_some())
                .collect();
            let points: Vec<Point> = cells.iter().map(|cell| point(cell, cycle_ns)).collect();
            let ends = References { own_width: own_width_cycles, wider_load: wider_load_cycles };
            for (cell, class) in cells.iter_mut().zip(classify(&points, &ends)) {
                cell.class = Some(class);
            }
        }
        self.rules = rules(self);
    }

    /// How many cells have each class.
    pub fn counts(&self) -> Vec<(Class, usize)> {
        use Class::{Blocked, Forwards, Renamed, SlowForward, Unclear};
        [Renamed, Forwards, SlowForward, Blocked, Unclear]
            .into_iter()
            .map(|class| (class, self.all().filter(|cell| cell.class == Some(class)).count()))
            .collect()
    }
}

fn point(cell: &Cell, cycle_ns: f64) -> Point {
    let covered = matches!(cell.cover(), Cover::One | Cover::Several);
    Point {
        net_cycles: cell.net_cycles.unwrap_or(f64::NAN),
        spread_cycles: cell.spread_percent / 100.0 * cell.ns / cycle_ns,
        takes_part: covered && cell.crosses != Some(Crosses::Page) && cell.gap == Gap::default(),
        latency: cell.form == Form::Chained && cell.gap == Gap::default(),
    }
}
