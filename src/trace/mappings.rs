//! What is mapped where in a process, as `/proc/PID/maps` tells it.

use std::io;
use std::path::{Path, PathBuf};

/// One mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in the file it starts.
    pub offset: u64,
    /// Whether it may be executed.
    pub executable: bool,
    /// The file, or a name in brackets such as `[vdso]`.
    pub path: PathBuf,
}

/// The named mappings of a process, in order of address.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn mappings(process: i32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{process}/maps"))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// The program's entry point (`AT_ENTRY` of its auxiliary vector).
///
/// # Errors
/// When `/proc` cannot be read or has no such entry.
pub fn entry_point(process: i32) -> io::Result<u64> {
    let vector = std::fs::read(format!("/proc/{process}/auxv"))?;
    let words: Vec<u64> = vector
        .chunks_exact(8)
        .filter_map(|chunk| chunk.try_into().ok().map(u64::from_ne_bytes))
        .collect();
    let entry = words.chunks_exact(2).find(|pair| pair[0] == libc::AT_ENTRY);
    entry.map(|pair| pair[1]).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The executable of a process.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn executable(process: i32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/exe"))
}

/// `7f00-7f10 r-xp 00001000 fd:01 1234    /usr/lib/libc.so.6`; unnamed mappings give `None`.
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let end =
            rest[start..].iter().position(|byte| *byte == b' ').map_or(rest.len(), |n| start + n);
        let text = std::str::from_utf8(&rest[start..end]).ok()?;
        rest = &rest[end..];
        Some(text)
    };
    let (start, end) = field()?.split_once('-')?;
    let permissions = field()?;
    let offset = field()?;
    let (_device, _inode) = (field()?, field()?);
    let path = rest.trim_ascii_start();
    if path.is_empty() {
        return None;
    }
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        path: Path::new(std::ffi::OsStr::new(&String::from_utf8_lossy(path).into_owned()))
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_line_apart() {
        let line = b"7f5c00000000-7f5c00021000 r-xp 00026000 fe:00 131      /usr/lib/my libc.so.6";
        let mapping = parse(line).expect("a mapping");
        assert_eq!((mapping.start, mapping.end), (0x7f5c_0000_0000, 0x7f5c_0002_1000));
        assert_eq!((mapping.offset, mapping.executable), (0x26000, true));
        assert_eq!(mapping.path, Path::new("/usr/lib/my libc.so.6"));
        assert_eq!(parse(b"7f5c00000000-7f5c00021000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"nonsense"), None);
    }

    #[test]
    fn finds_this_program_in_this_process() {
        let process = std::process::id() as i32;
        let here = takes_a_line_apart as fn() as usize as u64;
        let all = mappings(process).expect("maps");
        let ours = all.iter().find(|m| (m.start..m.end).contains(&here)).expect("mapped");
        assert!(ours.executable);
        assert_eq!(ours.path, executable(process).expect("exe"));
        let entry = entry_point(process).expect("auxv");
        assert!(all.iter().any(|m| m.path == ours.path && (m.start..m.end).contains(&entry)));
    }
}
