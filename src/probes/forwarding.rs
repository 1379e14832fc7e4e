//! The map of this core's store-to-load forwarding.
//!
//! *Hypothesis*: whether a load gets its bytes from a store that has not reached the cache depends
//! on the two widths, on where the load lies in the store, and on where the store lies in its line
//! or page. *Control*: every cell has a twin, the same loop with its load at the same place of
//! another line, and only the difference to it is looked at; a store of the load's own width and a
//! store narrower than the load mark both ends of the scale on the machine itself. *Cannot show*:
//! what a real program pays, since there something stands between store and load and the core
//! works on; the map says which pairs may be blocked, and brackets the cost by its two forms.

mod access;
mod cell;
mod classify;
mod csv;
mod json;
mod lookup;
mod map;
mod measure;
mod plan;
mod rules;
mod summary;

pub use cell::{Cell, Class, Cover, Crosses, Form, Gap, StorePart};
pub use classify::{GAP_CYCLES, Point, References, classify};
pub use csv::to_csv;
pub use json::to_json;
pub use lookup::{Place, Prediction};
pub use map::{Map, MapError, Reference, SCHEMA, WidthAbsence};
pub use measure::{Measured, measure, widths};
pub use plan::{At, Experiment, Extent, GridPreset, Plan};
pub use rules::rules;
pub use summary::Entry;
