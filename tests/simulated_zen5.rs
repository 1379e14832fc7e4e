//! The published figures of a Zen 5 through the whole pipeline, without a Zen 5: opened through the
//! crate's hooks, read from pipes, scaled, recorded as CSV, judged and reported.
#![cfg(all(target_os = "linux", feature = "cli"))]

#[path = "../src/sys/simulated_pmu.rs"]
#[allow(dead_code, missing_docs)]
mod simulated_pmu;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use simulated_pmu::{Block, Simulation, full};
use stackphase::analysis::{self, Finding, Options};
use stackphase::counters::{Context, CoreType, CpuId, Environment, Pmu, Set, identify};
use stackphase::record::{RunDirectory, samples_from_reader, series_of};
use stackphase::sample::{Placement, Sample};

/// The classes by residue: fast at 0 and 32, middle at 48, slow at 16.
const CLASS_OF_SHIFT: [usize; 4] = [0, 2, 0, 1];
/// Failing loads an operation, published for the three classes.
const FAILURES: [f64; 3] = [2.005, 4.005, 5.006];
/// Cycles an operation, published for the three classes.
const CYCLES: [f64; 3] = [280.7, 378.1, 400.7];
/// Any number: what was published is that it is flat.
const INSTRUCTIONS: f64 = 496.0;
const ITERATIONS: u64 = 100_000;
const SELF_TEST_STEPS: u64 = 20_000;

fn zen5() -> Context {
    let cpu = CpuId {
        vendor: "AuthenticAMD".to_owned(),
        family: 26,
        model: 0x44,
        core_type: CoreType::Uniform,
    };
    Context {
        core: identify(&cpu).cloned(),
        cpu,
        pmu: Some(Pmu { name: "cpu".to_owned(), kind: 4 }),
        environment: Environment { pmu_listed: true, ..Environment::default() },
        root: PathBuf::from("/nonexistent"),
    }
}

/// Counts as the self-tests expect: the loop with the event, then the one without.
fn self_test(config: u64, block: usize) -> Block {
    match (config, block) {
        (0xc0, _) => full(SELF_TEST_STEPS * 18 + 90),
        (0x76, _) => full(SELF_TEST_STEPS * 48),
        (_, 1) => full(0),
        _ => full(SELF_TEST_STEPS),
    }
}

/// One block of the workload in the class that `class` holds, multiplexed to 0.4 where `shared`.
fn workload(config: u64, class: usize, shared: bool) -> Block {
    let per_op = match config {
        0xc0 => INSTRUCTIONS,
        0x76 => CYCLES[class],
        0x0224 => FAILURES[class],
        _ => 1.0,
    };
    let total = per_op * ITERATIONS as f64;
    if shared {
        return Block {
            count: (total * 0.4).round() as u64,
            enabled: 10_000_000,
            running: 4_000_000,
        };
    }
    Block { count: total.round() as u64, enabled: 10_000_000, running: 10_000_000 }
}

/// A run of three launches: every shift once a round, in a fresh shuffle.
fn samples(shared: bool) -> Vec<Sample> {
    let simulation = Simulation::new(Box::new(self_test));
    let (mut set, absent) = Set::open_for_thread(&zen5(), &[]);
    let missing: Vec<&str> = absent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(missing, ["address_aliases", "split_stores"]);
    let class = Rc::new(Cell::new(0));
    let seen = Rc::clone(&class);
    simulation.state.borrow_mut().model =
        Box::new(move |config, _| workload(config, seen.get(), shared));
    let mut random = fastrand::Rng::with_seed(5);
    let mut samples = Vec::new();
    for launch in 0..3 {
        let mut order = 0;
        for round in 0..12 {
            let mut shifts: Vec<usize> = (0..16).collect();
            random.shuffle(&mut shifts);
            for shift in shifts {
                class.set(CLASS_OF_SHIFT[shift % 4]);
                set.start();
                set.stop();
                let reading = set.read();
                let placement = 16 * shift as i64;
                let mut sample =
                    Sample::new("phase", "blake3", Placement::Shift, placement, launch, round);
                sample.len = Some(64);
                sample.order = Some(order);
                sample.buf = Some(0x7fff_ffff_e000 + placement as u64);
                sample.iterations = Some(ITERATIONS);
                // 4.75 GHz, and a jitter of a thousandth.
                let ns = CYCLES[class.get()] / 4.75;
                sample.ns_per_op = Some(ns * (1.0 + 0.001 * (random.f64() - 0.5)));
                sample.events = reading.per_op(ITERATIONS);
                sample.running_ratio = reading.running_ratio();
                samples.push(sample);
                order += 1;
            }
        }
    }
    drop(set);
    samples
}

