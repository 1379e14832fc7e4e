//! Tracing one call: from a request to its pairs, with what is known of every instruction in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::access::{Access, AccessKind, Step};
use super::code::Code;
use super::pairing::{Pair, Pairing};
use super::reach::{Target, reach};
use super::session::Session;
use super::symbols::{Place, Symbols};
use super::walk::{Observer, Walk, Walked};
use super::{TraceError, program};

/// Steps after which a trace stops by itself: some minutes.
pub const MOST_STEPS: u64 = 20_000_000;
/// Default of `--window`: the deepest reorder buffers of today's cores hold about this many
/// instructions, so an older store has retired before the load can execute.
pub const WINDOW: u64 = 512;

/// What is to be traced in a program.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The program: a path, or a name in `PATH`.
    pub program: &'a OsStr,
    /// Its arguments.
    pub args: &'a [OsString],
    /// The function.
    pub target: &'a Target,
    /// Which call of it, from 1.
    pub call: u64,
}

/// How a call is traced.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many steps older than a load a store may be, to be paired with it.
    pub window: u64,
    /// Steps after which the trace stops and is partial.
    pub most_steps: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { window: WINDOW, most_steps: MOST_STEPS }
    }
}

/// One memory access as it happens.
#[derive(Clone, Debug, Serialize)]
pub struct Event<'a> {
    /// Steps before it.
    pub step: u64,
    /// Address of the instruction.
    #[serde(serialize_with = "hexadecimal")]
    pub ip: u64,
    /// Function that the instruction is in.
    pub symbol: Option<&'a str>,
    /// The instruction.
    pub text: &'a str,
    /// Load or store.
    pub kind: AccessKind,
    /// First address.
    #[serde(serialize_with = "hexadecimal")]
    pub address: u64,
    /// Width in bytes.
    pub bytes: u32,
    /// Bytes touched of a masked access, bit 0 the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<u64>,
    /// An element of a string instruction.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub string: bool,
}

/// Addresses are text in JSON: many readers lose the last bits of large numbers.
fn hexadecimal<S: serde::Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

/// Is handed the accesses one by one.
pub type EventSink<'a> = dyn FnMut(&Event<'_>) + 'a;

/// A traced call.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What the call came to.
    pub walked: Walked,
    /// The window that loads were paired within.
    pub window: u64,
    /// The pairs, in order of first occurrence.
    pub pairs: Vec<Pair>,
    /// Symbol and line of every instruction in a pair.
    pub places: BTreeMap<u64, Place>,
    /// Text of every instruction in a pair.
    pub texts: HashMap<u64, String>,
}

/// Starts a program and traces one call in it. Its standard output goes to our standard error. The
/// program is ended after the call.
///
/// The calling thread must have no other children: waiting for the program would take them up.
///
/// # Errors
/// See [`TraceError`]; what breaks off a call after its first step is in [`Walked::partial`].
pub fn trace_program(
    request: &Request<'_>,
    limits: Limits,
    events: Option<&mut EventSink<'_>>,
) -> Result<Trace, TraceError> {
    let mut session = start(request)?;
    let (thread, symbols) = reach(&mut session, request.target, request.call)?;
    follow(&mut session, thread, symbols, limits, events)
}

/// Starts the program of `request`, stopped before its first instruction.
pub(super) fn start(request: &Request<'_>) -> Result<Session, TraceError> {
    let path = program::find(request.program)?;
    let mut command = Command::new(path);
    command.args(request.args).stdout(Stdio::from(std::io::stderr()));
    Session::start(&mut command)
}

/// Traces the call at whose first instruction `thread` stands.
pub(super) fn follow(
    session: &mut Session,
    thread: i32,
    symbols: Symbols,
    limits: Limits,
    events: Option<&mut EventSink<'_>>,
) -> Result<Trace, TraceError> {
    let mut code = Code::new();
    let mut recorder =
        Recorder { pairing: Pairing::new(limits.window), symbols, known: HashMap::new(), events };
    let walk = Walk::new(session, thread, &mut code, &mut recorder);
    let walked = walk.run(limits.most_steps)?;
    Ok(recorder.finish(walked, limits.window))
}

/// Pairs the accesses and passes them on.
struct Recorder<'a, 'b> {
    pairing: Pairing,
    symbols: Symbols,
    /// Text, and symbol where events are passed on, of each instruction that touches memory.
    known: HashMap<u64, (String, Option<String>)>,
    events: Option<&'a mut EventSink<'b>>,
}

impl Observer for Recorder<'_, '_> {
    fn step(&mut self, step: &Step<'_>, text: &dyn Fn() -> String) {
        if step.accesses.is_empty() {
            return;
        }
        self.pairing.step(step);
        let (text, symbol) = self.known.entry(step.ip).or_insert_with(|| {
            let symbol = self.events.as_ref().and_then(|_| self.symbols.place(step.ip).symbol);
            (text(), symbol)
        });
        let Some(events) = &mut self.events else { return };
        for Access { address, bytes, kind, mask, string, .. } in step.accesses.iter().copied() {
            events(&Event {
                step: step.index,
                ip: step.ip,
                symbol: symbol.as_deref(),
                text,
                kind,
                address,
                bytes,
                mask,
                string,
            });
        }
    }

    fn overwritten(&mut self, address: u64, bytes: u64) {
        self.pairing.forget(address, bytes);
    }

    fn lines_of_interest(&self) -> Vec<u64> {
        self.pairing.live_lines()
    }
}

impl Recorder<'_, '_> {
    fn finish(mut self, mut walked: Walked, window: u64) -> Trace {
        let overflowed = self.pairing.overflowed();
        if overflowed > 0 {
            walked.partial.push(format!("{overflowed} loads belong to pairs beyond those kept"));
        }
        let pairs = self.pairing.into_pairs();
        let addresses: BTreeSet<u64> = pairs
            .iter()
            .flat_map(|pair| pair.stores.iter().map(|store| store.ip).chain([pair.load_ip]))
            .collect();
        let places = self.symbols.places(addresses.iter().copied());
        let texts = self.known.into_iter().filter(|(ip, _)| addresses.contains(ip));
        Trace {
            walked,
            window,
            pairs,
            places,
            texts: texts.map(|(ip, (text, _))| (ip, text)).collect(),
        }
    }
}
