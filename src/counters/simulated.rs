//! Tests of the whole module on a simulated PMU: what the kernel may answer, and what a person
//! then reads.

use std::path::PathBuf;

use super::*;
use crate::sample::Absence;
use crate::sys::simulated_pmu::{Block, Simulation, full};

const STEPS: u64 = 20_000;

/// A Zen 5 whose kernel lists its PMU.
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
        environment: Environment { paranoid: Some(2), pmu_listed: true, ..Environment::default() },
        root: PathBuf::from("/nonexistent"),
    }
}

/// Counts as a Zen 5 would in the self-tests: the loop with the event, then the one without.
fn honest(config: u64, block: usize) -> Block {
    let with = match config {
        0xc0 => STEPS * 18 + 120,
        0x76 => STEPS * 48,
        0x04ae => STEPS * 25,
        _ => STEPS,
    };
    // The trial that looks whether groups run together is no self-test: any count will do.
    full(if block == 1 && !matches!(config, 0xc0 | 0x76) { 40 } else { with })
}

fn failures() -> Event {
    lookup(zen5().core.as_ref().expect("is in the table"), "store_forward_failures")
        .expect("has the event")
}

fn absence(standing: Standing) -> Absence {
    match standing {
        Standing::Absent(absence) => absence,
        other => panic!("expected an absence, got {other:?}"),
    }
}

#[test]
fn everything_is_proven_on_a_machine_that_counts() {
    let _simulation = Simulation::new(Box::new(honest));
    let context = zen5();
    for surveyed in survey(&context, &[]) {
        match surveyed.name.as_str() {
            "address_aliases" | "split_stores" => {
                assert!(
                    absence(surveyed.standing).why.contains("no event of AMD Zen 5 is known for")
                );
            }
            name => assert_eq!(surveyed.standing, Standing::Proven, "{name}"),
        }
    }
}

#[test]
fn raw_codes_reach_the_kernel_with_the_kernel_and_hypervisor_excluded_and_never_idle() {
    let simulation = Simulation::new(Box::new(honest));
    let (set, _) = Set::open(&zen5(), &[failures()]);
    assert_eq!(set.names(), ["store_forward_failures"]);
    let asked = simulation.state.borrow().asked.clone();
    assert_eq!((asked[1].kind, asked[1].config), (4, 0x0224));
    assert!(asked.iter().all(|asked| asked.excluded == [true, true, false, false]));
    assert!(asked[1].leader >= 0, "is a member of the group");
}

#[test]
fn a_driver_that_wants_the_guest_excluded_gets_it() {
    let simulation = Simulation::new(Box::new(honest));
    simulation.state.borrow_mut().refuse =
        Box::new(|asked| (asked.kind == 4 && !asked.excluded[2]).then_some(libc::EINVAL));
    assert_eq!(survey_one(&zen5(), &failures()), Standing::Proven);
    let asked = simulation.state.borrow().asked.clone();
    let rungs: Vec<[bool; 4]> =
        asked.iter().filter(|a| a.kind == 4).map(|asked| asked.excluded).collect();
    assert_eq!(rungs, [[true, true, false, false], [true, true, true, false]]);
}

#[test]
fn every_errno_at_every_rung_ends_in_a_sentence_of_its_own() {
    let errnos = [
        libc::E2BIG,
        libc::EACCES,
        libc::EBADF,
        libc::EBUSY,
        libc::EFAULT,
        libc::EINTR,
        libc::EINVAL,
        libc::EMFILE,
        libc::ENODEV,
        libc::ENOENT,
        libc::ENOSPC,
        libc::ENOSYS,
        libc::EOPNOTSUPP,
        libc::EOVERFLOW,
        libc::EPERM,
        libc::ESRCH,
        libc::ENXIO,
    ];
    for errno in errnos {
        // Rung 0 is the leader itself; before the others the attributes are refused.
        for rung in 0..=4 {
            let simulation = Simulation::new(Box::new(honest));
            let mut member = 0;
            simulation.state.borrow_mut().refuse = Box::new(move |asked| {
                if asked.kind != 4 {
                    return (rung == 0).then_some(errno);
                }
                member += 1;
                Some(if member < rung { libc::EINVAL } else { errno })
            });
            let absence = absence(survey_one(&zen5(), &failures()));
            let expected = super::absence::refused(errno, &zen5().environment);
            assert_eq!(absence, expected, "errno {errno} at rung {rung}");
            let opened = simulation.state.borrow().asked.len();
            let goes_on = matches!(errno, libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM);
            let due = if rung == 0 { 1 } else { 1 + if goes_on { 4 } else { rung } };
            assert_eq!(opened, due, "errno {errno} at rung {rung}");
        }
    }
}

