//! Naming a workload: what is written in a plan, sent to a worker, and built there.

use serde::{Deserialize, Serialize};

use super::Workload;
use super::copies::{CopyChain, CopyRing, CopySetup, Memcpy};
use super::hashes::{Blake3, Blake3Hasher, Crc32, HashFunction, Hashing, Sha3, Sha256};
use super::registers::Registers;
use super::roundtrip::{Form, RoundTripWorkload};
use super::sink::{BlackBox, SinkKind, Xor};
use crate::block::{Loop, Timed};
use crate::kernels::RoundTrip;
use crate::sample::{Role, vocabulary};
use crate::sys::copy::CopyRoutine;

/// The longest copy: its buffers lie on the stack.
pub const MAX_COPY_LEN: usize = 65_536;

vocabulary! {
    /// The built-in workloads.
    Name {
        /// `blake3::hash`.
        Blake3 => "blake3",
        /// `blake3::Hasher`: new, update, finalize.
        Blake3Hasher => "blake3-hasher",
        /// SHA-256.
        Sha256 => "sha256",
        /// SHA3-256.
        Sha3 => "sha3-256",
        /// CRC-32.
        Crc32 => "crc32",
        /// A copy into a stack buffer.
        Memcpy => "memcpy",
        /// A copy of a copy.
        CopyChain => "copychain",
        /// Two buffers copied to each other.
        CopyRing => "copyring",
        /// 64 bytes stored and reloaded by the widest instructions.
        RoundTrip => "roundtrip",
        /// Registers alone.
        Registers => "registers",
    }
}

vocabulary! {
    /// Which form of a workload is timed; anything but the first stands in the column `arm`.
    Variant {
        /// The workload itself.
        Default => "default",
        /// Its store-only twin: the same stores at the same addresses, loads from elsewhere.
        StoreOnly => "store-only",
        /// With its buffer realigned to 64 bytes inside the callee.
        Realigned => "realigned",
    }
}

/// One workload, completely named.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spec {
    /// Which.
    pub name: Name,
    /// Bytes an operation; ignored by `registers`, 64 for `roundtrip`.
    pub len: usize,
    /// The form.
    pub variant: Variant,
    /// Who takes the results of the hashes.
    pub sink: SinkKind,
    /// Where in its 16-aligned buffer a copy or round trip begins, 0 to 15.
    pub frame_offset: usize,
}

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A length outside what the workload handles.
    #[error("{name} handles lengths from {min} to {max}, not {len}")]
    Length {
        /// The workload.
        name: Name,
        /// What was asked.
        len: usize,
        /// The smallest length.
        min: usize,
        /// The largest length.
        max: usize,
    },
    /// A form that the workload does not have.
    #[error("{name} has no {variant} form")]
    Variant {
        /// The workload.
        name: Name,
        /// What was asked.
        variant: Variant,
    },
    /// An offset outside 0 to 15.
    #[error("a frame offset lies between 0 and 15, not at {0}")]
    Offset(usize),
}

impl From<SpecError> for crate::Failure {
    fn from(error: SpecError) -> Self {
        let remedy = match &error {
            SpecError::Length { min, max, .. } => format!("give a length from {min} to {max}"),
            SpecError::Variant { .. } => "choose another workload or form".to_owned(),
            SpecError::Offset(_) => "give an offset from 0 to 15".to_owned(),
        };
        crate::Failure::usage(error.to_string(), "workload", remedy)
    }
}

impl Spec {
    /// `name` at `len` bytes, in its default form.
    pub fn new(name: Name, len: usize) -> Self {
        Spec { name, len, variant: Variant::Default, sink: SinkKind::BlackBox, frame_offset: 0 }
    }

    /// The same workload in another form.
    pub fn variant(self, variant: Variant) -> Self {
        Spec { variant, ..self }
    }

    /// The column `len`: `None` for `registers`.
    pub fn sample_len(&self) -> Option<u64> {
        (self.name != Name::Registers).then_some(self.len as u64)
    }

    /// What the workload is for, in this form.
    pub fn role(&self) -> Role {
        Role::of(self.name.as_str(), self.variant.as_str())
    }

    /// Whether there is a store-only twin: for every workload that reads back a buffer of its own.
    pub fn has_twin(&self) -> bool {
        matches!(self.name, Name::CopyChain | Name::CopyRing | Name::RoundTrip)
    }

