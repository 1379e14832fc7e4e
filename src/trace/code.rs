//! The traced program's code, read a page at a time and decoded once.

use std::collections::HashMap;
use std::rc::Rc;

use iced_x86::{Decoder, DecoderOptions};

use super::decode::{Analyst, Decoded};
use crate::sys::ptrace::Tracee;

/// How much is read at a time; pages of code are at least this large.
const PAGE: u64 = 4096;
/// The longest instruction.
const LONGEST: usize = 15;

/// Why there is no instruction to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoCode {
    /// Nothing is mapped there.
    Unmapped,
    /// These bytes are no instruction that the decoder knows.
    Unknown(Vec<u8>),
}

pub(super) struct Code {
    pages: HashMap<u64, Box<[u8]>>,
    decoded: HashMap<u64, Rc<Decoded>>,
    analyst: Analyst,
}

impl Code {
    pub fn new() -> Code {
        Code { pages: HashMap::new(), decoded: HashMap::new(), analyst: Analyst::new() }
    }

    /// The instruction at `ip`.
    pub fn at(&mut self, tracee: &Tracee, ip: u64) -> Result<Rc<Decoded>, NoCode> {
        if let Some(decoded) = self.decoded.get(&ip) {
            return Ok(Rc::clone(decoded));
        }
        let bytes = self.bytes(tracee, ip);
        if bytes.is_empty() {
            return Err(NoCode::Unmapped);
        }
        let instruction = Decoder::with_ip(64, &bytes, ip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return Err(NoCode::Unknown(bytes));
        }
        let decoded = Rc::new(self.analyst.analyse(instruction));
        self.decoded.insert(ip, Rc::clone(&decoded));
        Ok(decoded)
    }

    /// Whether code was read from the page of `address`.
    pub fn was_read(&self, address: u64) -> bool {
        self.pages.contains_key(&(address / PAGE))
    }

    /// Forgets everything: code was mapped or written.
    pub fn clear(&mut self) {
        self.pages.clear();
        self.decoded.clear();
    }

    /// Up to the longest instruction's bytes from `ip` on.
    fn bytes(&mut self, tracee: &Tracee, ip: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LONGEST);
        let mut at = ip;
        while bytes.len() < LONGEST {
            let page = self.pages.entry(at / PAGE).or_insert_with(|| {
                let mut page = vec![0u8; PAGE as usize];
                let read = tracee.read(at / PAGE * PAGE, &mut page).unwrap_or(0);
                page.truncate(read);
                page.into_boxed_slice()
            });
            let rest = page.get((at % PAGE) as usize..).unwrap_or_default();
            let wanted = rest.len().min(LONGEST - bytes.len());
            if wanted == 0 {
                break;
            }
            bytes.extend_from_slice(&rest[..wanted]);
            at = at.wrapping_add(wanted as u64);
        }
        bytes
    }
}
