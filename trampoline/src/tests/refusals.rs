//! What cannot be had is refused with a typed error that says what mends it.

use crate::Alignment::{Line, Page};
use crate::{MAX_SHIFT, ShiftError, call_at_shift};

#[test]
fn shifts_that_are_no_multiple_of_16() {
    for alignment in [Line, Page] {
        for shift in (0..256).chain(MAX_SHIFT - 32..MAX_SHIFT).filter(|shift| shift % 16 != 0) {
            let result = call_at_shift(alignment, shift, || unreachable!("a refused call ran"));
            assert_eq!(result, Err(ShiftError::NotMultipleOf16 { shift }));
        }
    }
}

#[test]
fn shifts_above_the_bound() {
    for alignment in [Line, Page] {
        for shift in [MAX_SHIFT + 16, MAX_SHIFT * 2, usize::MAX / 2 + 1, usize::MAX - 15] {
            let result = call_at_shift(alignment, shift, || unreachable!("a refused call ran"));
            assert_eq!(result, Err(ShiftError::TooLarge { shift, max: MAX_SHIFT }));
        }
        assert_eq!(call_at_shift(alignment, MAX_SHIFT, || 1), Ok(1), "the bound itself is allowed");
    }
}

#[test]
fn an_odd_shift_above_the_bound_is_refused_too() {
    let result = call_at_shift(Page, usize::MAX, || unreachable!("a refused call ran"));
    assert_eq!(result, Err(ShiftError::NotMultipleOf16 { shift: usize::MAX }));
}

#[test]
fn messages_name_the_shift_and_the_remedy() {
    let texts = [
        ShiftError::NotMultipleOf16 { shift: 8 }.to_string(),
        ShiftError::TooLarge { shift: 200_000, max: MAX_SHIFT }.to_string(),
        ShiftError::NoRoom { shift: 16, needed: 20_000, available: 9 }.to_string(),
    ];
    assert_eq!(
        texts,
        [
            "shift 8: not a multiple of 16; use one, as the ABI keeps the stack 16-byte aligned",
            "shift 200000: too large; the largest is 131072",
            "shift 16: needs 20000 bytes of stack and 9 are left; give the thread a larger stack, or \
             raise `ulimit -s` for the main thread",
        ]
    );
}

#[test]
fn the_bound_leaves_two_whole_pages_to_visit() {
    assert!(MAX_SHIFT >= 2 * crate::page_size());
}
