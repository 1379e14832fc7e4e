//! A traced program with its threads and children: running it to a breakpoint, and stepping one
//! thread while the others run.
//!
//! Forked children are released at once, without our breakpoints; threads stay traced, since they
//! share them.

use std::io;
use std::path::Path;
use std::process::Command;

use super::TraceError;
use crate::sys::ptrace::{BREAK, BREAK_SKIP, Registers, StartError, Stop, Stopped, Tracee};

/// How a program went out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    Killed(i32),
    Replaced,
}

impl Ending {
    /// As a clause after "the program".
    pub(super) fn words(self) -> String {
        match self {
            Ending::Exited(status) => format!("exited with status {status}"),
            Ending::Killed(signal) => format!("was killed by {}", signal_name(signal)),
            Ending::Replaced => "replaced itself by another program".to_owned(),
        }
    }
}

/// A signal's name, or its number where it has none.
pub(super) fn signal_name(signal: i32) -> String {
    nix::sys::signal::Signal::try_from(signal)
        .map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned())
}

/// What a run or a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The thread stopped at a breakpoint of ours, its instruction pointer on it again.
    Break { thread: i32 },
    /// Out of reach.
    Ended(Ending),
}

#[derive(Clone, Debug)]
struct Breakpoint {
    address: u64,
    original: Vec<u8>,
}

pub(super) struct Session {
    pub(super) tracee: Tracee,
    threads: Vec<i32>,
    breakpoints: Vec<Breakpoint>,
    /// Breakpoints that were taken out: a thread may have run into one just before.
    retired: Vec<u64>,
    children: u32,
    /// Children and threads announced whose first stop was not seen yet.
    expected: usize,
}

impl Session {
    pub(super) fn start(command: &mut Command) -> Result<Session, TraceError> {
        Tracee::spawn(command).map(Session::of).map_err(|error| match error {
            StartError::Forbidden(error) => TraceError::Forbidden(error),
            StartError::Start(error) => match error.kind() {
                io::ErrorKind::NotFound => TraceError::NotFound,
                io::ErrorKind::PermissionDenied => TraceError::NotExecutable,
                _ if error.raw_os_error() == Some(libc::ENOEXEC) => TraceError::NotExecutable,
                _ => TraceError::System { during: "starting the program", error },
            },
        })
    }

    pub(super) fn of(tracee: Tracee) -> Session {
        let threads = vec![tracee.process()];
        Session {
            tracee,
            threads,
            breakpoints: Vec::new(),
            retired: Vec::new(),
            children: 0,
            expected: 0,
        }
    }

    pub(super) fn process(&self) -> i32 {
        self.tracee.process()
    }

    /// Children that were forked so far.
    pub(super) fn children(&self) -> u32 {
        self.children
    }

    /// Threads besides the one being stepped.
    pub(super) fn other_threads(&self) -> usize {
        self.threads.len() - 1
    }

