//! A program whose speed depends on where its stack was put, on nearly every core.
//!
//! It fills a 64-byte stack buffer the way library routines do: eight bytes at a time up to a
//! boundary of 64 bytes, sixteen at a time from there; then it reads the buffer back sixteen bytes
//! at a time. Where the buffer lies decides how much of it is written in small stores, and no core
//! forwards two stores to one load that spans both: such a load waits until they have reached the
//! cache. So there are four speeds, by the buffer's residue modulo 64, with a period of 64 bytes.
//!
//! ```text
//! cargo build --release --examples
//! stackphase pad -- target/release/examples/phase_sensitive
//! stackphase pad --metric '([0-9.]+ ns)' -- target/release/examples/phase_sensitive
//! ```
//!
//! `--level` writes sixteen bytes at a time everywhere: the bands go. `--thread` does the work on a
//! spawned thread, whose stack no padding moves. `--rounds N` makes it longer or shorter.

use std::hint::black_box;
use std::time::Instant;

const BYTES: usize = 64;

/// Sixteen-byte aligned and no more, as most buffers on a stack are.
#[repr(align(16))]
struct Buffer([u8; BYTES]);

/// Copies up to the boundary in steps of `HEAD` bytes, and from there in steps of sixteen.
#[inline(never)]
fn fill<const HEAD: usize>(buffer: &mut [u8; BYTES], from: &[u8; BYTES]) {
    let boundary = buffer.as_ptr().align_offset(BYTES).min(BYTES);
    let mut at = 0;
    while at < BYTES {
        let step = if at < boundary { HEAD } else { 16 };
        // Opaque, so that the compiler cannot make one wide copy of it.
        buffer[at..at + step].copy_from_slice(black_box(&from[at..at + step]));
        at += step;
    }
}

#[inline(never)]
fn read_back(target: &mut [u8; BYTES], buffer: &[u8; BYTES]) {
    for at in (0..BYTES).step_by(16) {
        target[at..at + 16].copy_from_slice(black_box(&buffer[at..at + 16]));
    }
}

#[inline(never)]
fn run<const HEAD: usize>(rounds: u64) {
    let mut buffer = Buffer([0; BYTES]);
    let mut target = Box::new([1; BYTES]);
    let start = Instant::now();
    for _ in 0..rounds {
        fill::<HEAD>(&mut buffer.0, &target);
        read_back(&mut target, &black_box(&mut buffer).0);
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / rounds as f64;
    let residue = buffer.0.as_ptr() as usize % BYTES;
    println!("{nanoseconds:.3} ns a round, buffer at {residue} modulo {BYTES}");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let rounds = arguments.iter().position(|argument| argument == "--rounds");
    let rounds = rounds.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(3_000_000);
    let work = move |level| if level { run::<16>(rounds) } else { run::<8>(rounds) };
    let level = given("--level");
    if given("--thread") {
        let thread = std::thread::spawn(move || work(level));
        if thread.join().is_err() {
            std::process::exit(1);
        }
    } else {
        work(level);
    }
}
