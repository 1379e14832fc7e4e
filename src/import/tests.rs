//! Each format as its program writes it, and files that are at fault.

use proptest::prelude::*;

use super::*;
use crate::analysis::judge_launches;
use crate::sample::{Placement, Role};

/// A result file of the first form with the given medians of BLAKE3 at 64 B.
fn text(median: f64) -> String {
    format!(
        "TIMESTAMP: 2026-08-23T10:41:07Z\nCPU type: AMD Ryzen AI 9 HX 370\nCPU count: 24\n\
         OS type: Linux\nRust compiler: rustc 1.97.1\nBLAKE3 source: crate 1.8.7\n\n\
         BLAKE3 implementation selected: AVX-512\n  64 B: single block\n\n{}\n\
         BENCHMARK SUMMARY\nns/B; median (minimum–maximum in parentheses)\n\n\
         \x20 64 B:   \n    BLAKE3  : {median:5.2} ({:5.2}–{:5.2})\n    \
         SHA-256 :  0.98 ( 0.97– 1.05)  \n    SHA3-256:  7.36 ( 7.31– 7.60)\n\
         \x20 4096 B:\n    BLAKE3  :  0.30 ( 0.30– 0.31)\n\
         \x20 16 KiB:\n    BLAKE3  :  0.10 ( 0.10– 0.11)\n\
         \x20 1 MiB:\r\n    BLAKE3  :  0.08 ( 0.08– 0.08)\r\n",
        "=".repeat(60),
        median - 0.01,
        median + 0.06,
    )
}

fn one(name: &str, text: &str) -> Foreign {
    parse(name, text.as_bytes()).unwrap()
}

