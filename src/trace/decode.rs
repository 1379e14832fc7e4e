//! What an instruction does to memory, worked out once; and with which addresses, worked out from
//! the registers each time it runs.

use iced_x86::{
    CodeSize, FlowControl, Formatter, Instruction, InstructionInfoFactory, IntelFormatter,
    Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use super::access::{Access, AccessKind};
use super::vectors::Vectors;
use crate::sys::ptrace::Registers;

/// What the stepper must know besides the accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// Nothing.
    None,
    /// Enters the kernel, which may write to memory.
    SystemCall,
    /// Raises SIGTRAP by itself.
    OwnTrap,
    /// Stores the flags, with the trap flag that stepping sets.
    PushFlags,
}

/// How the bytes that are touched follow from the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    /// Elements whose bit in a mask register is set.
    Opmask {
        register: Register,
        element: u32,
    },
    /// As many elements as the mask register has bits, packed.
    Packed {
        register: Register,
        element: u32,
        most: u32,
    },
    /// Elements whose sign bit in a vector register is set.
    SignMask {
        register: Register,
        element: u32,
    },
    /// One address an element, from a vector of indices.
    Scattered {
        count: u32,
        mask: Register,
    },
    /// A register counts bits from the operand, which may lead away from it.
    BitString {
        register: Register,
    },
    /// Processor state of a size that the instruction does not tell.
    Opaque,
}

#[derive(Clone, Copy, Debug)]
struct Operand {
    memory: UsedMemory,
    bytes: u32,
    loads: bool,
    stores: bool,
    form: Form,
}

/// A decoded instruction.
pub(super) struct Decoded {
    pub instruction: Instruction,
    pub special: Special,
    /// The next instruction is the one behind it, unless a signal comes.
    pub sequential: bool,
    /// A string instruction with a repeat prefix.
    pub repeats: bool,
    /// A string instruction.
    string: bool,
    operands: Vec<Operand>,
}

/// Decodes what stands at an address and keeps what it means.
pub(super) struct Analyst {
    factory: InstructionInfoFactory,
}

impl Analyst {
    pub fn new() -> Analyst {
        Analyst { factory: InstructionInfoFactory::new() }
    }

    pub fn analyse(&mut self, instruction: Instruction) -> Decoded {
        let string = instruction.is_string_instruction();
        let repeats = string && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
        let operands = self
            .factory
            .info(&instruction)
            .used_memory()
            .iter()
            .filter_map(|memory| operand(&instruction, memory))
            .collect();
        let special = match instruction.mnemonic() {
            Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int => Special::SystemCall,
            Mnemonic::Int3 | Mnemonic::Int1 => Special::OwnTrap,
            Mnemonic::Pushf | Mnemonic::Pushfd | Mnemonic::Pushfq => Special::PushFlags,
            _ => Special::None,
        };
        let sequential = instruction.flow_control() == FlowControl::Next
            && !repeats
            && special == Special::None
            // Loading a stack segment holds the trap back for one instruction.
            && instruction.op0_register() != Register::SS;
        Decoded { instruction, special, sequential, repeats, string, operands }
    }
}

fn operand(instruction: &Instruction, memory: &UsedMemory) -> Option<Operand> {
    let (loads, stores) = match memory.access() {
        OpAccess::None | OpAccess::NoMemAccess => return None,
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    };
    // Of a repeated string instruction one element is meant, one step at a time.
    let string = instruction.is_string_instruction();
    let size = if string { instruction.memory_size() } else { memory.memory_size() };
    let bytes = size.size() as u32;
    let form = form(instruction, memory, bytes);
    let bytes = if form == Form::Opaque { state_bytes(bytes) } else { bytes };
    Some(Operand { memory: *memory, bytes, loads, stores, form })
}