#[test]
fn a_counter_that_stays_zero_is_absent() {
    let _simulation = Simulation::new(Box::new(|_, _| full(0)));
    for (event, why) in [
        (
            failures(),
            "it opens but counts nothing: 0 where one load a step spans two in-flight stores",
        ),
        (
            Event::generic_instructions(),
            "it opens but counts nothing: 0 where 18 instructions a step were retired",
        ),
    ] {
        assert_eq!(absence(survey_one(&zen5(), &event)).why, why);
    }
}

#[test]
fn a_counter_of_something_else_is_absent() {
    // Counts every load, forwarded or not.
    let _simulation = Simulation::new(Box::new(|_, _| full(STEPS)));
    assert_eq!(
        absence(survey_one(&zen5(), &failures())).why,
        "it opens but counts something else: 1.000 a step where every load is forwarded"
    );
    // A software clock in place of the instruction counter.
    let clock = absence(survey_one(&zen5(), &Event::generic_instructions()));
    assert_eq!(
        clock.why,
        "it opens but counts something else: 1.000 a step where 18 instructions a step were retired"
    );
}

#[test]
fn one_disturbed_attempt_does_not_condemn_a_counter() {
    let _simulation = Simulation::new(Box::new(|_, block| {
        full(if block == 0 { STEPS * 30 } else { STEPS * 18 })
    }));
    assert_eq!(survey_one(&zen5(), &Event::generic_instructions()), Standing::Proven);
}

#[test]
fn one_that_never_runs_says_who_holds_it() {
    let never = |_: u64, _: usize| Block { count: 0, enabled: 1_000_000, running: 0 };
    let _simulation = Simulation::new(Box::new(never));
    let why = |environment| {
        let context = Context { environment, ..zen5() };
        absence(survey_one(&context, &failures())).why
    };
    let quiet = zen5().environment;
    assert!(why(quiet.clone()).contains("never runs: other users hold"));
    assert!(why(Environment { watchdog: true, ..quiet.clone() }).contains("NMI watchdog"));
    assert!(why(Environment { hybrid: true, ..quiet }).contains("another kind of core"));
}

#[test]
fn multiplexed_self_tests_are_scaled() {
    let _simulation = Simulation::new(Box::new(|config, block| {
        let whole = honest(config, block);
        Block { count: whole.count * 2 / 5, enabled: 1_000_000, running: 400_000 }
    }));
    assert_eq!(survey_one(&zen5(), &failures()), Standing::Proven);
}

#[test]
fn readings_are_scaled_and_marked_through_a_set() {
    let model = |_, _| Block { count: 802_000, enabled: 1_000_000, running: 400_000 };
    let _simulation = Simulation::new(Box::new(model));
    let (mut set, _) = Set::open(&zen5(), &[failures()]);
    set.start();
    set.stop();
    let reading = set.read();
    let per_op = reading.per_op(1_000_000);
    assert_eq!(per_op[0].0, "store_forward_failures");
    assert!((per_op[0].1.expect("ran") - 2.005).abs() < 1e-9);
    assert_eq!(reading.running_ratio(), Some(0.4));
}

