//! Throughput of BLAKE3 (the crate's standard features, without threads) and SHA-256 (assembly) over
//! powers of two, of a constant input.
//!
//!     cargo bench --bench hashing
//!
//! `--features no_avx512` leaves BLAKE3's AVX-512 code out. At 64 bytes the figure is a draw from the
//! bands of this machine, as that of any benchmark is: `stackphase phase` tells them apart.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use sha2::Digest;

/// 16 B to 1 MiB.
const LENGTHS: [usize; 17] = {
    let mut lengths = [0; 17];
    let mut exponent = 0;
    while exponent < lengths.len() {
        lengths[exponent] = 16 << exponent;
        exponent += 1;
    }
    lengths
};

fn main() {
    divan::main();
}

#[divan::bench(args = LENGTHS)]
fn blake3(bencher: Bencher<'_, '_>, len: usize) {
    let input = vec![0x61; len];
    bencher.counter(BytesCount::new(len)).bench_local(|| blake3::hash(black_box(&input)));
}

#[divan::bench(args = LENGTHS)]
fn sha256(bencher: Bencher<'_, '_>, len: usize) {
    let input = vec![0x61; len];
    bencher.counter(BytesCount::new(len)).bench_local(|| sha2::Sha256::digest(black_box(&input)));
}
