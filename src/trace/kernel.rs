//! What the kernel does to a traced program's memory in a system call.
//!
//! Calls that hand data over tell where and how much; for all others the lines of interest are
//! compared before and after. What a call overwrote with the same bytes then goes unnoticed.

use std::fs;

use crate::sys::ptrace::{Registers, Tracee};

const LINE: usize = 64;

/// What a system call did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Address and length of what was written.
    pub written: Vec<(u64, u64)>,
    /// Code may have been mapped or unmapped.
    pub remapped: bool,
}

/// Memory as it was before the system call in progress.
#[derive(Default)]
pub(super) struct Kernel {
    lines: Vec<(u64, [u8; LINE])>,
}

impl Kernel {
    /// Remembers the lines at `addresses` before a system call.
    pub fn before(&mut self, tracee: &Tracee, _registers: &Registers, addresses: &[u64]) {
        self.lines.clear();
        self.lines.extend(
            addresses.iter().filter_map(|address| Some((*address, line(tracee, *address)?))),
        );
    }

    /// What the system call that was entered with `before` wrote.
    pub fn after(&mut self, tracee: &Tracee, before: &Registers, now: &Registers) -> Effect {
        let mut effect = Effect {
            written: handed_over(before, now.rax as i64).into_iter().collect(),
            remapped: remaps(before.rax as i64),
        };
        for (address, old) in self.lines.drain(..) {
            let Some(new) = line(tracee, address) else { continue };
            let changed = old.iter().zip(&new).enumerate().filter(|(_, (old, new))| old != new);
            effect.written.extend(changed.map(|(i, _)| (address + i as u64, 1)));
        }
        effect
    }

    /// Whether the process has a handler for `signal`.
    pub fn catches(&self, process: i32, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (signal - 1) & 1 == 1
    }
}

fn line(tracee: &Tracee, address: u64) -> Option<[u8; LINE]> {
    let mut bytes = [0u8; LINE];
    (tracee.read(address, &mut bytes).ok()? == LINE).then_some(bytes)
}

/// The buffer that a call filled whose result is the number of bytes.
fn handed_over(before: &Registers, result: i64) -> Option<(u64, u64)> {
    let bytes = u64::try_from(result).ok()?;
    match before.rax as i64 {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_recvfrom
        | libc::SYS_readlink
        | libc::SYS_getdents64 => Some((before.rsi, bytes)),
        libc::SYS_getrandom | libc::SYS_getcwd => Some((before.rdi, bytes)),
        _ => None,
    }
}

fn remaps(call: i64) -> bool {
    matches!(
        call,
        libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mremap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_shmat
            | libc::SYS_shmdt
    )
}
