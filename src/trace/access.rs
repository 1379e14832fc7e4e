//! What one instruction does to memory.

use serde::Serialize;

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Memory is read.
    Load,
    /// Memory is written.
    Store,
}

/// One memory access of one instruction, or of one element of a string, gather or scatter
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First address of the operand.
    pub address: u64,
    /// Width of the operand in bytes.
    pub bytes: u32,
    /// Load or store.
    pub kind: AccessKind,
    /// Which bytes of a masked operand of at most 64 bytes are touched, bit 0 the first; `None`:
    /// all.
    pub mask: Option<u64>,
    /// One element of a string instruction.
    pub string: bool,
    /// A save or restore of processor state: what it wrote cannot be forwarded from, and its loads
    /// are not paired.
    pub opaque: bool,
}

impl Access {
    /// A plain load.
    pub fn load(address: u64, bytes: u32) -> Access {
        Access { address, bytes, kind: AccessKind::Load, mask: None, string: false, opaque: false }
    }

    /// A plain store.
    pub fn store(address: u64, bytes: u32) -> Access {
        Access { kind: AccessKind::Store, ..Access::load(address, bytes) }
    }

    /// The same with only the bytes of `mask` touched.
    pub fn masked(self, mask: u64) -> Access {
        Access { mask: Some(mask), ..self }
    }

    /// The addresses touched, ascending.
    pub fn touched(&self) -> impl Iterator<Item = u64> + '_ {
        let mask = self.mask;
        (0..u64::from(self.bytes))
            .filter(move |i| {
                mask.is_none_or(|mask| mask.checked_shr(*i as u32).unwrap_or(0) & 1 == 1)
            })
            .map(|i| self.address.wrapping_add(i))
    }
}

/// All accesses of one instruction to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Address of the instruction.
    pub ip: u64,
    /// Load or store.
    pub kind: AccessKind,
    /// First address of the operand.
    pub address: u64,
    /// Width of the operand in bytes.
    pub bytes: u32,
    /// How often.
    pub count: u64,
}

/// One step of the traced thread: an instruction, or one iteration of a string instruction.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Steps before this one.
    pub index: u64,
    /// Address of the instruction.
    pub ip: u64,
    /// Its accesses, loads before stores.
    pub accesses: &'a [Access],
}
