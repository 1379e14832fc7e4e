//! Mask and vector registers out of the processor's extended state.
//!
//! Layout: Intel SDM volume 1, chapter 13 (standard format); where each part lies is asked of the
//! processor (CPUID leaf 13), since AMD and Intel differ.

use iced_x86::Register;

/// Room for every state of today's processors but the tiles.
pub(super) const STATE_BYTES: usize = 4096;

/// State components by number.
const YMM_HIGH: u32 = 2;
const OPMASK: u32 = 5;
const ZMM_HIGH: u32 = 6;
const HIGH_ZMM: u32 = 7;

/// Where the components lie.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    ymm_high: Option<usize>,
    opmask: Option<usize>,
    zmm_high: Option<usize>,
    high_zmm: Option<usize>,
}

impl Layout {
    /// Of this processor.
    pub fn here() -> Layout {
        let mut layout = Layout::default();
        let Some(state) = raw_cpuid::CpuId::new().get_extended_state_info() else { return layout };
        for component in state.iter() {
            let offset = Some(component.offset() as usize);
            match component.subleaf {
                YMM_HIGH => layout.ymm_high = offset,
                OPMASK => layout.opmask = offset,
                ZMM_HIGH => layout.zmm_high = offset,
                HIGH_ZMM => layout.high_zmm = offset,
                _ => {}
            }
        }
        layout
    }
}

/// The state of one thread at one moment.
pub(super) struct Vectors {
    layout: Layout,
    state: Box<[u8]>,
}

impl Vectors {
    pub fn new(layout: Layout) -> Vectors {
        Vectors { layout, state: vec![0; STATE_BYTES].into_boxed_slice() }
    }

    /// Where the state is to be read into.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.state
    }

    /// A mask register; `k0` as a mask means that there is none.
    pub fn mask(&self, register: Register) -> u64 {
        let number = register.number();
        if number == 0 {
            return u64::MAX;
        }
        self.word(OPMASK, self.layout.opmask, number * 8).unwrap_or(0)
    }

    /// Element `index` of `bytes` bytes (4 or 8) of a vector register.
    pub fn element(&self, register: Register, index: usize, bytes: usize) -> Option<u64> {
        let at = index * bytes;
        let word = self.vector_word(register, at / 8)?;
        Some(if bytes == 4 { word >> (at % 8 * 8) & 0xffff_ffff } else { word })
    }

    /// The sign bits of the elements in the first `bytes` bytes of a vector register, bit 0 the
    /// first element's.
    pub fn signs(&self, register: Register, element: u32, bytes: u32) -> u64 {
        let element = element.max(1);
        (0..bytes / element).fold(0, |signs, i| {
            let last = ((i + 1) * element - 1) as usize;
            let word = self.vector_word(register, last / 8).unwrap_or(0);
            signs | (word >> (last % 8 * 8 + 7) & 1) << i
        })
    }

    /// Word `word` (of 64 bits, up to eight) of a vector register.
    fn vector_word(&self, register: Register, word: usize) -> Option<u64> {
        /// The 128-bit registers in the legacy area, and the 80-bit ones that MMX shares.
        const XMM: usize = 160;
        const MMX: usize = 32;
        let number = register.number();
        if register.is_mm() {
            return self.word(0, Some(MMX), number * 16);
        }
        let within = word * 8;
        match (number, word) {
            (16.., _) => self.word(HIGH_ZMM, self.layout.high_zmm, (number - 16) * 64 + within),
            (_, 0 | 1) => self.word(1, Some(XMM), number * 16 + within),
            (_, 2 | 3) => self.word(YMM_HIGH, self.layout.ymm_high, number * 16 + within - 16),
            _ => self.word(ZMM_HIGH, self.layout.zmm_high, number * 32 + within - 32),
        }
    }

    /// A word of a component. A component that is in its initial state may hold anything in the
    /// buffer and is 0.
    fn word(&self, component: u32, base: Option<usize>, offset: usize) -> Option<u64> {
        /// The header's first word tells which components are not in their initial state.
        const IN_USE: usize = 512;
        if self.plain_word(IN_USE)? >> component & 1 == 0 {
            return Some(0);
        }
        self.plain_word(base? + offset)
    }

    fn plain_word(&self, at: usize) -> Option<u64> {
        self.state.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_words(words: &[(usize, u64)]) -> Vectors {
        let layout = Layout {
            ymm_high: Some(576),
            opmask: Some(832),
            zmm_high: Some(896),
            high_zmm: Some(1408),
        };
        let mut vectors = Vectors::new(layout);
        for (at, word) in words {
            vectors.buffer()[*at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        vectors
    }

    #[test]
    fn parts_of_a_register_are_found_where_they_lie() {
        let vectors = with_words(&[
            (512, 0b1110_0111),
            (160 + 3 * 16 + 8, 0x1111_2222_3333_4444),
            (576 + 3 * 16, 5),
            (896 + 3 * 32, 6),
            (1408 + 64 + 56, 7),
            (832 + 2 * 8, 0xf0),
        ]);
        assert_eq!(vectors.element(Register::ZMM3, 1, 8), Some(0x1111_2222_3333_4444));
        assert_eq!(vectors.element(Register::XMM3, 3, 4), Some(0x1111_2222));
        assert_eq!(vectors.element(Register::YMM3, 2, 8), Some(5));
        assert_eq!(vectors.element(Register::ZMM3, 4, 8), Some(6));
        assert_eq!(vectors.element(Register::ZMM17, 7, 8), Some(7));
        assert_eq!(vectors.mask(Register::K2), 0xf0);
        assert_eq!(vectors.mask(Register::K0), u64::MAX);
    }

    #[test]
    fn a_component_in_its_initial_state_is_zero() {
        let vectors = with_words(&[(512, 0), (160, 9), (832 + 8, 9)]);
        assert_eq!(vectors.element(Register::XMM0, 0, 8), Some(0));
        assert_eq!(vectors.mask(Register::K1), 0);
    }

    #[test]
    fn signs_are_those_of_the_elements() {
        let vectors = with_words(&[(512, 2), (160, 0x8000_0000_0000_0080), (168, 1 << 31)]);
        assert_eq!(vectors.signs(Register::XMM0, 1, 16), 1 | 1 << 7 | 1 << 11);
        assert_eq!(vectors.signs(Register::XMM0, 4, 16), 0b0110);
        assert_eq!(vectors.signs(Register::XMM0, 8, 16), 0b01);
    }

    #[test]
    fn this_processor_tells_where_its_wide_registers_lie() {
        if !std::arch::is_x86_feature_detected!("avx") {
            eprintln!("skipped: no AVX here");
            return;
        }
        // Fixed by Intel and AMD alike.
        assert_eq!(Layout::here().ymm_high, Some(576));
    }
}
