//! Values go in and come out, each dropped once.

use std::cell::Cell;
use std::rc::Rc;

use crate::Alignment::{Line, Page};
use crate::{MAX_SHIFT, ShiftError, call_at_shift};

/// Counts how often it is dropped.
pub(super) struct Counted<'a>(pub &'a Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_value_comes_back_whatever_its_size() {
    assert_eq!(call_at_shift(Line, 16, || ()), Ok(()));
    assert_eq!(call_at_shift(Line, 32, || 0x1234_5678_9abc_def0_u64), Ok(0x1234_5678_9abc_def0));
    assert_eq!(call_at_shift(Page, 48, || u128::MAX - 1), Ok(u128::MAX - 1));
    assert_eq!(call_at_shift(Page, 64, || 1.5_f64), Ok(1.5));
    assert_eq!(call_at_shift(Page, 80, || vec!["a".to_owned(); 3]), Ok(vec!["a".to_owned(); 3]));
    let large = call_at_shift(Page, 4096, || std::array::from_fn::<u64, 2048, _>(|i| i as u64 * 3));
    assert!(large.unwrap().iter().enumerate().all(|(i, v)| *v == i as u64 * 3));
}

#[test]
fn an_overaligned_value_comes_back_aligned() {
    #[repr(align(128))]
    #[derive(Debug, PartialEq)]
    struct Wide(u8);
    for shift in (0..128).step_by(16) {
        let wide = call_at_shift(Line, shift, || Wide(9)).unwrap();
        assert_eq!((&raw const wide) as usize % 128, 0);
        assert_eq!(wide, Wide(9));
    }
}

#[test]
fn a_closure_may_borrow_and_change_its_surroundings() {
    let mut calls = 0;
    let text = String::from("kept");
    for shift in (0..4096).step_by(16) {
        let borrowed: &str = call_at_shift(Page, shift, || {
            calls += 1;
            &text[..]
        })
        .unwrap();
        assert_eq!(borrowed, "kept");
    }
    assert_eq!(calls, 256);
}

#[test]
fn closure_and_value_are_dropped_once_each() {
    let (captured, returned) = (Cell::new(0), Cell::new(0));
    let (guard, value) = (Counted(&captured), Counted(&returned));
    let result = call_at_shift(Page, 1024, move || {
        let guard = guard; // all of it, not the reference within alone
        assert_eq!(guard.0.get(), 0);
        value
    });
    assert_eq!((captured.get(), returned.get()), (1, 0), "the closure is gone, the value lives");
    drop(result);
    assert_eq!((captured.get(), returned.get()), (1, 1));
}

#[test]
fn a_refused_closure_is_dropped_once_without_running() {
    for shift in [8, MAX_SHIFT + 16] {
        let (captured, ran) = (Cell::new(0), Cell::new(false));
        let guard = Counted(&captured);
        let result = call_at_shift(Page, shift, || {
            ran.set(true);
            drop(guard);
        });
        assert!(matches!(
            result,
            Err(ShiftError::NotMultipleOf16 { .. } | ShiftError::TooLarge { .. })
        ));
        assert_eq!((captured.get(), ran.get()), (1, false), "shift {shift}");
    }
}

#[test]
fn ownership_is_handed_through_a_chain_of_calls() {
    let shared = Rc::new(());
    let mut token = Rc::clone(&shared);
    for shift in (0..1024).step_by(16) {
        token = call_at_shift(Line, shift, move || token).unwrap();
        assert_eq!(Rc::strong_count(&shared), 2, "shift {shift}");
    }
    drop(token);
    assert_eq!(Rc::strong_count(&shared), 1);
}
