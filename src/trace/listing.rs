//! The instruction before an address: a watchpoint reports where a program is when the access is
//! done.

use std::fs::File;
use std::os::unix::fs::FileExt;

use iced_x86::{Decoder, DecoderOptions};

use super::access::AccessKind;
use super::decode::{Analyst, Decoded};
use super::symbols::Place;

/// How far back decoding starts where the function's start is not known. Decoding from a wrong byte
/// falls into step with the true instructions after a few of them.
const BACK: u64 = 96;
/// Functions longer than this are decoded from near the access.
const LONGEST_FUNCTION: u64 = 1 << 16;

/// An instruction as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its length in the code.
    pub length: u64,
    /// The instruction.
    pub text: String,
    /// Width of its widest access of the kind asked for.
    pub bytes: u32,
}

/// The instruction that ends where `place` is and makes an access of `kind`, read from the mapped
/// file. `None` where the file cannot be read or no such instruction ends there: a call that pushed
/// its return address is followed by the function called, not by what stands behind it.
pub fn instruction_before(place: &Place, address: u64, kind: AccessKind) -> Option<Listed> {
    let end = place.file_offset?;
    let function = place.symbol_offset.filter(|offset| *offset <= LONGEST_FUNCTION);
    if function == Some(0) {
        return None;
    }
    let back = function.unwrap_or(BACK).min(end);
    let mut code = vec![0u8; back as usize];
    File::open(place.file.as_ref()?).ok()?.read_exact_at(&mut code, end - back).ok()?;
    last_instruction(&code, address, kind, function.is_some())
}

/// The instruction that ends with `code`, the last byte of which lies before `address`. Where the
/// first byte begins an instruction, decoding starts there; else every start is tried, and most
/// agree.
fn last_instruction(
    code: &[u8],
    address: u64,
    kind: AccessKind,
    starts_at_function: bool,
) -> Option<Listed> {
    let mut analyst = Analyst::new();
    let starts = if starts_at_function { 1 } else { code.len() };
    // Votes by the length of the last instruction.
    let mut votes = [0u32; 16];
    for start in 0..starts {
        if let Some(last) = decode_to_end(&code[start..], address, &mut analyst)
            && last.widest(kind).is_some()
        {
            votes[last.instruction.len().min(15)] += 1;
        }
    }
    let length = (1..16).filter(|&n| votes[n] > 0).max_by_key(|&n| votes[n])?;
    let last = decode_to_end(&code[code.len() - length..], address, &mut analyst)?;
    Some(Listed { length: length as u64, text: last.text(), bytes: last.widest(kind)? })
}

/// Decodes instruction after instruction; the last, where it ends just with `code`.
fn decode_to_end(code: &[u8], address: u64, analyst: &mut Analyst) -> Option<Decoded> {
    let base = address.wrapping_sub(code.len() as u64);
    let mut decoder = Decoder::with_ip(64, code, base, DecoderOptions::NONE);
    let mut last = None;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        last = Some(instruction);
    }
    last.map(|instruction| analyst.analyse(instruction))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push rbx; mov [rdi], rax; movups [rdi+16], xmm0; mov rcx, [rdi]
    const CODE: &[u8] = &[0x53, 0x48, 0x89, 0x07, 0x0f, 0x11, 0x47, 0x10, 0x48, 0x8b, 0x0f];

    fn last(code: &[u8], kind: AccessKind, known: bool) -> Option<(String, u32)> {
        last_instruction(code, 0x1000, kind, known).map(|listed| (listed.text, listed.bytes))
    }

    #[test]
    fn finds_what_ends_there_from_a_known_and_from_an_unknown_start() {
        use AccessKind::{Load, Store};
        for known in [true, false] {
            let text = |code, kind| last(code, kind, known);
            assert_eq!(text(&CODE[..4], Store), Some(("mov [rdi], rax".to_owned(), 8)));
            assert_eq!(text(&CODE[..8], Store), Some(("movups [rdi+0x10], xmm0".to_owned(), 16)));
            assert_eq!(text(CODE, Load), Some(("mov rcx, [rdi]".to_owned(), 8)));
        }
    }

    #[test]
    fn an_instruction_of_the_other_kind_is_no_answer() {
        assert_eq!(last(CODE, AccessKind::Store, true), None);
        assert_eq!(last(&[], AccessKind::Store, false), None);
        // Half an instruction.
        assert_eq!(last(&CODE[..6], AccessKind::Store, true), None);
    }
}
