//! What the crate promises, by address and by count.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use stack_trampoline::{Alignment, MAX_SHIFT, RESERVE, ShiftError, call_at_shift, page_size};

const BOTH: [Alignment; 2] = [Alignment::Line, Alignment::Page];

#[test]
fn values_come_back_and_are_dropped_once() {
    struct Counted(Rc<Cell<u32>>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let (captured, returned) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for alignment in BOTH {
        let inside = Counted(captured.clone());
        let result = Counted(returned.clone());
        let back = call_at_shift(alignment, 4096, move || {
            let _inside = inside;
            result
        });
        let back = back.expect("a shift that can be");
        assert_eq!((captured.take(), returned.take()), (1, 0), "{alignment}");
        drop(back);
        assert_eq!((captured.take(), returned.take()), (0, 1), "{alignment}");
    }
    // Where nothing is called the closure is dropped all the same.
    let inside = Counted(captured.clone());
    let refused = call_at_shift(Alignment::Line, 8, move || drop(inside));
    assert_eq!(refused, Err(ShiftError::NotMultipleOf16 { shift: 8 }));
    assert_eq!(captured.take(), 1);
    // And after a panic.
    let inside = Counted(captured.clone());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        call_at_shift(Alignment::Page, 48, move || {
            let _inside = inside;
            std::panic::panic_any(7u8);
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(captured.take(), 1);
}

#[test]
fn large_values_come_back_whole() {
    let made: [u64; 300] = std::array::from_fn(|i| i as u64 * 0x0101_0101);
    for shift in (0..512).step_by(16) {
        assert_eq!(call_at_shift(Alignment::Page, shift, || made), Ok(made));
    }
}

#[test]
fn a_panic_comes_out_as_the_same_panic_and_the_stack_is_as_before() {
    for alignment in BOTH {
        for shift in [0, 16, 4096, 8192] {
            let payload = catch_unwind(|| {
                call_at_shift(alignment, shift, || -> () { std::panic::panic_any(shift) })
            })
            .expect_err("panics");
            assert_eq!(payload.downcast_ref::<usize>(), Some(&shift));
            // The next call works.
            assert_eq!(call_at_shift(alignment, shift, || shift + 1), Ok(shift + 1));
        }
    }
}

#[test]
fn calls_nest() {
    fn down(depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        let alignment = if depth.is_multiple_of(2) { Alignment::Page } else { Alignment::Line };
        1 + call_at_shift(alignment, 16 * depth, || down(depth - 1)).expect("there is room")
    }
    assert_eq!(down(40), 40);
}

#[test]
fn shifts_that_cannot_be_are_typed_errors() {
    for alignment in BOTH {
        for shift in [1, 8, 15, 17, 8191] {
            let refused = call_at_shift(alignment, shift, || ());
            assert_eq!(refused, Err(ShiftError::NotMultipleOf16 { shift }));
        }
        let shift = MAX_SHIFT + 16;
        let refused = call_at_shift(alignment, shift, || ());
        assert_eq!(refused, Err(ShiftError::TooLarge { shift, max: MAX_SHIFT }));
        assert_eq!(call_at_shift(alignment, MAX_SHIFT, || 1), Ok(1));
        let text = refused.expect_err("refused").to_string();
        assert!(
            text.contains(&shift.to_string()) && text.contains(&MAX_SHIFT.to_string()),
            "{text}"
        );
    }
    const { assert!(MAX_SHIFT >= 8192) };
    assert!(MAX_SHIFT >= 2 * page_size());
}

#[test]
fn threads_have_their_own_stack_and_its_end_is_known() {
    let ample = std::thread::Builder::new().stack_size(1 << 20);
    let ran = ample.spawn(|| call_at_shift(Alignment::Page, 8192, || 5)).expect("starts");
    assert_eq!(ran.join().expect("ends"), Ok(5));
    if cfg!(not(target_os = "linux")) {
        eprintln!("skipped: the end of a stack is known on Linux only");
        return;
    }
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let asked = small.spawn(|| call_at_shift(Alignment::Page, MAX_SHIFT, || 5)).expect("starts");
    match asked.join().expect("a refusal, not a fault") {
        Err(ShiftError::NoRoom { shift, needed, available }) => {
            assert_eq!(shift, MAX_SHIFT);
            assert!(needed > available && needed > MAX_SHIFT + RESERVE);
        }
        other => panic!("{other:?}"),
    }
}

/// Called only through the trampoline, so that the walk must pass its frame.
#[inline(never)]
fn captured_below_the_trampoline() -> String {
    std::backtrace::Backtrace::force_capture().to_string()
}

#[inline(never)]
fn captures_through_the_trampoline(alignment: Alignment, shift: usize) -> String {
    let trace = call_at_shift(alignment, shift, captured_below_the_trampoline);
    // Not a tail call: this frame must still be there.
    std::hint::black_box(trace).expect("a shift that can be")
}

#[test]
fn a_backtrace_walks_through() {
    for alignment in BOTH {
        for shift in [0, 48, 8192] {
            let trace = captures_through_the_trampoline(alignment, shift);
            let below = trace.find("captured_below_the_trampoline");
            let above = trace.find("captures_through_the_trampoline");
            let Some((below, above)) = below.zip(above) else {
                if below.is_none() {
                    eprintln!("skipped: no symbols here");
                    return;
                }
                panic!("the walk ended at the trampoline: {trace}");
            };
            assert!(below < above, "{trace}");
            assert!(trace.contains("a_backtrace_walks_through"), "{trace}");
        }
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for alignment in BOTH {
        assert_eq!(alignment.to_string().parse(), Ok(alignment));
    }
    let error = "lines".parse::<Alignment>().expect_err("no such alignment");
    assert!(error.to_string().contains("`line` or `page`"), "{error}");
}
