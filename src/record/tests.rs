//! Properties of writing, reading and resuming together.

use std::collections::HashSet;
use std::fs;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Failure;
use crate::sample::{Params, Placement, Sample, SampleKey, Status};

const EVENTS: [&str; 2] = ["cycles", "stli,other"];

fn events() -> Vec<String> {
    EVENTS.map(str::to_owned).to_vec()
}

prop_compose! {
    fn text()(text in "[a-zé ,\"'#=;|-]{1,8}") -> String { text }
}

prop_compose! {
    fn figure()(bits in any::<u64>(), small in 1u32..100_000) -> f64 {
        let wild = f64::from_bits(bits).abs();
        if (1e-30..=1e30).contains(&wild) { wild } else { f64::from(small) / 100.0 }
    }
}

prop_compose! {
    fn identity()(
        probe in text(), workload in text(), arm in text(), routine in prop::option::of(text()),
        placement in prop::sample::select(Placement::ALL), placement_value in any::<i64>(),
        launch in any::<u32>(), round in any::<u32>(), len in any::<Option<u64>>(),
        params in prop::collection::btree_map("[a-z]{1,4}", "[a-z,\"0-9]{0,4}", 0..3),
    ) -> Sample {
        let mut sample = Sample::new(&probe, &workload, placement, placement_value, launch, round);
        sample.arm = arm;
        sample.routine = routine;
        sample.len = len;
        sample.params = params.iter().fold(Params::new(), |all, (key, value)| all.with(key, value));
        sample
    }
}

prop_compose! {
    fn any_sample()(
        identity in identity(),
        addresses in any::<[Option<u64>; 4]>(), small in any::<[Option<u8>; 2]>(),
        sizes in any::<[Option<u64>; 3]>(), cpu in any::<Option<u32>>(),
        ns in prop::option::of(figure()), value in prop::option::of(figure()),
        unit in prop::option::of(text()), guard in prop::option::of(figure()),
        disturbed in any::<Option<bool>>(), status in prop::sample::select(Status::ALL),
        counts in prop::collection::vec(prop::option::of(figure()), 2),
    ) -> Sample {
        let [sp, buf, src, order] = addresses;
        let [heap, text] = small.map(|residue| residue.map(|residue| residue % 64));
        let [env_bytes, argv_bytes, iterations] = sizes;
        Sample {
            sp, buf, src, order, heap_mod64: heap, text_mod64: text, env_bytes, argv_bytes,
            iterations, cpu, ns_per_op: ns, value, unit, guard_ns: guard, running_ratio: guard,
            disturbed, status,
            events: EVENTS.map(str::to_owned).into_iter().zip(counts).collect(),
            ..identity
        }
    }
}

fn started(directory: &std::path::Path) -> RunDirectory {
    let run = RunDirectory::create(Some(directory), "x").unwrap();
    run.write_document(PLAN, &json!({ "schema": "stackphase/plan/1" })).unwrap();
    run
}

