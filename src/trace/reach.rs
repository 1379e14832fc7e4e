//! Bringing a program to the first instruction of a call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::TraceError;
use super::mappings::{entry_point, executable};
use super::session::{Ending, Reached, Session};
use super::symbols::Symbols;
use crate::sys::ptrace::Stop;

/// Which function is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By name, as in the symbol table or as a person writes it.
    Function(String),
    /// By address: in the process, or as `nm` prints it for `file` (the program by default).
    Address {
        /// Name or path of a mapped file.
        file: Option<PathBuf>,
        /// The address.
        address: u64,
    },
}

/// Runs the program that `session` has just started until call number `call` (from 1) of the target
/// begins; the thread that makes it, stopped at the target's first instruction with no breakpoint
/// left.
pub(super) fn reach(
    session: &mut Session,
    target: &Target,
    call: u64,
) -> Result<(i32, Symbols), TraceError> {
    let mut calls = 0;
    loop {
        let (main, mut symbols) = load(session)?;
        let addresses = resolve(session, main, &mut symbols, target)?;
        let setting = "setting a breakpoint";
        session.clear_breaks(main).map_err(TraceError::during(setting))?;
        for address in &addresses {
            session.set_break(main, *address).map_err(TraceError::during(setting))?;
        }
        match count_calls(session, main, &addresses, call, &mut calls)? {
            Reached::Break { thread } => {
                session.clear_breaks(thread).map_err(TraceError::during(setting))?;
                // What was loaded since then counts as well.
                symbols = Symbols::of_process(session.process())
                    .map_err(TraceError::during("reading the process's mappings"))?;
                return Ok((thread, symbols));
            }
            Reached::Ended(Ending::Replaced) => {}
            Reached::Ended(ending) => return Err(not_reached(session, calls, ending)),
        }
    }
}

/// Runs to the program's entry point: by then its libraries are mapped. The breakpoint there stays.
pub(super) fn load(session: &mut Session) -> Result<(i32, Symbols), TraceError> {
    let main = session.process();
    let reading = "reading the process's mappings";
    loop {
        let entry = entry_point(main).map_err(TraceError::during(reading))?;
        let running = "running to the program's entry point";
        session.set_break(main, entry).map_err(TraceError::during(running))?;
        match session.run_to_break(main).map_err(TraceError::during(running))? {
            Reached::Break { .. } => {
                let symbols = Symbols::of_process(main).map_err(TraceError::during(reading))?;
                return Ok((main, symbols));
            }
            Reached::Ended(Ending::Replaced) => {}
            Reached::Ended(ending) => return Err(not_reached(session, 0, ending)),
        }
    }
}

/// Addresses of the target in the process, which is stopped at its entry point.
fn resolve(
    session: &mut Session,
    main: i32,
    symbols: &mut Symbols,
    target: &Target,
) -> Result<BTreeSet<u64>, TraceError> {
    let program = executable(main).map_err(TraceError::during("reading the process"))?;
    match target {
        Target::Address { file, address } => {
            let direct = file.is_none() && symbols.is_code(*address);
            let in_file = symbols.in_file(file.as_ref().unwrap_or(&program), *address);
            let address = if direct { *address } else { in_file.unwrap_or(*address) };
            if symbols.is_code(address) {
                Ok(BTreeSet::from([address]))
            } else {
                Err(TraceError::NoCode(address))
            }
        }
        Target::Function(name) => {
            let found = symbols.find(name, &program);
            if found.is_empty() {
                let hint = format!(" ({} is what runs)", name_of(&program));
                return Err(TraceError::NoFunction { name: name.clone(), hint });
            }
            let mut addresses = BTreeSet::new();
            for function in found {
                addresses.insert(if function.chooses {
                    chosen(session, main, symbols, name, function.address)?
                } else {
                    function.address
                });
            }
            Ok(addresses)
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Asks an indirect function which code it stands for, by calling its resolver in the process.
#[cfg(target_arch = "x86_64")]
fn chosen(
    session: &mut Session,
    main: i32,
    symbols: &Symbols,
    name: &str,
    resolver: u64,
) -> Result<u64, TraceError> {
    // Without a loader nothing has looked at the processor yet.
    if !symbols.has_loader() {
        return Err(TraceError::ChosenAtStart(name.to_owned()));
    }
    let during = || TraceError::during("asking which code an indirect function stands for");
    let saved = session.tracee.registers(main).map_err(during())?;
    // Below what the program may use; as after a call, 8 modulo 16. It returns to where it stopped.
    let stack = ((saved.rsp - 1024) & !15) - 8;
    session.tracee.write(main, stack, &saved.rip.to_ne_bytes()).map_err(during())?;
    let call = crate::sys::ptrace::Registers { rip: resolver, rsp: stack, rax: 0, ..saved };
    session.tracee.set_registers(main, call).map_err(during())?;
    match session.run_to_break(main).map_err(during())? {
        Reached::Break { .. } => {
            let answer = session.tracee.registers(main).map_err(during())?.rax;
            session.tracee.set_registers(main, saved).map_err(during())?;
            Ok(answer)
        }
        Reached::Ended(ending) => Err(not_reached(session, 0, ending)),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn chosen(_: &mut Session, _: i32, _: &Symbols, name: &str, _: u64) -> Result<u64, TraceError> {
    Err(TraceError::ChosenAtStart(name.to_owned()))
}

/// Runs on until call number `call`, stepping over the breakpoints of those before.
fn count_calls(
    session: &mut Session,
    main: i32,
    addresses: &BTreeSet<u64>,
    call: u64,
    calls: &mut u64,
) -> Result<Reached, TraceError> {
    let during = || TraceError::during("running to the call");
    let mut thread = main;
    loop {
        match session.run_to_break(thread).map_err(during())? {
            Reached::Break { thread: hit } => thread = hit,
            ended => return Ok(ended),
        }
        *calls += 1;
        if *calls == call {
            return Ok(Reached::Break { thread });
        }
        session.clear_breaks(thread).map_err(during())?;
        if let Some(ended) = step_over(session, thread).map_err(during())? {
            return Ok(Reached::Ended(ended));
        }
        for address in addresses {
            session.set_break(thread, *address).map_err(during())?;
        }
    }
}

/// Executes the instruction under a breakpoint that was just taken out.
fn step_over(session: &mut Session, thread: i32) -> std::io::Result<Option<Ending>> {
    let mut signal = 0;
    loop {
        match session.step(thread, signal)? {
            Stop::Trap => return Ok(None),
            Stop::Signal(arrived) => signal = super::session::deliverable(arrived),
            Stop::Exited(status) => return Ok(Some(Ending::Exited(status))),
            Stop::Killed(signal) => return Ok(Some(Ending::Killed(signal))),
            Stop::Replaced => return Ok(Some(Ending::Replaced)),
            Stop::Forked | Stop::Cloned => {}
        }
    }
}

fn not_reached(session: &Session, calls: u64, ending: Ending) -> TraceError {
    let hint = match session.children() {
        0 => String::new(),
        children => format!(" (child processes are not followed; it started {children})"),
    };
    TraceError::NotReached { calls, ending: ending.words(), hint }
}
