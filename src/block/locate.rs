//! Finding the buffer that a workload writes and reads back, when the workload does not tell.
//!
//! The same loop that is timed runs once over a fresh random message; then the dead stack below it
//! still holds every copy that was made of the message. A separate locating call would have another
//! frame and give another residue.

use super::timed::{Place, PlaceError, Timed, run_at};
use crate::kernels::find_on_stack;
use crate::sample::Absence;

/// How far below the loop the stack is searched. Deep enough for the hash functions' frames; the
/// stack is mapped that far, or grows when it is read.
const DEPTH: usize = 16 * 1024;

/// Fewer bytes than this could be found by chance.
const SHORTEST: usize = 16;

/// Addresses at which a search found the message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    addresses: [usize; 8],
    count: usize,
}

impl Found {
    /// Buffers hold a message's last block: that much of its end is searched for.
    pub const TAIL: usize = 64;

    /// The addresses, ascending.
    pub fn addresses(&self) -> &[usize] {
        &self.addresses[..self.count]
    }

    /// Copies the part that will be searched for; returns its length. Part of the caller's frame,
    /// the copy lies above what is searched.
    #[inline(always)]
    pub(super) fn take_tail(&self, message: Option<&[u8]>, tail: &mut [u8; Self::TAIL]) -> usize {
        let message = message.unwrap_or_default();
        let len = message.len().min(Self::TAIL);
        tail[..len].copy_from_slice(&message[message.len() - len..]);
        len
    }

    /// Searches the dead stack below `sp`.
    #[inline(always)]
    pub(super) fn search_below(&mut self, sp: usize, tail: &[u8; Self::TAIL], len: usize) {
        self.count = find_on_stack(sp - DEPTH, sp, &tail[..len], &mut self.addresses);
    }
}

/// Where the buffer is, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// The true address, and the loop's stack pointer in the same call.
    At {
        /// The loop's stack pointer.
        sp: usize,
        /// The address of the buffer.
        buffer: usize,
    },
    /// Not known.
    Absent(Absence),
}

impl Located {
    /// The address, if it is known.
    pub fn address(&self) -> Option<u64> {
        self.address_at(match self {
            Located::At { sp, .. } => *sp,
            Located::Absent(_) => 0,
        })
    }

    /// The address in another call at the same placement, in which the loop's stack pointer is
    /// `sp`: the frames below the loop are the same.
    pub fn address_at(&self, sp: usize) -> Option<u64> {
        match self {
            Located::At { sp: then, buffer } => {
                Some(sp.wrapping_add(buffer.wrapping_sub(*then)) as u64)
            }
            Located::Absent(_) => None,
        }
    }
}

/// Decides between several addresses that hold a copy of the message: returns the one that was
/// written first and read back, or why that cannot be told. Given the place and the workload so
/// that it can watch one more call.
pub type Decider<'a> = dyn FnMut(&[usize], Place, &mut dyn Timed) -> Result<usize, Absence> + 'a;

/// Locates one workload's buffer, placement after placement.
#[derive(Debug, Default)]
pub struct Locator {
    /// Distance of the buffer from the loop's stack pointer, once several candidates were told
    /// apart: the frames below the loop are the same at every placement.
    decided: Option<Result<isize, Absence>>,
}

impl Locator {
    /// Runs the loop once at `place` and finds the buffer.
    ///
    /// # Errors
    /// When the stack cannot be placed there.
    pub fn locate(
        &mut self,
        place: Place,
        timed: &mut dyn Timed,
        random: &mut fastrand::Rng,
        decider: &mut Decider<'_>,
    ) -> Result<Located, PlaceError> {
        timed.renew(random);
        let mut found = Found::default();
        let (entry, _) = run_at(place, timed, 1, Some(&mut found))?;
        if let Some(buffer) = entry.buf {
            return Ok(Located::At { sp: entry.sp, buffer });
        }
        let absent = |why: &str, remedy: &str| Ok(Located::Absent(Absence::new(why, remedy)));
        match (timed.message_len(), found.addresses()) {
            (None, _) => absent("the workload keeps nothing on the stack", "none needed"),
            (Some(len), _) if len < SHORTEST => absent(
                "a message of fewer than 16 bytes cannot be told from chance",
                "use a length of 16 bytes or more",
            ),
            (Some(_), []) => absent(
                "no copy of the message is on the stack: the code works on its input in place",
                "none needed; results are grouped by the stack pointer",
            ),
            (Some(_), [only]) => Ok(Located::At { sp: entry.sp, buffer: *only }),
            (Some(_), several) => {
                let decided = self.decided.get_or_insert_with(|| {
                    decider(several, place, timed).map(|at| at.wrapping_sub(entry.sp) as isize)
                });
                Ok(match decided {
                    Ok(distance) => {
                        confirm(entry.sp, entry.sp.wrapping_add_signed(*distance), several)
                    }
                    Err(absence) => Located::Absent(absence.clone()),
                })
            }
        }
    }
}