fn fault(text: &str) -> String {
    parse("f", text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_first_form() {
    let file = one("a.txt", &text(0.89));
    assert_eq!(file.format, Format::Text);
    let figures = &file.processes[0].figures;
    let named: Vec<_> = figures.iter().map(|f| (f.workload.as_str(), f.len.unwrap())).collect();
    assert_eq!(
        named,
        [
            ("blake3", 64),
            ("sha256", 64),
            ("sha3-256", 64),
            ("blake3", 4096),
            ("blake3", 16_384),
            ("blake3", 1 << 20)
        ]
    );
    let Figures::Summary { median, fastest, resolution } = figures[0].figures else {
        panic!("a summary")
    };
    assert!((median - 0.89 * 64.0).abs() < 1e-9 && (fastest - 0.88 * 64.0).abs() < 1e-9);
    assert!((resolution - 0.32).abs() < 1e-9);
}

#[test]
fn six_files_of_one_machine_are_six_launches() {
    let files: Vec<Foreign> =
        [0.88, 1.27, 1.21, 1.20, 0.90, 0.89].iter().map(|m| one("a.txt", &text(*m))).collect();
    let all = launches(&files);
    let blake3 = all.iter().find(|l| l.key.workload == "blake3" && l.key.len == Some(64)).unwrap();
    assert_eq!(blake3.key.placement, Placement::Aslr);
    let verdict = judge_launches(&blake3.key, Role::Subject, false, &blake3.figures, 2.0);
    let counts: Vec<usize> = verdict.bands.iter().map(|band| band.placements.len()).collect();
    assert_eq!(counts, [3, 2, 1]);
    let samples = samples(&files);
    assert_eq!(samples.len(), 36);
    assert_eq!(samples.iter().map(|sample| sample.launch).max(), Some(5));
    assert!(samples.iter().all(|sample| sample.buf.is_none() && sample.ns_per_op.is_some()));
}

#[test]
fn faults_of_the_first_form_name_their_line() {
    let cut = text(0.89).replace("0.88– 0.95", "0.88–");
    assert_eq!(
        fault(&cut),
        "`0.89 ( 0.88–)` is not median (minimum–maximum): f, row 16, column BLAKE3; restore the \
         file, or remove the row"
    );
    assert!(
        fault(&text(0.89).replace("16 KiB:", "16 Kib:")).contains("`16 Kib` is not a size above 0")
    );
    let (head, _) =
        text(0.89).split_once("\n  64 B:   ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(fault(&head).starts_with("the bench-hashes summary holds no figure"));
}

#[test]
fn the_later_form() {
    let file = one(
        "b.txt",
        "Hash speed on AMD Ryzen (Linux6.18, 24 CPUs), 2026-09-09 10:00:00 UTC\n\n\
         One message, ns/B\n\n          BLAKE3   SHA-256   SHA3-256\n\
         64 B      0.61|0.86  0.98~   7.36!\n4096 B    0.30   –   3.44\n1 MiB  0.08 0.41 3.36\n\n\
         One message, ns/msg\n          BLAKE3   SHA-256   SHA3-256\n64 B  39.0  62.7  471\n",
    );
    let process = &file.processes[0];
    let find = |workload: &str, len| {
        let mut all = process.figures.iter();
        all.find(|f| f.workload == workload && f.len == Some(len)).map(|f| f.figures.clone())
    };
    let Some(Figures::Summary { median, fastest, .. }) = find("blake3", 64) else { panic!() };
    assert!((median - 0.61 * 64.0).abs() < 1e-9 && fastest == median);
    let Some(Figures::Summary { median, fastest, .. }) = find("sha256", 64) else { panic!() };
    assert!((fastest / median - 0.95).abs() < 1e-9);
    let Some(Figures::Summary { median, fastest, .. }) = find("sha3-256", 64) else { panic!() };
    assert!((fastest / median - 0.75).abs() < 1e-9);
    assert_eq!(find("sha256", 4096), None);
    assert!(find("sha3-256", 1 << 20).is_some());
    // The second table repeats the first in another unit.
    assert_eq!(process.figures.len(), 8);
    assert_eq!(process.figures[0].params.get("table"), Some("One message"));
    assert!(file.notes[0].contains("two speeds within the process, 0.61 and 0.86"));
    assert!(fault("Hash speed on x\nns/B\nBLAKE3  SHA-256\n64 B 1.0\n").contains("row 4"));
}

#[test]
fn samples_of_both_versions() {
    let v2 = one(
        "s.tsv",
        "# bench-hashes samples v2\n# cpu: AMD\ncontender\tscenario\tuse_case\tpoint\tunit\t\
         ps_per_unit\nblake3\tsolo\tOneMessage\t64 B\tB\t618,626,622\nblake3\tsolo\tMany\tall\t\
         msg\t39000\n",
    );
    let figures = &v2.processes[0].figures;
    let Figures::Rounds(rounds) = &figures[0].figures else { panic!("rounds") };
    assert_eq!(rounds.len(), 3);
    assert!((rounds[0] - 0.618 * 64.0).abs() < 1e-9);
    assert_eq!(figures[0].params.to_string(), "scenario=solo;use_case=OneMessage");
    assert_eq!((figures[1].len, figures[1].params.get("point")), (None, Some("all")));
    assert_eq!(figures[1].figures, Figures::Rounds(vec![39.0]));

    let v4 = one(
        "s.tsv",
        "# bench-hashes samples v4\n# load windows: 12-14 s\nblake3\tsolo\tOneMessage\t64 B\tmsg\t\
         2306612/50000,2306000/50000\t12,17\n",
    );
    let Figures::Rounds(rounds) = &v4.processes[0].figures[0].figures else { panic!("rounds") };
    assert!((rounds[0] - 46.13224).abs() < 1e-9 && rounds.len() == 2);
    assert!(v4.notes[0].contains("load windows: 12-14 s"));

    let head = "# bench-hashes samples v2\n";
    assert!(fault(&format!("{head}a\tb\n")).contains("2 cells between tabs: f, row 2"));
    let zero = fault(&format!("{head}blake3\ts\tu\t64 B\tB\t618,0\n"));
    assert!(zero.starts_with("`0` is not a time above 0: f, row 2, column samples"), "{zero}");
    assert!(fault("# bench-hashes samples v9\n").contains("version"));
}

#[test]
fn clocks() {
    let header = "contender,length,sample,blocks,calls,hashes_per_block,completed_hashes,wall_ns,\
                  p_cycles,p_instructions,p_time_ns,e_cycles,e_instructions,e_time_ns\n";
    let file = one(
        "c.csv",
        &format!(
            "{header}blake3,64,0,10,100,100,1000,59000,1,1,1,0,0,0\n\
             blake3,64,1,10,100,100,1000,60000,1,1,1,0,0,0\n\
             sha256,64,0,10,100,100,1000,62000,1,1,1,0,0,0\n"
        ),
    );
    assert_eq!(file.format, Format::Clocks);
    let figures = &file.processes[0].figures;
    assert_eq!(figures[0].figures, Figures::Rounds(vec![59.0, 60.0]));
    assert_eq!(figures[1].workload, "sha256");
    let bad = fault(&format!("{header}blake3,64,0,10,100,100,0,59000,1,1,1,0,0,0\n"));
    assert!(bad.contains("row 2, column completed_hashes"), "{bad}");
    assert!(fault(&format!("{header}blake3,64\n")).contains("2 cells where the header has 14"));
    assert!(fault("contender,length,sample,x\n").contains("no column completed_hashes"));
}

#[test]
fn hyperfine_runs_are_launches() {
    let file = one(
        "h.json",
        r#"{"results":[{"command":"./a secret","mean":1.0,"times":[1.0,1.01,1.3],
            "exit_codes":[0,0,1]},{"command":"./b","times":[2.0]}]}"#,
    );
    assert_eq!(file.processes.len(), 3);
    assert!(file.notes[0].contains("run 2 of result 1 failed"));
    let all = launches(&[file.clone(), file]);
    let arms: Vec<_> = all.iter().map(|l| (l.key.arm.as_str(), l.figures.len())).collect();
    assert_eq!(arms, [("command-1", 4), ("command-2", 2)]);
    let launches: Vec<u32> = all[0].figures.iter().map(|figure| figure.launch).collect();
    assert_eq!(launches, [0, 1, 2, 3]);
    assert_eq!(all[0].key.unit.as_deref(), Some("s"));
}

