//! The trampoline for x86-64, System V calling convention.

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
//   in    rdi  mask: minus the power of two to round the stack pointer down to
//         rsi  drop: bytes to subtract after that, a multiple of 16
//         rdx  callee, `extern "C" fn(*mut c_void)`
//         rcx  data, passed on to the callee in rdi
//   kept  rbp  this frame's address during the call: a callee keeps rbp, so the stack pointer comes back
//              from it whatever the callee did below
//   out   rax, rdx and all other caller-saved registers are the callee's to clobber; nothing is returned
//
// rbx and r12 to r15 are not touched here and kept by the callee; so are the control bits of mxcsr and of
// the x87. At the call rsp is a multiple of 16, so the callee enters as the ABI says, at 8 modulo 16.
// The canonical frame address is rbp + 16 from the moment that rbp holds this frame, wherever rsp goes: an
// unwinder walks through.
function!(
    "stack_trampoline_v0_1_call",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "and rsp, rdi",
    "sub rsp, rsi",
    "mov rdi, rcx",
    "call rdx",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    ".cfi_restore rbp",
    "ret",
);

// Register contract of the touch:
//
//   in    rdi  bytes to reach down, a multiple of 16; clobbered
//   kept  rbp, rsp (put back from rbp), all others untouched
//
// The stack pointer goes along page by page (4096 is the smallest page), so that the kernel sees an access
// at the stack pointer, which grows the main stack, and never one far below it.
function!(
    "stack_trampoline_v0_1_touch",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "2: cmp rdi, 4096",
    "jbe 3f",
    "sub rsp, 4096",
    "or qword ptr [rsp], 0",
    "sub rdi, 4096",
    "jmp 2b",
    "3: sub rsp, rdi",
    "or qword ptr [rsp], 0",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    ".cfi_restore rbp",
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
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}
