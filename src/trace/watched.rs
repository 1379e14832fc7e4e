//! A program's data under a hardware watchpoint, during one call or from start to end.

use super::TraceError;
use super::mappings::executable;
use super::reach::{Target, load, reach};
use super::run::{Request, start};
use super::session::{Ending, Reached, Session};
use super::symbols::Symbols;
use crate::sys::breakpoint::{Access, Hit, Target as Thread, Watch};
use crate::sys::ptrace::{Registers, Stop};

/// What is watched in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedData {
    /// What this argument of the function, from 1 to 6, points to: during the call.
    Argument(u8),
    /// This address, in the process or as `nm` prints it for a file: from start to end.
    Address(Target),
}

/// What a watchpoint saw.
pub struct Watched {
    /// The address.
    pub address: u64,
    /// Writes, in order.
    pub writes: Vec<Hit>,
    /// Reads, in order, where they were asked for.
    pub reads: Vec<Hit>,
    /// The process's symbols.
    pub symbols: Symbols,
    /// Why this may not be all.
    pub partial: Vec<String>,
}

/// One or two watchpoints on one byte.
pub(super) struct Pen {
    writes: Watch,
    all: Option<Watch>,
}

impl Pen {
    pub fn open(thread: Thread, address: u64, reads: bool) -> Result<Pen, TraceError> {
        let mut writes = Watch::open(thread, address, 1, Access::Write)?;
        let mut all =
            reads.then(|| Watch::open(thread, address, 1, Access::ReadWrite)).transpose()?;
        writes.enable()?;
        all.as_mut().map(Watch::enable).transpose()?;
        Ok(Pen { writes, all })
    }

    /// Writes and reads so far, and how many were not kept. The hardware cannot watch reads alone:
    /// they are the accesses of instructions that never write here.
    pub fn take(&mut self) -> (Vec<Hit>, Vec<Hit>, u64) {
        let writes = self.writes.take();
        let mut reads = self.all.as_mut().map(Watch::take).unwrap_or_default();
        reads.retain(|hit| !writes.iter().any(|write| write.ip == hit.ip));
        let lost = self.writes.lost() + self.all.as_ref().map_or(0, Watch::lost);
        (writes, reads, lost)
    }
}

/// Runs a program with a watchpoint on its data. With an argument's buffer the program is ended
/// after the call; with an address it runs to its end.
///
/// # Errors
/// See [`TraceError`].
pub fn watch_program(
    request: &Request<'_>,
    data: &WatchedData,
    reads: bool,
) -> Result<Watched, TraceError> {
    let mut session = start(request)?;
    match data {
        WatchedData::Argument(number) => {
            let (thread, symbols) = reach(&mut session, request.target, request.call)?;
            during_call(&mut session, thread, symbols, *number, reads)
        }
        WatchedData::Address(target) => to_the_end(&mut session, target, reads),
    }
}

fn during_call(
    session: &mut Session,
    thread: i32,
    symbols: Symbols,
    argument: u8,
    reads: bool,
) -> Result<Watched, TraceError> {
    let during = || TraceError::during("watching the call");
    let entry = session.tracee.registers(thread).map_err(during())?;
    let address = argument_of(&entry, argument);
    if session.tracee.read(address, &mut [0u8]).is_err() {
        return Err(TraceError::NoPointer { argument, value: address });
    }
    let mut pen = Pen::open(Thread::Thread(thread), address, reads)?;
    let ending = run_to_return(session, thread, &entry).map_err(during())?;
    let mut partial = Vec::new();
    if let Some(ending) = ending {
        partial.push(format!("the program {} before the call returned", ending.words()));
    }
    if session.other_threads() > 0 {
        partial.push("other threads ran meanwhile and are not watched".to_owned());
    }
    Ok(watched(address, &mut pen, symbols, partial))
}

fn to_the_end(session: &mut Session, target: &Target, reads: bool) -> Result<Watched, TraceError> {
    let during = || TraceError::during("watching the program");
    let (main, mut symbols) = load(session)?;
    let program = executable(main).map_err(during())?;
    let Target::Address { file, address } = target else {
        return Err(TraceError::NoData(0));
    };
    let mapped = |address: u64| session.tracee.read(address, &mut [0u8]).is_ok();
    let in_file = symbols.in_file(file.as_ref().unwrap_or(&program), *address);
    let address = match file {
        None if mapped(*address) => *address,
        _ => in_file.filter(|address| mapped(*address)).ok_or(TraceError::NoData(*address))?,
    };
    session.clear_breaks(main).map_err(during())?;
    let mut pen = Pen::open(Thread::Thread(main), address, reads)?;
    let mut partial = Vec::new();
    match session.run_to_break(main).map_err(during())? {
        Reached::Ended(Ending::Exited(_)) | Reached::Break { .. } => {}
        Reached::Ended(ending) => partial.push(format!("the program {}", ending.words())),
    }
    if session.children() > 0 || session.other_threads() > 0 {
        partial.push("other threads and processes are not watched".to_owned());
    }
    Ok(watched(address, &mut pen, symbols, partial))
}

fn watched(address: u64, pen: &mut Pen, symbols: Symbols, mut partial: Vec<String>) -> Watched {
    let (writes, reads, lost) = pen.take();
    if lost > 0 {
        partial.push(format!("{lost} more accesses were not kept"));
    }
    Watched { address, writes, reads, symbols, partial }
}

/// Runs until the call that was entered with `entry` has returned; how it ended otherwise.
fn run_to_return(
    session: &mut Session,
    thread: i32,
    entry: &Registers,
) -> std::io::Result<Option<Ending>> {
    let mut word = [0u8; 8];
    session.tracee.read(entry.rsp, &mut word)?;
    let return_to = u64::from_ne_bytes(word);
    let mut running = thread;
    loop {
        session.set_break(running, return_to)?;
        let hit = match session.run_to_break(running)? {
            Reached::Break { thread } => thread,
            Reached::Ended(ending) => return Ok(Some(ending)),
        };
        session.clear_breaks(hit)?;
        if hit == thread && session.tracee.registers(hit)?.rsp > entry.rsp {
            return Ok(None);
        }
        // A deeper call, or another thread's, returned to the same place.
        if let Stop::Exited(status) = session.step(hit, 0)? {
            return Ok(Some(Ending::Exited(status)));
        }
        running = hit;
    }
}

/// Integer arguments of the System V convention.
fn argument_of(registers: &Registers, number: u8) -> u64 {
    match number {
        1 => registers.rdi,
        2 => registers.rsi,
        3 => registers.rdx,
        4 => registers.rcx,
        5 => registers.r8,
        _ => registers.r9,
    }
}
