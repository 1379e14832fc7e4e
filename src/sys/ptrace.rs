//! A child under ptrace: starting it, stepping it, its registers and memory.
//!
//! All calls must come from the thread that started the child, since the kernel ties the two
//! together: a [`Tracee`] cannot be sent to another thread. The child dies with its tracer.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

/// The software breakpoint instruction.
#[cfg(target_arch = "x86_64")]
pub const BREAK: &[u8] = &[0xcc];
/// The software breakpoint instruction.
#[cfg(target_arch = "aarch64")]
pub const BREAK: &[u8] = &0xd420_0000_u32.to_le_bytes();

/// How far past a software breakpoint's address its trap leaves the instruction pointer.
#[cfg(target_arch = "x86_64")]
pub const BREAK_SKIP: u64 = 1;
/// How far past a software breakpoint's address its trap leaves the instruction pointer.
#[cfg(target_arch = "aarch64")]
pub const BREAK_SKIP: u64 = 0;

/// The general registers of a stopped thread.
#[cfg(target_arch = "x86_64")]
pub type Registers = libc::user_regs_struct;
/// The general registers of a stopped thread.
#[cfg(target_arch = "aarch64")]
pub type Registers = libc::user_regs_struct;

/// Errors of `ptrace(PTRACE_TRACEME)` in the child travel through the same pipe as those of
/// `execve`; adding this tells them apart.
const TRACEME_FAILED: i32 = 1 << 16;

/// What a stop was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A step was made, a breakpoint was reached, or SIGTRAP was sent.
    Trap,
    /// This signal is about to be delivered.
    Signal(i32),
    /// A child process was started.
    Forked,
    /// A thread was started.
    Cloned,
    /// The program was replaced by another.
    Replaced,
    /// The process or thread ended with this status.
    Exited(i32),
    /// The process was ended by this signal.
    Killed(i32),
}

/// One stop of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The thread's id; the process id for the first thread.
    pub thread: i32,
    /// Why it stopped.
    pub stop: Stop,
}

/// Why a child could not be started under ptrace.
#[derive(Debug)]
pub enum StartError {
    /// The kernel forbids tracing (seccomp, a security module).
    Forbidden(io::Error),
    /// The program could not be started.
    Start(io::Error),
}

/// A traced child. Killed when dropped.
#[derive(Debug)]
pub struct Tracee {
    process: i32,
    child: Option<Child>,
    ended: bool,
    // Ptrace belongs to a thread.
    not_send: PhantomData<*const ()>,
}

