//! Callees without a compiler's prologue, which see the stack pointer as the trampoline left it.

#![allow(unsafe_code)] // assembly, and raw calls of it

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::shim::call_raw;
use crate::{Alignment, ShiftError};

/// The stack pointer at the trampoline's call instruction, before a return address is pushed.
///
/// Never inlined: under `Line` the address depends on this function's caller's frame alone.
#[inline(never)]
pub(super) fn pointer_at_call(alignment: Alignment, shift: usize) -> Result<usize, ShiftError> {
    let mut pointer = 0usize;
    // SAFETY: the callee writes one word through the pointer, which outlives the call, and keeps the ABI.
    unsafe { call_raw(alignment, shift, note_pointer, (&raw mut pointer).cast())? };
    Ok(pointer)
}

/// Writes to `*data` where the stack pointer stood at the call.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn note_pointer(data: *mut c_void) {
    naked_asm!("lea rax, [rsp + 8]", "mov [rdi], rax", "ret")
}

/// Writes to `*data` where the stack pointer stood at the call.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn note_pointer(data: *mut c_void) {
    naked_asm!("mov x9, sp", "str x9, [x0]", "ret")
}

/// Leaves rubbish in every register that the ABI lets a callee clobber, and touches nothing else.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn clobber(data: *mut c_void) {
    naked_asm!(
        "mov rax, -1",
        "mov rcx, rax",
        "mov rdx, rax",
        "mov rsi, rax",
        "mov rdi, rax",
        "mov r8, rax",
        "mov r9, rax",
        "mov r10, rax",
        "mov r11, rax",
        "pcmpeqd xmm0, xmm0",
        "pcmpeqd xmm1, xmm1",
        "pcmpeqd xmm7, xmm7",
        "pcmpeqd xmm8, xmm8",
        "pcmpeqd xmm15, xmm15",
        "ret",
    )
}

/// Leaves rubbish in every register that the ABI lets a callee clobber, and touches nothing else.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn clobber(data: *mut c_void) {
    naked_asm!(
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17",
        "mov x\\n, #-1",
        ".endr",
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
        "movi v\\n\\().16b, #0xff",
        ".endr",
        "ret",
    )
}
