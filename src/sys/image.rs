//! The running program's own image in memory.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;

use nix::libc;

/// The build-id note of the main program as it is mapped; `None` where the linker wrote none.
pub fn build_id() -> Option<&'static [u8]> {
    let mut note: Option<&'static [u8]> = None;
    // SAFETY: the callback matches the signature, is called only during this call, and `note`
    // outlives it.
    unsafe { libc::dl_iterate_phdr(Some(first_object), (&raw mut note).cast()) };
    note
}

/// Called with the main program first: reads its notes and stops the iteration.
unsafe extern "C" fn first_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    note: *mut c_void,
) -> c_int {
    // SAFETY: the C library passes a valid description, and `note` is the caller's option.
    let (info, note) = unsafe { (&*info, &mut *note.cast::<Option<&'static [u8]>>()) };
    // SAFETY: the description gives address and number of the program headers, which stay mapped.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_NOTE) {
        let start = info.dlpi_addr as usize + header.p_vaddr as usize;
        // SAFETY: a note segment of the main program is mapped readable for the process's life.
        let bytes =
            unsafe { std::slice::from_raw_parts(start as *const u8, header.p_memsz as usize) };
        if let Some(id) = find_build_id(bytes) {
            *note = Some(id);
            break;
        }
    }
    1
}

/// Finds the GNU build-id among ELF notes (name size, description size, type; name and description
/// padded to four bytes).
fn find_build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let padded = |size: u32| (size as usize).checked_next_multiple_of(4);
    loop {
        let word = |at: usize| {
            notes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes)
        };
        let (name_size, size, kind) = (word(0)?, word(4)?, word(8)?);
        let description = 12usize.checked_add(padded(name_size)?)?;
        let end = description.checked_add(padded(size)?)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..16)? == b"GNU\0" {
            return notes.get(description..description + size as usize);
        }
        notes = notes.get(end..)?;
    }
}

/// A file that is mapped into this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedObject {
    /// The file's path as the loader knows it.
    pub path: String,
    /// What was added to the file's addresses.
    pub base: usize,
}

/// The object whose code contains `address`.
pub fn containing_object(address: usize) -> Option<MappedObject> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr reads no memory at `address`; it fills `info` and returns non-zero, or 0.
    if unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: filled, as the result says.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a C string of the loader, which lives as long as the object is mapped.
    let path = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(MappedObject { path: path.to_string_lossy().into_owned(), base: info.dli_fbase as usize })
}

/// The running glibc's version; `None` under another C library.
pub fn version_of_c_library() -> Option<String> {
    // SAFETY: looks up a name among what is loaded.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"gnu_get_libc_version".as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    // SAFETY: glibc documents the function under this name as `const char *(void)`; the string it
    // returns is static.
    let version = unsafe {
        let function = std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_char>(symbol);
        CStr::from_ptr(function())
    };
    Some(version.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8; 4], kind: u32, description: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [4, description.len() as u32, kind] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(name);
        bytes.extend(description);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn finds_the_note_among_others() {
        let mut notes = note(b"GNU\0", 1, &[9; 16]);
        notes.extend(note(b"GNU\0", 3, &[1, 2, 3, 4, 5]));
        assert_eq!(find_build_id(&notes), Some(&[1, 2, 3, 4, 5][..]));
    }

    #[test]
    fn torn_notes_hold_nothing() {
        let notes = note(b"GNU\0", 3, &[1; 20]);
        for length in 0..notes.len() {
            assert_eq!(find_build_id(&notes[..length]), None, "{length}");
        }
        assert_eq!(find_build_id(&[0xff; 64]), None);
    }
}
