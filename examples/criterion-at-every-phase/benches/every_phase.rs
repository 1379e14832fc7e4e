//! `cargo bench`: one benchmark a stack phase.
//!
//! The trampoline is called around criterion's whole loop, not within it: nothing is added to what is
//! timed, and criterion's own frames move along.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use criterion_at_every_phase::read_back;
use stack_trampoline::{Alignment, call_at_shift};

/// Sixteen shifts: each of the four phases of a 64-byte line four times, 64 bytes apart. The same phase
/// four times is a control: where those four differ, the machine was not quiet.
fn by_line(criterion: &mut Criterion) {
    at_every(criterion, "line", (0..256).step_by(16));
}

/// Every phase of a page: 256 benchmarks, some two minutes.
fn by_page(criterion: &mut Criterion) {
    at_every(criterion, "page", (0..4096).step_by(16));
}

fn at_every(criterion: &mut Criterion, name: &str, shifts: impl Iterator<Item = usize>) {
    let mut group = criterion.benchmark_group(name);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(300));
    let input = [7u8; 64];
    for shift in shifts {
        group.bench_with_input(BenchmarkId::from_parameter(shift), &shift, |bencher, &shift| {
            call_at_shift(Alignment::Page, shift, || bencher.iter(|| read_back(black_box(&input))))
                .expect(
                    "the shifts are multiples of 16 below the bound, and the main stack has room",
                );
        });
    }
    group.finish();
}

criterion_group!(benches, by_line, by_page);
criterion_main!(benches);
