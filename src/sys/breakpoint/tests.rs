use super::*;
use perf_event::hooks::{Hooks, RealHooks, clear_thread_hooks, set_thread_hooks};
use std::hint::black_box;
use std::os::raw::{c_int, c_ulong};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Runs only where the machine has watchpoints; elsewhere the reason is printed.
fn proven() -> bool {
    match prove() {
        Ok(()) => true,
        Err(error) => {
            eprintln!("skipped: {error}");
            false
        }
    }
}

#[repr(align(64))]
struct Aligned([u8; 256]);

#[test]
fn every_write_is_reported_in_order_with_its_place() -> TestResult {
    if !proven() {
        return Ok(());
    }
    let mut cell = 0u64;
    let at = &raw mut cell;
    let mut watch = watch(at as usize, 8, Access::Write)?;
    // SAFETY: `at` points to a live local.
    unsafe {
        at.write_volatile(1);
        at.write_volatile(2);
        black_box(at.read_volatile());
        at.write_volatile(3);
    }
    watch.disable()?;
    let hits = watch.take();
    assert_eq!(hits.len(), 3, "{hits:?}");
    assert!(hits.is_sorted_by_key(|hit| hit.time));
    assert!(hits.windows(2).all(|pair| pair[0].ip != pair[1].ip));
    // All of them inside this function, give or take its size.
    let here = every_write_is_reported_in_order_with_its_place as fn() -> TestResult as usize;
    assert!(hits.iter().all(|hit| hit.ip.abs_diff(here as u64) < 1 << 20), "{hits:?}");
    assert_eq!(watch.lost(), 0);
    assert!(watch.take().is_empty());
    Ok(())
}

#[test]
fn reads_are_reported_on_request() -> TestResult {
    if !proven() {
        return Ok(());
    }
    let mut cell = 0u32;
    let at = &raw mut cell;
    let mut watch = watch(at as usize, 4, Access::ReadWrite)?;
    // SAFETY: `at` points to a live local.
    unsafe {
        at.write_volatile(1);
        black_box(at.read_volatile());
    }
    watch.disable()?;
    assert_eq!(watch.take().len(), 2);
    Ok(())
}

#[test]
fn a_copy_by_the_c_library_trips_it_once_or_twice() -> TestResult {
    if !proven() {
        return Ok(());
    }
    let from = Aligned([7; 256]);
    let mut to = Aligned([0; 256]);
    let mut watch = watch(to.0.as_ptr() as usize, 1, Access::Write)?;
    let len = black_box(64);
    // SAFETY: both buffers are longer than `len` and do not overlap.
    unsafe { libc::memcpy(to.0.as_mut_ptr().cast(), from.0.as_ptr().cast(), len) };
    watch.disable()?;
    black_box(&to);
    // One store where a copy's parts do not meet, two where they overlap on the first byte.
    let hits = watch.take();
    assert!((1..=2).contains(&hits.len()), "{hits:?}");
    let here = a_copy_by_the_c_library_trips_it_once_or_twice as fn() -> TestResult as usize;
    assert!(hits.iter().all(|hit| hit.ip.abs_diff(here as u64) > 1 << 20), "not in our program");
    Ok(())
}

#[test]
fn what_does_not_fit_is_counted_as_lost() -> TestResult {
    if !proven() {
        return Ok(());
    }
    let mut cell = 0u64;
    let at = &raw mut cell;
    let mut watch = watch(at as usize, 8, Access::Write)?;
    let writes = 5000;
    for i in 0..writes {
        // SAFETY: `at` points to a live local.
        unsafe { at.write_volatile(i) };
    }
    watch.disable()?;
    let kept = watch.take().len() as u64;
    assert!(kept > 1000 && kept < writes);
    // The kernel tells of a loss with the next record that fits.
    watch.enable()?;
    // SAFETY: `at` points to a live local.
    unsafe { at.write_volatile(0) };
    watch.disable()?;
    assert_eq!(watch.take().len(), 1);
    assert_eq!(watch.lost() + kept, writes);
    Ok(())
}