fn form(instruction: &Instruction, memory: &UsedMemory, bytes: u32) -> Form {
    use Mnemonic::*;
    let size = memory.memory_size();
    let element = size.element_size() as u32;
    if bytes == 0 || bytes > 64 {
        return Form::Opaque;
    }
    if memory.vsib_size() != 0 {
        return scattered(instruction, memory, bytes);
    }
    match instruction.mnemonic() {
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq => {
            return Form::SignMask { register: instruction.op1_register(), element };
        }
        Maskmovdqu | Vmaskmovdqu | Maskmovq => {
            return Form::SignMask { register: instruction.op2_register(), element: 1 };
        }
        Bt | Bts | Btr | Btc if instruction.op1_kind() == OpKind::Register => {
            return Form::BitString { register: instruction.op1_register() };
        }
        _ => {}
    }
    let packs = matches!(
        instruction.mnemonic(),
        Vcompressps
            | Vcompresspd
            | Vpcompressb
            | Vpcompressw
            | Vpcompressd
            | Vpcompressq
            | Vexpandps
            | Vexpandpd
            | Vpexpandb
            | Vpexpandw
            | Vpexpandd
            | Vpexpandq
    );
    let register = instruction.op_mask();
    match register {
        Register::None => Form::Whole,
        _ if packs => {
            Form::Packed { register, element, most: packed_elements(instruction, element) }
        }
        // A broadcast reads its one element whatever the mask is, unless the mask is empty.
        _ if size.is_broadcast() => Form::Whole,
        _ => Form::Opmask { register, element },
    }
}

/// Elements of the vector that is packed into memory or unpacked from it.
fn packed_elements(instruction: &Instruction, element: u32) -> u32 {
    let operands = (0..instruction.op_count()).map(|i| instruction.op_register(i));
    let vector = operands.filter(|register| register.is_vector_register()).map(|r| r.size()).max();
    vector.unwrap_or(64) as u32 / element.max(1)
}

fn scattered(instruction: &Instruction, memory: &UsedMemory, bytes: u32) -> Form {
    let indices = memory.index().size() as u32 / memory.vsib_size().max(1);
    // The data: operand 0 of a gather, 1 of a scatter.
    let data = [instruction.op0_register(), instruction.op1_register()];
    let data = data.iter().find(|register| register.is_vector_register());
    let elements = data.map_or(indices, |register| register.size() as u32 / bytes.max(1));
    let mask = match instruction.op_mask() {
        Register::None => instruction.op2_register(),
        register => register,
    };
    Form::Scattered { count: indices.min(elements), mask }
}

/// Bytes of a save of processor state: what the instruction says, else what this processor's
/// enabled state takes (CPUID leaf 13).
fn state_bytes(told: u32) -> u32 {
    if told != 0 {
        return told;
    }
    let state = raw_cpuid::CpuId::new().get_extended_state_info();
    state.map_or(512, |state| state.xsave_area_size_enabled_features())
}

impl Decoded {
    /// Whether the registers are needed to tell its accesses.
    pub fn touches_memory(&self) -> bool {
        !self.operands.is_empty()
    }

    /// Whether mask or vector registers are needed as well.
    pub fn needs_vectors(&self) -> bool {
        self.operands.iter().any(|operand| {
            matches!(
                operand.form,
                Form::Opmask { .. }
                    | Form::Packed { .. }
                    | Form::SignMask { .. }
                    | Form::Scattered { .. }
            )
        })
    }

    /// Appends the accesses that it makes with these registers, loads first.
    pub fn accesses(
        &self,
        registers: &Registers,
        vectors: Option<&Vectors>,
        out: &mut Vec<Access>,
    ) {
        if self.repeats && self.repetitions_left(registers) == 0 {
            return;
        }
        for kind in [AccessKind::Load, AccessKind::Store] {
            for operand in &self.operands {
                let wanted = match kind {
                    AccessKind::Load => operand.loads,
                    AccessKind::Store => operand.stores,
                };
                if wanted {
                    let like = Access {
                        kind,
                        string: self.string,
                        opaque: operand.form == Form::Opaque,
                        ..Access::load(0, operand.bytes)
                    };
                    operand.accesses(registers, vectors, like, out);
                }
            }
        }
    }

    fn repetitions_left(&self, registers: &Registers) -> u64 {
        let narrow = self.operands.iter().any(|o| o.memory.address_size() == CodeSize::Code32);
        if narrow { registers.rcx & 0xffff_ffff } else { registers.rcx }
    }

