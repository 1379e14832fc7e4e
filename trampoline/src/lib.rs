//! Call a closure at an exact stack phase.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks)]
use std::ffi::c_void;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    Line,
    Page,
}
pub const MAX_SHIFT: usize = 16384;
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShiftError {
    #[error("{shift} is not a multiple of 16")]
    NotMultipleOf16 { shift: usize },
    #[error("{shift} is above {max}")]
    TooLarge { shift: usize, max: usize },
}
pub fn page_size() -> usize {
    4096
}
std::arch::global_asm!(
    ".globl spike_call",
    "spike_call:",
    "push rbp",
    "mov rbp, rsp",
    "and rsp, rdx",
    "sub rsp, rcx",
    "mov rax, rsi",
    "call rax",
    "mov rsp, rbp",
    "pop rbp",
    "ret"
);
unsafe extern "C" {
    fn spike_call(data: *mut c_void, f: extern "C" fn(*mut c_void), mask: usize, shift: usize);
}
pub fn call_at_shift<R, F: FnOnce() -> R>(
    alignment: Alignment,
    shift: usize,
    f: F,
) -> Result<R, ShiftError> {
    if shift % 16 != 0 {
        return Err(ShiftError::NotMultipleOf16 { shift });
    }
    if shift > MAX_SHIFT {
        return Err(ShiftError::TooLarge { shift, max: MAX_SHIFT });
    }
    struct D<F, R> {
        f: Option<F>,
        r: Option<R>,
    }
    extern "C" fn thunk<R, F: FnOnce() -> R>(p: *mut c_void) {
        let d = unsafe { &mut *(p as *mut D<F, R>) };
        d.r = Some((d.f.take().unwrap())());
    }
    let mut d = D { f: Some(f), r: None };
    let (mask, sub) = match alignment {
        Alignment::Line => (!63usize, shift),
        Alignment::Page => (!4095usize, 512 + shift),
    };
    unsafe { spike_call((&raw mut d).cast(), thunk::<R, F>, mask, sub) };
    Ok(d.r.unwrap())
}

impl std::str::FromStr for Alignment {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "line" => Ok(Alignment::Line),
            "page" => Ok(Alignment::Page),
            _ => Err(format!("{s}")),
        }
    }
}
impl std::fmt::Display for Alignment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Alignment::Line => "line",
            Alignment::Page => "page",
        })
    }
}
