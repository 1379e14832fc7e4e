//! Tracing one call: from a request to its pairs, with what is known of every instruction in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::process::{Command, Stdio};

use serde::Serialize;

use super::access::{Access, AccessKind, Step, Touch};
use super::code::Code;
use super::own::with_calls;
use super::pairing::{Pair, Pairing};
use super::reach::{Target, reach};
use super::session::Session;
use super::symbols::{Place, Symbols};
use super::walk::{Observer, Walk, Walked};
use super::{TraceError, program};
use crate::block::Place as StackPlace;
use crate::workloads::Spec;

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
pub type EventSink<'a> = dyn FnMut(&Event<'_>) + Send + 'a;

/// Places kept in [`Trace::touches`]; a longer call is explained by its pairs alone.
const MOST_TOUCHES: usize = 1 << 16;

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
    /// Every place that a workload's operation touched, by address; empty for a program's call.
    pub touches: Vec<Touch>,
    /// The addresses that move with the shift of a workload's stack; empty for a program's call.
    pub moving: Range<u64>,
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
    let mut recorder = Recorder::new(limits.window, symbols, events);
    let walked = recorder.walk(session, thread, limits.most_steps)?;
    Ok(recorder.finish(walked, limits.window))
}

/// Traces one operation of `spec` as it is timed, at `place`, in a forked child.
///
/// The loop turns three times and its second operation is taken: it reads what the first one wrote,
/// and neither the frame before the loop nor what follows it is in it.
///
/// # Errors
/// See [`TraceError`].
pub fn trace_workload(
    spec: &Spec,
    place: StackPlace,
    limits: Limits,
    events: Option<&mut EventSink<'_>>,
) -> Result<Trace, TraceError> {
    with_calls(spec, &[(place, 1), (place, 2), (place, 3)], |calls| {
        let (one, two) = (calls.count(limits.most_steps)?, calls.count(limits.most_steps)?);
        let thread = calls.next()?;
        let during = || TraceError::during("reading the child");
        let symbols = Symbols::of_process(calls.session.process()).map_err(during())?;
        let entry = calls.session.tracee.registers(thread).map_err(during())?;
        let mut recorder = Recorder::new(limits.window, symbols, events);
        recorder.take_only(one.steps..two.steps);
        let walked = recorder.walk(&mut calls.session, thread, limits.most_steps)?;
        let mut trace = recorder.finish(walked, limits.window);
        let operation = two.beyond(one);
        trace.walked.instructions = operation.instructions;
        trace.walked.steps = operation.steps;
        // The loop's frame and all below it, with the return address above.
        trace.moving = entry.rsp.saturating_sub(STACK_BELOW)..entry.rsp + 8;
        Ok(trace)
    })
}

/// More than any workload's frames, and less than the way down to another mapping.
const STACK_BELOW: u64 = 1 << 20;

/// Pairs the accesses and passes them on.
struct Recorder<'a, 'b> {
    pairing: Pairing,
    symbols: Symbols,
    /// Text, and symbol where events are passed on, of each instruction that touches memory.
    known: HashMap<u64, (String, Option<String>)>,
    events: Option<&'a mut EventSink<'b>>,
    /// Steps that count.
    wanted: Range<u64>,
    /// Ip, kind, address and width of what was touched, with how often; where it is wanted.
    touched: Option<BTreeMap<(u64, AccessKind, u64, u32), u64>>,
}

impl<'a, 'b> Recorder<'a, 'b> {
    fn new(
        window: u64,
        symbols: Symbols,
        events: Option<&'a mut EventSink<'b>>,
    ) -> Recorder<'a, 'b> {
        Recorder {
            pairing: Pairing::new(window),
            symbols,
            known: HashMap::new(),
            events,
            wanted: 0..u64::MAX,
            touched: None,
        }
    }

    /// Takes only these steps, and every place that they touch.
    fn take_only(&mut self, wanted: Range<u64>) {
        let pairing = std::mem::replace(&mut self.pairing, Pairing::new(0));
        self.pairing = pairing.only(wanted.clone());
        self.wanted = wanted;
        self.touched = Some(BTreeMap::new());
    }

    fn walk(
        &mut self,
        session: &mut Session,
        thread: i32,
        most: u64,
    ) -> Result<Walked, TraceError> {
        let mut code = Code::new();
        Walk::new(session, thread, &mut code, self).run(most)
    }

    fn note(&mut self, ip: u64, access: &Access) {
        let Some(touched) = &mut self.touched else { return };
        let key = (ip, access.kind, access.address, access.bytes);
        if touched.len() < MOST_TOUCHES || touched.contains_key(&key) {
            *touched.entry(key).or_default() += 1;
        }
    }
}

impl Observer for Recorder<'_, '_> {
    fn step(&mut self, step: &Step<'_>, text: &dyn Fn() -> String) {
        if step.accesses.is_empty() {
            return;
        }
        self.pairing.step(step);
        if !self.wanted.contains(&step.index) {
            // A pair's store may lie before the steps that count.
            self.known.entry(step.ip).or_insert_with(|| (text(), None));
            return;
        }
        for access in step.accesses {
            self.note(step.ip, access);
        }
        let (text, symbol) = self.known.entry(step.ip).or_insert_with(|| (text(), None));
        if self.events.is_some() && symbol.is_none() {
            *symbol = self.symbols.place(step.ip).symbol;
        }
        let Some(events) = &mut self.events else { return };
        for Access { address, bytes, kind, mask, string, .. } in step.accesses.iter().copied() {
            events(&Event {
                step: step.index - self.wanted.start,
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
        let touches: Vec<Touch> = self
            .touched
            .take()
            .unwrap_or_default()
            .into_iter()
            .map(|((ip, kind, address, bytes), count)| Touch { ip, kind, address, bytes, count })
            .collect();
        let addresses: BTreeSet<u64> = pairs
            .iter()
            .flat_map(|pair| pair.stores.iter().map(|store| store.ip).chain([pair.load_ip]))
            .chain(touches.iter().map(|touch| touch.ip))
            .collect();
        let places = self.symbols.places(addresses.iter().copied());
        let texts = self.known.into_iter().filter(|(ip, _)| addresses.contains(ip));
        Trace {
            walked,
            window,
            pairs,
            places,
            texts: texts.map(|(ip, (text, _))| (ip, text)).collect(),
            touches,
            moving: 0..0,
        }
    }
}
