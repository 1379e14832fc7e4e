//! Stepping a thread from a function's entry to its return.
//!
//! A step costs two system calls, and a third for the registers only where they are needed: before
//! an instruction that touches memory, and after one that may lead elsewhere.

use super::TraceError;
use super::access::{Access, AccessKind, Step};
use super::code::{Code, NoCode};
use super::decode::{Decoded, Special};
use super::kernel::Kernel;
use super::session::{Ending, Session, deliverable, signal_name};
use super::vectors::{Layout, Vectors};
use crate::sys::ptrace::{Registers, Stop};

/// Told of every step while a call is traced.
pub trait Observer {
    /// A step was made; `text` gives the instruction as text.
    fn step(&mut self, step: &Step<'_>, text: &dyn Fn() -> String);
    /// The kernel wrote to memory, or may have.
    fn overwritten(&mut self, address: u64, bytes: u64);
    /// First addresses of the 64-byte lines about which [`Observer::overwritten`] is of interest.
    fn lines_of_interest(&self) -> Vec<u64>;
}

/// What a call came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Instructions executed; a repeated string instruction is one.
    pub instructions: u64,
    /// Steps made; each element of a string instruction is one.
    pub steps: u64,
    /// Signals delivered during the call. What their handlers executed is counted above.
    pub signals: u64,
    /// System calls made during the call.
    pub system_calls: u64,
    /// Why the trace is not all of the call; empty when it is.
    pub partial: Vec<String>,
}

/// What one attempt to step came to.
enum Outcome {
    Executed,
    /// A signal's handler is about to run instead.
    Handler,
    Ended(Stop),
}

/// A walk in progress.
pub(super) struct Walk<'a> {
    session: &'a mut Session,
    thread: i32,
    pub code: &'a mut Code,
    observer: &'a mut dyn Observer,
    vectors: Vectors,
    kernel: Kernel,
    walked: Walked,
    /// A signal that the program raised itself and has not been given yet.
    owed: i32,
}

