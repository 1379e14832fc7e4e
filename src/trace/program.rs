//! The program file, checked before anything runs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::TraceError;

/// ELF machine numbers: <https://www.sco.com/developers/gabi/latest/ch4.eheader.html>.
const MACHINES: [(u16, &str); 7] = [
    (3, "32-bit x86"),
    (8, "MIPS"),
    (21, "64-bit POWER"),
    (22, "S/390"),
    (40, "32-bit Arm"),
    (62, "x86-64"),
    (183, "64-bit Arm"),
];

#[cfg(target_arch = "x86_64")]
const OURS: u16 = 62;
#[cfg(target_arch = "aarch64")]
const OURS: u16 = 183;

/// Finds `program` as a shell would and says what forbids tracing it.
pub(super) fn find(program: &OsStr) -> Result<PathBuf, TraceError> {
    let path = search(program).ok_or(TraceError::NotFound)?;
    let metadata = path.metadata().map_err(|_| TraceError::NotFound)?;
    let mode = metadata.permissions().mode();
    if !metadata.is_file() || mode & 0o111 == 0 {
        return Err(TraceError::NotExecutable);
    }
    if metadata.len() == 0 {
        return Err(TraceError::Empty);
    }
    let changes_user =
        mode & libc::S_ISUID != 0 && metadata.uid() != nix::unistd::geteuid().as_raw();
    let changes_group = mode & libc::S_ISGID != 0
        && mode & libc::S_IXGRP != 0
        && metadata.gid() != nix::unistd::getegid().as_raw();
    if changes_user || changes_group {
        return Err(TraceError::SetId);
    }
    check_machine(&path)?;
    Ok(path)
}

fn search(program: &OsStr) -> Option<PathBuf> {
    let direct = Path::new(program);
    if direct.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return direct.exists().then(|| direct.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Scripts pass: what their first line names is checked when it runs.
fn check_machine(path: &Path) -> Result<(), TraceError> {
    let mut header = [0u8; 20];
    match File::open(path).and_then(|mut file| file.read_exact(&mut header)) {
        Ok(()) => {}
        // Readable by nobody, yet executable.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        Err(_) => return Ok(()),
    }
    if &header[..4] != b"\x7fELF" {
        // A script, by its first line or by a shell's kindness; a shell reads no binary files.
        let binary = header.iter().any(|byte| matches!(byte, 0..=8 | 0x7f));
        return if binary { Err(TraceError::NotExecutable) } else { Ok(()) };
    }
    let (wide, little) = (header[4] == 2, header[5] == 1);
    let machine = if little {
        u16::from_le_bytes([header[18], header[19]])
    } else {
        u16::from_be_bytes([header[18], header[19]])
    };
    if wide && little && machine == OURS {
        return Ok(());
    }
    let name = MACHINES.iter().find(|(number, _)| *number == machine).map(|(_, name)| *name);
    let name = name.map_or_else(|| format!("machine {machine}"), str::to_owned);
    Err(TraceError::WrongArchitecture(if wide || machine == 3 || machine == 40 {
        name
    } else {
        format!("{name} (32-bit words)")
    }))
}