impl Tracee {
    /// Starts `command` and leaves it stopped before its first instruction (that of the dynamic
    /// loader, if it has one).
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn spawn(command: &mut Command) -> Result<Tracee, StartError> {
        let prepare = || {
            // The same addresses each time, where that is allowed; tracing works without.
            // SAFETY: the call changes a setting of the child alone.
            unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
            ptrace::traceme()
                .map_err(|error| io::Error::from_raw_os_error(error as i32 | TRACEME_FAILED))
        };
        // SAFETY: the closure makes two system calls and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(|error| match error.raw_os_error() {
            Some(code) if code & TRACEME_FAILED != 0 => {
                StartError::Forbidden(io::Error::from_raw_os_error(code & !TRACEME_FAILED))
            }
            _ => StartError::Start(error),
        })?;
        let process = child.id() as i32;
        let mut tracee =
            Tracee { process, child: Some(child), ended: false, not_send: PhantomData };
        tracee.settle().map_err(StartError::Forbidden)?;
        Ok(tracee)
    }

    /// Forks this process; the child waits for us, then does `work` and exits. Code and data are
    /// where they are here. The child has only the calling thread, so `work` must not wait for
    /// others; it is killed after `seconds`.
    ///
    /// # Errors
    /// [`StartError::Forbidden`] when tracing is forbidden, [`StartError::Start`] when the process
    /// limit is reached.
    pub fn fork(work: &mut dyn FnMut(), seconds: u32) -> Result<Tracee, StartError> {
        // SAFETY: the child does what the C library supports after a fork (its allocator included),
        // runs `work` on the one thread it has, and leaves without running destructors.
        let process = unsafe { libc::fork() };
        match process {
            -1 => Err(StartError::Start(io::Error::last_os_error())),
            0 => {
                // SAFETY: plain system calls of the child.
                unsafe {
                    if let Err(error) = ptrace::traceme() {
                        libc::_exit(error as i32);
                    }
                    libc::alarm(seconds);
                    libc::raise(libc::SIGSTOP);
                }
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(if done.is_ok() { 0 } else { 101 }) }
            }
            process => {
                let mut tracee =
                    Tracee { process, child: None, ended: false, not_send: PhantomData };
                tracee.settle().map_err(StartError::Forbidden)?;
                Ok(tracee)
            }
        }
    }

    /// Waits for the first stop and asks to be told of children, threads and replacements.
    fn settle(&mut self) -> io::Result<()> {
        match self.wait_for(self.process)?.stop {
            Stop::Exited(code) => return Err(io::Error::from_raw_os_error(code)),
            Stop::Killed(_) => return Err(io::ErrorKind::BrokenPipe.into()),
            _ => {}
        }
        let options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC;
        ptrace::setoptions(Pid::from_raw(self.process), options)?;
        Ok(())
    }

    /// The process id.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Waits for a stop of `thread` alone: one system call.
    ///
    /// # Errors
    /// What `waitpid(2)` gives.
    pub fn wait_for(&mut self, thread: i32) -> io::Result<Stopped> {
        self.wait(thread, libc::__WALL)
    }

    /// Waits for a stop of any thread or new child that the calling thread traces.
    ///
    /// # Errors
    /// What `waitpid(2)` gives.
    pub fn wait_any(&mut self) -> io::Result<Stopped> {
        // Children of other threads of this process are theirs.
        self.wait(-1, libc::__WALL | libc::__WNOTHREAD)
    }

    fn wait(&mut self, thread: i32, options: i32) -> io::Result<Stopped> {
        let mut status = 0;
        let thread = loop {
            // SAFETY: `status` outlives the call.
            let thread = unsafe { libc::waitpid(thread, &mut status, options) };
            if thread >= 0 {
                break thread;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        };
        let stop = classify(status);
        // With WNOHANG a thread of 0 says that nothing happened.
        if thread == self.process && matches!(stop, Stop::Exited(_) | Stop::Killed(_)) {
            self.ended = true;
        }
        Ok(Stopped { thread, stop })
    }

    /// Takes note of a killed process's end. Its first thread is not reported before all others were
    /// waited for, each by its tracer.
    fn reap(&mut self) -> io::Result<()> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process))?;
        let process = self.process;
        let threads = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        for thread in threads.filter(|thread| *thread != process) {
            // Gone or not ours: the first thread's answer decides.
            let _ = self.wait(thread, libc::__WALL | libc::WNOHANG);
        }
        self.wait(self.process, libc::__WALL | libc::WNOHANG).map(drop)
    }

    /// Lets `thread` execute one instruction, delivering `signal` first (0: none).
    ///
    /// # Errors
    /// ESRCH when it is gone or not stopped.
    #[inline]
    pub fn step(&self, thread: i32, signal: i32) -> io::Result<()> {
        self.resume(libc::PTRACE_SINGLESTEP, thread, signal)
    }

    /// Lets `thread` run on, delivering `signal` first (0: none).
    ///
    /// # Errors
    /// ESRCH when it is gone or not stopped.
    pub fn run(&self, thread: i32, signal: i32) -> io::Result<()> {
        self.resume(libc::PTRACE_CONT, thread, signal)
    }

    /// Stops tracing `thread`, which runs on.
    ///
    /// # Errors
    /// ESRCH when it is gone or not stopped.
    pub fn release(&self, thread: i32) -> io::Result<()> {
        self.resume(libc::PTRACE_DETACH, thread, 0)
    }

    #[inline]
    fn resume(&self, request: Request, thread: i32, signal: i32) -> io::Result<()> {
        // SAFETY: these requests take the signal as a number; no memory of ours is touched.
        let result = unsafe {
            libc::ptrace(request, thread, std::ptr::null_mut::<c_void>(), signal as usize)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The general registers of a stopped thread.
    ///
    /// # Errors
    /// ESRCH when it is gone or not stopped.
    #[inline]
    pub fn registers(&self, thread: i32) -> io::Result<Registers> {
        #[cfg(target_arch = "x86_64")]
        return Ok(ptrace::getregs(Pid::from_raw(thread))?);
        #[cfg(target_arch = "aarch64")]
        return Ok(ptrace::getregset::<ptrace::regset::NT_PRSTATUS>(Pid::from_raw(thread))?);
    }

    /// Sets the general registers of a stopped thread.
    ///
    /// # Errors
    /// ESRCH when it is gone or not stopped.
    pub fn set_registers(&self, thread: i32, registers: Registers) -> io::Result<()> {
        #[cfg(target_arch = "x86_64")]
        return Ok(ptrace::setregs(Pid::from_raw(thread), registers)?);
        #[cfg(target_arch = "aarch64")]
        return Ok(ptrace::setregset::<ptrace::regset::NT_PRSTATUS>(
            Pid::from_raw(thread),
            registers,
        )?);
    }

    /// The vector state in the layout of `XSAVE`; how much of `buffer` was filled.
    ///
    /// # Errors
    /// ENODEV on a processor without it.
    #[cfg(target_arch = "x86_64")]
    pub fn vector_state(&self, thread: i32, buffer: &mut [u8]) -> io::Result<usize> {
        const NT_X86_XSTATE: usize = 0x202;
        let mut vector =
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the kernel writes at most `iov_len` bytes into `buffer`, which outlives the call.
        let result =
            unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread, NT_X86_XSTATE, &raw mut vector) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(vector.iov_len) }
    }

    /// Reads up to `buffer.len()` bytes of the child's memory; how many were there.
    ///
    /// # Errors
    /// EFAULT or EIO where nothing is mapped at `address`.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let process = Pid::from_raw(self.process);
        let remote = [nix::sys::uio::RemoteIoVec { base: address as usize, len: buffer.len() }];
        let read =
            nix::sys::uio::process_vm_readv(process, &mut [io::IoSliceMut::new(buffer)], &remote);
        match read {
            Ok(read) => Ok(read),
            // Some containers filter this call but not ptrace.
            Err(nix::Error::EPERM | nix::Error::ENOSYS) => self.peek(address, buffer),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads word by word; stops at the first word that is not mapped.
    fn peek(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let process = Pid::from_raw(self.process);
        let mut read = 0;
        for (i, chunk) in buffer.chunks_mut(size_of::<libc::c_long>()).enumerate() {
            let at = address as usize + i * size_of::<libc::c_long>();
            match ptrace::read(process, at as *mut c_void) {
                Ok(word) => chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]),
                Err(error) if read == 0 => return Err(error.into()),
                Err(_) => break,
            }
            read += chunk.len();
        }
        Ok(read)
    }

    /// Writes `bytes` (at most eight) into the child's memory, code included. `thread` must be
    /// stopped; it may belong to a forked child.
    ///
    /// # Errors
    /// EIO where nothing is mapped.
    pub fn write(&self, thread: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
        let thread = Pid::from_raw(thread);
        let at = address as usize as *mut c_void;
        let mut word = ptrace::read(thread, at)?.to_ne_bytes();
        word[..bytes.len()].copy_from_slice(bytes);
        ptrace::write(thread, at, libc::c_long::from_ne_bytes(word))?;
        Ok(())
    }
}

#[cfg(any(target_env = "gnu", target_os = "android"))]
type Request = libc::c_uint;
#[cfg(not(any(target_env = "gnu", target_os = "android")))]
type Request = libc::c_int;

impl Drop for Tracee {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: the process is our child and was not waited for, so the id is still its own.
            unsafe { libc::kill(self.process, libc::SIGKILL) };
            while !self.ended && self.reap().is_ok() {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
        // Reaped above; dropping a `Child` does not wait.
        drop(self.child.take());
    }
}

/// Takes a wait status apart. Real-time signals are numbers that `nix` has no name for.
fn classify(status: i32) -> Stop {
    if libc::WIFEXITED(status) {
        return Stop::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Stop::Killed(libc::WTERMSIG(status));
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (libc::SIGTRAP, 0) => Stop::Trap,
        (libc::SIGTRAP, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK) => Stop::Forked,
        (libc::SIGTRAP, libc::PTRACE_EVENT_CLONE) => Stop::Cloned,
        (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => Stop::Replaced,
        (signal, _) => Stop::Signal(signal),
    }
}
