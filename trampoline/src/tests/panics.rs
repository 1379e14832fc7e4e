//! A panic in the closure is a panic of the call, and nothing is lost or doubled by it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

use super::closures::Counted;
use super::probe::pointer_at_call;
use crate::Alignment::{self, Line, Page};
use crate::{ShiftError, call_at_shift};

/// What a call panicked with; fails when it did not.
fn payload_of<T>(call: impl FnOnce() -> T) -> Box<dyn std::any::Any + Send> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => panic!("no panic came out"),
        Err(payload) => payload,
    }
}

#[test]
fn a_message_comes_through() {
    for (alignment, shift) in [(Line, 0), (Line, 48), (Page, 0), (Page, 4096 - 16), (Page, 8192)] {
        let payload = payload_of(|| call_at_shift(alignment, shift, || panic!("at {shift}")));
        assert_eq!(payload.downcast_ref::<String>(), Some(&format!("at {shift}")));
    }
}

#[test]
fn any_payload_comes_through_as_the_same_object() {
    let payload = Box::new([7u64; 4]);
    let address = payload.as_ptr() as usize;
    // `resume_unwind` raises without a message on the terminal, and without a new box.
    let back = payload_of(|| call_at_shift(Page, 32, || resume_unwind(payload)));
    let back = back.downcast::<[u64; 4]>().expect("the type that went in");
    assert_eq!((back.as_ptr() as usize, *back), (address, [7; 4]));

    #[derive(Debug, PartialEq)]
    struct Own(u8);
    let back = payload_of(|| call_at_shift(Page, 32, || panic_any(Own(3))));
    assert_eq!(back.downcast_ref::<Own>(), Some(&Own(3)));
}

#[test]
fn captured_and_local_values_are_dropped_once() {
    for alignment in [Line, Page] {
        let (captured, local, after) = (Cell::new(0), Cell::new(0), Cell::new(false));
        let guard = Counted(&captured);
        let _ = payload_of(|| {
            let result = call_at_shift(alignment, 256, || {
                let _guard = guard;
                let _local = Counted(&local);
                resume_unwind(Box::new(()))
            });
            after.set(true);
            result
        });
        assert_eq!((captured.get(), local.get(), after.get()), (1, 1, false));
    }
}

#[test]
fn the_stack_pointer_is_back_after_a_panic() {
    fn here(alignment: Alignment) -> Result<usize, ShiftError> {
        pointer_at_call(alignment, 16)
    }
    let before = [here(Line), here(Page)];
    for shift in (0..8192).step_by(16) {
        let _ = payload_of(|| call_at_shift(Page, shift, || resume_unwind(Box::new(shift))));
    }
    assert_eq!([here(Line), here(Page)], before);
}

#[test]
fn a_panic_crosses_every_level_of_nested_calls() {
    fn down(depth: usize, dropped: &Cell<u32>) {
        if depth == 0 {
            resume_unwind(Box::new("bottom"));
        }
        let _here = Counted(dropped);
        call_at_shift(Page, depth * 16, || down(depth - 1, dropped)).unwrap();
    }
    let dropped = Cell::new(0);
    assert_eq!(payload_of(|| down(8, &dropped)).downcast_ref(), Some(&"bottom"));
    assert_eq!(dropped.get(), 8);
}

#[test]
fn a_panic_caught_within_does_not_come_out() {
    let result = call_at_shift(Page, 48, || {
        let inner = payload_of(|| call_at_shift(Line, 32, || resume_unwind(Box::new(1u8))));
        inner.downcast_ref::<u8>().copied()
    });
    assert_eq!(result, Ok(Some(1)));
}

#[test]
fn a_destructor_may_call_while_a_panic_unwinds() {
    struct CallsWhenDropped<'a>(&'a Cell<usize>);
    impl Drop for CallsWhenDropped<'_> {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            self.0.set(call_at_shift(Page, 1040, || 5).unwrap());
        }
    }
    let seen = Cell::new(0);
    let payload = payload_of(|| {
        call_at_shift(Line, 16, || {
            let _caller = CallsWhenDropped(&seen);
            resume_unwind(Box::new("outer"))
        })
    });
    assert_eq!((payload.downcast_ref(), seen.get()), (Some(&"outer"), 5));
}
