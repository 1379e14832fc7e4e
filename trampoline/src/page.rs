//! The page size of this system.

#![allow(unsafe_code)] // one question to the C library

use std::sync::OnceLock;

/// The size of a page in bytes, a power of two (4096 on x86-64; 4, 16 or 64 KiB on arm64), asked of the
/// system at the first call.
pub fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: sysconf takes a number and touches none of our memory.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        // POSIX requires an answer to this name of every system; the trampoline's mask must be a power of
        // two, or the stack pointer would end up anywhere.
        match usize::try_from(size) {
            Ok(size) if size.is_power_of_two() && size >= 64 => size,
            _ => panic!("sysconf(_SC_PAGESIZE) answered {size}, which is no page size"),
        }
    })
}
