//! The line grid over a closure of the caller's, in the calling process.
//!
//! *Hypothesis* and *control* are those of [`super::phase`]. *Cannot show*: how processes differ,
//! since there is one launch, which the verdict says; nor rules about a buffer, which only a
//! [`Workload`] can name.

use stack_trampoline::Alignment;

use crate::Failure;
use crate::analysis::{Options, Verdict, judge};
use crate::block::Loop;
use crate::launch::{GridJob, Order, Told, run_with};
use crate::machine::Affinity;
use crate::placement::{line_shifts, page_shifts};
use crate::record::series_of;
use crate::sample::{Grid, Params, Placement};
use crate::workloads::{Closure, Name, Spec, Workload};

/// Rounds: one more than a launch of `stackphase phase`, as there is no second launch.
const ROUNDS: u32 = 24;

/// Times `f` at sixteen phases of the stack, 16 bytes apart, and judges whether its speed depends
/// on them. Takes some 200 ms, more where one call is longer than 100 µs.
///
/// `f` is one operation; what it returns is kept from being optimised away, what it reads should
/// pass through [`std::hint::black_box`]. It runs on the calling thread, below the frame of a
/// trampoline, pinned to one processor for as long as that takes.
///
/// # Errors
/// When the stack has no room for the shifts, or the processor has no trampoline.
///
/// ```
/// fn main() -> Result<(), stackphase::Failure> {
///     let verdict = stackphase::phase(|| {
///         let block = std::hint::black_box([7u8; 64]);
///         blake3::hash(&block)
///     })?;
///     println!("{}: {:?} %", verdict.verdict, verdict.effect_percent);
///     assert_eq!(verdict.workload, "closure");
///     Ok(())
/// }
/// ```
pub fn phase<R>(mut f: impl FnMut() -> R) -> Result<Verdict, Failure> {
    let workload = Closure(move || {
        std::hint::black_box(f());
    });
    phase_of("closure", Grid::Line, workload)
}

/// As [`phase`], for a workload that has a frame, a name, or a buffer to be located, and for either
/// grid (the page grid takes some ten seconds for an operation of 100 ns).
///
/// # Errors
/// As [`phase`].
pub fn phase_of<W: Workload>(name: &str, grid: Grid, workload: W) -> Result<Verdict, Failure> {
    let _restored = Affinity::hold();
    let shifts = match grid {
        Grid::Line => line_shifts(),
        Grid::Page => page_shifts(),
    };
    let job = GridJob {
        probe: "phase".to_owned(),
        // Only the label stands in the samples: the workload is the caller's.
        spec: Spec::new(Name::Registers, 0),
        label: Some(name.to_owned()),
        arm: "default".to_owned(),
        placement: Placement::Shift,
        alignment: Some(Alignment::Page.to_string()),
        placements: shifts.into_iter().map(|shift| shift as i64).collect(),
        params: Params::new().with("grid", grid),
        rounds: ROUNDS,
        extra_rounds: 3,
        order: Order::Shuffled,
        seed: fastrand::u64(..),
        launch: 0,
        cpu: crate::machine::choose_cpu(None).ok().and_then(|cpu| cpu.0),
        guard_best: None,
        on_thread: false,
        realtime: false,
        order_from: 0,
        finished: Vec::new(),
    };
    let mut samples = Vec::new();
    let mut warnings = Vec::new();
    run_with(&job, Box::new(Loop::new(workload)), &mut |told| {
        match told {
            Told::Sample(sample) => samples.push(*sample),
            Told::Warning(warning) => warnings.push(warning),
        }
        Ok(())
    })?;
    let series = series_of(&samples);
    let series = series.first().ok_or_else(|| {
        Failure::new("no block was timed", "stackphase::phase", "report this as a fault")
    })?;
    let mut verdict = judge(series, &Options { seed: job.seed, ..Options::default() });
    verdict.reasons.extend(warnings);
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::permitted_cpus;

    #[test]
    fn a_closure_is_judged_and_the_thread_is_as_it_was() -> Result<(), Failure> {
        let before = permitted_cpus();
        let mut calls = 0u64;
        let verdict = phase(|| calls += 1)?;
        assert!(calls > u64::from(ROUNDS) * 16);
        assert_eq!((verdict.grid, verdict.len), (Some(Grid::Line), None));
        // On a machine too busy for a single undisturbed block that is said instead.
        let said = |words: &str| verdict.reasons.iter().any(|reason| reason.contains(words));
        assert!(said("one launch") || said("every block was disturbed"), "{:?}", verdict.reasons);
        assert_eq!(permitted_cpus(), before, "pinning was undone");
        Ok(())
    }
}