fn of(sample: &Sample, name: &str) -> Option<f64> {
    sample.events.iter().find(|(event, _)| event == name).and_then(|(_, figure)| *figure)
}

#[test]
fn the_published_counts_reach_the_csv_the_verdict_and_the_report() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let run = RunDirectory::create(Some(&dir.path().join("run")), "zen5").expect("is new");
    let samples = samples(false);
    let columns: Vec<String> = samples[0].events.iter().map(|(name, _)| name.clone()).collect();
    let mut sink = run.samples(&columns).expect("can be written");
    for sample in &samples {
        sink.push(sample).expect("is kept");
    }
    drop(sink);

    let csv = std::fs::read(run.samples_path()).expect("is there");
    let header = csv.split(|byte| *byte == b'\n').next().expect("has a header");
    let header = String::from_utf8_lossy(header).into_owned();
    assert!(header.contains("store_forward_failures_per_op"), "{header}");
    let read = samples_from_reader("samples.csv", csv.as_slice()).expect("reads back");
    assert_eq!(read.len(), 3 * 12 * 16);
    for sample in &read {
        let class = CLASS_OF_SHIFT[(sample.placement_value / 16) as usize % 4];
        assert_eq!(of(sample, "store_forward_failures"), Some(FAILURES[class]));
        assert_eq!(of(sample, "cycles"), Some(CYCLES[class]));
        assert_eq!(of(sample, "instructions"), Some(INSTRUCTIONS));
        assert_eq!(sample.running_ratio, Some(1.0));
    }

    let mut verdicts = analysis::judge_all(&series_of(&read), &Options::default());
    analysis::counts::annotate(&mut verdicts, &read);
    let verdict = &verdicts.verdicts[0];
    assert_eq!(verdict.verdict, Finding::Affected);
    assert_eq!(verdict.bands.len(), 3, "{:?}", verdict.bands);
    assert_eq!(verdict.instructions_per_op.map(|per_op| per_op.value), Some(INSTRUCTIONS));
    let says = |text: &str| verdict.reasons.iter().any(|reason| reason.contains(text));
    assert!(
        says("store_forward_failures: 2.005, 4.005, 5.006 an operation"),
        "{:?}",
        verdict.reasons
    );
    assert!(says("cycles: 280.700, 378.100, 400.700 an operation"), "{:?}", verdict.reasons);
    assert!(says("retired instructions are flat across the bands: 496.0 to 496.0"));

    run.write_document("verdict.json", &verdicts).expect("is written");
    let written = stackphase::report::write_beside(run.path(), true).expect("reports");
    let markdown = written.iter().find(|path| path.ends_with("report.md")).expect("is among them");
    let report = std::fs::read_to_string(markdown).expect("is there");
    assert!(report.contains("2.005, 4.005, 5.006"), "{report}");
}

#[test]
fn multiplexed_counts_are_scaled_to_the_same_figures_and_marked() {
    for sample in samples(true) {
        let class = CLASS_OF_SHIFT[(sample.placement_value / 16) as usize % 4];
        let failures = of(&sample, "store_forward_failures").expect("was counted");
        assert!((failures - FAILURES[class]).abs() < 1e-4, "{failures}");
        assert_eq!(sample.running_ratio, Some(0.4));
    }
}
