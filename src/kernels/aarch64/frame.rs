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
/// many. Only the first and the last sixteen bytes are compared: enough for a random message.
///
/// A message of fewer than 16 bytes is never found. The search ends when `found` is full.
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
    let count: usize;
    // SAFETY: reads [low, high), which the caller has mapped, and sixteen bytes at both ends of
    // `message`; writes at most `found.len()` words of `found`. No stack is used.
    unsafe {
        asm!(
            "ldr q0, [{message}]",
            "add {end}, {message}, {tail}",
            "ldr q1, [{end}]",
            "2:",
            "ldr q2, [{at}]",
            "cmeq v2.16b, v2.16b, v0.16b",
            "add {end}, {at}, {tail}",
            "ldr q3, [{end}]",
            "cmeq v3.16b, v3.16b, v1.16b",
            "and v2.16b, v2.16b, v3.16b",
            "uminv b2, v2.16b",
            "umov {mask:w}, v2.b[0]",
            "cbz {mask:w}, 3f",
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
            tail = in(reg) len - 16,
            at = inout(reg) low => _,
            last = in(reg) high - len,
            found = in(reg) found.as_mut_ptr(),
            room = in(reg) found.len(),
            count = inout(reg) 0usize => count,
            mask = out(reg) _,
            end = out(reg) _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
            options(nostack),
        );
    }
    count
}
