//! The safe call: checks before the assembly, the closure and its panic beyond it.

#![allow(unsafe_code)] // the call into the assembly, and the one pointer that passes through it

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::target::{self, Callee};
use crate::{Alignment, MAX_SHIFT, RESERVE, ShiftError, bounds};

/// Calls `f` with the stack pointer at the phase that `alignment` and `shift` say (see the
/// [crate documentation](crate#where-exactly-the-stack-pointer-is) for the exact address), puts the stack
/// pointer back, and returns what `f` returned.
///
/// `shift` is in bytes, a multiple of 16 from 0 to [`MAX_SHIFT`]. Larger shifts put the stack lower.
///
/// # Errors
///
/// [`ShiftError`] when the shift is not one of these, when the stack is too small for it, or when the
/// processor has no trampoline. `f` is then dropped without running.
///
/// # Panics
///
/// Exactly when `f` panics, with the same payload.
///
/// ```
/// use stack_trampoline::{Alignment, ShiftError, call_at_shift};
///
/// assert_eq!(call_at_shift(Alignment::Line, 48, || 6 * 7), Ok(42));
/// assert_eq!(call_at_shift(Alignment::Line, 8, || 6 * 7), Err(ShiftError::NotMultipleOf16 { shift: 8 }));
/// ```
pub fn call_at_shift<R>(
    alignment: Alignment,
    shift: usize,
    f: impl FnOnce() -> R,
) -> Result<R, ShiftError> {
    let mut call = Call { f: Some(f), outcome: None };
    // SAFETY: `run` is the instantiation of `enter` for the very type of `call`, which outlives the call
    // and is not used elsewhere during it. `enter` lets no panic out.
    unsafe { call_raw(alignment, shift, enter_of(&call), (&raw mut call).cast())? };
    match call.outcome {
        Some(Ok(value)) => Ok(value),
        Some(Err(payload)) => resume_unwind(payload),
        // `call_raw` returned Ok, so `enter` ran to its end and filled the outcome.
        None => unreachable!("the trampoline returned without having called"),
    }
}

/// A closure on its way in, and what became of it on its way out.
struct Call<F, R> {
    f: Option<F>,
    outcome: Option<std::thread::Result<R>>,
}

/// The instantiation of [`enter`] for the type of a call, which has a closure in it and so no name.
fn enter_of<F: FnOnce() -> R, R>(_: &Call<F, R>) -> Callee {
    enter::<F, R>
}

/// What the assembly calls: runs the closure, and keeps its panic from unwinding into the assembly.
///
/// # Safety
///
/// `data` points to a `Call<F, R>` that nothing else uses meanwhile.
unsafe extern "C" fn enter<F: FnOnce() -> R, R>(data: *mut c_void) {
    // SAFETY: by this function's contract.
    let call = unsafe { &mut *data.cast::<Call<F, R>>() };
    if let Some(f) = call.f.take() {
        // The panic goes on as soon as the stack pointer is back, so nobody sees what it left broken who
        // would not have seen it without the trampoline.
        call.outcome = Some(catch_unwind(AssertUnwindSafe(f)));
    }
}

/// Checks the shift and the room for it, then calls `callee(data)` at the phase asked for.
///
/// Never inlined, and not generic: the assembly's symbol is private to this crate's object, and one frame
/// shape for all callers keeps the distance between the stack pointers constant.
///
/// # Safety
///
/// `callee` may be called with `data`, keeps to the C ABI, and does not unwind.
#[inline(never)]
pub(crate) unsafe fn call_raw(
    alignment: Alignment,
    shift: usize,
    callee: Callee,
    data: *mut c_void,
) -> Result<(), ShiftError> {
    if !target::SUPPORTED {
        return Err(ShiftError::Unsupported { shift });
    }
    if !shift.is_multiple_of(16) {
        return Err(ShiftError::NotMultipleOf16 { shift });
    }
    if shift > MAX_SHIFT {
        return Err(ShiftError::TooLarge { shift, max: MAX_SHIFT });
    }
    let (granule, drop) = (alignment.granule(), alignment.drop_for(shift));
    make_room(shift, granule + drop)?;
    // SAFETY: the caller answers for `callee` and `data`. The granule is a power of two of at least 64 and
    // `drop` a multiple of 16, so the new stack pointer is 16-byte aligned. It lies at most
    // `granule + drop` below this frame, which is stack memory by `make_room`: either it is inside the
    // bounds that the C library gave, where the kernel maps each page at first touch (a thread's stack is
    // one mapping; the main stack grows to any address above its limit), or each page down to it has just
    // been touched.
    unsafe { target::call(granule.wrapping_neg(), drop, callee, data) };
    Ok(())
}

/// Makes sure that the stack reaches `depth` bytes below this frame.
#[inline(always)] // so that the stack pointer read here is that of the frame which calls the assembly
fn make_room(shift: usize, depth: usize) -> Result<(), ShiftError> {
    let sp = target::stack_pointer();
    match bounds::current() {
        Some(stack) if stack.contains(&sp) => {
            let (needed, available) = (depth + RESERVE, sp - stack.start);
            if needed > available {
                return Err(ShiftError::NoRoom { shift, needed, available });
            }
        }
        // Bounds unknown, or a stack that the C library does not know (a signal's, a coroutine's).
        // SAFETY: touching reads and rewrites dead stack below this frame, as a large frame's own probes
        // would; where the stack ends the guard page stops it.
        _ => unsafe { target::touch(depth) },
    }
    Ok(())
}
