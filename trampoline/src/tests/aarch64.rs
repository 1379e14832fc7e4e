//! Probes in aarch64 assembly.

use super::*;

/// Writes the stack pointer at the call instruction through `data`.
///
/// # Safety
///
/// `data` is writable for one word.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn record_entry(data: *mut c_void) {
    naked_asm!("mov x9, sp", "str x9, [x0]", "ret")
}

/// Overwrites registers that a callee may, the upper halves of d8 and d9 among them.
#[unsafe(naked)]
unsafe extern "C" fn clobber(_: *mut c_void) {
    naked_asm!(
        "mov x0, #-1",
        "mov x1, x0",
        "mov x2, x0",
        "mov x3, x0",
        "mov x8, x0",
        "mov x9, x0",
        "mov x10, x0",
        "mov x16, x0",
        "mov x17, x0",
        "dup v0.2d, x0",
        "dup v31.2d, x0",
        "ret",
    )
}

/// Calls the trampoline with known values in callee-saved registers; returns a bit for each that
/// did not come back: x19 to x28 0 to 9, x29 10, d8 11, d15 12, sp 13.
///
/// # Safety
///
/// As [`crate::target::call`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn registers_lost(mask: usize, drop: usize) -> usize {
    naked_asm!(
        "stp x29, x30, [sp, #-160]!",
        "stp x19, x20, [sp, #16]", "stp x21, x22, [sp, #32]", "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]", "stp x27, x28, [sp, #80]", "stp d8, d15, [sp, #96]",
        "mov x9, sp", "str x9, [sp, #112]",
        "mov x19, #19", "mov x20, #20", "mov x21, #21", "mov x22, #22", "mov x23, #23",
        "mov x24, #24", "mov x25, #25", "mov x26, #26", "mov x27, #27", "mov x28, #28",
        "mov x29, #29", "fmov d8, x19", "fmov d15, x20",
        "adrp x2, {clobber}", "add x2, x2, :lo12:{clobber}",
        "mov x3, #0",
        "bl {call}",
        "mov x0, #0",
        "cmp x19, #19", "cset x9, ne", "orr x0, x0, x9",
        "cmp x20, #20", "cset x9, ne", "orr x0, x0, x9, lsl #1",
        "cmp x21, #21", "cset x9, ne", "orr x0, x0, x9, lsl #2",
        "cmp x22, #22", "cset x9, ne", "orr x0, x0, x9, lsl #3",
        "cmp x23, #23", "cset x9, ne", "orr x0, x0, x9, lsl #4",
        "cmp x24, #24", "cset x9, ne", "orr x0, x0, x9, lsl #5",
        "cmp x25, #25", "cset x9, ne", "orr x0, x0, x9, lsl #6",
        "cmp x26, #26", "cset x9, ne", "orr x0, x0, x9, lsl #7",
        "cmp x27, #27", "cset x9, ne", "orr x0, x0, x9, lsl #8",
        "cmp x28, #28", "cset x9, ne", "orr x0, x0, x9, lsl #9",
        "cmp x29, #29", "cset x9, ne", "orr x0, x0, x9, lsl #10",
        "fmov x10, d8", "cmp x10, #19", "cset x9, ne", "orr x0, x0, x9, lsl #11",
        "fmov x10, d15", "cmp x10, #20", "cset x9, ne", "orr x0, x0, x9, lsl #12",
        "mov x10, sp", "ldr x11, [sp, #112]", "cmp x10, x11", "cset x9, ne", "orr x0, x0, x9, lsl #13",
        "ldp d8, d15, [sp, #96]", "ldp x27, x28, [sp, #80]", "ldp x25, x26, [sp, #64]",
        "ldp x23, x24, [sp, #48]", "ldp x21, x22, [sp, #32]", "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #160",
        "ret",
        clobber = sym clobber,
        call = sym crate::target::call,
    )
}
