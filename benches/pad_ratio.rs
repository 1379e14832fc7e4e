//! What the question costs by hand, and what it costs `stackphase pad`: 36 launches of a full hashing
//! benchmark, one a padding, against one sweep of the own workload. Both are timed in one run and
//! judged by the same analysis; the ratio of their times and both intervals are printed.
//!
//! Run as `cargo bench --bench pad_ratio`: some four minutes, nearly all of them by hand. With
//! `-- --paddings 6` fewer are launched by hand and their time is scaled up to 36.
//!
//! The benchmark that is launched measures as bench-hashes does: three hash functions at four
//! lengths, 120 rounds of batches of 4 ms, every order of the functions in turn.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::Digest;

/// Paddings of the sweep.
const PADDINGS: usize = 36;
const ROUNDS: usize = 120;
const BATCH: Duration = Duration::from_millis(4);
const LENGTHS: [usize; 4] = [64, 4096, 16 << 10, 1 << 20];

type Hash = fn(&[u8]) -> u8;
const HASHES: [(&str, Hash); 3] = [
    ("BLAKE3", |input| blake3::hash(input).as_bytes()[0]),
    ("SHA-256", |input| sha2::Sha256::digest(input)[0]),
    ("SHA3-256", |input| sha3::Sha3_256::digest(input)[0]),
];
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<usize>().ok()
    };
    if let Some(rounds) = number("--harness") {
        return harness(rounds);
    }
    // Under `cargo test --benches` cargo passes no `--bench`: show only that it works.
    let benchmark = arguments.iter().any(|argument| argument == "--bench");
    let paddings = number("--paddings").unwrap_or(if benchmark { PADDINGS } else { 2 });
    compare(paddings.clamp(1, PADDINGS), if benchmark { ROUNDS } else { 1 });
}

fn compare(paddings: usize, rounds: usize) {
    let home = std::env::temp_dir().join(format!("stackphase-pad-ratio-{}", std::process::id()));
    let own = std::env::current_exe().expect("this program has a path").display().to_string();
    let rounds = rounds.to_string();
    let last = (4 * (paddings - 1)).to_string();
    let metric = r"^BLAKE3 64 B: ([0-9.]+ ns)";
    let by_hand = ["--to", &last, "--launches", "1", "--metric", metric, "--timeout", "600", "--"];
    let by_hand = [&by_hand[..], &[&own, "--harness", &rounds]].concat();
    let (hand, hand_time) = sweep(&home.join("hand"), &by_hand);
    let (swept, swept_time) = sweep(&home.join("swept"), &[]);
    let scaled = hand_time.as_secs_f64() * PADDINGS as f64 / paddings as f64;
    println!("by hand: {}, {paddings} launches in {:.1} s", says(&hand), hand_time.as_secs_f64());
    if paddings < PADDINGS {
        println!("  scaled to {PADDINGS} launches: {scaled:.1} s");
    }
    println!("stackphase pad: {}, in {:.2} s", says(&swept), swept_time.as_secs_f64());
    println!("ratio of the times: {:.0}", scaled / swept_time.as_secs_f64());
    // What cannot be removed is no part of the result.
    let _ = std::fs::remove_dir_all(home);
}

/// One sweep: its verdict, and how long it took.
fn sweep(directory: &std::path::Path, arguments: &[&str]) -> (Value, Duration) {
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(["pad", "--json", "--seed", "1", "--out"])
        .arg(directory)
        .args(arguments)
        .output()
        .expect("the program was built");
    let time = start.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    (document["verdicts"][0].clone(), time)
}

fn says(verdict: &Value) -> String {
    let percent = |name: &str| verdict[name].as_f64();
    match (percent("effect_low_percent"), percent("effect_high_percent")) {
        (Some(low), Some(high)) => format!(
            "{}, interval {low:.2} to {high:.2} % ({:.2} wide)",
            verdict["verdict"],
            high - low
        ),
        _ => format!("{}, without an interval", verdict["verdict"]),
    }
}

/// The benchmark itself.
fn harness(rounds: usize) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut input = vec![0u8; LENGTHS[3]];
    input.fill_with(|| {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    });
    let batch = |hash: Hash, len: usize, calls: u64| {
        let start = Instant::now();
        for _ in 0..calls {
            std::hint::black_box(hash(std::hint::black_box(&input[..len])));
        }
        start.elapsed()
    };
    let calls = |hash: Hash, len: usize| {
        let mut calls = 1u64;
        loop {
            let time = batch(hash, len, calls);
            if time >= BATCH / 4 {
                let scale = BATCH.as_secs_f64() / time.as_secs_f64();
                return ((calls as f64 * scale) as u64).max(1);
            }
            calls *= 2;
        }
    };
    let counts: Vec<Vec<u64>> = HASHES
        .iter()
        .map(|(_, hash)| LENGTHS.iter().map(|&len| calls(*hash, len)).collect())
        .collect();
    let mut times = vec![vec![Vec::new(); LENGTHS.len()]; HASHES.len()];
    for round in 0..rounds {
        for turn in 0..LENGTHS.len() {
            let length = (round + turn) % LENGTHS.len();
            for function in ORDERS[round % ORDERS.len()] {
                let count = counts[function][length];
                let time = batch(HASHES[function].1, LENGTHS[length], count);
                times[function][length].push(time.as_secs_f64() * 1e9 / count as f64);
            }
        }
    }
    for (function, (name, _)) in HASHES.iter().enumerate() {
        for (length, bytes) in LENGTHS.iter().enumerate() {
            let times = &mut times[function][length];
            times.sort_unstable_by(f64::total_cmp);
            println!("{name} {bytes} B: {:.4} ns a message", times[times.len() / 2]);
        }
    }
}
