//! What the timed loop and the trampoline cost over a bare loop around the same call.
//!
//! `cargo bench --bench timed_loop` prints, for some workloads, the ratio of the time an operation
//! takes in a block (through the trampoline, at a shift) to the time in a bare `for` loop over the
//! same call in the same process. Both are timed in turns, in shuffled order, and the ratio is the
//! median of the ratios of neighbours: a machine that changes speed changes both.

use std::hint::black_box;
use std::time::Instant;

use stack_trampoline::Alignment;
use stackphase::block::{Loop, Place, Timed, run_at};
use stackphase::workloads::Closure;

const PAIRS: usize = 401;
const BLOCK_NS: f64 = 200_000.0;

fn main() {
    println!("operation            bare ns   block ns   ratio of neighbours (median of {PAIRS})");
    for len in [64usize, 1024] {
        let message = vec![7u8; len];
        // One function for both loops, never inlined: two copies of the code would lie at two
        // addresses, which alone moves 64 bytes by several percent.
        let bare = |iterations: u64| {
            for _ in 0..iterations {
                hash(&message);
            }
        };
        let mut timed = Loop::new(Closure(|| hash(&message)));
        report(&format!("blake3 {len}"), bare, &mut timed);
    }
    let bare = |iterations: u64| {
        for _ in 0..iterations {
            chain();
        }
    };
    report("a chain of 20 ns", bare, &mut Loop::new(Closure(chain)));
}

#[inline(never)]
fn hash(message: &[u8]) {
    black_box(blake3::hash(black_box(message)));
}

/// Nothing but registers, as short as an operation of `copychain`.
#[inline(never)]
fn chain() {
    stackphase::kernels::dependent_chain(1);
}

fn report(name: &str, bare: impl Fn(u64), timed: &mut dyn Timed) {
    let clock = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e9
    };
    let probe = clock(&mut || bare(10_000)) / 10_000.0;
    let iterations = (BLOCK_NS / probe).ceil() as u64;
    let mut random = fastrand::Rng::with_seed(1);
    let (mut bares, mut blocks, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let place = Place::Shifted(Alignment::Page, random.usize(0..256) * 16);
        let mut block = || {
            let ran = run_at(place, timed, iterations, None);
            ran.map_or(f64::NAN, |(_, time)| time.as_secs_f64() * 1e9)
        };
        let (a, b) = if random.bool() {
            let a = clock(&mut || bare(iterations));
            (a, block())
        } else {
            let b = block();
            (clock(&mut || bare(iterations)), b)
        };
        bares.push(a / iterations as f64);
        blocks.push(b / iterations as f64);
        ratios.push(b / a);
    }
    println!(
        "{name:<20} {:>8.2}   {:>8.2}   {:.4}",
        median(&mut bares),
        median(&mut blocks),
        median(&mut ratios)
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
