//! Spawned threads: the same phases, and stacks too small for a call.

use std::sync::mpsc;
use std::thread;

use super::probe::pointer_at_call;
use crate::Alignment::{Line, Page};
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
fn a_tiny_stack_is_refused_with_the_figures() {
    let shift = MAX_SHIFT;
    // arm64's least is 128 KiB.
    let stack = libc::PTHREAD_STACK_MIN.max(64 * 1024);
    let results = on_stack_of(stack, move || {
        [Line, Page]
            .map(|alignment| call_at_shift(alignment, shift, || unreachable!("a refused call ran")))
    });
    for (result, depth) in results.into_iter().zip([64 + shift, page_size() + 512 + shift]) {
        let Err(ShiftError::NoRoom { shift: named, needed, available }) = result else {
            panic!("not refused for want of room: {result:?}");
        };
        assert_eq!((named, needed), (shift, depth + RESERVE));
        // What is left of it (the C library may round up to a page), less what the thread used.
        assert!((8 * 1024..=stack + page_size()).contains(&available), "{available}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_least_stack_is_served_or_refused_but_never_overrun() {
    // The least that the system gives; the trampoline's reserve alone is as large.
    let result = on_stack_of(1, || call_at_shift(Line, 0, || 1));
    assert!(matches!(result, Ok(1) | Err(ShiftError::NoRoom { .. })), "{result:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_deeply_used_stack_is_refused() {
    #[inline(never)]
    fn deep(left: usize) -> (usize, ShiftError) {
        let room = std::hint::black_box([left; 128]);
        match call_at_shift(Page, 0, || ()) {
            Ok(()) => {
                let (frames, error) = deep(left - 1);
                std::hint::black_box(&room);
                (frames + 1, error)
            }
            Err(error) => (0, error),
        }
    }
    let (frames, error) = on_stack_of(256 * 1024, || deep(1000));
    assert!(frames > 10, "the first calls had room: {frames}");
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
