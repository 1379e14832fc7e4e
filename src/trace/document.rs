//! The JSON document of a trace, `stackphase/trace/1`.

use serde::{Deserialize, Serialize};

use super::pairing::Relation;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::{pairing::Pair, run::Trace};

/// Name and version of the document.
pub const SCHEMA: &str = "stackphase/trace/1";

/// A traced call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDocument {
    /// [`SCHEMA`].
    pub schema: String,
    /// The workload of our own that was traced; `None` for a program's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Bytes of its operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub len: Option<u64>,
    /// The shift of its stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<i64>,
    /// Instructions executed; a repeated string instruction is one.
    pub instructions: u64,
    /// Steps made; each element of a string instruction is one.
    #[serde(default)]
    pub steps: u64,
    /// The most steps from a store to a load that was paired with it.
    #[serde(default)]
    pub window: u64,
    /// Signals delivered during the call.
    #[serde(default)]
    pub signals: u64,
    /// System calls made during the call.
    #[serde(default)]
    pub system_calls: u64,
    /// Why this is not the whole call; empty when it is.
    #[serde(default)]
    pub partial: Vec<String>,
    /// Each load with the stores that its bytes come from.
    pub pairs: Vec<PairEntry>,
}

/// A load and its stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairEntry {
    /// How the load lies on the stores.
    pub relation: Relation,
    /// Occurrences.
    pub count: u64,
    /// Width of the youngest store.
    pub store_bytes: u32,
    /// Width of the load.
    pub load_bytes: u32,
    /// Load address minus address of the youngest store.
    pub offset: i64,
    /// Fewest steps from the youngest store to the load.
    pub distance: u64,
    /// Addresses modulo 64 of the youngest store, ascending.
    pub residues: Vec<u8>,
    /// The stores, youngest first.
    pub stores: Vec<Site>,
    /// The load.
    pub load: Site,
}

/// An instruction and where it accessed memory at the pair's first occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Address of the instruction.
    pub ip: String,
    /// The function it is in, where a symbol table names it.
    pub symbol: Option<String>,
    /// The instruction.
    pub text: String,
    /// The address accessed.
    pub address: String,
    /// Width in bytes.
    #[serde(default)]
    pub bytes: u32,
    /// An element of a string instruction.
    #[serde(default)]
    pub string: bool,
    /// `file:line`, where there is debug information.
    #[serde(default)]
    pub line: Option<String>,
}

impl Site {
    /// The address accessed as a number; `None` when a hand-written document spoils it.
    pub fn address(&self) -> Option<u64> {
        u64::from_str_radix(self.address.strip_prefix("0x")?, 16).ok()
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl TraceDocument {
    /// The document of `trace`.
    pub fn of(trace: &Trace) -> TraceDocument {
        let walked = &trace.walked;
        TraceDocument {
            schema: SCHEMA.to_owned(),
            workload: None,
            len: None,
            shift: None,
            instructions: walked.instructions,
            steps: walked.steps,
            window: trace.window,
            signals: walked.signals,
            system_calls: walked.system_calls,
            partial: walked.partial.clone(),
            pairs: trace.pairs.iter().map(|pair| PairEntry::of(pair, trace)).collect(),
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
impl PairEntry {
    fn of(pair: &Pair, trace: &Trace) -> PairEntry {
        let site = |ip: u64, address: u64, bytes: u32, string: bool| {
            let place = trace.places.get(&ip).cloned().unwrap_or_default();
            Site {
                ip: format!("{ip:#x}"),
                symbol: place.symbol,
                text: trace.texts.get(&ip).cloned().unwrap_or_default(),
                address: format!("{address:#x}"),
                bytes,
                string,
                line: place.line,
            }
        };
        let stores = pair.stores.iter().map(|s| site(s.ip, s.address, s.bytes, s.string));
        PairEntry {
            relation: pair.relation,
            count: pair.count,
            store_bytes: pair.store_bytes(),
            load_bytes: pair.load_bytes,
            offset: pair.offset,
            distance: pair.distance,
            residues: pair.residue_list(),
            stores: stores.collect(),
            load: site(pair.load_ip, pair.load_address, pair.load_bytes, pair.load_string),
        }
    }
}
