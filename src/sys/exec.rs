//! Starting a foreign program by `fork` and `execve`, held twice on its way: before `execve`, so
//! that counters can be opened on it, and before its first instruction, so that what the kernel
//! made of its stack can be read from however short a program.
//!
//! The standard library's `Command` has neither stop, looks the program up itself and leaves
//! `SIGPIPE` ignored to it; here path, arguments and environment reach the kernel as they are, since
//! each of their bytes moves the stack.

use std::ffi::{CStr, CString, c_char};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};

/// What to start, and how.
pub struct Program<'a> {
    /// The path given to `execve`; it is not searched for.
    pub path: &'a CStr,
    /// All arguments, the name of the program first.
    pub arguments: &'a [CString],
    /// The environment, `NAME=value` each.
    pub environment: &'a [CString],
    /// Its standard input, output and error.
    pub standard: [BorrowedFd<'a>; 3],
    /// Ask for `ADDR_NO_RANDOMIZE`; whether it is in force shows afterwards.
    pub no_randomisation: bool,
    /// The processor to pin to; a refusal is not an error.
    pub cpu: Option<usize>,
    /// Stop it before its first instruction. A program that gains privileges must not be stopped:
    /// it would not gain them.
    pub stop_at_start: bool,
}

/// A child that has not called `execve` yet. Dropping it ends it.
#[derive(Debug)]
pub struct Held {
    process: i32,
    go: Option<OwnedFd>,
    said: File,
}

/// A started program. It leads its own process group, and dies when the thread that started it does.
#[derive(Debug)]
pub struct Started {
    /// Its process.
    pub process: i32,
    /// Whether it is stopped before its first instruction, until [`Started::release`].
    pub stopped: bool,
}

/// What the child says before `execve`: a kind, and an error number.
const TRACE_REFUSED: u8 = 1;
const EXEC_FAILED: u8 = 2;
const MESSAGE: usize = 5;

impl Program<'_> {
    /// Forks. The child waits.
    ///
    /// # Errors
    /// When there can be no more processes or descriptors.
    pub fn fork(&self) -> io::Result<Held> {
        let (go_read, go_write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let (said_read, said_write) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        // Everything that the child needs is made before the fork: it must not allocate.
        let mut set = Vec::new();
        set.extend(self.cpu.and_then(|cpu| {
            let mut set = nix::sched::CpuSet::new();
            set.set(cpu).ok().map(|()| set)
        }));
        let plan = Plan {
            arguments: pointers(self.arguments),
            environment: pointers(self.environment),
            go: go_read.as_raw_fd(),
            say: said_write.as_raw_fd(),
            parent: std::process::id(),
            processors: set,
        };
        // SAFETY: the child makes system calls only, on memory made above, and never returns.
        let process = unsafe { libc::fork() };
        match process {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: this is the child; `plan` points into `self`, which outlives the call.
            0 => unsafe { become_program(self, &plan) },
            _ => Ok(Held { process, go: Some(go_write), said: File::from(said_read) }),
        }
    }
}

impl Held {
    /// The child's process.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Lets the child call `execve`.
    ///
    /// # Errors
    /// Whatever `execve` gave; nothing of the program has run then.
    pub fn start(mut self) -> io::Result<Started> {
        if let Some(go) = self.go.take() {
            File::from(go).write_all(b"g")?;
        }
        // Ends when `execve` closes the descriptor, or the child is gone.
        let mut said = Vec::new();
        self.said.read_to_end(&mut said)?;
        let mut stopped = true;
        for message in said.chunks_exact(MESSAGE) {
            let error = i32::from_ne_bytes([message[1], message[2], message[3], message[4]]);
            match message[0] {
                EXEC_FAILED => return Err(io::Error::from_raw_os_error(error)),
                _ => stopped = false,
            }
        }
        let process = self.process;
        // From here on `Started` is responsible.
        self.process = 0;
        let mut started = Started { process, stopped: false };
        if stopped {
            started.stopped = started.wait_for_stop()?;
        }
        Ok(started)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.process > 0 {
            let process = Pid::from_raw(self.process);
            // Errors mean that it is gone already.
            let _ = nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL);
            let _ = waitpid(process, None);
        }
    }
}

