//! No trampoline for this processor: the same functions, never reached.

use std::ffi::c_void;

/// Whether the functions below may be called.
pub(crate) const SUPPORTED: bool = false;

/// What a trampoline would call.
pub(crate) type Callee = unsafe extern "C" fn(*mut c_void);

/// # Safety
///
/// Never called, as `SUPPORTED` is false.
pub(crate) unsafe fn call(_mask: usize, _drop: usize, _callee: Callee, _data: *mut c_void) {
    unreachable!("no trampoline for this processor");
}

/// # Safety
///
/// Never called, as `SUPPORTED` is false.
pub(crate) unsafe fn touch(_bytes: usize) {
    unreachable!("no trampoline for this processor");
}

pub(crate) fn stack_pointer() -> usize {
    unreachable!("no trampoline for this processor");
}
