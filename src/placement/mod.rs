//! Where things are put: the grids of trampoline shifts, and the stack that the kernel gave a
//! process.

mod grid;
#[cfg(target_os = "linux")]
mod process_stack;

pub use grid::{line_shifts, page_shifts};
#[cfg(target_os = "linux")]
pub use process_stack::{ProcessStack, ProcessStackError};
