//! The stack pointer is exactly where it was asked to be.

use super::probe::pointer_at_call;
use crate::Alignment::{Line, Page};
use crate::{MAX_SHIFT, call_at_shift, page_size};

/// Every shift of two 4096-byte periods, then a sample up to the bound, both its ends included.
fn shifts() -> impl Iterator<Item = usize> {
    // 1008 is 16 times an odd number, so that the sample visits every residue of a line.
    (0..=8192).step_by(16).chain((8192..MAX_SHIFT).step_by(1008)).chain([MAX_SHIFT])
}

#[test]
fn page_sets_the_whole_phase_within_a_page() {
    let page = page_size();
    let first = pointer_at_call(Page, 0).unwrap();
    for shift in shifts() {
        let pointer = pointer_at_call(Page, shift).unwrap();
        assert_eq!((pointer + 512 + shift) % page, 0, "shift {shift}: {pointer:#x}");
        assert_eq!(first - pointer, shift, "shift {shift}: {pointer:#x} against {first:#x}");
    }
}

#[test]
fn line_sets_the_phase_within_a_line() {
    let first = pointer_at_call(Line, 0).unwrap();
    for shift in shifts() {
        let pointer = pointer_at_call(Line, shift).unwrap();
        assert_eq!((pointer + shift) % 64, 0, "shift {shift}: {pointer:#x}");
        assert_eq!(first - pointer, shift, "shift {shift}: {pointer:#x} against {first:#x}");
    }
}

/// Goes down by `bytes` through frames of the compiler's, and measures there.
#[inline(never)]
fn from_deeper<const BYTES: usize>(alignment: crate::Alignment, shift: usize) -> usize {
    let room = std::hint::black_box([0u8; BYTES]);
    let pointer = pointer_at_call(alignment, shift).unwrap();
    std::hint::black_box(&room);
    pointer
}

#[test]
fn page_has_the_same_phase_from_every_caller() {
    let page = page_size();
    for shift in [0, 16, 2064, 4096] {
        let phases = [
            from_deeper::<1>(Page, shift) % page,
            from_deeper::<48>(Page, shift) % page,
            from_deeper::<1000>(Page, shift) % page,
            from_deeper::<5008>(Page, shift) % page,
        ];
        assert_eq!(phases, [(2 * page - 512 - shift % page) % page; 4], "shift {shift}");
    }
}

#[test]
fn line_stays_close_below_its_caller() {
    for shift in [0, 48, 4096] {
        let caller = crate::target::stack_pointer();
        let pointer = pointer_at_call(Line, shift).unwrap();
        // Rounding takes less than 64 bytes; the rest is for two frames between, unoptimised ones too.
        assert!(
            (shift..shift + 64 + 1024).contains(&(caller - pointer)),
            "{caller:#x} {pointer:#x}"
        );
    }
}

#[test]
fn every_shift_moves_a_closures_own_buffer_by_just_as_much() {
    #[repr(align(16))]
    struct Buffer([u8; 64]);
    let work = || {
        let buffer = std::hint::black_box(Buffer([7; 64]));
        let address = std::hint::black_box(&buffer).0.as_ptr() as usize;
        // Nothing realigns a frame for 16 bytes: this holds only if the stack was aligned at entry.
        assert_eq!(address % 16, 0);
        address
    };
    for alignment in [Line, Page] {
        let first = call_at_shift(alignment, 0, work).unwrap();
        for shift in shifts() {
            let buffer = call_at_shift(alignment, shift, work).unwrap();
            assert_eq!(first - buffer, shift, "{alignment} {shift}");
        }
    }
}

#[test]
fn an_overaligned_local_is_realigned_by_its_own_function() {
    #[repr(align(256))]
    struct Wide([u8; 256]);
    for shift in (0..256).step_by(16) {
        let address = call_at_shift(Page, shift, || {
            let wide = std::hint::black_box(Wide([1; 256]));
            std::hint::black_box(&wide).0.as_ptr() as usize
        });
        assert_eq!(address.unwrap() % 256, 0, "shift {shift}");
    }
}

#[test]
fn calls_nest_each_at_its_own_phase() {
    fn down(depth: usize) -> Vec<usize> {
        let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
        let shift = depth * 48;
        let here = pointer_at_call(Page, shift).unwrap();
        let mut below = call_at_shift(Page, shift, || down(depth)).unwrap();
        assert_eq!(pointer_at_call(Page, shift).unwrap(), here, "the stack pointer came back");
        below.push((here + 512 + shift) % page_size());
        below
    }
    assert_eq!(down(10), [0; 10]);
}

#[test]
fn alignments_have_names_that_parse_back() {
    for alignment in [Line, Page] {
        assert_eq!(alignment.to_string().parse(), Ok(alignment));
    }
    let error = "Page".parse::<crate::Alignment>().unwrap_err();
    assert_eq!(error.to_string(), r#"unknown alignment "Page": use `line` or `page`"#);
}