    /// Width of the widest operand that is accessed so; `None` where none is.
    pub fn widest(&self, kind: AccessKind) -> Option<u32> {
        let accessed = |operand: &&Operand| match kind {
            AccessKind::Load => operand.loads,
            AccessKind::Store => operand.stores,
        };
        self.operands.iter().filter(accessed).map(|operand| operand.bytes).max()
    }

    /// The instruction as an assembler's listing shows it.
    pub fn text(&self) -> String {
        text(&self.instruction)
    }
}

/// The instruction as an assembler's listing shows it.
pub(super) fn text(instruction: &Instruction) -> String {
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_rip_relative_addresses(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

impl Operand {
    fn accesses(
        &self,
        registers: &Registers,
        vectors: Option<&Vectors>,
        like: Access,
        out: &mut Vec<Access>,
    ) {
        let at = |element: usize| {
            self.memory.virtual_address(element, |register, element, bytes| {
                if register.is_vector_register() {
                    vectors.and_then(|vectors| vectors.element(register, element, bytes))
                } else {
                    Some(general(registers, register))
                }
            })
        };
        let mask = |register| vectors.map_or(u64::MAX, |vectors| vectors.mask(register));
        match self.form {
            Form::Whole | Form::Opaque => {
                out.extend(at(0).map(|address| Access { address, ..like }))
            }
            Form::Opmask { register, element } => {
                let bits = spread(mask(register), element, self.bytes);
                push_masked(at(0), like, bits, out);
            }
            Form::SignMask { register, element } => {
                let signs = vectors.map_or(u64::MAX, |v| v.signs(register, element, self.bytes));
                push_masked(at(0), like, spread(signs, element, self.bytes), out);
            }
            Form::Packed { register, element, most } => {
                let chosen = mask(register) & ones(most);
                let bytes = chosen.count_ones() * element;
                if bytes > 0 {
                    out.extend(at(0).map(|address| Access { address, bytes, ..like }));
                }
            }
            Form::Scattered { count, mask: register } => {
                let chosen = match vectors {
                    Some(v) if register.is_vector_register() => {
                        v.signs(register, self.bytes, count * self.bytes)
                    }
                    Some(v) => v.mask(register),
                    None => u64::MAX,
                };
                let elements = (0..count as usize).filter(|i| chosen >> i & 1 == 1);
                out.extend(elements.filter_map(at).map(|address| Access { address, ..like }));
            }
            Form::BitString { register } => {
                let away = bits_away(general(registers, register), register, self.bytes);
                let address = at(0).map(|address| address.wrapping_add_signed(away));
                out.extend(address.map(|address| Access { address, ..like }));
            }
        }
    }
}

fn push_masked(address: Option<u64>, like: Access, bits: u64, out: &mut Vec<Access>) {
    let all = ones(like.bytes);
    let bits = bits & all;
    if let (Some(address), true) = (address, bits != 0) {
        let mask = (bits != all).then_some(bits);
        out.push(Access { address, mask, ..like });
    }
}

/// Bit `i` of `elements` spread over the bytes of element `i`.
fn spread(elements: u64, element: u32, bytes: u32) -> u64 {
    let element = element.max(1);
    (0..bytes / element)
        .filter(|i| elements >> i & 1 == 1)
        .fold(0, |mask, i| mask | ones(element) << (i * element))
}

fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Bytes from the operand to the unit in which the bit lies that `register` counts.
fn bits_away(value: u64, register: Register, bytes: u32) -> i64 {
    let index = match register.size() {
        2 => i64::from(value as u16 as i16),
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    };
    let bytes = i64::from(bytes.max(1));
    index.div_euclid(bytes * 8) * bytes
}

/// The value of a general register (or part of one), or the base address of a segment.
fn general(registers: &Registers, register: Register) -> u64 {
    let whole = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RBX => registers.rbx,
        Register::RSP => registers.rsp,
        Register::RBP => registers.rbp,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::FS => return registers.fs_base,
        Register::GS => return registers.gs_base,
        // The other segments are flat in 64-bit code.
        _ => return 0,
    };
    match register {
        Register::AH | Register::BH | Register::CH | Register::DH => whole >> 8 & 0xff,
        _ => match register.size() {
            1 => whole & 0xff,
            2 => whole & 0xffff,
            4 => whole & 0xffff_ffff,
            _ => whole,
        },
    }
}

#[cfg(test)]
mod tests;
