//! Loops with a known number of what a counter counts, to prove counters by.
//!
//! Each runs `steps` times (0 is nothing) on 16 KiB that start on a page; `area` is that start.

use std::arch::asm;

/// Defines a loop of one asm body over `{p}` with `{v}` as scratch and xmm0 as scratch.
macro_rules! memory_loop {
    ($(#[$doc:meta])* $name:ident, $offset:expr, [$($line:literal),+]) => {
        $(#[$doc])*
        pub fn $name(steps: u64, area: &mut super::super::SelfTestArea) {
            if steps == 0 {
                return;
            }
            // SAFETY: every access lies within the 16 KiB at `area`, which is borrowed for
            // writing; every register written is declared.
            unsafe {
                asm!(
                    "2:",
                    $($line,)+
                    "dec {steps}",
                    "jnz 2b",
                    "/* {v} */",
                    p = in(reg) area.bytes().as_mut_ptr().add($offset),
                    v = inout(reg) 1u64 => _,
                    steps = inout(reg) steps => _,
                    out("xmm0") _,
                    options(nostack),
                );
            }
        }
    };
}

memory_loop! {
    /// One failing forward a step: a 16-byte load of two 8-byte stores, each step waiting for the
    /// one before.
    blocked_forwards, 0,
    ["mov [{p}], {v}", "mov [{p} + 8], {v}", "movdqu xmm0, [{p}]", "movq {v}, xmm0"]
}

memory_loop! {
    /// One succeeding forward a step: a 16-byte load of one 16-byte store, each step waiting for
    /// the one before. (An 8-byte store and reload would be renamed away on recent cores.)
    successful_forwards, 0,
    ["movdqa [{p}], xmm0", "movdqa xmm0, [{p}]"]
}

memory_loop! {
    /// One load a step at the page offset of the store before it, in another page.
    aliased_loads, 0,
    ["mov [{p}], {v}", "mov {v}, [{p} + 4096]"]
}

memory_loop! {
    /// As [`aliased_loads`], but half a page away: no alias.
    unaliased_loads, 0,
    ["mov [{p}], {v}", "mov {v}, [{p} + 6144]"]
}

memory_loop! {
    /// One load across a line boundary a step.
    split_loads, 60,
    ["mov {v}, [{p}]"]
}

memory_loop! {
    /// One unaligned load within a line a step.
    inline_loads, 1,
    ["mov {v}, [{p}]"]
}

memory_loop! {
    /// One store across a line boundary a step.
    split_stores, 60,
    ["mov [{p}], {v}"]
}

memory_loop! {
    /// One unaligned store within a line a step.
    inline_stores, 1,
    ["mov [{p}], {v}"]
}

memory_loop! {
    /// One store across a page boundary a step: slower than they are issued, so that the store
    /// queue fills up.
    page_stores, 4092,
    ["mov [{p}], {v}"]
}
