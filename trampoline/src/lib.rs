//! Call a closure at an exact stack phase.
//!
//! ```
//! use stack_trampoline::{Alignment, call_at_shift};
//!
//! /// Does this function's speed depend on where its stack frame lies?
//! fn work() -> usize {
//!     let buffer = [0u8; 64];
//!     std::hint::black_box(&buffer).as_ptr() as usize
//! }
//!
//! fn main() -> Result<(), stack_trampoline::ShiftError> {
//!     let first = call_at_shift(Alignment::Page, 0, work)?;
//!     for shift in (0..8192).step_by(16) {
//!         let buffer = call_at_shift(Alignment::Page, shift, work)?;
//!         assert_eq!(first - buffer, shift);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The operating system puts a stack at a random multiple of 16 bytes, and every function frame on
//! it moves along. Code that stores to its stack and reads back can be fast at one such *phase* and
//! slow at another, and a process meets only one of them. This crate lets one process visit them
//! all, in any order, by moving the stack pointer before it calls.
//!
//! # Where exactly the stack pointer is
//!
//! `sp`, the stack pointer at the call instruction, that is *before* a return address is pushed, is
//!
//! | [`Alignment`] | `sp` |
//! |---|---|
//! | [`Line`](Alignment::Line) | (caller's stack pointer rounded down to 64) − shift |
//! | [`Page`](Alignment::Page) | (caller's stack pointer rounded down to a page) − 512 − shift |
//!
//! On x86-64 the called function therefore enters with `rsp = sp − 8`, on aarch64 with `sp` itself;
//! both are what the ABI asks for, as every shift is a multiple of 16. "The called function" is a small
//! `extern "C"` shim that runs the closure: the closure's own frames lie below it by a distance that
//! the compiler chose, and that is the same at every shift. So a shift says *by how much* two calls
//! differ, exactly; where a buffer of the closure lies is its address's to say.
//!
//! Under `Page` the phase is the same in every process and thread. Under `Line` the offset within the
//! page is that of the caller, random from process to process.
//!
//! # What is promised
//!
//! - The closure runs once and its value is returned; both are dropped once.
//! - A panic in the closure comes out of [`call_at_shift`] as the same panic. It is caught before the
//!   assembly and resumed after it; nothing ever unwinds through assembly.
//! - A backtrace taken in the closure reaches the caller and beyond.
//! - Calls nest, and work on every thread. On Linux the stack's end is known and a call that would not
//!   leave [`RESERVE`] bytes to the closure is refused with [`ShiftError::NoRoom`]; elsewhere every page
//!   on the way down is touched, so that too deep a call meets the guard page as any function would.
//!
//! Supported are x86-64 and aarch64 on Unix. On other processors of a Unix system the crate compiles and
//! every call returns [`ShiftError::Unsupported`].

#[cfg(not(unix))]
compile_error!("stack-trampoline knows the calling conventions of Unix systems only");

mod alignment;
mod bounds;
mod error;
mod page;
mod shim;

// One file a processor, each with the same three functions.
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), path = "unsupported.rs")]
mod target;

// Where there is no trampoline there is nothing to test.
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;

pub use alignment::{Alignment, ParseAlignmentError};
pub use error::ShiftError;
pub use page::page_size;
pub use shim::call_at_shift;

/// The largest shift that [`call_at_shift`] accepts, in bytes: two pages of the largest page size in use
/// (64 KiB, on some arm64 systems), so that two whole periods of any page can be visited.
pub const MAX_SHIFT: usize = 2 * 64 * 1024;

/// The bytes of stack that must be left to the closure, where the end of the stack is known.
///
/// It is no bound on what the closure may use; it only keeps a call that could not even
/// report its own failure from being made.
pub const RESERVE: usize = 16 * 1024;
