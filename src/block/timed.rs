//! The timed loop and the place that it runs at.

use std::hint::black_box;
use std::time::{Duration, Instant};

use stack_trampoline::{Alignment, ShiftError, call_at_shift};

use super::locate::Found;
use crate::kernels::stack_pointer;
use crate::workloads::Workload;

/// Where the loop found itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The stack pointer inside the timed loop, after its frame was made.
    pub sp: usize,
    /// The workload's own buffer, for those that have one.
    pub buf: Option<usize>,
}

/// A workload with its loop, behind one indirection that is outside the timing.
pub trait Timed {
    /// Runs the loop, and searches the dead stack below it for the message when told to.
    fn enter(&mut self, iterations: u64, search: Option<&mut Found>) -> Entry;
    /// Replaces the input by fresh random bytes.
    fn renew(&mut self, random: &mut fastrand::Rng);
    /// Address of the input.
    fn input_address(&self) -> Option<usize>;
    /// Length of the message that can be searched for; `None` where there is nothing to search.
    fn message_len(&self) -> Option<usize>;
    /// Address of the timed loop's code.
    fn text_address(&self) -> usize;
}

/// The loop over one workload.
pub struct Loop<W> {
    workload: W,
}

impl<W: Workload> Loop<W> {
    /// The loop over `workload`.
    pub fn new(workload: W) -> Self {
        Loop { workload }
    }
}

/// Never inlined: its frame is the same whoever calls it and however often the loop turns, so what
/// is located with one iteration is what is timed with many.
#[inline(never)]
fn timed_loop<W: Workload>(workload: &mut W, iterations: u64) -> Entry {
    let mut frame = workload.frame();
    let entry = Entry { sp: stack_pointer(), buf: workload.own_buffer(&frame) };
    for _ in 0..iterations {
        workload.call(&mut frame);
    }
    black_box(&mut frame);
    entry
}

impl<W: Workload> Timed for Loop<W> {
    #[inline(never)]
    fn enter(&mut self, iterations: u64, search: Option<&mut Found>) -> Entry {
        match search {
            None => timed_loop(&mut self.workload, iterations),
            Some(found) => {
                // Everything that the search needs is fetched before the loop: between the loop
                // and the search nothing may be called, or it would overwrite the dead stack.
                let mut tail = [0u8; Found::TAIL];
                let len = found.take_tail(self.workload.message(), &mut tail);
                let entry = timed_loop(&mut self.workload, iterations);
                found.search_below(stack_pointer(), &tail, len);
                entry
            }
        }
    }

    fn renew(&mut self, random: &mut fastrand::Rng) {
        self.workload.renew(random);
    }

    fn input_address(&self) -> Option<usize> {
        self.workload.input_address()
    }

    fn message_len(&self) -> Option<usize> {
        self.workload.message().map(<[u8]>::len)
    }

    fn text_address(&self) -> usize {
        timed_loop::<W> as fn(&mut W, u64) -> Entry as usize
    }
}

/// Where on the stack the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the caller happens to be: the phase that the kernel gave the process.
    AsItComes,
    /// At a shift below the trampoline's anchor.
    Shifted(Alignment, usize),
}

/// A place that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot place the stack: {0}")]
pub struct PlaceError(#[from] ShiftError);

impl From<PlaceError> for crate::Failure {
    fn from(error: PlaceError) -> Self {
        crate::Failure::usage(
            error.to_string(),
            "trampoline",
            format!(
                "give a multiple of 16 up to {}, and a stack that has room for it",
                stack_trampoline::MAX_SHIFT
            ),
        )
    }
}

/// Runs `iterations` at `place`; returns where the loop was and how long it took.
///
/// # Errors
/// When the shift is not one that the trampoline can give.
pub fn run_at(
    place: Place,
    timed: &mut dyn Timed,
    iterations: u64,
    search: Option<&mut Found>,
) -> Result<(Entry, Duration), PlaceError> {
    let start = Instant::now();
    let entry = match place {
        Place::AsItComes => timed.enter(iterations, search),
        Place::Shifted(alignment, shift) => {
            call_at_shift(alignment, shift, || timed.enter(iterations, search))?
        }
    };
    Ok((entry, start.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::page_shifts;
    use crate::sys::copy::CopyRoutine;
    use crate::workloads::{Name, Spec};

    #[test]
    fn the_buffer_follows_the_shift() -> Result<(), Box<dyn std::error::Error>> {
        for name in [Name::Memcpy, Name::CopyChain, Name::CopyRing, Name::RoundTrip] {
            let mut timed = Spec::new(name, 64).build(CopyRoutine::of_c_library())?;
            let mut at = |shift| {
                let place = Place::Shifted(Alignment::Page, shift);
                run_at(place, timed.as_mut(), 1, None).map(|(entry, _)| entry)
            };
            let anchor = at(0)?;
            let buffer = anchor.buf.ok_or("these workloads own their buffer")?;
            for shift in page_shifts() {
                let entry = at(shift)?;
                // From the same caller the anchor is the same page, so whole addresses move.
                assert_eq!(anchor.sp - entry.sp, shift, "{name}");
                assert_eq!(Some(buffer - shift), entry.buf, "{name}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_frame_offset_moves_the_buffer_and_nothing_else() -> Result<(), Box<dyn std::error::Error>>
    {
        let residue = |frame_offset| -> Result<usize, Box<dyn std::error::Error>> {
            let spec = Spec { frame_offset, ..Spec::new(Name::CopyChain, 64) };
            let mut timed = spec.build(CopyRoutine::of_c_library())?;
            let place = Place::Shifted(Alignment::Page, 0);
            let (entry, _) = run_at(place, timed.as_mut(), 1, None)?;
            Ok(entry.buf.ok_or("copychain owns its buffer")? % 16)
        };
        for offset in 0..16 {
            assert_eq!(residue(offset)?, offset);
        }
        Ok(())
    }

    #[test]
    fn a_shift_that_cannot_be_is_an_error() -> Result<(), Box<dyn std::error::Error>> {
        let mut timed = Spec::new(Name::Registers, 0).build(CopyRoutine::of_c_library())?;
        let place = Place::Shifted(Alignment::Page, 8);
        assert!(run_at(place, timed.as_mut(), 1, None).is_err());
        Ok(())
    }
}
