//! Spawned threads: the same phases, and stacks too small for a call.

use std::sync::mpsc;
use std::thread;

use super::probe::pointer_at_call;
use crate::Alignment::{self, Line, Page};
use crate::{MAX_SHIFT, RESERVE, ShiftError, call_at_shift, page_size};

/// Runs `f` on a thread with a stack of at least `bytes`.
fn on_stack_of<R: Send + 'static>(bytes: usize, f: impl FnOnce() -> R + Send + 'static) -> R {
    let thread = thread::Builder::new().stack_size(bytes).spawn(f);
    thread.expect("a thread can be started").join().expect("the thread did not panic")
}

#[test]
fn every_thread_has_the_same_phase() {
    let visit = || {
        (0..=8192).step_by(16).map(|s| pointer_at_call(Page, s).unwrap() % page_size()).collect()
    };
    let here: Vec<usize> = visit();
    let threads: Vec<_> = (0..8).map(|_| thread::spawn(visit)).collect();
    for thread in threads {
        assert!(thread.join().unwrap() == here);
    }
}

#[test]
fn a_panic_on_a_thread_ends_that_thread_alone() {
    let thread =
        thread::spawn(|| call_at_shift(Page, 64, || std::panic::resume_unwind(Box::new(4u8))));
    assert_eq!(thread.join().unwrap_err().downcast_ref(), Some(&4u8));
}

#[cfg(target_os = "linux")]
#[test]
fn the_least_stack_is_served_or_refused_but_never_overrun() {
    // The least that the system gives; the trampoline's reserve alone is as large.
    let result = on_stack_of(1, || call_at_shift(Line, 0, || 1));
    assert!(matches!(result, Ok(1) | Err(ShiftError::NoRoom { .. })), "{result:?}");
}

/// Calls at ever deeper frames until there is no room: the number of calls that were made, and the refusal.
#[cfg(target_os = "linux")]
#[inline(never)]
fn until_refused(alignment: Alignment, shift: usize) -> (usize, ShiftError) {
    let room = std::hint::black_box([0u64; 128]);
    match call_at_shift(alignment, shift, || ()) {
        Ok(()) => {
            let (calls, error) = until_refused(alignment, shift);
            std::hint::black_box(&room);
            (calls + 1, error)
        }
        Err(error) => (0, error),
    }
}

/// How many bytes a call needs.
#[cfg(target_os = "linux")]
fn need(alignment: Alignment, shift: usize) -> usize {
    RESERVE
        + shift
        + match alignment {
            Line => 64,
            Page => page_size() + 512,
        }
}

// In the two tests below the C library may hand out a stack that it kept from another thread, up to four
// times as large as asked for: nothing is taken to be its size.

#[cfg(target_os = "linux")]
#[test]
fn a_small_stack_is_refused_with_the_figures() {
    for alignment in [Line, Page] {
        for shift in [0, 4096, MAX_SHIFT] {
            let (calls, error) = on_stack_of(64 * 1024, move || until_refused(alignment, shift));
            let ShiftError::NoRoom { shift: named, needed, available } = error else {
                panic!("not refused for want of room: {error:?}");
            };
            assert_eq!((named, needed), (shift, need(alignment, shift)));
            assert!(available < needed);
            if calls > 0 {
                // One frame further up there was room: unoptimised, such a frame has some three kilobytes.
                assert!(needed - available < 8 * 1024, "{alignment} {shift}: {error}");
            }
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_deeply_used_stack_is_refused() {
    let (calls, error) = on_stack_of(256 * 1024, || until_refused(Page, 0));
    assert!(calls > 10, "the first calls had room: {calls}");
    assert!(matches!(error, ShiftError::NoRoom { .. }), "{error:?}");
}

#[test]
fn a_destructor_of_a_thread_local_may_call() {
    struct Last(mpsc::Sender<Result<usize, ShiftError>>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.send(pointer_at_call(Page, 4096)).ok();
        }
    }
    thread_local!(static LAST: std::cell::OnceCell<Last> = const { std::cell::OnceCell::new() });
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || LAST.with(|last| assert!(last.set(Last(sender)).is_ok())))
        .join()
        .unwrap();
    let pointer = receiver.recv().expect("the destructor ran").unwrap();
    assert_eq!((pointer + 512 + 4096) % page_size(), 0);
}
