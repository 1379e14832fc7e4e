//! A hardware watchpoint as a perf event: who touches an address, without a debugger.
//!
//! Works without hardware counters, in guests, and at `perf_event_paranoid` 2, since only user mode
//! is watched. A core has few debug registers (four on x86-64), shared with debuggers. The
//! instruction pointer that a hit carries is the address *after* the accessing instruction on
//! x86-64 (the trap comes when it is done) and that of the instruction itself on aarch64.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use perf_event::hooks::sys::{self, bindings};

use super::perf_ring::Ring;
use crate::Failure;

/// Pages of records: some 2700 hits before any are lost, and little enough that several watches
/// fit the locked memory of an ordinary user.
const RING_PAGES: usize = 16;

/// Which accesses a watch reports. The hardware cannot watch reads alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writes.
    Write,
    /// Writes and reads.
    ReadWrite,
}

/// Whose accesses a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The calling thread.
    CallingThread,
    /// The thread with this id.
    Thread(i32),
}

/// One access of a watched address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Instruction pointer as reported; see the module documentation for which instruction it is.
    pub ip: u64,
    /// Nanoseconds of the kernel's perf clock: orders the hits of several watches.
    pub time: u64,
}

/// Why an address cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The hardware watches 1, 2, 4 or 8 bytes, aligned to that length.
    #[error("{bytes} bytes at {address:#x} cannot be watched")]
    Shape {
        /// First address.
        address: u64,
        /// Length asked for.
        bytes: u8,
    },
    /// All debug registers are in use (ENOSPC).
    #[error("no free hardware breakpoint")]
    Exhausted,
    /// `perf_event_paranoid` is above 2 (EACCES).
    #[error("perf_event_paranoid is {level}")]
    Paranoid {
        /// The value read from `/proc/sys/kernel/perf_event_paranoid`, or `unknown`.
        level: String,
    },
    /// The system call is filtered (EPERM), as container runtimes do.
    #[error("perf_event_open is forbidden")]
    Forbidden,
    /// No such call or event: an emulator, or a kernel without hardware breakpoints.
    #[error("this kernel offers no hardware breakpoints ({0})")]
    Unsupported(io::Error),
    /// It opened, but an access that was certain to trip it did not.
    #[error("the hardware breakpoint opened but reports nothing")]
    Silent,
    /// Any other error of the system.
    #[error("cannot watch memory: {0}")]
    System(io::Error),
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Failure {
        let remedy = match &error {
            WatchError::Shape { .. } => "watch 1, 2, 4 or 8 bytes at a multiple of that length",
            WatchError::Exhausted => {
                "close the debugger or tracer that holds the debug registers, and try again"
            }
            WatchError::Paranoid { .. } => {
                "set it to 2: sudo sysctl kernel.perf_event_paranoid=2, or run as root"
            }
            WatchError::Forbidden => {
                "in a container, start it with --security-opt seccomp=unconfined or --cap-add \
                 PERFMON"
            }
            WatchError::Unsupported(_) | WatchError::Silent => {
                "run on the machine itself or in a guest that has debug registers, not under an \
                 emulator"
            }
            WatchError::System(_) => "see the error's text",
        };
        Failure::new(error.to_string(), "hardware watchpoint", remedy)
    }
}

/// A watched address; watching ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    event: OwnedFd,
    ring: Ring,
    lost: u64,
}

/// Watches `bytes` (1, 2, 4 or 8, and `address` a multiple of it) in the calling thread, from now
/// on.
///
/// # Errors
/// See [`WatchError`].
pub fn watch(address: usize, bytes: u8, access: Access) -> Result<Watch, WatchError> {
    let mut watch = Watch::open(Target::CallingThread, address as u64, bytes, access)?;
    watch.enable()?;
    Ok(watch)
}

/// Proves that hardware watchpoints work here: one write of our own must trip one.
///
/// # Errors
/// See [`WatchError`]; [`WatchError::Silent`] where it opens and reports nothing.
pub fn prove() -> Result<(), WatchError> {
    let cell = std::cell::UnsafeCell::new(0u64);
    let mut watch = watch(cell.get() as usize, 8, Access::Write)?;
    // SAFETY: the cell is ours alone and lives to the end of the function.
    unsafe { cell.get().write_volatile(1) };
    watch.disable()?;
    if watch.take().is_empty() { Err(WatchError::Silent) } else { Ok(()) }
}

