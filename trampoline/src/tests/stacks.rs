//! The memory below a moved stack pointer is stack: it can be written all the way down.

#![allow(unsafe_code)] // a signal handler on a stack of its own, and raw calls of the touch

use std::hint::black_box;
use std::thread;

use crate::Alignment::{Line, Page};
use crate::{MAX_SHIFT, RESERVE, ShiftError, call_at_shift, target};

/// Writes to `BYTES` of stack and reads them back.
#[inline(never)]
fn fill<const BYTES: usize>() -> usize {
    let mut room = black_box([0u8; BYTES]);
    for byte in black_box(&mut room).iter_mut() {
        *byte = 0xa5;
    }
    black_box(&room).iter().filter(|byte| **byte == 0xa5).count()
}

#[test]
fn a_closure_may_use_a_large_frame_at_the_largest_shift() {
    for alignment in [Line, Page] {
        assert_eq!(call_at_shift(alignment, MAX_SHIFT, fill::<{ 512 * 1024 }>), Ok(512 * 1024));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn where_a_call_is_made_the_reserve_can_be_written() {
    // Half of it in one frame: the rest is for the frames on the way and for the compiler's copies, which
    // an unoptimised build makes of the array.
    const HALF: usize = RESERVE / 2;
    for stack in (32..400).step_by(8) {
        let thread = thread::Builder::new().stack_size(stack * 1024).spawn(|| {
            (0..=MAX_SHIFT).rev().step_by(16).find_map(|shift| {
                match call_at_shift(Page, shift, fill::<HALF>) {
                    Err(ShiftError::NoRoom { .. }) => None,
                    other => Some(other),
                }
            })
        });
        let largest = thread.unwrap().join().expect("no overrun, no panic");
        // `None`: even shift 0 had no room, which only the small stacks may say.
        match largest {
            None => {
                assert!(stack * 1024 < RESERVE + 2 * crate::page_size() + 16 * 1024, "{stack} KiB")
            }
            Some(result) => assert_eq!(result, Ok(HALF), "{stack} KiB"),
        }
    }
}

#[test]
fn touching_reaches_down_and_leaves_the_caller_as_it_was() {
    let canary = black_box([0x5a_u8; 4096]);
    for bytes in [0, 16, 4080, 4096, 4112, 8192, 65536, 65552, 512 * 1024] {
        let before = target::stack_pointer();
        // SAFETY: a multiple of 16, within a test thread's two megabytes.
        unsafe { target::touch(bytes) };
        assert_eq!(target::stack_pointer(), before, "{bytes}");
    }
    assert!(black_box(&canary).iter().all(|byte| *byte == 0x5a));
}

/// A stack that the C library does not know: the pages are touched instead, and the phase is the same.
#[cfg(target_os = "linux")]
mod signals {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::probe::pointer_at_call;
    use super::*;
    use crate::page_size;

    const SIZE: usize = 1024 * 1024;
    static POINTER: AtomicUsize = AtomicUsize::new(0);
    static FILLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn handler(_signal: i32) {
        POINTER.store(pointer_at_call(Page, 8192).unwrap_or(1), Ordering::SeqCst);
        let filled = call_at_shift(Page, MAX_SHIFT, fill::<{ 64 * 1024 }>);
        FILLED.store(filled.unwrap_or(1), Ordering::SeqCst);
    }

    #[test]
    fn a_signal_handler_on_its_own_stack_may_call() {
        // The bounds of this thread's own stack are known before the signal comes.
        assert_eq!(call_at_shift(Page, 0, || 1), Ok(1));
        let stack = vec![0u8; SIZE];
        let range = stack.as_ptr_range();
        let (low, high) = (range.start as usize, range.end as usize);
        // SAFETY: the alternate stack is this thread's alone and is disabled before it is freed; the
        // handler is replaced by the default before the test ends; nothing else here uses SIGUSR1.
        unsafe {
            let mut own: libc::stack_t = std::mem::zeroed();
            own.ss_sp = stack.as_ptr().cast_mut().cast();
            own.ss_size = SIZE;
            let mut old: libc::stack_t = std::mem::zeroed();
            assert_eq!(libc::sigaltstack(&own, &mut old), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_ONSTACK;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
            assert_eq!(libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1), 0);
            libc::signal(libc::SIGUSR1, libc::SIG_DFL);
            assert_eq!(libc::sigaltstack(&old, std::ptr::null_mut()), 0);
        }
        let pointer = POINTER.load(Ordering::SeqCst);
        assert!((low..high).contains(&pointer), "{pointer:#x} in {low:#x}..{high:#x}");
        assert_eq!((pointer + 512 + 8192) % page_size(), 0, "{pointer:#x}");
        assert_eq!(FILLED.load(Ordering::SeqCst), 64 * 1024);
    }
}