fn write(run: &RunDirectory, samples: &[Sample]) {
    let mut sink = run.samples(&events()).unwrap();
    for sample in samples {
        sink.push(sample).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read(samples in prop::collection::vec(any_sample(), 0..6)) {
        let dir = tempfile::tempdir().unwrap();
        let run = started(dir.path());
        write(&run, &samples);
        prop_assert_eq!(&run.read_samples().unwrap(), &samples);
        prop_assert_eq!(&read_samples(&run.samples_path()).unwrap(), &samples);
        let resumed = RunDirectory::resume(dir.path()).unwrap();
        let keys: HashSet<SampleKey> = samples.iter().map(Sample::key).collect();
        prop_assert_eq!(resumed.finished, keys);
    }

    #[test]
    fn the_fast_reader_equals_the_plain_one(
        mut samples in prop::collection::vec(any_sample(), 1..12),
        fewer in any::<bool>(),
    ) {
        for (n, sample) in samples.iter_mut().enumerate() {
            sample.order = Some(n as u64);
            // Two series that alternate, besides many of one row.
            if fewer {
                let workload = if n % 2 == 0 { "blake3" } else { "sha256" };
                *sample = Sample { ns_per_op: sample.ns_per_op, buf: sample.buf,
                    ..Sample::new("phase", workload, Placement::Shift, 16, 0, n as u32) };
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let run = started(dir.path());
        write(&run, &samples);
        let recording = run.read_series().unwrap();
        let plain = series_of(&samples);
        prop_assert_eq!(recording.rows, samples.len() as u64);
        let figures: usize = plain.iter().map(|series| series.observations.len()).sum();
        prop_assert_eq!(recording.without_figure, (samples.len() - figures) as u64);
        prop_assert_eq!(recording.series, plain);
    }

    #[test]
    fn no_bytes_are_fatal(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = series_from_reader("f.csv", &bytes[..]);
        let _ = samples_from_reader("f.csv", &bytes[..]);
    }

    #[test]
    fn no_cells_are_fatal_and_every_fault_is_one_line(
        row in prop::collection::vec("[-0-9a-z.,\"\u{1b}\u{0}xé]{0,9}", 1..9),
        names in prop::sample::subsequence(crate::sample::COLUMNS.to_vec(), 1..9),
    ) {
        let text = format!("placement_value,value,{}\n{}\n", names.join(","), row.join(","));
        for error in [
            series_from_reader("f.csv", text.as_bytes()).err(),
            samples_from_reader("f.csv", text.as_bytes()).err(),
        ].into_iter().flatten() {
            let line = Failure::from(error).to_string();
            prop_assert!(!line.contains(char::is_control) && line.contains("f.csv"), "{}", line);
        }
    }

    #[test]
    fn a_damaged_byte_is_read_or_named(
        samples in prop::collection::vec(any_sample(), 1..4),
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let run = started(dir.path());
        write(&run, &samples);
        let mut bytes = fs::read(run.samples_path()).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let fast = series_from_reader("f.csv", &bytes[..]);
        let full = samples_from_reader("f.csv", &bytes[..]);
        if let (Ok(fast), Ok(full)) = (&fast, &full) {
            prop_assert_eq!(fast.rows, full.len() as u64);
        }
        if let Err(error) = full {
            prop_assert!(error.to_string().starts_with(|c: char| c != ':'));
        }
    }
}

fn few_samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for round in 0..3 {
        let mut sample = Sample::new("phase", "blake3", Placement::Shift, 16, 0, round);
        sample.len = Some(64);
        sample.buf = Some(0x7fff_ffff_e070);
        sample.ns_per_op = Some(59.03 + f64::from(round));
        sample.routine = Some("a \"quoted, é\" routine".to_owned());
        sample.events = vec![("cycles".to_owned(), Some(280.7)), ("stli,other".to_owned(), None)];
        samples.push(sample);
    }
    samples
}

#[test]
fn killed_at_any_byte_no_complete_row_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let whole = started(&dir.path().join("whole"));
    let samples = few_samples();
    write(&whole, &samples);
    let bytes = fs::read(whole.samples_path()).unwrap();
    let run = started(&dir.path().join("cut"));
    let mut complete_before = 0;
    for cut in 0..=bytes.len() {
        fs::write(run.samples_path(), &bytes[..cut]).unwrap();
        let complete = bytes[..cut].iter().filter(|b| **b == b'\n').count().saturating_sub(1);
        assert!(complete >= complete_before);
        complete_before = complete;
        assert_eq!(run.read_samples().unwrap(), samples[..complete], "cut at {cut}");

        let resumed = RunDirectory::resume(run.path()).unwrap();
        let finished = &resumed.finished;
        let expected: HashSet<_> = samples[..complete].iter().map(Sample::key).collect();
        assert_eq!(*finished, expected, "cut at {cut}");

        let mut sink = resumed.samples(&events()).unwrap();
        for sample in samples.iter().filter(|sample| !finished.contains(&sample.key())) {
            sink.push(sample).unwrap();
        }
        assert_eq!(fs::read(run.samples_path()).unwrap(), bytes, "cut at {cut}");
    }
}

#[test]
fn resuming_needs_a_plan_and_the_same_counters_and_no_other_writer() {
    let dir = tempfile::tempdir().unwrap();
    let error = RunDirectory::resume(dir.path()).unwrap_err();
    assert!(matches!(error, RecordError::NoPlan(_)), "{error}");
    let run = started(dir.path());
    let mut sink = run.samples(&events()).unwrap();
    sink.push(&few_samples()[0]).unwrap();
    let resumed = RunDirectory::resume(dir.path()).unwrap();
    assert!(matches!(resumed.samples(&[]), Err(RecordError::OtherEvents { .. })));
    if cfg!(target_os = "linux") {
        assert!(matches!(resumed.samples(&events()), Err(RecordError::InUse(_))));
    }
    // Rows that came after the count must not be cut off.
    sink.push(&few_samples()[1]).unwrap();
    drop(sink);
    assert!(matches!(resumed.samples(&events()), Err(RecordError::InUse(_))));
    assert_eq!(run.read_samples().unwrap().len(), 2);
    assert!(!resumed.is_finished());
    run.write_document(VERDICT, &json!({})).unwrap();
    assert!(resumed.is_finished());
}

#[test]
fn a_line_end_in_a_cell_becomes_a_blank() {
    let dir = tempfile::tempdir().unwrap();
    let run = started(dir.path());
    let mut sample = few_samples().remove(0);
    sample.arm = "a\nb\r".to_owned();
    write(&run, &[sample]);
    assert_eq!(run.read_samples().unwrap()[0].arm, "a b ");
}

fn series(text: &str) -> Result<Recording, String> {
    series_from_reader("f.csv", text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_foreign_file_is_read_by_its_names() {
    let text = "process,residue,value,unit\n7,16,79.5,MB/s\n7,0,100,MB/s\n7,16,80,MB/s\n";
    let recording = series(text).unwrap();
    let [series] = &recording.series[..] else { panic!("one series: {recording:?}") };
    assert!(series.higher_is_better);
    assert_eq!(series.key.placement, Placement::Shift);
    let rows: Vec<_> =
        series.observations.iter().map(|o| (o.launch, o.round, o.placement, o.residue)).collect();
    assert_eq!(rows, [(7, 0, 16, Some(16)), (7, 0, 0, Some(0)), (7, 1, 16, Some(16))]);
    assert!(series.observations.iter().all(|o| o.order.is_none() && !o.disturbed));
}

#[test]
fn whole_numbers_of_data_frames_are_read() {
    let recording = series("placement_value,launch,ns_per_op\n16.0,2.0,59\n").unwrap();
    let first = recording.series[0].observations[0];
    assert_eq!((first.placement, first.launch), (16, 2));
}

#[test]
fn rows_without_a_figure_are_counted_and_left_out() {
    let recording =
        series("placement_value,ns_per_op,status\n0,,failed\n16,59,ok\n32,,timed-out\n48,,ok\n")
            .unwrap();
    assert_eq!((recording.rows, recording.without_figure), (4, 3));
    assert_eq!(recording.series[0].observations.len(), 1);
}

#[test]
fn bad_cells_name_row_and_column() {
    let fault = |row: &str| {
        let header = "placement_value,ns_per_op,launch,buf,buf_mod64,disturbed,status,params";
        series(&format!("{header}\n0,59,0,,,,,\n{row}\n")).unwrap_err()
    };
    let number = "write a number, or leave the cell empty where nothing was measured";
    for (row, expected) in [
        ("16,NaN,0,,,,,", format!("`NaN` is not finite: f.csv, row 3, column ns_per_op; {number}")),
        ("16,inf,0,,,,,", format!("`inf` is not finite: f.csv, row 3, column ns_per_op; {number}")),
        (
            "16,1e999,0,,,,,",
            format!("`1e999` is not finite: f.csv, row 3, column ns_per_op; {number}"),
        ),
        (
            "16,fast,0,,,,,",
            format!("`fast` is not a number: f.csv, row 3, column ns_per_op; {number}"),
        ),
    ] {
        assert_eq!(fault(row), expected);
    }
    for (row, problem, column) in [
        ("16,-1,0,,,,,", "`-1` is not above 0", "ns_per_op"),
        ("16,0,0,,,,,", "`0` is not above 0", "ns_per_op"),
        ("16,1e300,0,,,,,", "`1e300` is no plausible figure", "ns_per_op"),
        ("16,59,99999999999,,,,,", "`99999999999` is out of range", "launch"),
        ("16,59,-1,,,,,", "`-1` is out of range", "launch"),
        ("16,59,x,,,,,", "`x` is not a whole number", "launch"),
        ("16,59,0,0xg,,,,", "`0xg` is not an address", "buf"),
        ("16,59,0,,64,,,", "`64` is not a residue from 0 to 63", "buf_mod64"),
        ("16,59,0,,,maybe,,", "`maybe` is neither true nor false", "disturbed"),
        ("16,59,0,,,,fine,", "`fine` is not one of ok, failed, timed-out", "status"),
        ("16,59,0,,,,,x", "`x` is not key=value", "params"),
        (",59,0,,,,,", "the placement is missing", "placement_value"),
        ("16,59", "the row has 2 cells where the header has 8", "launch"),
        ("16,59,0,,,,,,", "the row has 9 cells where the header has 8", "params"),
    ] {
        let place = format!("{problem}: f.csv, row 3, column {column}; ");
        assert!(fault(row).starts_with(&place), "{} should start with {place}", fault(row));
    }
}

#[test]
fn bad_files_are_named() {
    assert!(series("").unwrap_err().starts_with("the file is empty: f.csv; "));
    assert!(series("\n\n").unwrap_err().starts_with("the file is empty: f.csv; "));
    let error = series_from_reader("f.csv", &b"placement_value,ns_per_op\n0,\xff\n"[..]);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("the cell is not UTF-8: f.csv, row 2, column ns_per_op; ")
    );
    let utf16: Vec<u8> = "a,b\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = series_from_reader("f.csv", &[&[0xff, 0xfe], &utf16[..]].concat()[..]);
    assert!(error.unwrap_err().to_string().contains("row 1"));
    assert!(series("placement_value,ns_per_op\n\"0,59\n").unwrap_err().contains("never closed"));
}

#[test]
fn a_truncated_file_is_a_fault_and_a_killed_run_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let run = started(dir.path());
    write(&run, &few_samples());
    let bytes = fs::read(run.samples_path()).unwrap();
    fs::write(run.samples_path(), &bytes[..bytes.len() - 4]).unwrap();
    let error = read_series(&run.samples_path()).unwrap_err();
    assert!(error.to_string().contains("the last row is cut off"), "{error}");
    assert_eq!(error.row, Some(4));
    let recording = run.read_series().unwrap();
    assert_eq!((recording.rows, recording.torn), (2, Some(4)));
}
