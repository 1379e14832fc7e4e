//! Our own workloads, called in a forked child at exact placements and stepped there.
//!
//! What is stepped is the timed loop itself, with one iteration more or less: the difference is one
//! operation as it is timed, without the frame that is made before the loop.

use super::TraceError;
use super::session::{Ending, Reached, Session, deliverable, instruction_pointer};
use crate::block::{Place, run_at};
use crate::sys::copy::CopyRoutine;
use crate::sys::ptrace::{Registers, StartError, Stop, Tracee};
use crate::workloads::Spec;

/// Seconds after which a child ends whatever becomes of us.
const LIFETIME: u32 = 900;

/// What was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Instructions retired; a repeated string instruction is one.
    pub instructions: u64,
    /// Steps made; each element of a string instruction is one.
    pub steps: u64,
}

/// Counts the instructions of one operation of `spec` at each of `places`, exactly, by stepping it in
/// one child: what a counter of retired instructions gives without interrupts.
///
/// # Errors
/// See [`TraceError`]; [`TraceError::TooLong`] when two operations take more than `most` steps.
pub fn count_instructions(
    spec: &Spec,
    places: &[Place],
    most: u64,
) -> Result<Vec<Count>, TraceError> {
    let visits: Vec<(Place, u64)> =
        places.iter().flat_map(|place| [(*place, 1), (*place, 2)]).collect();
    with_calls(spec, &visits, |calls| {
        let mut counts = Vec::with_capacity(places.len());
        for _ in places {
            let (one, two) = (calls.count(most)?, calls.count(most)?);
            counts.push(two.beyond(one));
        }
        Ok(counts)
    })
}

impl Count {
    /// What this is above `less`.
    pub(super) fn beyond(self, less: Count) -> Count {
        Count {
            instructions: self.instructions.saturating_sub(less.instructions),
            steps: self.steps.saturating_sub(less.steps),
        }
    }
}

/// A child that enters the timed loop again and again.
pub(super) struct OwnCalls {
    pub session: Session,
    entry: u64,
}

/// Runs `work` over a child that enters the loop of `spec` once a visit (where, iterations).
///
/// On a thread of its own: whoever waits for a traced child takes up its other children as well.
pub(super) fn with_calls<T: Send>(
    spec: &Spec,
    visits: &[(Place, u64)],
    work: impl FnOnce(&mut OwnCalls) -> Result<T, TraceError> + Send,
) -> Result<T, TraceError> {
    /// As much as the main thread usually has, so that a shift that fits there fits here.
    const STACK: usize = 8 << 20;
    let stepped = move || -> Result<T, TraceError> {
        let mut timed = spec.build(CopyRoutine::of_c_library())?;
        // A reproducible input: which way a hash goes must not depend on when it is traced.
        timed.renew(&mut fastrand::Rng::with_seed(1));
        // Lazy binding and first-use work are no part of an operation.
        for (place, iterations) in visits {
            run_at(*place, timed.as_mut(), *iterations, None)?;
        }
        let entry = timed.text_address() as u64;
        let mut calls = || {
            for (place, iterations) in visits {
                // The same call succeeded in the parent.
                let _ = run_at(*place, timed.as_mut(), *iterations, None);
            }
        };
        let tracee = Tracee::fork(&mut calls, LIFETIME).map_err(|error| match error {
            StartError::Forbidden(error) => TraceError::Forbidden(error),
            StartError::Start(error) => TraceError::System { during: "forking", error },
        })?;
        work(&mut OwnCalls { session: Session::of(tracee), entry })
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, stepped)
            .map_err(|error| TraceError::Thread(error.to_string()))?
            .join()
            .unwrap_or_else(|_| Err(TraceError::Thread("it panicked".to_owned())))
    })
}

impl OwnCalls {
    /// Runs to the next entry of the loop; no breakpoint is left.
    pub fn next(&mut self) -> Result<i32, TraceError> {
        let during = || TraceError::during("running to the workload's call");
        let process = self.session.process();
        self.session.set_break(process, self.entry).map_err(during())?;
        match self.session.run_to_break(process).map_err(during())? {
            Reached::Break { thread } => {
                self.session.clear_breaks(thread).map_err(during())?;
                Ok(thread)
            }
            Reached::Ended(ending) => Err(TraceError::Ended { ending: ending.words() }),
        }
    }

