//! Starting a child with its address-space randomisation off, its own process group, and one
//! inherited descriptor.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;

/// What is set in the child between `fork` and `exec`.
#[derive(Debug, Default)]
pub struct ChildSetup {
    /// Ask for `ADDR_NO_RANDOMIZE`. A refusal does not fail the start: what was reached is proven
    /// by what the child reports.
    pub no_randomisation: bool,
    /// A descriptor to hand down, and the number it has in the child.
    pub inherit: Option<(OwnedFd, RawFd)>,
    /// Whether the child ends when its parent does.
    pub die_with_parent: bool,
}

/// Makes `command` apply `setup` in the child, which also becomes the leader of its own process
/// group, so that a time-out can end everything it started.
pub fn prepare(command: &mut Command, setup: ChildSetup) {
    command.process_group(0);
    let parent = std::process::id();
    // SAFETY: the closure runs between fork and exec in a possibly multi-threaded process, so it
    // makes system calls only: personality, prctl, getppid, dup2, fcntl. It allocates nothing and
    // takes no lock.
    unsafe {
        command.pre_exec(move || {
            if setup.no_randomisation {
                let current = libc::personality(0xffff_ffff);
                if current != -1 {
                    let _ = libc::personality(
                        current as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong,
                    );
                }
            }
            if setup.die_with_parent {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The parent may have died before the request was in force.
                if libc::getppid() as u32 != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            if let Some((descriptor, number)) = &setup.inherit {
                let raw = descriptor.as_raw_fd();
                let result = if raw == *number {
                    // Already there: only the close-on-exec flag is in the way.
                    libc::fcntl(raw, libc::F_SETFD, 0)
                } else {
                    libc::dup2(raw, *number)
                };
                if result == -1 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_child_gets_the_descriptor_and_its_own_group() -> io::Result<()> {
        let (mut ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ps=$(cut -d' ' -f5 /proc/self/stat); echo $ps $$ >&9"]);
        prepare(
            &mut command,
            ChildSetup { inherit: Some((theirs.into(), 9)), ..ChildSetup::default() },
        );
        let status = command.status()?;
        // The parent's copy lives in the command's closure.
        drop(command);
        let mut text = String::new();
        ours.read_to_string(&mut text)?;
        let numbers: Vec<&str> = text.split_whitespace().collect();
        assert!(status.success());
        assert_eq!(numbers.len(), 2);
        assert_eq!(numbers[0], numbers[1], "the child leads its own process group");
        Ok(())
    }
}
