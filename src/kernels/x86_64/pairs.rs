//! Store-to-load kernels: one or two stores, then one load that may touch them.
//!
//! A kernel is a loop; its widths and its form are fixed when it is assembled, everything else is
//! given at run time in a [`Call`]. The assembler's own macros write the 980 loops and the table
//! that finds them, in the order of [`kernel`]: first store, second store, load, form, spacing.
//!
//! # Register contract
//!
//! A kernel is an `extern "C"` function of one pointer. It saves the five callee-saved registers
//! that it uses and clobbers what the System V convention lets any callee clobber (rax, rcx, rdx,
//! rsi, rdi, r8 to r11, flags, all vector registers; upper lanes are cleared before the return).
//! Inside the loop:
//!
//! | register | holds |
//! |---|---|
//! | rdi, r14 | address of the first store, of the second |
//! | rsi | address of the load |
//! | rax | what was loaded, reduced to zero: the index of the next iteration when chained |
//! | r9 | zero: the index when independent |
//! | r8, xmm1/ymm1/zmm1 | stored data, never written in the loop |
//! | xmm0/ymm0/zmm0, xmm2 | vector loads and their reduction |
//! | rdx | index of the load where there is a gap |
//! | r10 | base of the older stores |
//! | r12, r13 | entry of the older-store sled, and where it returns to |
//! | rbx, rbp | entry of the gap sled, and where it returns to |
//! | rcx | iterations left |
//!
//! # Form
//!
//! Chained: the addresses of the next stores and the next load depend on the loaded value. The
//! same loop with its load on another line is the twin, and the conversions, the mask and the
//! address generation cancel exactly between the two: what is left is what the store adds to a
//! plain load. Every lane of a vector load takes part, since cores that split wide loads may stall
//! in one half only. Independent: nothing depends on the load.
//!
//! A reload is its own loop: the loaded *value* is stored next, both through one register without
//! an index, since that is what cores that rename memory recognise.

use std::arch::global_asm;

use crate::kernels::pairs::{Call, Kernel, SLED_LENGTHS, Sled};

/// Kernels in the table.
const KERNELS: usize = 35 * 7 * 2 * 2;

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
pub const WIDTHS: &[u8] = &[1, 2, 4, 8, 16, 32, 64];

