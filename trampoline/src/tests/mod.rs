//! What the crate promises, held exactly: where the stack pointer is, what survives, what is dropped.

mod backtrace;
mod closures;
mod panics;
mod placement;
mod probe;
mod refusals;
mod registers;
mod stacks;
mod threads;
