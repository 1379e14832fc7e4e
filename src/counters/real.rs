//! Tests against the running kernel: what it counts without a PMU, for real.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn software_events_and_breakpoints_are_proven_for_real() {
    let context = Context::detect();
    for surveyed in survey_software(&context) {
        match &surveyed.standing {
            Standing::Proven => {}
            Standing::Absent(absence)
                if ["ENOSYS", "EPERM", "EACCES"].iter().any(|e| absence.why.contains(e)) =>
            {
                eprintln!("skipped: {} absent: {}", surveyed.name, absence.why);
            }
            other => panic!("{}: {other:?}", surveyed.name),
        }
    }
}

#[test]
fn every_standard_counter_is_proven_or_absent_with_reason_and_remedy() {
    let context = Context::detect();
    let surveyed = survey(&context, &[]);
    assert_eq!(surveyed.len(), STANDARD.len());
    for (surveyed, (name, _)) in surveyed.iter().zip(STANDARD) {
        assert_eq!(surveyed.name, name);
        match &surveyed.standing {
            Standing::Proven => {}
            Standing::Absent(absence) => {
                assert!(!absence.why.is_empty() && !absence.remedy.is_empty());
            }
            Standing::Unproven(why) => panic!("{name} has a self-test: {why}"),
        }
    }
}

#[test]
fn a_group_of_software_events_counts_each_block_on_its_own() {
    let context = Context::detect();
    let events = [Event::task_clock(), Event::page_faults()];
    let (mut set, absent) = Set::open(&context, &events);
    if let Some((_, absence)) = absent.first() {
        eprintln!("skipped: {}", absence.why);
        return;
    }
    let mut clocks = Vec::new();
    for steps in [20_000, 200_000] {
        set.start();
        crate::kernels::dependent_chain(steps);
        set.stop();
        let reading = set.read();
        assert_eq!(reading.running_ratio(), Some(1.0));
        let per_op = reading.per_op(1);
        clocks.push(per_op[0].1.expect("the task clock always runs"));
        assert!(per_op[1].1.is_some_and(|faults| faults < 50.0), "{per_op:?}");
    }
    // Ten times the work; a quarter of that would still tell totals from differences.
    assert!(clocks[1] > 2.5 * clocks[0], "{clocks:?}");
}

#[test]
fn a_child_is_counted_from_its_exec_with_its_children() {
    let context = Context::detect();
    let mut child = Command::new("/bin/sh")
        .args(["-c", "read go; exec /bin/sh -c '/bin/true; /bin/true; /bin/true'"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell starts");
    let process = i32::try_from(child.id()).expect("fits");
    let extra = [Event::page_faults(), Event::task_clock()];
    let (mut set, absent) = Set::open_on_child(&context, process, &extra);
    let refused = absent.iter().find(|(name, _)| name == "page_faults").cloned();
    child.stdin.take().expect("is piped").write_all(b"\n").expect("is read");
    child.wait().expect("ends");
    if let Some((_, absence)) = refused {
        eprintln!("skipped: {}", absence.why);
        return;
    }
    let per_op = set.read().per_op(1);
    let of = |name: &str| per_op.iter().find(|(n, _)| n == name).and_then(|(_, figure)| *figure);
    // Each of the programs touches dozens of pages when it starts.
    assert!(of("page_faults").is_some_and(|faults| faults > 100.0), "{per_op:?}");
    assert!(of("task_clock_ns").is_some_and(|ns| ns > 10_000.0), "{per_op:?}");
}

#[test]
fn without_descriptors_the_sentence_is_about_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    // The limit holds for the whole process: in a child, so that other tests keep theirs.
    if std::env::var_os("STACKPHASE_TEST_NO_DESCRIPTORS").is_some() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("is readable");
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).expect("may be lowered");
        let (set, absent) = Set::open(&Context::detect(), &[Event::task_clock()]);
        assert!(set.is_empty());
        assert_eq!(absent[0].1.remedy, "raise the limit with ulimit -n", "{absent:?}");
        return;
    }
    if survey_one(&Context::detect(), &Event::task_clock()) != Standing::Proven {
        eprintln!("skipped: perf_event_open is not available");
        return;
    }
    let name = "counters::real::without_descriptors_the_sentence_is_about_descriptors";
    let status = Command::new(std::env::current_exe().expect("is known"))
        .args(["--exact", name])
        .env("STACKPHASE_TEST_NO_DESCRIPTORS", "1")
        .stdout(Stdio::null())
        .status()
        .expect("starts");
    assert!(status.success());
}