    /// Puts a breakpoint at `address`. `thread` must be stopped.
    pub(super) fn set_break(&mut self, thread: i32, address: u64) -> io::Result<()> {
        let mut original = vec![0u8; BREAK.len()];
        if self.tracee.read(address, &mut original)? != original.len() {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        self.tracee.write(thread, address, BREAK)?;
        self.breakpoints.push(Breakpoint { address, original });
        Ok(())
    }

    /// Takes all breakpoints out. `thread` must be stopped.
    pub(super) fn clear_breaks(&mut self, thread: i32) -> io::Result<()> {
        for breakpoint in std::mem::take(&mut self.breakpoints) {
            self.tracee.write(thread, breakpoint.address, &breakpoint.original)?;
            self.retired.push(breakpoint.address);
        }
        Ok(())
    }

    /// Runs the stopped `thread` on, and everything else with it, up to a breakpoint in any thread.
    pub(super) fn run_to_break(&mut self, thread: i32) -> io::Result<Reached> {
        self.tracee.run(thread, 0)?;
        loop {
            let stopped = self.tracee.wait_any()?;
            if let Some(reached) = self.dispatch(stopped)? {
                return Ok(reached);
            }
        }
    }

    /// Makes the stopped `thread` execute one instruction and waits for its next stop; whatever the
    /// others do meanwhile is seen to.
    pub(super) fn step(&mut self, thread: i32, signal: i32) -> io::Result<Stop> {
        self.tracee.step(thread, signal)?;
        loop {
            let alone = self.threads.len() == 1 && self.expected == 0;
            let stopped =
                if alone { self.tracee.wait_for(thread)? } else { self.tracee.wait_any()? };
            if stopped.thread == thread {
                match stopped.stop {
                    Stop::Forked | Stop::Cloned => {
                        self.announce(stopped.stop);
                        self.tracee.step(thread, 0)?;
                    }
                    stop => return Ok(stop),
                }
            } else if let Some(Reached::Ended(ending)) = self.dispatch(stopped)? {
                return Ok(match ending {
                    Ending::Exited(status) => Stop::Exited(status),
                    Ending::Killed(signal) => Stop::Killed(signal),
                    Ending::Replaced => Stop::Replaced,
                });
            }
        }
    }

    fn announce(&mut self, stop: Stop) {
        self.expected += 1;
        self.children += u32::from(stop == Stop::Forked);
    }

    /// Sees to a stop and lets its thread run on, unless it is the end or a breakpoint.
    fn dispatch(&mut self, stopped: Stopped) -> io::Result<Option<Reached>> {
        let Stopped { thread, stop } = stopped;
        if !self.threads.contains(&thread) {
            self.newcomer(thread, stop)?;
            return Ok(None);
        }
        match stop {
            Stop::Exited(_) | Stop::Killed(_) if thread != self.process() => {
                self.threads.retain(|known| *known != thread);
                return Ok(None);
            }
            Stop::Exited(status) => return Ok(Some(Reached::Ended(Ending::Exited(status)))),
            Stop::Killed(signal) => return Ok(Some(Reached::Ended(Ending::Killed(signal)))),
            Stop::Replaced => {
                self.breakpoints.clear();
                self.retired.clear();
                self.threads = vec![self.process()];
                return Ok(Some(Reached::Ended(Ending::Replaced)));
            }
            Stop::Trap => {
                if self.rewind(thread)? {
                    return Ok(Some(Reached::Break { thread }));
                }
            }
            Stop::Forked | Stop::Cloned => {
                self.announce(stop);
                self.tracee.run(thread, 0)?;
            }
            Stop::Signal(signal) => self.tracee.run(thread, deliverable(signal))?,
        }
        Ok(None)
    }

    /// Puts the instruction pointer of a thread that hit a breakpoint back on it; whether the
    /// breakpoint is still set. Where it is not, the thread runs on, and so it does (with the
    /// signal) where the trap was its own.
    fn rewind(&mut self, thread: i32) -> io::Result<bool> {
        let mut registers = self.tracee.registers(thread)?;
        let address = instruction_pointer(&registers).wrapping_sub(BREAK_SKIP);
        let active = self.breakpoints.iter().any(|breakpoint| breakpoint.address == address);
        if !active && !self.retired.contains(&address) {
            self.tracee.run(thread, libc::SIGTRAP)?;
            return Ok(false);
        }
        set_instruction_pointer(&mut registers, address);
        self.tracee.set_registers(thread, registers)?;
        if !active {
            self.tracee.run(thread, 0)?;
        }
        Ok(active)
    }

    /// The first stop of a thread, which stays with us, or of a forked child, which is released.
    fn newcomer(&mut self, thread: i32, stop: Stop) -> io::Result<()> {
        if matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
            return Ok(());
        }
        self.expected = self.expected.saturating_sub(1);
        if Path::new(&format!("/proc/{}/task/{thread}", self.process())).exists() {
            self.threads.push(thread);
            return self.tracee.run(thread, 0);
        }
        self.remove_breaks_from_child(thread)?;
        self.tracee.release(thread)
    }

    /// A forked child has a copy of our breakpoints; a child of `vfork` shares them, and taking
    /// them out of it would take them out of the parent.
    fn remove_breaks_from_child(&self, child: i32) -> io::Result<()> {
        for Breakpoint { address, original } in &self.breakpoints {
            self.tracee.write(child, *address, original)?;
            let mut ours = vec![0u8; original.len()];
            self.tracee.read(*address, &mut ours)?;
            if ours == *original {
                self.tracee.write(child, *address, BREAK)?;
            }
        }
        Ok(())
    }
}

/// Signals that would stop the program are kept from it: nobody would continue it.
pub(super) fn deliverable(signal: i32) -> i32 {
    match signal {
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => 0,
        signal => signal,
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) fn instruction_pointer(registers: &Registers) -> u64 {
    registers.rip
}

#[cfg(target_arch = "x86_64")]
fn set_instruction_pointer(registers: &mut Registers, to: u64) {
    registers.rip = to;
    // Not inside a system call that would be restarted.
    registers.orig_rax = u64::MAX;
}

#[cfg(target_arch = "aarch64")]
pub(super) fn instruction_pointer(registers: &Registers) -> u64 {
    registers.pc
}

#[cfg(target_arch = "aarch64")]
fn set_instruction_pointer(registers: &mut Registers, to: u64) {
    registers.pc = to;
}