impl Started {
    /// Waits for the stop after `execve`; `false` where the child was not to stop.
    fn wait_for_stop(&self) -> io::Result<bool> {
        let process = Pid::from_raw(self.process);
        loop {
            match waitpid(process, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::Stopped(_, nix::sys::signal::Signal::SIGTRAP)) => return Ok(true),
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {
                    return Err(io::Error::other("the program ended before it started"));
                }
                // Another stop, or a signal to this process.
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Lets a stopped program run.
    ///
    /// # Errors
    /// When it is gone.
    pub fn release(&mut self) -> io::Result<()> {
        if self.stopped {
            self.stopped = false;
            ptrace::detach(Pid::from_raw(self.process), None)?;
        }
        Ok(())
    }
}

/// What the child works with: raw, and complete.
struct Plan {
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    go: RawFd,
    say: RawFd,
    parent: u32,
    processors: Vec<nix::sched::CpuSet>,
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The child's side.
///
/// # Safety
/// To be called in a fresh child only: it replaces the process. It makes async-signal-safe calls
/// alone, since other threads of the parent may have held any lock.
unsafe fn become_program(program: &Program<'_>, plan: &Plan) -> ! {
    // SAFETY: plain system calls with valid pointers: those of `plan` end in null, and what they
    // point to lives in the copied address space until `execve` replaces it.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != plan.parent {
            libc::_exit(127);
        }
        let mut byte = 0u8;
        // Nobody to let it go: the parent gave up, or is gone.
        while libc::read(plan.go, (&raw mut byte).cast(), 1) != 1 {
            if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) || byte != 0 {
                libc::_exit(127);
            }
        }
        for (number, descriptor) in program.standard.iter().enumerate() {
            libc::dup2(descriptor.as_raw_fd(), number as RawFd);
        }
        // Rust ignores SIGPIPE, and what is ignored stays so across `execve`.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        if program.no_randomisation {
            let current = libc::personality(0xffff_ffff);
            if current != -1 {
                let wanted = current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
                let _ = libc::personality(wanted);
            }
        }
        if let Some(set) = plan.processors.first() {
            let _ = nix::sched::sched_setaffinity(Pid::from_raw(0), set);
        }
        if !program.stop_at_start
            || libc::ptrace(libc::PTRACE_TRACEME, 0, std::ptr::null_mut::<u8>(), 0) == -1
        {
            say(plan.say, TRACE_REFUSED);
        }
        libc::execve(program.path.as_ptr(), plan.arguments.as_ptr(), plan.environment.as_ptr());
        say(plan.say, EXEC_FAILED);
        libc::_exit(127);
    }
}

/// Tells the parent of the last error.
///
/// # Safety
/// As [`become_program`].
unsafe fn say(descriptor: RawFd, kind: u8) {
    let error = io::Error::last_os_error().raw_os_error().unwrap_or(0).to_ne_bytes();
    let message: [u8; MESSAGE] = [kind, error[0], error[1], error[2], error[3]];
    // SAFETY: the buffer is as long as said; a message this short is written whole or not at all.
    unsafe { libc::write(descriptor, message.as_ptr().cast(), MESSAGE) };
}

/// From now on processes whose parent ends become children of this one instead of init's, so that
/// what a command leaves behind can be found and ended; and ended children wait to be asked for
/// their status, also where whoever started this program ignores them.
///
/// # Errors
/// Where the kernel does not know the request.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: the default disposition of a signal that by default does nothing.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// A descriptor that becomes readable when `process` ends; `None` before Linux 5.3.
pub fn end_of(process: i32) -> Option<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the call takes two integers.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    // SAFETY: a new descriptor that nobody else owns.
    (raw >= 0).then(|| unsafe { OwnedFd::from_raw_fd(raw as RawFd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn texts(all: &[&str]) -> Vec<CString> {
        all.iter().map(|text| CString::new(*text).expect("no NUL")).collect()
    }

    fn start(path: &CStr, script: &str) -> io::Result<(Started, File)> {
        let (ours, theirs) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        let null = File::open("/dev/null")?;
        let program = Program {
            path,
            arguments: &texts(&["sh", "-c", script]),
            environment: &texts(&["A=1"]),
            standard: [null.as_fd(), theirs.as_fd(), null.as_fd()],
            no_randomisation: false,
            cpu: None,
            stop_at_start: true,
        };
        let started = program.fork()?.start()?;
        Ok((started, File::from(ours)))
    }

    #[test]
    fn it_stops_before_its_first_instruction_and_then_runs() -> io::Result<()> {
        let (mut started, mut output) = start(c"/bin/sh", "echo $A; kill -PIPE $$")?;
        if !started.stopped {
            eprintln!("skipped: tracing is refused here");
        } else {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", started.process))?;
            assert_eq!(name.trim(), "sh", "the program is in place");
        }
        started.release()?;
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        assert_eq!(text, "1\n");
        let status = waitpid(Pid::from_raw(started.process), None)?;
        assert!(
            matches!(status, WaitStatus::Signaled(_, nix::sys::signal::Signal::SIGPIPE, _)),
            "SIGPIPE ends it as it would from a shell: {status:?}"
        );
        Ok(())
    }

    #[test]
    fn what_cannot_be_executed_says_why() {
        for (path, errno) in [(c"/nonexistent", libc::ENOENT), (c"/etc", libc::EACCES)] {
            let error = start(path, "").map(|_| ()).expect_err("cannot be executed");
            assert_eq!(error.raw_os_error(), Some(errno), "{path:?}");
        }
    }
}