/// Whether this machine can run kernels of `bytes`; else what is missing.
pub fn missing(bytes: u8) -> Option<&'static str> {
    match bytes {
        32 if !std::is_x86_feature_detected!("avx") => Some("AVX"),
        64 if !std::is_x86_feature_detected!("avx512f") => Some("AVX-512F"),
        _ => None,
    }
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
    let index = ((shape * 7 + load) * 2 + usize::from(independent)) * 2 + usize::from(spaced);
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
      .if \bytes == 1
        mov byte ptr [\base + \index], r8b
      .elseif \bytes == 2
        mov word ptr [\base + \index], r8w
      .elseif \bytes == 4
        mov dword ptr [\base + \index], r8d
      .elseif \bytes == 8
        mov qword ptr [\base + \index], r8
      .elseif \bytes == 16
        .if sp_vex
          vmovups xmmword ptr [\base + \index], xmm1
        .else
          movups xmmword ptr [\base + \index], xmm1
        .endif
      .elseif \bytes == 32
        vmovups ymmword ptr [\base + \index], ymm1
      .else
        vmovups zmmword ptr [\base + \index], zmm1
      .endif
    .endm

    .macro sp_load bytes, index
      .if \bytes == 1
        movzx eax, byte ptr [rsi + \index]
      .elseif \bytes == 2
        movzx eax, word ptr [rsi + \index]
      .elseif \bytes == 4
        mov eax, dword ptr [rsi + \index]
      .elseif \bytes == 8
        mov rax, qword ptr [rsi + \index]
      .elseif \bytes == 16
        .if sp_vex
          vmovups xmm0, xmmword ptr [rsi + \index]
          vmovq rax, xmm0
        .else
          movups xmm0, xmmword ptr [rsi + \index]
          movq rax, xmm0
        .endif
      .else
        .if \bytes == 32
          vmovups ymm0, ymmword ptr [rsi + \index]
        .else
          vmovups zmm0, zmmword ptr [rsi + \index]
          vextractf64x4 ymm2, zmm0, 1
          vorps ymm0, ymm0, ymm2
        .endif
        vextractf128 xmm2, ymm0, 1
        vorps xmm0, xmm0, xmm2
        vmovq rax, xmm0
      .endif
      and rax, r9
    .endm

    .macro sp_prologue
      push rbx
      push rbp
      push r12
      push r13
      push r14
      mov r14, [rdi + 8]
      mov rsi, [rdi + 16]
      mov rcx, [rdi + 24]
      mov rbx, [rdi + 32]
      mov r12, [rdi + 40]
      mov r10, [rdi + 48]
      mov rdi, [rdi]
      xor eax, eax
      xor r9d, r9d
      xor r8d, r8d
    .endm

    .macro sp_epilogue
      .if sp_vex
        vzeroupper
      .endif
      pop r14
      pop r13
      pop r12
      pop rbp
      pop rbx
      ret
    .endm

    .macro sp_kernel first, second, load, index, spaced
      .set sp_vex, (\first >= 32) || (\second >= 32) || (\load >= 32)
      .p2align 6
    31:
      .pushsection .data.rel.ro.stackphase_pairs, "aw", @progbits
      .quad 31b
      .popsection
      sp_prologue
      .if sp_vex
        vxorps xmm1, xmm1, xmm1
      .else
        xorps xmm1, xmm1
      .endif
      .if \spaced
        lea r13, [rip + 33f]
        lea rbp, [rip + 34f]
      .endif
      .p2align 6
    32:
      .if \spaced
        jmp r12
      .endif
    33:
      sp_store \first, rdi, \index
      .if \second
        sp_store \second, r14, \index
      .endif
      .if \spaced
        mov rdx, \index
        jmp rbx
      .endif
    34:
      .if \spaced
        sp_load \load, rdx
      .else
        sp_load \load, \index
      .endif
      dec rcx
      jnz 32b
      sp_epilogue
    .endm

    .macro sp_loads first, second
      .irp load, 1, 2, 4, 8, 16, 32, 64
        sp_kernel \first, \second, \load, rax, 0
        sp_kernel \first, \second, \load, rax, 1
        sp_kernel \first, \second, \load, r9, 0
        sp_kernel \first, \second, \load, r9, 1
      .endr
    .endm

    .pushsection .data.rel.ro.stackphase_pairs, "aw", @progbits
    .p2align 3
    .globl stackphase_pair_kernels
    .hidden stackphase_pair_kernels
    stackphase_pair_kernels:
    .popsection

    .pushsection .text.stackphase_pairs, "ax", @progbits
    .irp first, 1, 2, 4, 8, 16, 32, 64
      .irp second, 0, 1, 2, 4, 8, 16, 32, 64
        .if \second <= \first
          sp_loads \first, \second
        .endif
      .endr
    .endr

    .macro sp_reload store, load
      .set sp_vex, 0
      .p2align 6
    31:
      .pushsection .data.rel.ro.stackphase_reloads, "aw", @progbits
      .quad 31b
      .popsection
      sp_prologue
      mov r9, -1
      .p2align 6
    32:
      \store
      \load
      and rax, r9
      dec rcx
      jnz 32b
      sp_epilogue
    .endm

    .pushsection .data.rel.ro.stackphase_reloads, "aw", @progbits
    .p2align 3
    .globl stackphase_reload_kernels
    .hidden stackphase_reload_kernels
    stackphase_reload_kernels:
    .popsection
    sp_reload "mov byte ptr [rdi], al", "movzx eax, byte ptr [rdi]"
    sp_reload "mov word ptr [rdi], ax", "movzx eax, word ptr [rdi]"
    sp_reload "mov dword ptr [rdi], eax", "mov eax, dword ptr [rdi]"
    sp_reload "mov qword ptr [rdi], rax", "mov rax, qword ptr [rdi]"

    # Sleds: entered so many instructions before their end as are wanted.
    .p2align 6
    35:
    .rept 256
      lea r11, [r9]
    .endr
    36:
    jmp rbp

    .p2align 6
    37:
    .rept 256
      add rdx, r9
    .endr
    38:
    jmp rbp

    .p2align 6
    .set sp_older, 4096
    39:
    .rept 64
      mov qword ptr [r10 + sp_older], r8
      .set sp_older, sp_older + 64
    .endr
    40:
    jmp r13

    .pushsection .data.rel.ro.stackphase_sleds, "aw", @progbits
    .p2align 3
    .globl stackphase_sleds
    .hidden stackphase_sleds
    stackphase_sleds:
    .quad 35b, 36b
    .quad 37b, 38b
    .quad 39b, 40b
    .popsection

    # Register operands: recent cores execute chains of small immediate additions at rename.
    .p2align 6
    .globl stackphase_cycles
    .hidden stackphase_cycles
    stackphase_cycles:
      test rdi, rdi
      jz 42f
      xor eax, eax
      xor edx, edx
      .p2align 6
    41:
    .rept 64
      add rax, rdx
    .endr
      dec rdi
      jnz 41b
    42:
      ret
    .popsection
"#,
    options(raw)
);