#[test]
fn a_fifth_watch_says_that_all_are_in_use() -> TestResult {
    if !proven() {
        return Ok(());
    }
    let cells = [0u64; 64];
    let mut open = Vec::new();
    let refusal = loop {
        match watch(&raw const cells[open.len()] as usize, 8, Access::Write) {
            Ok(watch) if open.len() < 16 => open.push(watch),
            Ok(_) => {
                eprintln!("skipped: this core has more than sixteen breakpoints");
                return Ok(());
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal, WatchError::Exhausted), "{refusal}");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(open.len(), 4);
    }
    let line = Failure::from(refusal).to_string();
    assert!(line.starts_with("no free hardware breakpoint: hardware watchpoint; close"), "{line}");
    Ok(())
}

#[test]
fn a_shape_that_the_hardware_lacks_is_refused_before_the_kernel_is_asked() {
    for (address, bytes) in [(0x1000, 3), (0x1001, 2), (0x1004, 8), (0x1000, 0), (0x1000, 16)] {
        let refusal = watch(address, bytes, Access::Write);
        assert!(matches!(refusal, Err(WatchError::Shape { .. })), "{address:#x}, {bytes}");
    }
}

/// Answers every open with one error of the system.
struct Refuse(c_int);

impl Hooks for Refuse {
    unsafe fn perf_event_open(
        &mut self,
        _: *mut bindings::perf_event_attr,
        _: libc::pid_t,
        _: c_int,
        _: c_int,
        _: c_ulong,
    ) -> c_int {
        // SAFETY: errno of this thread.
        unsafe { *libc::__errno_location() = self.0 };
        -1
    }
}

#[test]
fn every_refusal_has_its_own_sentence() {
    let expected = [
        (libc::ENOSPC, "no free hardware breakpoint"),
        (libc::EACCES, "perf_event_paranoid is"),
        (libc::EPERM, "perf_event_open is forbidden"),
        (libc::ENOSYS, "this kernel offers no hardware breakpoints"),
        (libc::ENODEV, "this kernel offers no hardware breakpoints"),
        (libc::ENOENT, "this kernel offers no hardware breakpoints"),
        (libc::EOPNOTSUPP, "this kernel offers no hardware breakpoints"),
        (libc::EMFILE, "cannot watch memory: Too many open files"),
        (libc::EINVAL, "cannot watch memory: Invalid argument"),
    ];
    for (code, sentence) in expected {
        // SAFETY: no perf counter of this thread is alive.
        unsafe { set_thread_hooks(Box::new(Refuse(code))) };
        let refusal = watch(0x1000, 8, Access::Write);
        // SAFETY: as above.
        unsafe { clear_thread_hooks() };
        let Err(error) = refusal else { panic!("{code} was no refusal") };
        let line = Failure::from(error).to_string();
        assert!(line.starts_with(sentence), "{code}: {line}");
        assert_eq!(line.lines().count(), 1);
    }
}

/// Opens, enables and disables, but never reports: what some emulators do.
struct Deaf;

impl Hooks for Deaf {
    unsafe fn perf_event_open(
        &mut self,
        attributes: *mut bindings::perf_event_attr,
        pid: libc::pid_t,
        cpu: c_int,
        group: c_int,
        flags: c_ulong,
    ) -> c_int {
        // SAFETY: the caller's arguments, unchanged.
        unsafe { RealHooks.perf_event_open(attributes, pid, cpu, group, flags) }
    }
    unsafe fn ENABLE(&mut self, _: c_int, _: std::os::raw::c_uint) -> c_int {
        0
    }
    unsafe fn DISABLE(&mut self, _: c_int, _: std::os::raw::c_uint) -> c_int {
        0
    }
}

#[test]
fn a_breakpoint_that_reports_nothing_is_not_proven() {
    if !proven() {
        return;
    }
    // SAFETY: no perf counter of this thread is alive.
    unsafe { set_thread_hooks(Box::new(Deaf)) };
    let proof = prove();
    // SAFETY: as above.
    unsafe { clear_thread_hooks() };
    assert!(matches!(proof, Err(WatchError::Silent)), "{proof:?}");
}
