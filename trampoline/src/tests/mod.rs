//! The contract with the processor: where exactly the stack pointer is, and what a call keeps.

#![allow(unsafe_code)] // the probes below are assembly

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::shim::call_raw;
use crate::target::stack_pointer;
use crate::{Alignment, MAX_SHIFT, page_size};

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod target;

/// What a callee finds at its entry.
#[repr(C)]
#[derive(Default)]
struct AtEntry {
    /// The stack pointer at the call instruction.
    sp: usize,
}

fn sp_at(alignment: Alignment, shift: usize) -> usize {
    let mut entry = AtEntry::default();
    // SAFETY: the probe keeps to the C ABI, writes one word through its argument and calls nothing.
    unsafe { call_raw(alignment, shift, target::record_entry, (&raw mut entry).cast()) }
        .expect("a shift that can be");
    entry.sp
}

#[test]
fn the_stack_pointer_is_exactly_where_asked() {
    let page = page_size();
    let own = stack_pointer();
    for shift in (0..=8192).step_by(16).chain((8192..=MAX_SHIFT).step_by(4080)) {
        let sp = sp_at(Alignment::Page, shift);
        // Modulo a page nothing of the caller is left.
        assert_eq!((sp + 512 + shift) % page, 0, "shift {shift}: {sp:#x}");
        assert!(own > sp && own - sp < 2 * page + 512 + shift + 4096, "{own:#x} {sp:#x}");
        assert_eq!(sp % 16, 0, "the ABI's alignment at the call");

        let sp = sp_at(Alignment::Line, shift);
        assert_eq!((sp + shift) % 64, 0, "shift {shift}: {sp:#x}");
        assert!(own > sp && own - sp < 64 + shift + 4096, "{own:#x} {sp:#x}");
    }
}

#[test]
fn two_shifts_differ_by_exactly_their_difference() {
    // From one caller: the frames above are the same.
    for alignment in [Alignment::Line, Alignment::Page] {
        let anchor = sp_at(alignment, 0);
        for shift in (0..=8192).step_by(16) {
            assert_eq!(anchor - sp_at(alignment, shift), shift, "{alignment}");
        }
    }
}

#[test]
fn every_callee_saved_register_survives() {
    for alignment in [Alignment::Line, Alignment::Page] {
        for shift in (0..=8192).step_by(16) {
            let mask = alignment.granule().wrapping_neg();
            let drop = alignment.drop_for(shift);
            // SAFETY: as in `call_raw`: a power of two, a multiple of 16, stack that is there; the
            // callee overwrites only what a callee may and uses no stack.
            let lost = unsafe { target::registers_lost(mask, drop) };
            assert_eq!(lost, 0, "{alignment}, shift {shift}: registers {lost:#b}");
        }
    }
}

#[test]
fn touching_reaches_the_depth_and_changes_nothing() {
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(|| {
            let kept = [0x5au8; 256];
            for bytes in [16, 4080, 4096, 4112, 8192, 300_000] {
                // SAFETY: a multiple of 16, well within the megabyte of this stack.
                unsafe { crate::target::touch(bytes) };
            }
            assert_eq!(std::hint::black_box(kept), [0x5a; 256]);
        })
        .expect("starts")
        .join()
        .expect("no fault");
}