/// Tells candidates apart by watching one more call: the buffer is the one into which the message
/// was written first, all others are copies of it.
///
/// The middle of each candidate is watched, and its last write counts: the slot may have been
/// cleared or used for something else before, and its ends may be used again afterwards.
///
/// # Errors
/// Where no watchpoint can be had, the candidates stay ambiguous.
#[cfg(target_os = "linux")]
pub fn first_written(
    candidates: &[usize],
    place: Place,
    timed: &mut dyn Timed,
) -> Result<usize, Absence> {
    use crate::sys::breakpoint::{Access, watch};
    let ambiguous = |why: String| {
        Absence::new(
            format!("ambiguous: the message is on the stack in several places, and {why}"),
            "results are grouped by the stack pointer",
        )
    };
    // Two callers of different depth may stand on two sides of a page boundary, and then their
    // placements are whole pages apart: the candidates of this caller are watched.
    let mut here = Found::default();
    run_at(place, timed, 1, Some(&mut here)).map_err(|error| ambiguous(error.to_string()))?;
    let apart = |(there, here): (&usize, &usize)| here.wrapping_sub(*there);
    let apart: Vec<usize> = candidates.iter().zip(here.addresses()).map(apart).collect();
    if here.addresses().len() != candidates.len() || apart.iter().any(|&by| by != apart[0]) {
        return Err(ambiguous("they are not the same from call to call".to_owned()));
    }
    let middle = timed.message_len().unwrap_or_default().min(Found::TAIL) / 2;
    let mut watches = here
        .addresses()
        .iter()
        .map(|candidate| watch(candidate + middle, 1, Access::Write))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| ambiguous(error.to_string()))?;
    run_at(place, timed, 1, None).map_err(|error| ambiguous(error.to_string()))?;
    candidates
        .iter()
        .zip(&mut watches)
        .filter_map(|(&candidate, watch)| watch.take().last().map(|hit| (hit.time, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
        .ok_or_else(|| ambiguous("a watchpoint saw no write to any of them".to_owned()))
}

/// The decided distance holds only where the message was in fact found.
fn confirm(sp: usize, buffer: usize, candidates: &[usize]) -> Located {
    if candidates.contains(&buffer) {
        Located::At { sp, buffer }
    } else {
        Located::Absent(Absence::new(
            "ambiguous: the message is on the stack in several places, and none of them is where \
             it was at the first placement",
            "results are grouped by the stack pointer",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::line_shifts;
    use crate::sys::copy::CopyRoutine;
    use crate::workloads::{Name, Spec};
    use stack_trampoline::Alignment;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    fn undecided(_: &[usize], _: Place, _: &mut dyn Timed) -> Result<usize, Absence> {
        Err(Absence::new("ambiguous", "none"))
    }

    fn locate_all(name: Name, len: usize) -> Result<Vec<Located>, Box<dyn std::error::Error>> {
        let mut timed = Spec::new(name, len).build(CopyRoutine::of_c_library())?;
        // A seed of its own for every workload: an older copy of the same message would be found.
        let mut random = fastrand::Rng::with_seed(name as u64);
        let mut locator = Locator::default();
        // The highest candidate: any fixed choice must follow the shift.
        let mut highest = |several: &[usize], _: Place, _: &mut dyn Timed| {
            several.iter().copied().max().ok_or_else(|| Absence::new("none", "none"))
        };
        let mut at = |shift| {
            let place = Place::Shifted(Alignment::Page, shift);
            locator.locate(place, timed.as_mut(), &mut random, &mut highest)
        };
        Ok(line_shifts().into_iter().map(&mut at).collect::<Result<_, _>>()?)
    }

    #[test]
    fn residues_follow_the_shift() -> TestResult {
        for name in [Name::Blake3, Name::Blake3Hasher, Name::CopyChain] {
            let located = locate_all(name, 64)?;
            let Some(first) = located[0].address() else {
                eprintln!("skipped: {name}: {:?}", located[0]);
                continue;
            };
            for (at, shift) in located.iter().zip(line_shifts()) {
                assert_eq!(at.address(), Some(first - shift as u64), "{name} at shift {shift}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_keeps_nothing_on_the_stack_is_absent_with_a_reason() -> TestResult {
        let reasons = [(Name::Registers, 0, "nothing on the stack"), (Name::Blake3, 8, "chance")];
        for (name, len, part) in reasons {
            match &locate_all(name, len)?[0] {
                Located::Absent(absence) => assert!(absence.why.contains(part), "{absence}"),
                at @ Located::At { .. } => panic!("{name}: {at:?}"),
            }
        }
        Ok(())
    }

    #[test]
    fn the_buffer_found_is_the_one_that_is_written() -> TestResult {
        use crate::sys::breakpoint::{Access, prove, watch};
        if let Err(error) = prove() {
            eprintln!("skipped: no watchpoint here: {error}");
            return Ok(());
        }
        for name in [Name::Blake3, Name::Blake3Hasher] {
            let mut timed = Spec::new(name, 64).build(CopyRoutine::of_c_library())?;
            let mut random = fastrand::Rng::with_seed(99 + name as u64);
            let place = Place::Shifted(Alignment::Page, 64);
            let mut locator = Locator::default();
            let located = locator.locate(place, timed.as_mut(), &mut random, &mut first_written)?;
            // From this frame the placement may be whole pages away from the locator's.
            let (here, _) = run_at(place, timed.as_mut(), 1, None)?;
            let Some(address) = located.address_at(here.sp) else {
                eprintln!("skipped: {name}: {located:?}");
                continue;
            };
            let address = address as usize;
            let mut writes = watch(address, 1, Access::Write)?;
            let mut accesses = watch(address, 1, Access::ReadWrite)?;
            run_at(place, timed.as_mut(), 1, None)?;
            let (writes, accesses) = (writes.take().len(), accesses.take().len());
            assert!(writes > 0, "{name}: nothing writes {address:#x}");
            assert!(accesses > writes, "{name}: what is written is read back");
        }
        Ok(())
    }

    #[test]
    fn ambiguity_is_absence_and_never_a_guess() {
        assert_eq!(confirm(64, 32, &[16, 32]), Located::At { sp: 64, buffer: 32 });
        assert!(matches!(confirm(64, 48, &[16, 32]), Located::Absent(_)));
        let mut registers = crate::block::Loop::new(crate::workloads::Closure(|| ()));
        assert!(undecided(&[1, 2], Place::AsItComes, &mut registers).is_err());
    }
}
