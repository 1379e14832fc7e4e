//! One experiment a file: its hypothesis, its control, and what it cannot show. Probes plan
//! launches and emit samples into a [`crate::sample::Sink`]; they conclude nothing.

mod campaign;
pub mod forwarding;
pub mod pad;
pub mod phase;

pub use campaign::{Campaign, Held, LaunchPlan, Randomisation, Talk};
