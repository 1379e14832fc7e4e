//! Reading a perf event's descriptor ourselves.
//!
//! `perf_event::Group::read` asserts on a short read, and hooks that replace the crate's system
//! calls do not cover `read`: a simulated counter is a pipe, and this reads it like a real one.

use std::io;
use std::os::fd::AsRawFd;

/// Reads once from `counter` into `buffer`; the number of bytes that came.
///
/// # Errors
/// What `read(2)` gives, other than an interruption by a signal.
pub fn read(counter: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the buffer is writable for its length, and the descriptor is open as long as
        // `counter` is borrowed.
        let got =
            unsafe { libc::read(counter.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(got) {
            Ok(got) => return Ok(got),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
