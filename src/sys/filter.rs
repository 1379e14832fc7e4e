//! A system-call filter like that of a container, so that what happens under one can be tried
//! anywhere.

use std::io;

use nix::libc;

/// The question that changes nothing: what the personality is.
const ASK: u32 = 0xffff_ffff;

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Goes on with the next statement where the loaded word is `k`, else `skip` further.
const fn unless_equal(k: u32, skip: u8) -> libc::sock_filter {
    let code = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    libc::sock_filter { code, jt: 0, jf: skip, k }
}

/// From now on, for this process and all that it starts, changing the personality is refused, as
/// container runtimes do by default; asking for it is not.
///
/// # Errors
/// When the kernel takes no filters.
pub fn refuse_personality() -> io::Result<()> {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let give = libc::BPF_RET | libc::BPF_K;
    // Offsets into `struct seccomp_data`: the call's number, and the low half of its first
    // argument on little-endian machines.
    let mut program = [
        statement(load, 0),
        unless_equal(libc::SYS_personality as u32, 2),
        statement(load, 16),
        unless_equal(ASK, 1),
        statement(give, libc::SECCOMP_RET_ALLOW),
        statement(give, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `filter` and the program that it points to live through both calls.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == -1
    };
    if refused { Err(io::Error::last_os_error()) } else { Ok(()) }
}
