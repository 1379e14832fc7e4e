//! Every register that a callee keeps comes back from a call as it went in.

#![allow(unsafe_code)] // assembly that fills registers, and raw calls of the trampoline

use std::arch::naked_asm;
use std::ffi::c_void;

use super::probe::clobber;
use crate::target::{self, Callee};
use crate::{Alignment, call_at_shift};

/// The registers that a call keeps, the stack pointer last.
#[cfg(target_arch = "x86_64")]
const NAMES: [&str; 7] = ["rbx", "rbp", "r12", "r13", "r14", "r15", "rsp"];
#[cfg(target_arch = "aarch64")]
const NAMES: [&str; 20] = [
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9", "d10", "d11",
    "d12", "d13", "d14", "d15", "x29", "sp",
];

type Registers = [u64; NAMES.len()];

/// Loads the registers from `before` (its stack pointer is written, not loaded), calls
/// `target::call(mask, drop, callee, data)`, and stores them to `after`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn around_call(
    mask: usize,
    drop: usize,
    callee: Callee,
    data: *mut c_void,
    before: *mut Registers,
    after: *mut Registers,
) {
    naked_asm!(
        "push rbp", "push rbx", "push r12", "push r13", "push r14", "push r15", "push r9",
        "mov [r8 + 48], rsp",
        "mov rbx, [r8]", "mov rbp, [r8 + 8]", "mov r12, [r8 + 16]",
        "mov r13, [r8 + 24]", "mov r14, [r8 + 32]", "mov r15, [r8 + 40]",
        "call {call}",
        "mov rax, [rsp]",
        "mov [rax], rbx", "mov [rax + 8], rbp", "mov [rax + 16], r12",
        "mov [rax + 24], r13", "mov [rax + 32], r14", "mov [rax + 40], r15",
        "mov [rax + 48], rsp",
        "pop r9", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbx", "pop rbp",
        "ret",
        call = sym target::call,
    )
}