    /// Checks the length, the form and the offset.
    ///
    /// # Errors
    /// [`SpecError`] says which of them cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        let (min, max) = match self.name {
            Name::Registers => (0, usize::MAX),
            Name::RoundTrip => (64, 64),
            Name::Memcpy | Name::CopyChain | Name::CopyRing => (1, MAX_COPY_LEN),
            Name::Blake3 | Name::Blake3Hasher | Name::Sha256 | Name::Sha3 | Name::Crc32 => {
                (0, isize::MAX as usize)
            }
        };
        if !(min..=max).contains(&self.len) {
            return Err(SpecError::Length { name: self.name, len: self.len, min, max });
        }
        let possible = match self.variant {
            Variant::Default => true,
            Variant::StoreOnly => self.has_twin(),
            Variant::Realigned => self.name == Name::RoundTrip,
        };
        if !possible {
            return Err(SpecError::Variant { name: self.name, variant: self.variant });
        }
        if self.frame_offset > 15 {
            return Err(SpecError::Offset(self.frame_offset));
        }
        Ok(())
    }

    /// Makes the workload ready to be timed, with `routine` as its copy routine.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn build(&self, routine: CopyRoutine) -> Result<Box<dyn Timed>, SpecError> {
        self.check()?;
        Ok(match self.name {
            Name::Blake3 => self.hashing::<Blake3>(),
            Name::Blake3Hasher => self.hashing::<Blake3Hasher>(),
            Name::Sha256 => self.hashing::<Sha256>(),
            Name::Sha3 => self.hashing::<Sha3>(),
            Name::Crc32 => self.hashing::<Crc32>(),
            // A frame is as small as its length allows: zeroing it is part of the block.
            Name::Memcpy | Name::CopyChain | Name::CopyRing => match self.len {
                0..=144 => self.copying::<160>(routine),
                145..=1024 => self.copying::<1040>(routine),
                1025..=8192 => self.copying::<8208>(routine),
                _ => self.copying::<{ MAX_COPY_LEN + 16 }>(routine),
            },
            Name::RoundTrip => self.round_trip(),
            Name::Registers => boxed(Registers),
        })
    }

    fn hashing<H: HashFunction + 'static>(&self) -> Box<dyn Timed> {
        match self.sink {
            SinkKind::BlackBox => boxed(Hashing::<H, BlackBox>::new(self.len)),
            SinkKind::Xor => boxed(Hashing::<H, Xor>::new(self.len)),
        }
    }

    fn round_trip(&self) -> Box<dyn Timed> {
        let form = match self.variant {
            Variant::Default => Form::AsPlaced,
            Variant::StoreOnly => Form::StoreOnly,
            Variant::Realigned => Form::Realigned,
        };
        let widest = RoundTrip::widest();
        match RoundTrip::ALL.iter().position(|&kind| kind == widest) {
            Some(0) => boxed(RoundTripWorkload::<0>::new(form, self.frame_offset)),
            Some(1) => boxed(RoundTripWorkload::<1>::new(form, self.frame_offset)),
            _ => boxed(RoundTripWorkload::<2>::new(form, self.frame_offset)),
        }
    }

    fn copying<const N: usize>(&self, routine: CopyRoutine) -> Box<dyn Timed> {
        let setup = CopySetup::new(routine, self.len, self.frame_offset);
        match (self.name, self.variant) {
            (Name::CopyChain, Variant::StoreOnly) => boxed(CopyChain::<N, true>::new(setup)),
            (Name::CopyChain, _) => boxed(CopyChain::<N, false>::new(setup)),
            (Name::CopyRing, Variant::StoreOnly) => boxed(CopyRing::<N, true>(setup)),
            (Name::CopyRing, _) => boxed(CopyRing::<N, false>(setup)),
            _ => boxed(Memcpy::<N>(setup)),
        }
    }
}

fn boxed<W: Workload + 'static>(workload: W) -> Box<dyn Timed> {
    Box::new(Loop::new(workload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_specs_are_refused() {
        let routine = CopyRoutine::of_c_library();
        for (spec, part) in [
            (Spec::new(Name::Memcpy, 0), "from 1 to 65536, not 0"),
            (Spec::new(Name::RoundTrip, 32), "from 64 to 64, not 32"),
            (Spec::new(Name::Blake3, 64).variant(Variant::StoreOnly), "no store-only form"),
            (Spec::new(Name::CopyChain, 64).variant(Variant::Realigned), "no realigned form"),
            (Spec { frame_offset: 16, ..Spec::new(Name::Memcpy, 64) }, "not at 16"),
        ] {
            let error = spec.build(routine).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn every_workload_runs_in_every_form_it_has() -> Result<(), SpecError> {
        for &name in Name::ALL {
            for &variant in Variant::ALL {
                for len in [1, 64, 145, 1025, 8193] {
                    let spec = Spec::new(name, len).variant(variant);
                    if spec.check().is_ok() {
                        spec.build(CopyRoutine::of_c_library())?.enter(3, None);
                    }
                }
            }
        }
        Ok(())
    }
}
