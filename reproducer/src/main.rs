//! A copy into a stack array that is read back at once can be slow or fast by the array's address.
//!
//! The C library copies 64 bytes with the widest stores of the machine (one or two 64-byte stores
//! under AVX-512), at whatever alignment the stack frame gives the array. Four 16-byte loads then
//! want those bytes before they have reached the cache. The core forwards them from the store when
//! it can. When it cannot, each load waits until the store is written: the same instructions, but
//! two to three times the time, decided by `buf & 31` on the cores where this was first seen.
//!
//! The twin does the same copy, but loads from another line: what a badly placed *store* costs by
//! itself is in both, and only the difference is forwarding.
#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::{uint8x16_t as Lane, veorq_u8 as xor};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m128i as Lane, _mm_xor_si128 as xor};
use std::{hint::black_box, mem::MaybeUninit, time::Instant};

type Memcpy =
    unsafe extern "C" fn(*mut libc::c_void, *const libc::c_void, usize) -> *mut libc::c_void;

const COPIES: u32 = 100_000; // in one timed block: about half a millisecond
const ROUNDS: usize = 61; // visits to every residue, each in its own random order
const RESIDUES: [usize; 4] = [0, 16, 32, 48]; // a stack array of 16-byte alignment has no other
const LEVEL: f64 = 0.10; // differences below a tenth of the fastest time are called level

/// The stack array, so aligned that no placement inside it crosses a page.
#[repr(align(512))]
struct Stack([u8; 512]);

/// Copies 64 bytes to `to` and reads four lanes at `from`, over and over; ns a copy.
#[inline(never)]
fn timed(memcpy: Memcpy, source: &[u8; 64], stack: &mut Stack, to: usize, from: usize) -> f64 {
    assert!(to + 64 <= stack.0.len() && from + 64 <= stack.0.len() && from.is_multiple_of(16));
    let base = stack.0.as_mut_ptr();
    // SAFETY: both places lie inside the array, `from` is 16-aligned, and any bits are a lane.
    unsafe {
        let (to, from) = (base.add(to), base.add(from).cast::<Lane>());
        let mut sum: Lane = MaybeUninit::zeroed().assume_init();
        let start = Instant::now();
        for _ in 0..COPIES {
            memcpy(to.cast(), source.as_ptr().cast(), 64);
            // Volatile: four loads of 16 bytes, neither merged nor kept in registers.
            for lane in 0..4 {
                sum = xor(sum, from.add(lane).read_volatile());
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(COPIES);
        black_box(sum);
        ns
    }
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The simplest rule that says which residues are slow, judged on times net of the twin.
fn rule(net: &[f64; 4], fastest_ns: f64) -> String {
    let low = net.iter().copied().fold(f64::MAX, f64::min);
    let high = net.iter().copied().fold(f64::MIN, f64::max);
    if high - low < LEVEL * fastest_ns {
        return "none: level at every residue, net of the store's own cost".into();
    }
    let slow = net.map(|ns| ns > (low + high) / 2.0);
    let rules = [("buf & 31 != 0", 31), ("buf & 63 != 0", 63)];
    let masked = |mask: usize| RESIDUES.map(|residue| residue & mask != 0);
    if let Some((name, _)) = rules.iter().find(|(_, mask)| masked(*mask) == slow) {
        return format!("slow exactly when {name} (held 4 of 4)");
    }
    let only: Vec<_> = RESIDUES.iter().zip(slow).filter(|(_, slow)| *slow).collect();
    let named: Vec<_> = only.iter().map(|(r, _)| format!("buf & 63 == {r}")).collect();
    format!("slow exactly when {}", named.join(" or "))
}

fn main() {
    let memcpy: Memcpy = black_box(libc::memcpy); // a call that the compiler cannot expand
    let (source, mut stack) = (black_box([0x5a; 64]), black_box(Stack([0; 512])));
    let mut times = [const { Vec::new() }; 8]; // a residue's copies, then its twin's
    let (mut order, mut random) = ([0, 1, 2, 3, 4, 5, 6, 7], 0x9e37_79b9_7f4a_7c15_u64);
    for round in 0..=ROUNDS {
        for i in (1..8).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(i, (random >> 33) as usize % (i + 1));
        }
        for which in order {
            let to = RESIDUES[which % 4];
            let from = if which < 4 { to } else { to + 256 }; // the twin reads four lines further
            let ns = timed(memcpy, &source, &mut stack, to, from);
            if round > 0 {
                times[which].push(ns); // the first round only warms up
            }
        }
    }
    let ns = times.each_mut().map(|figures| median(figures));
    let net: [f64; 4] = std::array::from_fn(|i| ns[i] - ns[i + 4]);
    let best = ns[..4].iter().copied().fold(f64::MAX, f64::min);
    println!("| residue | buf & 31 | ns | ns net of twin | ratio to best |\n|--:|--:|--:|--:|--:|");
    for (i, residue) in RESIDUES.into_iter().enumerate() {
        let (ratio, low) = (ns[i] / best, (stack.0.as_ptr() as usize + residue) & 31);
        println!("| {residue} | {low} | {:.2} | {:.2} | {ratio:.2} |", ns[i], net[i]);
    }
    println!("\nrule: {}", rule(&net, best));
}
