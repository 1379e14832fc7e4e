//! A process from which the kernel withholds a system call, as container runtimes do.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes `call` fail with EPERM in what `command` starts.
pub fn withhold(command: &mut Command, call: libc::c_long) {
    let filter = move || {
        let statement =
            |code: u32, jt, jf, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
        let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        let program = [
            // The number is the first word that the filter is given.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
            statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program =
            libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
        // SAFETY: plain system calls; `program` outlives them.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
                    == 0
        };
        if set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(filter) };
}
