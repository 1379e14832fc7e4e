//! Store-to-load kernels: one or two stores, then one load that may touch them.
//!
//! The widths are those of this architecture: 1 to 8 bytes from a general register, 16 from a
//! vector register, and 32 as a pair of vector registers (`stp`, `ldp`).
//!
//! # Register contract
//!
//! A kernel is an `extern "C"` function of one pointer that uses only registers that any callee may
//! clobber: x0 to x17 (x16 and x17 unused), flags, v0 to v3. Inside the loop:
//!
//! | register | holds |
//! |---|---|
//! | x1, x2 | address of the first store, of the second |
//! | x3 | address of the load |
//! | x0 | what was loaded, reduced to zero: the index of the next iteration when chained |
//! | x9 | zero: the index when independent |
//! | x8, v2, v3 | stored data, never written in the loop |
//! | v0, v1 | vector loads and their reduction |
//! | x10 | index of the load where there is a gap |
//! | x11 | the address of an access (pairs of registers take no index, so that none does) |
//! | x7 | base of the older stores |
//! | x6, x13 | entry of the older-store sled, and where it returns to |
//! | x5, x12 | entry of the gap sled, and where it returns to |
//! | x4 | iterations left |
//!
//! Form and reloads are as on x86-64: see there.

use std::arch::global_asm;

use crate::kernels::pairs::{Call, Kernel, SLED_LENGTHS, Sled};

/// Kernels in the table.
const KERNELS: usize = 27 * 6 * 2 * 2;

unsafe extern "C" {
    #[link_name = "stackphase_pair_kernels"]
    static KERNEL_TABLE: [Kernel; KERNELS];
    #[link_name = "stackphase_reload_kernels"]
    static RELOAD_TABLE: [Kernel; 4];
    #[link_name = "stackphase_sleds"]
    static SLED_TABLE: [Sled; 3];
    #[link_name = "stackphase_cycles"]
    fn cycles(iterations: u64);
}

/// Store and load widths, in the order of the table.
pub const WIDTHS: &[u8] = &[1, 2, 4, 8, 16, 32];

/// Whether this machine can run kernels of `bytes`: every one has all of them.
pub fn missing(_bytes: u8) -> Option<&'static str> {
    None
}

/// The kernel for indices into [`WIDTHS`]; `second` is at most `first`.
pub fn kernel(
    first: usize,
    second: Option<usize>,
    load: usize,
    independent: bool,
    spaced: bool,
) -> Kernel {
    // The first store's shapes are itself alone and one a second width up to its own.
    let shape = first * (first + 3) / 2 + second.map_or(0, |second| second + 1);
    let index = ((shape * 6 + load) * 2 + usize::from(independent)) * 2 + usize::from(spaced);
    // SAFETY: the table is written by the assembly below, complete and never changed.
    unsafe { KERNEL_TABLE[index] }
}

/// The reload kernel of an index into [`WIDTHS`], for general registers only.
pub fn reload(width: usize) -> Option<Kernel> {
    // SAFETY: as in `kernel`.
    unsafe { RELOAD_TABLE.get(width).copied() }
}

/// Where to enter a sled for `steps` of its instructions: 0 independent, 1 dependent, 2 older stores.
pub fn sled(which: usize, steps: usize) -> usize {
    // SAFETY: as in `kernel`.
    let sled = unsafe { SLED_TABLE[which] };
    sled.enter(steps, SLED_LENGTHS[which])
}

/// Runs `iterations` times 64 dependent additions of one cycle each.
pub fn dependent_additions(iterations: u64) {
    // SAFETY: registers only.
    unsafe { cycles(iterations) }
}

const _: () = assert!(std::mem::size_of::<Call>() == 56, "the kernels read it by offset");

