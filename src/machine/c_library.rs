//! The C library and the copy routine that it resolved for this processor.

use serde::{Deserialize, Serialize};

use crate::sys::copy::CopyRoutine;
use crate::sys::image::{containing_object, version_of_c_library};

/// The C library in this process, and where its `memcpy` goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CLibrary {
    /// Name and version, such as `glibc 2.36`; `null` where the library does not say.
    pub version: Option<String>,
    /// The file that holds the routine.
    pub path: Option<String>,
    /// Its build-id: with the file offset this names the routine although it is stripped.
    pub build_id: Option<String>,
    /// Offset of the routine in that file, hexadecimal.
    pub memcpy_file_offset: Option<String>,
    /// The routine's symbol, where the file has one for exactly this address.
    pub memcpy_symbol: Option<String>,
}

impl CLibrary {
    /// Of the running process.
    pub fn of_self() -> Self {
        let address = CopyRoutine::of_c_library().address();
        let object = containing_object(address);
        let path = object.as_ref().map(|object| object.path.clone());
        let bytes = path.as_ref().and_then(|path| std::fs::read(path).ok());
        let elf = bytes.as_ref().and_then(|bytes| object::File::parse(&**bytes).ok());
        let relative = object.map(|object| (address - object.base) as u64);
        CLibrary {
            version: version_of_c_library().map(|version| format!("glibc {version}")),
            path,
            build_id: elf.as_ref().and_then(build_id),
            memcpy_file_offset: elf
                .as_ref()
                .zip(relative)
                .and_then(|(elf, relative)| file_offset(elf, relative))
                .map(|offset| format!("{offset:#x}")),
            memcpy_symbol: elf
                .as_ref()
                .zip(relative)
                .and_then(|(elf, relative)| symbol_at(elf, relative)),
        }
    }

    /// Build-id and file offset as one short name for the routine, `null` parts left out.
    pub fn routine(&self) -> Option<String> {
        let offset = self.memcpy_file_offset.as_deref()?;
        Some(match &self.memcpy_symbol {
            Some(symbol) => symbol.clone(),
            None => format!("memcpy+{offset}"),
        })
    }
}

fn build_id(elf: &object::File<'_>) -> Option<String> {
    use object::Object;
    let id = elf.build_id().ok().flatten()?;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where in the file the byte at `relative` (an address as the file states it) lies.
fn file_offset(elf: &object::File<'_>, relative: u64) -> Option<u64> {
    use object::{Object, ObjectSegment};
    elf.segments().find_map(|segment| {
        let (start, len) = segment.file_range();
        let within = relative.checked_sub(segment.address())?;
        (within < len).then_some(start + within)
    })
}

fn symbol_at(elf: &object::File<'_>, relative: u64) -> Option<String> {
    use object::{Object, ObjectSymbol};
    elf.symbols()
        .chain(elf.dynamic_symbols())
        .filter(|symbol| symbol.address() == relative && symbol.size() > 0)
        .find_map(|symbol| symbol.name().ok().map(str::to_owned))
        // The public name is that of the resolver, not of a routine.
        .filter(|name| name != "memcpy" && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_routine_lies_in_a_file_that_can_be_named() {
        let library = CLibrary::of_self();
        if library.version.is_none() {
            eprintln!("skipped: not a glibc");
            return;
        }
        assert!(library.path.as_deref().is_some_and(|path| path.contains("libc")), "{library:?}");
        assert!(library.build_id.as_deref().is_some_and(|id| id.len() >= 16), "{library:?}");
        assert!(library.memcpy_file_offset.is_some(), "{library:?}");
    }
}
