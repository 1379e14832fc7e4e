//! Register-only loops: the guard's two loops and the `registers` workload.

use std::arch::asm;

/// `steps` times sixteen dependent 64-bit multiplications: latency alone decides the time.
///
/// Multiplications, because recent cores execute chains of small additions at rename, in no time.
#[inline(always)]
pub fn dependent_chain(steps: u64) {
    if steps == 0 {
        return;
    }
    // SAFETY: registers only; every register written is declared.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "imul {value}, {value}",
            ".endr",
            "dec {steps}",
            "jnz 2b",
            value = inout(reg) 0x9e37_79b9_7f4a_7c15_u64 => _,
            steps = inout(reg) steps => _,
            options(nomem, nostack),
        );
    }
}

/// `steps` times 32 independent additions: issue width alone decides the time, so that a sibling
/// thread which takes issue slots shows here although the dependent chain does not feel it.
#[inline(always)]
pub fn saturating_loop(steps: u64) {
    if steps == 0 {
        return;
    }
    // SAFETY: registers only; every register written is declared.
    unsafe {
        asm!(
            "2:",
            ".rept 4",
            "add rax, {steps}",
            "add rcx, {steps}",
            "add rdx, {steps}",
            "add rsi, {steps}",
            "add rdi, {steps}",
            "add r8, {steps}",
            "add r9, {steps}",
            "add r10, {steps}",
            ".endr",
            "dec {steps}",
            "jnz 2b",
            steps = inout(reg) steps => _,
            out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _,
            out("r8") _, out("r9") _, out("r10") _,
            options(nomem, nostack),
        );
    }
}