#[test]
fn a_hyperfine_parameter_can_be_the_placement() {
    let file = one(
        "h.json",
        r#"{"results":[{"command":"x","times":[1.0,1.1],"parameters":{"PAD":"0","threads":"2"}},
            {"command":"x","times":[1.3,1.4],"parameters":{"PAD":"16","threads":"2"}}]}"#,
    );
    let samples = samples(&[file]);
    let rows: Vec<_> =
        samples.iter().map(|s| (s.placement, s.placement_value, s.launch, s.order)).collect();
    assert_eq!(
        rows,
        [
            (Placement::Pad, 0, 0, Some(0)),
            (Placement::Pad, 0, 1, Some(1)),
            (Placement::Pad, 16, 0, Some(2)),
            (Placement::Pad, 16, 1, Some(3))
        ]
    );
    assert_eq!(samples[0].params.to_string(), "threads=2");
    assert_eq!(samples[0].value, Some(1.0));
}

#[test]
fn faults_of_hyperfine_files() {
    assert!(fault("{\"results\":[{}]}").contains("has no times"));
    assert!(fault("{\"results\":[{\"times\":[-1]}]}").contains("results[0].times[0]"));
    assert!(fault("{\"results\":[").contains("row 1"));
    assert!(fault("{\"results\":[]}").contains("holds no figure"));
    assert!(fault("hello").starts_with("this is no result file that is known"));
    let error = parse("f", b"# bench-hashes samples v2\n\xff").unwrap_err();
    assert_eq!(error.row, Some(2));
}

#[test]
fn a_csv_of_samples_is_left_to_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.txt");
    std::fs::write(&path, "placement_value,ns_per_op\n0,59\n").unwrap();
    assert_eq!(read(&path).unwrap(), None);
    std::fs::write(&path, text(0.89)).unwrap();
    assert_eq!(read(&path).unwrap().unwrap().format, Format::Text);
    assert!(read(&dir.path().join("none")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_damage_is_fatal(
        which in 0usize..5, at in any::<prop::sample::Index>(), junk in "\\PC{0,6}", cut in 0usize..20,
    ) {
        let whole = [
            text(0.89),
            "Hash speed on x\nns/B\nBLAKE3  SHA-256\n64 B 1.0|2.0~ 3!\n".to_owned(),
            "# bench-hashes samples v4\nb\ts\tu\t64 B\tB\t1/2\t3\n".to_owned(),
            "contender,length,sample,completed_hashes,wall_ns\nblake3,64,0,1,1\n".to_owned(),
            r#"{"results":[{"times":[1.0],"parameters":{"pad":"1"}}]}"#.to_owned(),
        ][which].clone();
        let chars: Vec<char> = whole.chars().collect();
        let at = at.index(chars.len());
        let damaged: String = chars[..at]
            .iter()
            .copied()
            .chain(junk.chars())
            .chain(chars[at..].iter().copied().skip(cut))
            .collect();
        if let Ok(file) = parse("f", damaged.as_bytes()) {
            for launches in launches(&[file]) {
                let ok = launches.figures.iter().all(|f| f.median.is_finite() && f.median > 0.0);
                prop_assert!(ok, "{:?}", launches);
            }
        }
    }
}