impl Watch {
    /// Opens a watch that does not watch yet.
    ///
    /// # Errors
    /// See [`WatchError`].
    pub fn open(
        target: Target,
        address: u64,
        bytes: u8,
        access: Access,
    ) -> Result<Watch, WatchError> {
        if !matches!(bytes, 1 | 2 | 4 | 8) || !address.is_multiple_of(u64::from(bytes)) {
            return Err(WatchError::Shape { address, bytes });
        }
        let mut attributes = attributes(address, bytes, access);
        let pid = match target {
            Target::CallingThread => 0,
            Target::Thread(id) => id,
        };
        let flags = std::os::raw::c_ulong::from(bindings::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: `attributes` is a whole, initialised structure that outlives the call.
        let fd = unsafe { sys::perf_event_open(&mut attributes, pid, -1, -1, flags) };
        if fd < 0 {
            return Err(refusal(io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor that nothing else owns.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        let ring = Ring::map(event.as_fd(), RING_PAGES).map_err(WatchError::System)?;
        Ok(Watch { event, ring, lost: 0 })
    }

    /// Starts watching.
    ///
    /// # Errors
    /// [`WatchError::System`].
    pub fn enable(&mut self) -> Result<(), WatchError> {
        // SAFETY: the request takes no pointer.
        checked(unsafe { sys::ioctls::ENABLE(self.event.as_raw_fd(), 0) })
    }

    /// Stops watching; hits so far stay to be taken.
    ///
    /// # Errors
    /// [`WatchError::System`].
    pub fn disable(&mut self) -> Result<(), WatchError> {
        // SAFETY: the request takes no pointer.
        checked(unsafe { sys::ioctls::DISABLE(self.event.as_raw_fd(), 0) })
    }

    /// Takes the hits since the last call, oldest first.
    pub fn take(&mut self) -> Vec<Hit> {
        let mut hits = Vec::new();
        for record in self.ring.drain() {
            match (record.kind, words(&record.body)) {
                (bindings::PERF_RECORD_SAMPLE, [Some(ip), Some(time)]) => {
                    hits.push(Hit { ip, time });
                }
                // Body of a loss: the event's id, then how many.
                (bindings::PERF_RECORD_LOST, [_, Some(lost)]) => self.lost += lost,
                _ => {}
            }
        }
        hits
    }

    /// Hits that were not kept because there were more than a few thousand between two takes.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// The first two words of a record's body.
fn words(body: &[u8]) -> [Option<u64>; 2] {
    let word = |at: usize| {
        body.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
    };
    [word(0), word(8)]
}

fn attributes(address: u64, bytes: u8, access: Access) -> bindings::perf_event_attr {
    let mut attributes = bindings::perf_event_attr {
        type_: bindings::PERF_TYPE_BREAKPOINT,
        size: size_of::<bindings::perf_event_attr>() as u32,
        bp_type: match access {
            Access::Write => bindings::HW_BREAKPOINT_W,
            Access::ReadWrite => bindings::HW_BREAKPOINT_RW,
        },
        sample_type: u64::from(bindings::PERF_SAMPLE_IP | bindings::PERF_SAMPLE_TIME),
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.__bindgen_anon_3.bp_addr = address;
    attributes.__bindgen_anon_4.bp_len = u64::from(bytes);
    attributes.set_disabled(1);
    // Both are what paranoid 2 asks of an ordinary user.
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes
}

/// What an error of `perf_event_open(2)` means for a breakpoint.
fn refusal(error: io::Error) -> WatchError {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => WatchError::Exhausted,
        Some(libc::EACCES) => {
            let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            WatchError::Paranoid {
                level: level.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned()),
            }
        }
        Some(libc::EPERM) => WatchError::Forbidden,
        Some(libc::ENOSYS | libc::ENODEV | libc::ENOENT | libc::EOPNOTSUPP) => {
            WatchError::Unsupported(error)
        }
        _ => WatchError::System(error),
    }
}

fn checked(result: std::os::raw::c_int) -> Result<(), WatchError> {
    if result < 0 { Err(WatchError::System(io::Error::last_os_error())) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
