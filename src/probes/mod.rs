//! One experiment a file: its hypothesis, its control, and what it cannot show. Probes plan
//! launches and emit samples into a [`crate::sample::Sink`]; they conclude nothing.

mod campaign;
pub mod check;
pub mod controls;
pub mod forwarding;
pub mod in_process;
pub mod pad;
pub mod phase;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod retired;
pub mod sensitivity;
#[cfg(target_arch = "x86_64")]
pub mod writer;

pub use campaign::{Campaign, Held, LaunchPlan, Randomisation, Talk};
