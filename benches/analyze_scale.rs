//! How `analyze` grows with the number of rows: time, peak memory, and the ratio for ten times as
//! many.
//!
//! Run as `cargo bench --bench analyze_scale` (100,000 and 1,000,000 rows), or with
//! `-- 10000000` for more. Every row fills all fixed columns. Each size is read and judged in a
//! process of its own, so that the peak is that of analysis and not of making the file.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use stackphase::analysis::{Options, judge_all};
use stackphase::record::{CsvSink, read_series};
use stackphase::sample::{Params, Placement, Sample};

/// Repetitions of each size; the fastest and the median are printed.
const REPETITIONS: usize = 5;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench").peekable();
    if args.peek().map(String::as_str) == Some("--judge") {
        let file = args.nth(1).expect("--judge is followed by the file");
        return judge(Path::new(&file));
    }
    // Under `cargo test --benches` cargo passes no `--bench`: show only that it works.
    let benchmark = std::env::args().any(|arg| arg == "--bench");
    let mut sizes: Vec<u64> = args.filter_map(|arg| arg.replace('_', "").parse().ok()).collect();
    if sizes.is_empty() {
        sizes = if benchmark { vec![100_000, 1_000_000] } else { vec![1_000, 10_000] };
    }
    let mut before: Option<(u64, f64)> = None;
    for rows in sizes {
        let dir = std::env::temp_dir().join(format!("stackphase-scale-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for temporary files can be made");
        let file = dir.join(format!("{rows}.csv"));
        let started = Instant::now();
        let bytes = generate(&file, rows);
        let writing = started.elapsed().as_secs_f64();
        println!(
            "{rows} rows, {:.0} MB: written in {writing:.2} s ({:.2} µs a row, one write each)",
            bytes as f64 / 1e6,
            1e6 * writing / rows as f64
        );
        let seconds = measure(&file);
        if let Some((fewer, less)) = before {
            println!(
                "  {:.1} times the rows take {:.2} times as long",
                rows as f64 / fewer as f64,
                seconds / less
            );
        }
        before = Some((rows, seconds));
        std::fs::remove_dir_all(&dir).expect("what was made can be removed");
    }
}

/// A sweep of two workloads over sixteen shifts, three launches, in shuffled order.
fn generate(file: &Path, rows: u64) -> u64 {
    let mut sink = CsvSink::create(file, &[]).expect("the file can be created");
    let mut rng = fastrand::Rng::with_seed(1);
    let mut placements: Vec<i64> = (0..16).map(|n| 16 * n).collect();
    let per_launch = rows.div_ceil(3);
    for row in 0..rows {
        let (launch, order) = (row / per_launch, row % per_launch);
        let at = (order / 2 % 16) as usize;
        if order % 32 == 0 {
            rng.shuffle(&mut placements);
        }
        let workload = if order % 2 == 0 { "blake3" } else { "sha256" };
        let shift = placements[at];
        let round = (order / 32) as u32;
        let mut sample =
            Sample::new("phase", workload, Placement::Shift, shift, launch as u32, round);
        let buf = 0x7fff_ffff_e0c0 - shift as u64;
        let slow = workload == "blake3" && !buf.is_multiple_of(32);
        sample.len = Some(64);
        sample.routine = Some("__memmove_avx512_unaligned_erms".to_owned());
        sample.order = Some(order);
        sample.sp = Some(buf - 0x840);
        sample.buf = Some(buf);
        sample.src = Some(0x5555_5578_92a0);
        sample.heap_mod64 = Some(32);
        sample.text_mod64 = Some(0);
        sample.env_bytes = Some(1234);
        sample.argv_bytes = Some(56);
        sample.cpu = Some(1);
        sample.iterations = Some(1700);
        let noise = 1.0 + 0.006 * (rng.f64() + rng.f64() + rng.f64() - 1.5);
        sample.ns_per_op = Some(if slow { 79.7 } else { 59.0 } * noise);
        sample.params = Params::new().with("grid", "line");
        sample.guard_ns = Some(0.3125 * noise);
        sample.running_ratio = Some(1.0);
        sample.disturbed = Some(rng.u32(..50) == 0);
        sink.push(&sample).expect("the disk has room");
    }
    std::fs::metadata(file).expect("the file was just written").len()
}

/// Median seconds of reading and judging, over repetitions in processes of their own.
fn measure(file: &Path) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let mut seconds = Vec::new();
    let mut last = String::new();
    for _ in 0..REPETITIONS {
        let output = Command::new(&program).arg("--judge").arg(file).output();
        last = String::from_utf8(output.expect("this program runs").stdout).expect("plain text");
        let total = last.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        seconds.push(total.expect("the first word is the time"));
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    println!("  read and judged: median {median:.3} s, fastest {:.3} s", seconds[0]);
    println!("  of the last repetition: {}", last.trim());
    median
}

/// In the process of its own: one line with the time, its parts, and the peak memory.
fn judge(file: &Path) {
    let started = Instant::now();
    let recording = read_series(file).expect("what was written can be read");
    let reading = started.elapsed().as_secs_f64();
    let document = judge_all(&recording.series, &Options::default());
    let total = started.elapsed().as_secs_f64();
    let findings: Vec<String> =
        document.verdicts.iter().map(|v| format!("{} {}", v.workload, v.verdict)).collect();
    println!(
        "{total:.4} s, of which reading {reading:.4}; peak memory {}; {}",
        peak_memory(),
        findings.join(", ")
    );
}

/// The most memory this process has held, as the kernel counts it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or("not known here".to_owned(), |kb| format!("{:.0} MB", kb * 1.024 / 1000.0))
}