impl<'a> Walk<'a> {
    pub fn new(
        session: &'a mut Session,
        thread: i32,
        code: &'a mut Code,
        observer: &'a mut dyn Observer,
    ) -> Walk<'a> {
        let vectors = Vectors::new(Layout::here());
        let kernel = Kernel::default();
        Walk {
            session,
            thread,
            code,
            observer,
            vectors,
            kernel,
            walked: Walked::default(),
            owed: 0,
        }
    }

    /// Steps from a function's first instruction until it returned, or for `most` steps.
    pub fn run(mut self, most: u64) -> Result<Walked, TraceError> {
        let stepping = TraceError::during("stepping");
        self.steps(most).map_err(stepping)?;
        if self.session.other_threads() > 0 {
            self.walked.partial.push(
                "other threads ran meanwhile; what they stored is not in the trace".to_owned(),
            );
        }
        Ok(self.walked)
    }

    fn steps(&mut self, most: u64) -> std::io::Result<()> {
        let entry = self.session.tracee.registers(self.thread)?;
        let return_to = self.word(entry.rsp)?;
        let children = self.session.children();
        let mut known = Some(entry);
        let mut ip = entry.rip;
        let mut accesses = Vec::new();
        loop {
            if self.walked.steps == most {
                self.partial(format!("stopped after {most} steps"));
                break;
            }
            let decoded = match self.code.at(&self.session.tracee, ip) {
                Ok(decoded) => decoded,
                Err(NoCode::Unknown(bytes)) => {
                    self.partial(undecodable(ip, &bytes));
                    break;
                }
                // Executing it will fail, and the program will be told.
                Err(NoCode::Unmapped) => {
                    let ending = self.crash(ip)?;
                    self.partial(ending);
                    break;
                }
            };
            accesses.clear();
            let before = self.prepare(&decoded, known, &mut accesses)?;
            match self.execute()? {
                Outcome::Executed => {}
                Outcome::Handler => {
                    let now = self.session.tracee.registers(self.thread)?;
                    self.frame_written(known, &now);
                    ip = now.rip;
                    known = Some(now);
                    continue;
                }
                Outcome::Ended(stop) => {
                    self.partial(ended(stop));
                    break;
                }
            }
            let now = (!decoded.sequential)
                .then(|| self.session.tracee.registers(self.thread))
                .transpose()?;
            let next = now.as_ref().map_or(ip + decoded.instruction.len() as u64, |now| now.rip);
            self.record(ip, &decoded, &accesses, next);
            if let (Some(before), Some(now)) = (&before, &now) {
                self.after(&decoded, before, now)?;
            }
            if let Some(now) = &now
                && next == return_to
                && now.rsp > entry.rsp
            {
                break;
            }
            (ip, known) = (next, now);
        }
        let forked = self.session.children() - children;
        if forked > 0 {
            self.partial(format!("{forked} child processes were started, and are not followed"));
        }
        Ok(())
    }

    /// Works out the accesses of the next instruction; the registers, where they were needed.
    fn prepare(
        &mut self,
        decoded: &Decoded,
        known: Option<Registers>,
        accesses: &mut Vec<Access>,
    ) -> std::io::Result<Option<Registers>> {
        if !decoded.touches_memory() && decoded.special == Special::None {
            return Ok(known);
        }
        let registers = match known {
            Some(known) => known,
            None => self.session.tracee.registers(self.thread)?,
        };
        let vectors = if decoded.needs_vectors() {
            self.session.tracee.vector_state(self.thread, self.vectors.buffer())?;
            Some(&self.vectors)
        } else {
            None
        };
        decoded.accesses(&registers, vectors, accesses);
        if decoded.special == Special::SystemCall {
            let lines = self.observer.lines_of_interest();
            self.kernel.before(&self.session.tracee, &registers, &lines);
        }
        Ok(Some(registers))
    }

    /// Makes one step, delivering what signals come up.
    fn execute(&mut self) -> std::io::Result<Outcome> {
        let mut signal = std::mem::take(&mut self.owed);
        let mut caught = signal != 0 && self.kernel.catches(self.session.process(), signal);
        loop {
            match self.session.step(self.thread, signal)? {
                Stop::Trap if caught => return Ok(Outcome::Handler),
                Stop::Trap => return Ok(Outcome::Executed),
                Stop::Signal(arrived) => {
                    signal = deliverable(arrived);
                    caught = signal != 0 && self.kernel.catches(self.session.process(), signal);
                    self.walked.signals += u64::from(signal != 0);
                }
                stop => return Ok(Outcome::Ended(stop)),
            }
        }
    }

    fn record(&mut self, ip: u64, decoded: &Decoded, accesses: &[Access], next: u64) {
        let step = Step { index: self.walked.steps, ip, accesses };
        self.observer.step(&step, &|| decoded.text());
        self.walked.steps += 1;
        // An iteration that leaves the instruction pointer where it is has others to follow.
        self.walked.instructions += u64::from(!(decoded.repeats && next == ip));
        let stores = accesses.iter().filter(|access| access.kind == AccessKind::Store);
        if stores.map(|store| store.address).any(|address| self.code.was_read(address)) {
            self.code.clear();
        }
    }

    /// What has to be seen to after instructions of a special kind.
    fn after(
        &mut self,
        decoded: &Decoded,
        before: &Registers,
        now: &Registers,
    ) -> std::io::Result<()> {
        match decoded.special {
            Special::None => {}
            Special::SystemCall => {
                self.walked.system_calls += 1;
                let effect = self.kernel.after(&self.session.tracee, before, now);
                for (address, bytes) in effect.written {
                    self.observer.overwritten(address, bytes);
                }
                if effect.remapped {
                    self.code.clear();
                }
            }
            Special::OwnTrap => self.owed = libc::SIGTRAP,
            Special::PushFlags => self.hide_trap_flag(before, now)?,
        }
        Ok(())
    }

    /// The stored flags must not show that the program is stepped: restoring them later would trap.
    fn hide_trap_flag(&mut self, before: &Registers, now: &Registers) -> std::io::Result<()> {
        const TRAP_FLAG: u64 = 1 << 8;
        if before.eflags & TRAP_FLAG == 0 {
            let flags = self.word(now.rsp)? & !TRAP_FLAG;
            self.session.tracee.write(self.thread, now.rsp, &flags.to_ne_bytes())?;
        }
        Ok(())
    }

    /// The kernel wrote a signal frame: below the interrupted stack, or on another one.
    fn frame_written(&mut self, known: Option<Registers>, now: &Registers) {
        /// Larger than any frame without tiles: the processor's state and the signal's.
        const FRAME: u64 = 8192;
        let above = known.map_or(FRAME, |known| known.rsp.wrapping_sub(now.rsp));
        self.observer.overwritten(now.rsp, above.min(FRAME));
    }

    /// Lets the program run into code that is not there; what became of it.
    fn crash(&mut self, ip: u64) -> std::io::Result<String> {
        Ok(match self.execute()? {
            Outcome::Ended(stop) => ended(stop),
            _ => format!("the program jumped to {ip:#x}, where no code can be read"),
        })
    }

    fn word(&self, address: u64) -> std::io::Result<u64> {
        let mut word = [0u8; 8];
        self.session.tracee.read(address, &mut word)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn partial(&mut self, why: String) {
        self.walked.partial.push(why);
    }
}

fn ended(stop: Stop) -> String {
    let ending = match stop {
        Stop::Exited(status) => Ending::Exited(status),
        Stop::Killed(signal) => Ending::Killed(signal),
        Stop::Replaced => Ending::Replaced,
        Stop::Signal(signal) => return format!("stopped by {}", signal_name(signal)),
        Stop::Trap | Stop::Forked | Stop::Cloned => return "stopped".to_owned(),
    };
    format!("the program {} before the call returned", ending.words())
}

fn undecodable(ip: u64, bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("the instruction at {ip:#x} cannot be decoded ({} …)", bytes.join(" "))
}