    /// Steps through the next call of the loop.
    pub fn count(&mut self, most: u64) -> Result<Count, TraceError> {
        let thread = self.next()?;
        let during = || TraceError::during("stepping");
        let entry = self.session.tracee.registers(thread).map_err(during())?;
        let (return_to, stack) = self.caller(&entry).map_err(during())?;
        let mut count = Count::default();
        let (mut ip, mut signal) = (instruction_pointer(&entry), 0);
        while count.steps < most {
            match self.session.step(thread, signal).map_err(during())? {
                Stop::Trap => signal = 0,
                Stop::Signal(arrived) => {
                    signal = deliverable(arrived);
                    continue;
                }
                stop => return Err(TraceError::Ended { ending: words(stop) }),
            }
            let now = self.session.tracee.registers(thread).map_err(during())?;
            let next = instruction_pointer(&now);
            count.steps += 1;
            // An iteration of a string instruction that has others to follow stays where it is.
            count.instructions += u64::from(next != ip);
            if next == return_to && stack_pointer(&now) >= stack {
                return Ok(count);
            }
            ip = next;
        }
        Err(TraceError::TooLong(most))
    }

    /// Where a call that has just been entered returns to, and the least stack pointer it then has.
    #[cfg(target_arch = "x86_64")]
    fn caller(&self, entry: &Registers) -> std::io::Result<(u64, u64)> {
        let mut word = [0u8; 8];
        self.session.tracee.read(entry.rsp, &mut word)?;
        Ok((u64::from_ne_bytes(word), entry.rsp + 8))
    }

    /// Where a call that has just been entered returns to, and the least stack pointer it then has.
    #[cfg(target_arch = "aarch64")]
    fn caller(&self, entry: &Registers) -> std::io::Result<(u64, u64)> {
        Ok((entry.regs[30], entry.sp))
    }
}

fn words(stop: Stop) -> String {
    match stop {
        Stop::Exited(status) => Ending::Exited(status).words(),
        Stop::Killed(signal) => Ending::Killed(signal).words(),
        Stop::Replaced => Ending::Replaced.words(),
        Stop::Trap | Stop::Signal(_) | Stop::Forked | Stop::Cloned => "stopped".to_owned(),
    }
}

#[cfg(target_arch = "x86_64")]
fn stack_pointer(registers: &Registers) -> u64 {
    registers.rsp
}

#[cfg(target_arch = "aarch64")]
fn stack_pointer(registers: &Registers) -> u64 {
    registers.sp
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::line_shifts;
    use crate::workloads::Name;
    use stack_trampoline::Alignment;

    fn at(shifts: impl IntoIterator<Item = usize>) -> Vec<Place> {
        shifts.into_iter().map(|shift| Place::Shifted(Alignment::Page, shift)).collect()
    }

    /// `None` where the system forbids ptrace.
    fn counted(spec: &Spec, places: &[Place], most: u64) -> Option<Vec<Count>> {
        match count_instructions(spec, places, most) {
            Err(TraceError::Forbidden(error)) => {
                eprintln!("skipped: ptrace is forbidden: {error}");
                None
            }
            counts => Some(counts.expect("counted")),
        }
    }

    #[test]
    fn one_hash_takes_the_same_instructions_at_all_sixteen_shifts() {
        // Two page placements at which a wide store's half crosses a page are among those at the
        // end.
        let places = at(line_shifts().into_iter().chain((0..8).map(|i| 448 + 16 * i)));
        let Some(counts) = counted(&Spec::new(Name::Blake3, 64), &places, 100_000) else { return };
        assert_eq!(counts.len(), places.len());
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        assert!((100..20_000).contains(&counts[0].instructions), "{counts:?}");
    }

    #[test]
    fn a_longer_input_takes_more_and_a_limit_is_kept() {
        let places = at([0]);
        let spec = |len| Spec::new(Name::Crc32, len);
        let Some(short) = counted(&spec(64), &places, 100_000) else { return };
        let Some(long) = counted(&spec(4096), &places, 100_000) else { return };
        assert!(long[0].instructions > short[0].instructions, "{short:?} {long:?}");
        let refusal = count_instructions(&spec(4096), &places, 20);
        assert!(matches!(refusal, Err(TraceError::TooLong(20))), "{refusal:?}");
    }

    #[test]
    fn what_cannot_be_is_refused_before_a_child_is_made() {
        let refusal = count_instructions(&Spec::new(Name::Memcpy, 0), &at([0]), 100);
        assert!(matches!(refusal, Err(TraceError::Workload(_))));
        let refusal = count_instructions(&Spec::new(Name::Memcpy, 64), &at([8]), 100);
        assert!(matches!(refusal, Err(TraceError::Place(_))));
    }
}
