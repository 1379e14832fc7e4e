//! The stack frame as seen from inside it: the stack pointer, and the search of the dead stack
//! below.

use std::arch::asm;

/// The stack pointer, here and now.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads one register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Nothing to clear: there are no upper lanes with a state of their own.
#[inline(always)]
pub fn clear_upper_lanes() {}

/// Searches `[low, high)` for `message` and writes the addresses found into `found`; returns how
/// many.
///
/// Four lanes of sixteen bytes are compared, spread over the message from its first to its last
/// byte; three must agree, because a compiler gives the slot of a buffer that has been read for the
/// last time to another variable, which then overwrites a part of it. A message of fewer than 16
/// bytes is never found. The search ends when `found` is full.
///
/// Inlined, and a leaf in registers: it does not disturb the dead stack that it searches. The
/// range is read as raw memory; it must be mapped and readable, as the stack below the stack
/// pointer is down to wherever a call has just reached.
#[inline(always)]
pub fn find_on_stack(low: usize, high: usize, message: &[u8], found: &mut [usize]) -> usize {
    let len = message.len();
    if len < 16 || found.is_empty() || high < low || high - low < len {
        return 0;
    }
    let (second, third) = ((len - 16) / 3, (len - 16) * 2 / 3);
    let count: usize;
    // SAFETY: reads [low, high), which the caller has mapped, and sixteen bytes at four places
    // inside `message`; writes at most `found.len()` words of `found`. No stack is used.
    unsafe {
        asm!(
            "ldr q0, [{message}]",
            "ldr q1, [{message}, {second}]",
            "ldr q2, [{message}, {third}]",
            "ldr q3, [{message}, {fourth}]",
            "2:",
            "mov {lanes:w}, wzr",
            // The minimum over equal bytes is 0xff where all agree, 0 elsewhere: its top bit counts.
            "ldr q4, [{at}]",
            "cmeq v4.16b, v4.16b, v0.16b",
            "uminv b4, v4.16b",
            "umov {mask:w}, v4.b[0]",
            "add {lanes:w}, {lanes:w}, {mask:w}, lsr #7",
            "ldr q4, [{at}, {second}]",
            "cmeq v4.16b, v4.16b, v1.16b",
            "uminv b4, v4.16b",
            "umov {mask:w}, v4.b[0]",
            "add {lanes:w}, {lanes:w}, {mask:w}, lsr #7",
            "ldr q4, [{at}, {third}]",
            "cmeq v4.16b, v4.16b, v2.16b",
            "uminv b4, v4.16b",
            "umov {mask:w}, v4.b[0]",
            "add {lanes:w}, {lanes:w}, {mask:w}, lsr #7",
            "ldr q4, [{at}, {fourth}]",
            "cmeq v4.16b, v4.16b, v3.16b",
            "uminv b4, v4.16b",
            "umov {mask:w}, v4.b[0]",
            "add {lanes:w}, {lanes:w}, {mask:w}, lsr #7",
            "cmp {lanes:w}, #3",
            "b.lo 3f",
            "str {at}, [{found}, {count}, lsl #3]",
            "add {count}, {count}, #1",
            "cmp {count}, {room}",
            "b.hs 4f",
            "3:",
            "add {at}, {at}, #1",
            "cmp {at}, {last}",
            "b.ls 2b",
            "4:",
            message = in(reg) message.as_ptr(),
            second = in(reg) second,
            third = in(reg) third,
            fourth = in(reg) len - 16,
            at = inout(reg) low => _,
            last = in(reg) high - len,
            found = in(reg) found.as_mut_ptr(),
            room = in(reg) found.len(),
            count = inout(reg) 0usize => count,
            mask = out(reg) _,
            lanes = out(reg) _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _,
            options(nostack),
        );
    }
    count
}
