//! Loops with a known number of what a counter counts, to prove counters by.
//!
//! Each runs `steps` times (0 is nothing) on 16 KiB that start on a page; `area` is that start.

use std::arch::asm;

/// Defines a loop of one asm body over `{p}` with `{v}` as scratch and v0 as scratch; `{q}` is
/// `{p}` plus a second offset.
macro_rules! memory_loop {
    ($(#[$doc:meta])* $name:ident, $offset:expr, $second:expr, [$($line:literal),+]) => {
        $(#[$doc])*
        pub fn $name(steps: u64, area: &mut super::super::SelfTestArea) {
            if steps == 0 {
                return;
            }
            // SAFETY: every access lies within the 16 KiB at `area`, which is borrowed for
            // writing; every register written is declared.
            unsafe {
                let start = area.bytes().as_mut_ptr().add($offset);
                asm!(
                    "2:",
                    $($line,)+
                    "subs {steps}, {steps}, #1",
                    "b.ne 2b",
                    "/* {q} {v} */",
                    p = in(reg) start,
                    q = in(reg) start.add($second),
                    v = inout(reg) 1u64 => _,
                    steps = inout(reg) steps => _,
                    out("v0") _,
                    options(nostack),
                );
            }
        }
    };
}

memory_loop! {
    /// One failing forward a step: a 16-byte load of two 8-byte stores, each step waiting for the
    /// one before. Cores that forward from two stores pass it without a failure.
    blocked_forwards, 0, 0,
    ["str {v}, [{p}]", "str {v}, [{p}, #8]", "ldr q0, [{p}]", "fmov {v}, d0"]
}

memory_loop! {
    /// One succeeding forward a step: a 16-byte load of one 16-byte store, each step waiting for
    /// the one before.
    successful_forwards, 0, 0,
    ["str q0, [{p}]", "ldr q0, [{p}]"]
}

memory_loop! {
    /// One load a step at the page offset of the store before it, in another page.
    aliased_loads, 0, 4096,
    ["str {v}, [{p}]", "ldr {v}, [{q}]"]
}

memory_loop! {
    /// As [`aliased_loads`], but half a page away: no alias.
    unaliased_loads, 0, 6144,
    ["str {v}, [{p}]", "ldr {v}, [{q}]"]
}

memory_loop! {
    /// One load across a line boundary a step.
    split_loads, 60, 0,
    ["ldr {v}, [{p}]"]
}

memory_loop! {
    /// One unaligned load within a line a step.
    inline_loads, 1, 0,
    ["ldr {v}, [{p}]"]
}

memory_loop! {
    /// One store across a line boundary a step.
    split_stores, 60, 0,
    ["str {v}, [{p}]"]
}

memory_loop! {
    /// One unaligned store within a line a step.
    inline_stores, 1, 0,
    ["str {v}, [{p}]"]
}

memory_loop! {
    /// One store across a page boundary a step: slower than they are issued, so that the store
    /// queue fills up.
    page_stores, 4092, 0,
    ["str {v}, [{p}]"]
}
