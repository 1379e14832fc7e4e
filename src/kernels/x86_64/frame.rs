//! The stack frame as seen from inside it: the stack pointer, and the search of the dead stack
//! below.

use std::arch::asm;

/// The stack pointer, here and now.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads one register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    sp
}

/// Clears the upper halves of the vector registers, so that a block neither pays for nor inherits
/// a dirty state. Does nothing where there is no AVX.
#[inline(always)]
pub fn clear_upper_lanes() {
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: AVX was just detected; all vector registers are declared as written.
        unsafe { asm!("vzeroupper", clobber_abi("C"), options(nomem, nostack, preserves_flags)) };
    }
}

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
            "movdqu xmm0, [{message}]",
            "movdqu xmm1, [{message} + {second}]",
            "movdqu xmm2, [{message} + {third}]",
            "movdqu xmm3, [{message} + {len} - 16]",
            "2:",
            "xor {lanes:e}, {lanes:e}",
            "movdqu xmm4, [{at}]",
            "pcmpeqb xmm4, xmm0",
            "pmovmskb {mask:e}, xmm4",
            "add {mask:e}, 1",          // 0xffff becomes 0x10000: bit 16 tells a full match
            "shr {mask:e}, 16",
            "add {lanes:e}, {mask:e}",
            "movdqu xmm4, [{at} + {second}]",
            "pcmpeqb xmm4, xmm1",
            "pmovmskb {mask:e}, xmm4",
            "add {mask:e}, 1",
            "shr {mask:e}, 16",
            "add {lanes:e}, {mask:e}",
            "movdqu xmm4, [{at} + {third}]",
            "pcmpeqb xmm4, xmm2",
            "pmovmskb {mask:e}, xmm4",
            "add {mask:e}, 1",
            "shr {mask:e}, 16",
            "add {lanes:e}, {mask:e}",
            "movdqu xmm4, [{at} + {len} - 16]",
            "pcmpeqb xmm4, xmm3",
            "pmovmskb {mask:e}, xmm4",
            "add {mask:e}, 1",
            "shr {mask:e}, 16",
            "add {lanes:e}, {mask:e}",
            "cmp {lanes:e}, 3",
            "jb 3f",
            "mov [{found} + {count} * 8], {at}",
            "inc {count}",
            "cmp {count}, {room}",
            "jae 4f",
            "3:",
            "inc {at}",
            "cmp {at}, {last}",
            "jbe 2b",
            "4:",
            message = in(reg) message.as_ptr(),
            len = in(reg) len,
            second = in(reg) second,
            third = in(reg) third,
            at = inout(reg) low => _,
            last = in(reg) high - len,
            found = in(reg) found.as_mut_ptr(),
            room = in(reg) found.len(),
            count = inout(reg) 0usize => count,
            mask = out(reg) _,
            lanes = out(reg) _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            options(nostack),
        );
    }
    count
}
