//! The reduced program: one number a process, and where that process had its stack.
//!
//! Prints the low six and the low twelve bits of a stack local and the time of a 64-byte BLAKE3
//! hash, in ns a byte. Run it many times, or under paddings of the environment, and sort by the
//! first column: where the speed depends on the stack, the bands are in plain sight.
//! It depends on the blake3 crate alone.

use std::hint::black_box;
use std::time::Instant;

const HASHES: u32 = 200_000; // in one timed block: some ten milliseconds
const BLOCKS: usize = 31; // the median of which is printed

/// Time of one block, in ns a byte.
#[inline(never)]
fn block(message: &[u8; 64]) -> f64 {
    let start = Instant::now();
    for _ in 0..HASHES {
        black_box(blake3::hash(black_box(message)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(HASHES) / message.len() as f64
}

fn main() {
    // On the heap, whose placement does not move with the stack: the input is the same in every
    // process that only the stack distinguishes.
    let message = Box::new(std::array::from_fn(|i| i as u8));
    let local = 0_u8;
    let address = black_box(&raw const local) as usize;
    block(&message);
    let mut figures: [f64; BLOCKS] = std::array::from_fn(|_| block(&message));
    figures.sort_by(f64::total_cmp);
    println!(
        "stack&63={} stack&4095={} heap&63={} ns_per_byte={:.4}",
        address & 63,
        address & 4095,
        message.as_ptr() as usize & 63,
        figures[BLOCKS / 2],
    );
}
