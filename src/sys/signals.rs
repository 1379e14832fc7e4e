//! Being asked to stop: SIGINT and SIGTERM set a flag that measuring loops look at between blocks.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static STOP: AtomicI32 = AtomicI32::new(0);
static REQUESTS: AtomicU32 = AtomicU32::new(0);

extern "C" fn remember(signal: i32) {
    STOP.store(signal, Ordering::Relaxed);
    REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// Why to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT: the person at the terminal.
    Interrupted,
    /// SIGTERM: somebody else.
    Terminated,
}

/// From now on SIGINT and SIGTERM are remembered instead of ending the process.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn remember_stop_requests() -> io::Result<()> {
    // No SA_RESTART: a call that waits must return, so that its loop can look at the flag.
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only stores to atomics, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Whether a stop was asked for, and how.
pub fn stop_requested() -> Option<Stop> {
    match STOP.load(Ordering::Relaxed) {
        0 => None,
        signal if signal == Signal::SIGTERM as i32 => Some(Stop::Terminated),
        _ => Some(Stop::Interrupted),
    }
}

/// How many times a stop was asked for.
pub fn stop_requests() -> u32 {
    REQUESTS.load(Ordering::Relaxed)
}
