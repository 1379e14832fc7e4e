//! Register-only loops: the guard's two loops and the `registers` workload.

use std::arch::asm;

/// `steps` times sixteen dependent 64-bit multiplications: latency alone decides the time.
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
            "mul {value}, {value}, {value}",
            ".endr",
            "subs {steps}, {steps}, #1",
            "b.ne 2b",
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
            "add x8, x8, {steps}",
            "add x9, x9, {steps}",
            "add x10, x10, {steps}",
            "add x11, x11, {steps}",
            "add x12, x12, {steps}",
            "add x13, x13, {steps}",
            "add x14, x14, {steps}",
            "add x15, x15, {steps}",
            ".endr",
            "subs {steps}, {steps}, #1",
            "b.ne 2b",
            steps = inout(reg) steps => _,
            out("x8") _, out("x9") _, out("x10") _, out("x11") _,
            out("x12") _, out("x13") _, out("x14") _, out("x15") _,
            options(nomem, nostack),
        );
    }
}
