//! Taking over a descriptor that the parent left at a known number.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the inherited descriptor `number`; once in a process.
///
/// # Errors
/// When nothing is open there, or it was taken before.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: asks for flags only.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return Err(io::Error::last_os_error());
    }
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    // SAFETY: the descriptor is open, was left there by the parent for this program to own, and
    // the flag makes this the only owner.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: sets a flag on a descriptor that we own: children must not inherit it in turn.
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    Ok(descriptor)
}