/// Loads the registers from `before` (its stack pointer is written, not loaded), calls
/// `target::call(mask, drop, callee, data)`, and stores them to `after`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn around_call(
    mask: usize,
    drop: usize,
    callee: Callee,
    data: *mut c_void,
    before: *mut Registers,
    after: *mut Registers,
) {
    naked_asm!(
        "stp x29, x30, [sp, #-176]!",
        "stp x19, x20, [sp, #16]", "stp x21, x22, [sp, #32]", "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]", "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]", "stp d10, d11, [sp, #112]", "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "str x5, [sp, #160]",
        "mov x9, sp", "str x9, [x4, #152]",
        "ldp x19, x20, [x4]", "ldp x21, x22, [x4, #16]", "ldp x23, x24, [x4, #32]",
        "ldp x25, x26, [x4, #48]", "ldp x27, x28, [x4, #64]",
        "ldp d8, d9, [x4, #80]", "ldp d10, d11, [x4, #96]", "ldp d12, d13, [x4, #112]",
        "ldp d14, d15, [x4, #128]",
        "ldr x29, [x4, #144]",
        "bl {call}",
        "ldr x5, [sp, #160]",
        "stp x19, x20, [x5]", "stp x21, x22, [x5, #16]", "stp x23, x24, [x5, #32]",
        "stp x25, x26, [x5, #48]", "stp x27, x28, [x5, #64]",
        "stp d8, d9, [x5, #80]", "stp d10, d11, [x5, #96]", "stp d12, d13, [x5, #112]",
        "stp d14, d15, [x5, #128]",
        "mov x9, sp", "stp x29, x9, [x5, #144]",
        "ldp x19, x20, [sp, #16]", "ldp x21, x22, [sp, #32]", "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]", "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]", "ldp d10, d11, [sp, #112]", "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #176",
        "ret",
        call = sym target::call,
    )
}

/// Calls through the trampoline with a different value in each kept register, and compares.
fn assert_kept(granule: usize, drop: usize, callee: Callee, data: *mut c_void) {
    // Distinct in every byte position, and no value that a register might hold by chance.
    let mut before: Registers =
        std::array::from_fn(|i| 0x5ea1_0000_c0de_0000 + 0x0101 * (i as u64 + 1));
    let mut after: Registers = [0; NAMES.len()];
    // SAFETY: the granule is a power of two from 64 to a page and `drop` a multiple of 16 far smaller than
    // the stack of a test thread; the callees below keep the ABI and do not unwind.
    unsafe { around_call(granule.wrapping_neg(), drop, callee, data, &mut before, &mut after) };
    for ((name, before), after) in NAMES.iter().zip(before).zip(after) {
        assert_eq!(
            before, after,
            "{name}: {before:#x} became {after:#x}; granule {granule}, drop {drop}"
        );
    }
}

#[test]
fn kept_registers_survive_a_callee_that_clobbers_all_others() {
    for granule in [64, 4096, 65536] {
        for drop in (0..=8192 + 512).step_by(16) {
            assert_kept(granule, drop, clobber, std::ptr::null_mut());
        }
    }
}

/// A callee of the compiler's making that needs more values at once than there are registers, and floating
/// point among them, so that it must save and use the kept ones.
unsafe extern "C" fn busy(data: *mut c_void) {
    // SAFETY: the caller passes a `[f64; 32]` that it does not use meanwhile.
    let values = unsafe { &mut *data.cast::<[f64; 32]>() };
    let old = *values;
    for (i, value) in values.iter_mut().enumerate() {
        *value = (0..32).fold(0.0, |sum, k| sum + old[(i + k) % 32] * k as f64).sqrt();
    }
    let text: String = values.iter().map(|v| format!("{v:.3} ")).collect();
    std::hint::black_box(text);
}

#[test]
fn kept_registers_survive_a_busy_callee() {
    let mut values: [f64; 32] = std::array::from_fn(|i| i as f64);
    for drop in (0..4096).step_by(112) {
        assert_kept(64, drop, busy, (&raw mut values).cast());
    }
    assert!(values.iter().all(|v| v.is_finite() && *v > 0.0));
}

/// The floating-point control register's bits that calls keep: rounding and flushing, no status.
#[cfg(target_arch = "x86_64")]
mod control {
    use std::arch::asm;

    /// Round down, flush to zero, denormals are zero; all exceptions stay masked.
    pub const UNUSUAL: u64 = 0x1f80 | 1 << 13 | 1 << 15 | 1 << 6;

    pub fn get() -> u64 {
        let mut mxcsr = 0u32;
        // SAFETY: stores one register to a local.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack)) };
        u64::from(mxcsr & 0xffc0)
    }

    pub fn set(value: u64) {
        let mxcsr = value as u32;
        // SAFETY: all exceptions are masked in the values that this module sets; the test puts the old
        // value back before it computes with floating point.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
    }
}
#[cfg(target_arch = "aarch64")]
mod control {
    use std::arch::asm;

    /// Round down and flush to zero.
    pub const UNUSUAL: u64 = 1 << 23 | 1 << 24;

    pub fn get() -> u64 {
        let fpcr: u64;
        // SAFETY: reads one register.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack)) };
        fpcr
    }

    pub fn set(value: u64) {
        // SAFETY: the values that this module sets enable no trap; the test puts the old value back before
        // it computes with floating point.
        unsafe { asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack)) };
    }
}

#[test]
fn floating_point_control_is_the_callers_on_both_sides() {
    let usual = control::get();
    assert_ne!(usual, control::UNUSUAL);
    control::set(control::UNUSUAL);
    let within = call_at_shift(Alignment::Page, 2064, control::get);
    let after = control::get();
    control::set(usual);
    assert_eq!(within, Ok(control::UNUSUAL));
    assert_eq!(after, control::UNUSUAL);
    assert_eq!(control::get(), usual);
}

#[test]
fn direction_of_string_instructions_is_forward_within() {
    #[cfg(target_arch = "x86_64")]
    for shift in (0..64).step_by(16) {
        let flags = call_at_shift(Alignment::Line, shift, || {
            let flags: u64;
            // SAFETY: pushes and pops one word.
            unsafe { std::arch::asm!("pushfq", "pop {}", out(reg) flags) };
            flags
        });
        assert_eq!(flags.map(|flags| flags >> 10 & 1), Ok(0));
    }
    #[cfg(not(target_arch = "x86_64"))]
    eprintln!("skipped: this processor has no direction flag");
}
