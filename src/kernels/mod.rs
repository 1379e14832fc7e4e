//! All assembly outside the trampoline and the reproducer, one folder a target.
//!
//! Everything here is a leaf: it calls nothing, keeps to the registers it names as clobbered, and
//! touches memory only through the addresses it is given. Dispatch to the target happens in this
//! file and nowhere else.

// Inline assembly is what this module exists for; each block states its safety argument.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_os = "linux")]
pub mod pairs;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as target;
#[cfg(target_arch = "x86_64")]
use x86_64 as target;

pub use target::chains::{dependent_chain, saturating_loop};
pub use target::frame::{clear_upper_lanes, find_on_stack, stack_pointer};
pub use target::roundtrip::{RoundTrip, round_trip, round_trip_in_place};
pub use target::self_test;

/// Operations in one step of [`dependent_chain`]: dependent multiplications.
pub const CHAIN_STEP: u64 = 16;

/// Instructions in one step of [`dependent_chain`]: the multiplications, the decrement, the branch.
pub const CHAIN_INSTRUCTIONS: u64 = CHAIN_STEP + 2;

/// The memory of the [`self_test`] loops: 16 KiB that start on a page.
#[repr(C, align(4096))]
pub struct SelfTestArea([u8; 16384]);

impl SelfTestArea {
    /// Zeroed memory.
    pub fn new() -> Box<Self> {
        Box::new(SelfTestArea([0; 16384]))
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8; 16384] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_message_on_the_stack_and_nothing_else() {
        let message: Vec<u8> = (0..64).map(|i| (i as u8).wrapping_mul(37) ^ 0x5a).collect();
        let mut area = [0u8; 1024];
        area[300..364].copy_from_slice(&message);
        // Half of the message is not the message; three quarters are.
        area[700..732].copy_from_slice(&message[..32]);
        area[900..964].copy_from_slice(&message);
        area[903] ^= 1;
        let start = area.as_ptr() as usize;
        let mut found = [0usize; 4];
        let count = find_on_stack(start, start + area.len(), &message, &mut found);
        assert_eq!(&found[..count], [start + 300, start + 900]);
        std::hint::black_box(&area);
    }

    #[test]
    fn counts_beyond_the_room_for_them() {
        let message = [7u8; 16];
        let area = [7u8; 64];
        let start = area.as_ptr() as usize;
        let mut found = [0usize; 2];
        let count = find_on_stack(start, start + area.len(), &message, &mut found);
        assert_eq!(count, 2, "stops when the room is used up");
        std::hint::black_box(&area);
    }

    #[test]
    fn a_range_shorter_than_the_message_holds_nothing() {
        let area = [7u8; 8];
        let start = area.as_ptr() as usize;
        assert_eq!(find_on_stack(start, start + 8, &[7u8; 16], &mut [0usize; 2]), 0);
    }

    #[test]
    fn the_round_trip_preserves_what_it_moves() {
        for &kind in RoundTrip::ALL {
            if !kind.available() {
                eprintln!("skipped: this machine has no {kind}");
                continue;
            }
            let mut target = [0u8; 64];
            let source: [u8; 64] = std::array::from_fn(|i| i as u8 ^ 0xc3);
            round_trip(kind, &source, &mut target);
            assert_eq!(target, source, "{kind}");
        }
    }

    #[test]
    fn the_stack_pointer_lies_below_a_local() {
        let local = 0u8;
        let sp = stack_pointer();
        let local = std::ptr::from_ref(&local) as usize;
        assert!(sp <= local && local - sp < 65_536, "sp {sp:#x}, local {local:#x}");
    }
}