global_asm!(
    r#"
    .macro sp_store bytes, base, index
      add x11, \base, \index
      .if \bytes == 1
        strb w8, [x11]
      .elseif \bytes == 2
        strh w8, [x11]
      .elseif \bytes == 4
        str w8, [x11]
      .elseif \bytes == 8
        str x8, [x11]
      .elseif \bytes == 16
        str q2, [x11]
      .else
        stp q2, q3, [x11]
      .endif
    .endm

    .macro sp_load bytes, index
      add x11, x3, \index
      .if \bytes == 1
        ldrb w0, [x11]
      .elseif \bytes == 2
        ldrh w0, [x11]
      .elseif \bytes == 4
        ldr w0, [x11]
      .elseif \bytes == 8
        ldr x0, [x11]
      .elseif \bytes == 16
        ldr q0, [x11]
        fmov x0, d0
      .else
        ldp q0, q1, [x11]
        orr v0.16b, v0.16b, v1.16b
        fmov x0, d0
      .endif
      and x0, x0, x9
    .endm

    .macro sp_prologue
      ldp x1, x2, [x0]
      ldp x3, x4, [x0, 16]
      ldp x5, x6, [x0, 32]
      ldr x7, [x0, 48]
      mov x0, 0
      mov x8, 0
      mov x9, 0
      movi v2.2d, 0
      movi v3.2d, 0
    .endm

    .macro sp_kernel first, second, load, index, spaced
      .p2align 6
    31:
      .pushsection .data.rel.ro.stackphase_pairs, "aw", @progbits
      .quad 31b
      .popsection
      sp_prologue
      .if \spaced
        adr x13, 33f
        adr x12, 34f
      .endif
      .p2align 6
    32:
      .if \spaced
        br x6
      .endif
    33:
      sp_store \first, x1, \index
      .if \second
        sp_store \second, x2, \index
      .endif
      .if \spaced
        mov x10, \index
        br x5
      .endif
    34:
      .if \spaced
        sp_load \load, x10
      .else
        sp_load \load, \index
      .endif
      subs x4, x4, 1
      b.ne 32b
      ret
    .endm

    .macro sp_loads first, second
      .irp load, 1, 2, 4, 8, 16, 32
        sp_kernel \first, \second, \load, x0, 0
        sp_kernel \first, \second, \load, x0, 1
        sp_kernel \first, \second, \load, x9, 0
        sp_kernel \first, \second, \load, x9, 1
      .endr
    .endm

    .pushsection .data.rel.ro.stackphase_pairs, "aw", @progbits
    .p2align 3
    .globl stackphase_pair_kernels
    .hidden stackphase_pair_kernels
    stackphase_pair_kernels:
    .popsection

    .pushsection .text.stackphase_pairs, "ax", @progbits
    .irp first, 1, 2, 4, 8, 16, 32
      .irp second, 0, 1, 2, 4, 8, 16, 32
        .if \second <= \first
          sp_loads \first, \second
        .endif
      .endr
    .endr

    .macro sp_reload store, load, register
      .p2align 6
    31:
      .pushsection .data.rel.ro.stackphase_reloads, "aw", @progbits
      .quad 31b
      .popsection
      sp_prologue
      mov x9, -1
      .p2align 6
    32:
      \store \register\()0, [x1]
      \load \register\()0, [x1]
      and x0, x0, x9
      subs x4, x4, 1
      b.ne 32b
      ret
    .endm

    .pushsection .data.rel.ro.stackphase_reloads, "aw", @progbits
    .p2align 3
    .globl stackphase_reload_kernels
    .hidden stackphase_reload_kernels
    stackphase_reload_kernels:
    .popsection
    sp_reload strb, ldrb, w
    sp_reload strh, ldrh, w
    sp_reload str, ldr, w
    sp_reload str, ldr, x

    // Sleds: entered so many instructions before their end as are wanted.
    .p2align 6
    35:
    .rept 256
      orr x14, x9, 1
    .endr
    36:
    br x12

    .p2align 6
    37:
    .rept 256
      add x10, x10, x9
    .endr
    38:
    br x12

    .p2align 6
    .set sp_older, 4096
    39:
    .rept 64
      mov w15, sp_older
      str x8, [x7, x15]
      .set sp_older, sp_older + 64
    .endr
    40:
    br x13

    .pushsection .data.rel.ro.stackphase_sleds, "aw", @progbits
    .p2align 3
    .globl stackphase_sleds
    .hidden stackphase_sleds
    stackphase_sleds:
    .quad 35b, 36b
    .quad 37b, 38b
    .quad 39b, 40b
    .popsection

    .p2align 6
    .globl stackphase_cycles
    .hidden stackphase_cycles
    stackphase_cycles:
      cbz x0, 42f
      mov x1, 0
      mov x2, 0
      .p2align 6
    41:
    .rept 64
      add x1, x1, x2
    .endr
      subs x0, x0, 1
      b.ne 41b
    42:
      ret
    .popsection
"#,
    options(raw)
);