#[test]
fn short_and_empty_readings_are_absent_with_their_reason() {
    for (bytes, why) in [
        (0, "cannot be read (EAGAIN)"),
        (8, "gave 8 bytes of the counter where 24 were due"),
        (40, "gave 40 bytes of the counter where 56 were due"),
    ] {
        let simulation = Simulation::new(Box::new(honest));
        let (mut set, _) = Set::open(&zen5(), &[failures()]);
        simulation.state.borrow_mut().truncate = Some(bytes);
        set.start();
        set.stop();
        let reading = set.read();
        assert_eq!(reading.per_op(1), [("store_forward_failures".to_owned(), None)]);
        let found = &reading.absences()[0].1.why;
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn a_register_that_wraps_at_48_bits_does_no_harm() {
    let simulation = Simulation::new(Box::new(|_, _| full(1_000)));
    {
        let mut state = simulation.state.borrow_mut();
        state.base = (1 << 48) - 400;
        state.width = 48;
    }
    let (mut set, _) = Set::open(&zen5(), &[failures()]);
    for _ in 0..3 {
        set.start();
        set.stop();
        assert_eq!(set.read().per_op(1_000)[0].1, Some(1.0));
    }
}

#[test]
fn groups_have_at_most_four_members_besides_the_leader() {
    let simulation = Simulation::new(Box::new(honest));
    let (set, absent) = Set::open_for_thread(&zen5(), &[]);
    assert_eq!(set.names().len(), 6);
    assert_eq!(absent.len(), 2, "aliases and split stores have no event");
    let asked = simulation.state.borrow().asked.clone();
    let mut members = std::collections::HashMap::<i32, usize>::new();
    let last: Vec<_> = asked.iter().rev().take(8).collect();
    for asked in last {
        *members.entry(asked.leader).or_default() += 1;
    }
    assert!(members.iter().all(|(leader, count)| *leader == -1 || *count <= GROUP), "{members:?}");
}

#[test]
fn groups_that_do_not_fit_together_take_turns() {
    // Together each runs half the time; the kernel would extrapolate.
    let _simulation = Simulation::new(Box::new(|config, block| {
        let whole = honest(config, block);
        Block { running: whole.running / 2, count: whole.count / 2, ..whole }
    }));
    let (mut set, _) = Set::open_for_thread(&zen5(), &[]);
    let mut seen = Vec::new();
    for _ in 0..2 {
        set.start();
        set.stop();
        let reading = set.read();
        let present: Vec<bool> =
            reading.per_op(10).iter().map(|(_, figure)| figure.is_some()).collect();
        seen.push(present);
    }
    let [first, second] = [&seen[0], &seen[1]];
    assert_eq!(first.len(), 6);
    assert!(first.iter().zip(second).all(|(a, b)| a != b), "{seen:?}");
}

#[test]
fn a_group_that_cannot_run_is_taken_apart() {
    // The watchdog holds one of four registers: four together never run, alone each does.
    let simulation = Simulation::new(Box::new(honest));
    let mut calls = std::collections::HashMap::<u64, usize>::new();
    simulation.state.borrow_mut().model = Box::new(move |config, block| {
        let nth = calls.entry(config).or_default();
        *nth += 1;
        let proofs = if matches!(config, 0xc0 | 0x76) { 1 } else { 2 };
        // The first count after the self-tests is the group's trial.
        if *nth == proofs + 1 {
            return Block { count: 0, enabled: 1_000_000_000, running: 0 };
        }
        honest(config, block)
    });
    let (mut set, _) = Set::open_for_thread(&zen5(), &[]);
    assert_eq!(set.names().len(), 6, "none was lost");
    set.start();
    set.stop();
    assert!(set.read().absences().is_empty());
}

#[test]
fn a_descriptor_limit_is_named() {
    let simulation = Simulation::new(Box::new(honest));
    let mut left = 2;
    simulation.state.borrow_mut().refuse = Box::new(move |_| {
        left -= 1;
        (left < 0).then_some(libc::EMFILE)
    });
    let (set, absent) = Set::open(&zen5(), &[failures(), Event::generic_cycles()]);
    assert_eq!(set.names().len(), 1);
    assert_eq!(absent[0].1.why, "this process has no file descriptor left (EMFILE)");
    assert_eq!(absent[0].1.remedy, "raise the limit with ulimit -n");
}

#[test]
fn a_member_that_its_group_has_no_register_for_gets_a_group_of_its_own() {
    let simulation = Simulation::new(Box::new(honest));
    let mut first_leader = None;
    simulation.state.borrow_mut().refuse = Box::new(move |asked| {
        if asked.kind != 4 {
            return None;
        }
        let leader = *first_leader.get_or_insert(asked.leader);
        (asked.config == 0x35 && asked.leader == leader).then_some(libc::EINVAL)
    });
    let forwards = lookup(zen5().core.as_ref().expect("known"), "store_forwards").expect("known");
    let (mut set, absent) = Set::open(&zen5(), &[failures(), forwards]);
    assert_eq!(absent, []);
    set.start();
    set.stop();
    assert_eq!(set.read().absences(), []);
}

#[test]
fn children_are_counted_one_by_one_from_their_exec() {
    let simulation = Simulation::new(Box::new(honest));
    let (set, _) = Set::open_on_child(&zen5(), 4711, &[Event::task_clock()]);
    assert_eq!(set.names().len(), 7);
    let asked = simulation.state.borrow().asked.clone();
    assert!(asked.iter().all(|a| a.inherit && a.on_exec && a.leader == -1 && a.process == 4711));
}

#[test]
fn a_pmu_that_is_not_listed_is_named() {
    let _simulation = Simulation::new(Box::new(honest));
    let event: Event = "mine=cpu_atom/event=0x24/".parse().expect("is well formed");
    assert_eq!(absence(survey_one(&zen5(), &event)).why, "the kernel lists no PMU `cpu_atom`");
    let event: Event = "mine=cpu/event=0x1240/".parse().expect("is well formed");
    assert!(absence(survey_one(&zen5(), &event)).why.contains("at most 0xfff"));
    let event: Event = "mine=r0224".parse().expect("is well formed");
    assert!(matches!(survey_one(&zen5(), &event), Standing::Unproven(_)));
}

#[test]
fn the_perf_command_repeats_the_set() {
    let context = zen5();
    let (events, _) = context.events(&["mine=r0147".parse().expect("is well formed")]);
    assert_eq!(
        perf_command(&context, &events, "./bench --once"),
        "perf stat -e '{cpu/event=0xc0,name=instructions/u,cpu/event=0x76,name=cycles/u,\
         cpu/event=0x24,umask=0x2,name=store_forward_failures/u,\
         cpu/event=0x35,name=store_forwards/u},\
         {cpu/event=0x47,umask=0x1,name=split_loads/u,\
         cpu/event=0xae,umask=0x4,name=store_queue_stalls/u,\
         cpu/config=0x147,name=mine/u}' -- ./bench --once"
    );
}
