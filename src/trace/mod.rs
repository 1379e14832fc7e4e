//! One call of a function, instruction by instruction.
//!
//! A child is stepped under ptrace; every instruction is decoded and its memory accesses computed
//! from the registers, and each load is paired with the stores that its bytes come from. Pairing
//! and the document are the same everywhere; decoding is for x86-64.

mod access;
mod document;
mod pairing;

pub use access::{Access, AccessKind, Step, Touch};
pub use document::{PairEntry, SCHEMA, Site, TraceDocument};
pub use pairing::{Pair, Pairing, Relation, StoreSite};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    //! What needs a process to look into.
    pub use super::error::TraceError;
    pub use super::mappings::{Mapping, entry_point, executable, mappings};
    pub use super::own::{Count, count_instructions};
    pub use super::reach::Target;
    pub use super::symbols::{Found, Place, Symbols};
}
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use linux::*;

#[cfg(target_os = "linux")]
mod elf;
#[cfg(target_os = "linux")]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // for tracing, which is x86-64 only
mod error;
#[cfg(target_os = "linux")]
mod mappings;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod own;
#[cfg(target_os = "linux")]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // for tracing, which is x86-64 only
mod program;
#[cfg(target_os = "linux")]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // for tracing, which is x86-64 only
mod reach;
#[cfg(target_os = "linux")]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // for tracing, which is x86-64 only
mod session;
#[cfg(target_os = "linux")]
mod symbols;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod code;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod decode;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kernel;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod listing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod run;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod vectors;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod walk;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod watched;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use listing::{Listed, instruction_before};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use run::{
    Event, EventSink, Limits, MOST_STEPS, Request, Trace, WINDOW, trace_program, trace_workload,
};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use walk::{Observer, Walked};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub use watched::{Watched, WatchedData, watch_program};
