//! `cargo bench`: one row a stack phase.
//!
//! The trampoline is called around divan's whole loop, not within it: nothing is added to what is timed,
//! and divan's own frames move along.

use divan::{Bencher, black_box};
use divan_at_every_phase::read_back;
use stack_trampoline::{Alignment, call_at_shift};

/// The four phases of a 64-byte line at which a 16-byte aligned buffer can lie.
const LINE: [usize; 4] = [0, 16, 32, 48];

fn main() {
    divan::main();
}

#[divan::bench(args = LINE)]
fn by_line(bencher: Bencher, shift: usize) {
    at_shift(bencher, shift);
}

/// Every phase of a page: 256 rows. Only the rows that stand out are worth reading.
#[divan::bench(args = (0..4096).step_by(16), sample_count = 25)]
fn by_page(bencher: Bencher, shift: usize) {
    at_shift(bencher, shift);
}

fn at_shift(bencher: Bencher, shift: usize) {
    let input = [7u8; 64];
    call_at_shift(Alignment::Page, shift, || {
        bencher.bench_local(|| read_back(black_box(&input)));
    })
    .expect("the shifts above are multiples of 16 below the bound, and the main stack has room");
}
