//! The trampoline for aarch64, AAPCS64 calling convention (Linux, and Apple's variant of it).

#![allow(unsafe_code)] // assembly

use std::arch::{asm, global_asm};
use std::ffi::c_void;

/// Whether the functions below may be called.
pub(crate) const SUPPORTED: bool = true;

/// What the trampoline calls.
pub(crate) type Callee = unsafe extern "C" fn(*mut c_void);

// Mach-O puts an underscore before every C name, and has neither symbol types nor `.hidden`.
#[cfg(target_vendor = "apple")]
macro_rules! function {
    ($name:literal, $($line:literal),+ $(,)?) => {
        global_asm!(
            ".text", ".p2align 4",
            concat!(".globl _", $name), concat!(".private_extern _", $name), concat!("_", $name, ":"),
            ".cfi_startproc", $($line,)+ ".cfi_endproc",
        );
    };
}
#[cfg(not(target_vendor = "apple"))]
macro_rules! function {
    ($name:literal, $($line:literal),+ $(,)?) => {
        global_asm!(
            concat!(".pushsection .text.", $name, ",\"ax\",@progbits"), ".p2align 4",
            concat!(".globl ", $name), concat!(".hidden ", $name), concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc", $($line,)+ ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name), ".popsection",
        );
    };
}

// Register contract of the call:
//
//   in    x0   mask: minus the power of two to round the stack pointer down to
//         x1   drop: bytes to subtract after that, a multiple of 16
//         x2   callee, `extern "C" fn(*mut c_void)`
//         x3   data, passed on to the callee in x0
//   kept  x29  this frame's address during the call: a callee keeps x29, so the stack pointer comes back
//              from it whatever the callee did below
//         x30  the return address, saved in the frame record together with x29
//   used  x9   the new stack pointer, as sp cannot be masked in place
//   out   x0 to x17 and the upper vector registers are the callee's to clobber; nothing is returned
//
// x19 to x28 and d8 to d15 are not touched here and kept by the callee; x18 is the platform's and not
// touched at all. At the call sp is a multiple of 16, as the hardware checks at each access through it.
// The canonical frame address is x29 + 16 from the moment that x29 holds this frame, wherever sp goes: an
// unwinder walks through. (In the CFI 29 and 30 are x29 and x30, 31 is sp.)
function!(
    "stack_trampoline_v0_1_call",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset 29, -16",
    ".cfi_offset 30, -8",
    "mov x29, sp",
    ".cfi_def_cfa 29, 16",
    "mov x9, sp",
    "and x9, x9, x0",
    "sub x9, x9, x1",
    "mov sp, x9",
    "mov x0, x3",
    "blr x2",
    "mov sp, x29",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa 31, 0",
    ".cfi_restore 29",
    ".cfi_restore 30",
    "ret",
);

// Register contract of the touch:
//
//   in    x0   bytes to reach down, a multiple of 16; clobbered
//   kept  x29, x30, sp (put back from x29), all others untouched
//
// The stack pointer goes along page by page (4096 is the smallest page), so that the kernel sees an access
// at the stack pointer, which grows the main stack, and never one far below it. It loads, as a store would
// wipe out the frame record when there is nothing to reach for.
function!(
    "stack_trampoline_v0_1_touch",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset 29, -16",
    ".cfi_offset 30, -8",
    "mov x29, sp",
    ".cfi_def_cfa 29, 16",
    "2: cmp x0, #4096",
    "b.ls 3f",
    "sub sp, sp, #4096",
    "ldr xzr, [sp]",
    "sub x0, x0, #4096",
    "b 2b",
    "3: sub sp, sp, x0",
    "ldr xzr, [sp]",
    "mov sp, x29",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa 31, 0",
    ".cfi_restore 29",
    ".cfi_restore 30",
    "ret",
);

unsafe extern "C" {
    /// Rounds the stack pointer down by `mask`, subtracts `drop`, calls `callee(data)`, puts it back.
    ///
    /// # Safety
    ///
    /// `mask` is minus a power of two of at least 16, `drop` a multiple of 16; the memory below this frame
    /// down to the new stack pointer, and as much below as the callee uses, is stack. The callee keeps to
    /// the C ABI and does not unwind.
    #[link_name = "stack_trampoline_v0_1_call"]
    pub(crate) fn call(mask: usize, drop: usize, callee: Callee, data: *mut c_void);

    /// Touches each page from here to `bytes` below.
    ///
    /// # Safety
    ///
    /// `bytes` is a multiple of 16. Where the stack ends within, a guard page does too.
    #[link_name = "stack_trampoline_v0_1_touch"]
    pub(crate) fn touch(bytes: usize);
}

/// The stack pointer of the frame that this is inlined into.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: copies one register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}
