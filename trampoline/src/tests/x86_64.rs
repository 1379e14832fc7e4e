//! Probes in x86-64 assembly.

use super::*;

/// Writes the stack pointer at the call instruction through `data`.
///
/// # Safety
///
/// `data` is writable for one word.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn record_entry(data: *mut c_void) {
    // At entry the return address lies on the stack already.
    naked_asm!("lea rax, [rsp + 8]", "mov [rdi], rax", "ret")
}

/// Overwrites every register that a callee may.
#[unsafe(naked)]
unsafe extern "C" fn clobber(_: *mut c_void) {
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
        "ret",
    )
}

/// Calls the trampoline with known values in every callee-saved register; returns a bit for each
/// that did not come back: rbx 0, rbp 1, r12 to r15 2 to 5, rsp 6, mxcsr 7.
///
/// # Safety
///
/// As [`crate::target::call`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn registers_lost(mask: usize, drop: usize) -> usize {
    naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
        "sub rsp, 24",
        "stmxcsr [rsp]",
        // Another rounding mode, to see that it is kept.
        "mov eax, [rsp]", "or eax, 0x6000", "mov [rsp + 4], eax", "ldmxcsr [rsp + 4]",
        "mov [rsp + 8], rsp",
        "mov rbx, 0x1111", "mov rbp, 0x2222", "mov r12, 0x3333",
        "mov r13, 0x4444", "mov r14, 0x5555", "mov r15, 0x6666",
        "lea rdx, [rip + {clobber}]",
        "xor ecx, ecx",
        "call {call}",
        "xor eax, eax",
        "cmp rbx, 0x1111", "setne cl", "movzx ecx, cl", "or eax, ecx",
        "cmp rbp, 0x2222", "setne cl", "movzx ecx, cl", "shl ecx, 1", "or eax, ecx",
        "cmp r12, 0x3333", "setne cl", "movzx ecx, cl", "shl ecx, 2", "or eax, ecx",
        "cmp r13, 0x4444", "setne cl", "movzx ecx, cl", "shl ecx, 3", "or eax, ecx",
        "cmp r14, 0x5555", "setne cl", "movzx ecx, cl", "shl ecx, 4", "or eax, ecx",
        "cmp r15, 0x6666", "setne cl", "movzx ecx, cl", "shl ecx, 5", "or eax, ecx",
        "cmp rsp, [rsp + 8]", "setne cl", "movzx ecx, cl", "shl ecx, 6", "or eax, ecx",
        "stmxcsr [rsp + 16]", "mov edx, [rsp + 16]",
        "cmp edx, [rsp + 4]", "setne cl", "movzx ecx, cl", "shl ecx, 7", "or eax, ecx",
        "ldmxcsr [rsp]",
        "add rsp, 24",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        clobber = sym clobber,
        call = sym crate::target::call,
    )
}
