//! The main thread: the kernel grows its stack at first touch, and its end is known only from the limits.

use std::hint::black_box;

use stack_trampoline::Alignment::{Line, Page};
use stack_trampoline::{MAX_SHIFT, call_at_shift};

/// Address of a buffer in a frame of the closure's own.
#[inline(never)]
fn buffer_address() -> usize {
    #[repr(align(16))]
    struct Buffer([u8; 64]);
    let buffer = black_box(Buffer([1; 64]));
    black_box(&buffer).0.as_ptr() as usize
}

/// Writes to 64 KiB of stack, and counts what is found again.
#[inline(never)]
fn fill() -> usize {
    let mut room = black_box([0u8; 65536]);
    black_box(&mut room).iter_mut().for_each(|byte| *byte = 0x3c);
    black_box(&room).iter().filter(|byte| **byte == 0x3c).count()
}

fn main() {
    // First of all the deepest, while the stack below is not mapped yet.
    for alignment in [Page, Line] {
        assert_eq!(call_at_shift(alignment, MAX_SHIFT, fill), Ok(65536), "{alignment}");
    }
    for alignment in [Page, Line] {
        let first = call_at_shift(alignment, 0, buffer_address).expect("shift 0");
        for shift in (0..=MAX_SHIFT).step_by(16) {
            let buffer = call_at_shift(alignment, shift, buffer_address).expect("a multiple of 16");
            assert_eq!(first - buffer, shift, "{alignment}");
        }
    }
    println!("the main thread visits every shift up to {MAX_SHIFT}");
}
