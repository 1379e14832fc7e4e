//! One ELF file: its segments, its functions, and the source lines of its code.
//!
//! Functions come from the symbol table, the dynamic symbol table, and the debug file of the same
//! build-id, since distributed libraries carry only their dynamic symbols.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addr2line::gimli;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolFlags, SymbolKind,
};

/// `STT_GNU_IFUNC`: the symbol is a function that returns the function to call.
const GNU_IFUNC: u8 = 10;

/// `PF_X`: the segment may be executed.
const PF_X: u32 = 1;

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub address: u64,
    pub size: u64,
    /// As it stands in the file.
    pub raw: String,
    /// As a person writes it.
    pub name: String,
    /// Chooses at run time which code is called.
    pub chooses: bool,
}

/// A loadable part: file offset, address, length in the file, permission.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    length: u64,
    executable: bool,
}

pub(super) struct Elf {
    /// Page size of this system.
    page: u64,
    path: PathBuf,
    debug: Option<PathBuf>,
    segments: Vec<Segment>,
    /// By address.
    functions: Vec<Function>,
    pub build_id: Option<String>,
}

impl Elf {
    /// Reads `path`; `None` when it is no ELF file or cannot be read.
    pub fn open(path: &Path) -> Option<Elf> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            let executable =
                matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
            Segment { offset, address: segment.address(), length, executable }
        });
        let build_id = file.build_id().ok().flatten().map(hexadecimal);
        let debug = build_id.as_deref().and_then(debug_file);
        let mut functions = Vec::new();
        collect(&file, &mut functions);
        if let Some(bytes) = debug.as_ref().and_then(|path| std::fs::read(path).ok())
            && let Ok(file) = object::File::parse(&*bytes)
        {
            collect(&file, &mut functions);
        }
        // Of several names for one address the first in the order of the tables is kept first.
        functions.sort_by_key(|function| function.address);
        let segments = segments.collect();
        let page = crate::sys::page_size();
        Some(Elf { page, path: path.to_owned(), debug, segments, functions, build_id })
    }

    /// What to add to an address of the file when its offset `offset` is mapped at `start`, with or
    /// without permission to execute.
    pub fn bias(&self, start: u64, offset: u64, executable: bool) -> Option<u64> {
        // Segments may share a page of the file, and each maps the whole page; a mapping may also
        // be the later part of a segment's.
        let first_page = |s: &&Segment| s.offset - s.offset % self.page == offset;
        let inside = |s: &&Segment| (s.offset..s.offset + s.length).contains(&offset);
        let alike = || self.segments.iter().filter(|s| s.executable == executable);
        let segment = alike()
            .find(first_page)
            .or_else(|| alike().find(inside))
            .or_else(|| self.segments.iter().find(inside))?;
        Some(start.wrapping_sub(offset).wrapping_add(segment.offset).wrapping_sub(segment.address))
    }

    /// The function that holds `address`.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let behind = self.functions.partition_point(|function| function.address <= address);
        // Functions may nest (a size of 0 is an assembler's label): the nearest that reaches here.
        self.functions[..behind].iter().rev().take(64).find(|function| {
            address < function.address + function.size
                || (function.size == 0 && address == function.address)
        })
    }

    /// Functions whose name in the file, or as a person writes it, is `name`; one an address.
    pub fn named(&self, name: &str) -> Vec<&Function> {
        let mut found = BTreeMap::new();
        for function in &self.functions {
            let versionless = function.raw.split('@').next().unwrap_or_default();
            if function.raw == name || function.name == name || versionless == name {
                found.entry(function.address).or_insert(function);
            }
        }
        found.into_values().collect()
    }

    /// `file:line` of each of `addresses`, where there is debug information.
    pub fn lines(&self, addresses: &[u64]) -> Vec<Option<String>> {
        let from = |path: &Path| lines_in(path, addresses);
        from(&self.path)
            .or_else(|| self.debug.as_deref().and_then(from))
            .unwrap_or_else(|| vec![None; addresses.len()])
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Where distributions install the debug file of a build-id.
fn debug_file(build_id: &str) -> Option<PathBuf> {
    let (folder, rest) = build_id.split_at_checked(2)?;
    let path = Path::new("/usr/lib/debug/.build-id").join(folder).join(format!("{rest}.debug"));
    path.is_file().then_some(path)
}

fn collect(file: &object::File<'_>, functions: &mut Vec<Function>) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let chooses =
            matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info & 15 == GNU_IFUNC);
        if symbol.is_undefined() || !(chooses || symbol.kind() == SymbolKind::Text) {
            continue;
        }
        let Ok(raw) = symbol.name() else { continue };
        if raw.is_empty() {
            continue;
        }
        functions.push(Function {
            address: symbol.address(),
            size: symbol.size(),
            raw: raw.to_owned(),
            name: format!("{:#}", rustc_demangle::demangle(raw)),
            chooses,
        });
    }
}

/// `None` when the file has no line table that can be read.
fn lines_in(path: &Path, addresses: &[u64]) -> Option<Vec<Option<String>>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    file.section_by_name(".debug_line")?;
    let endian = if file.is_little_endian() {
        gimli::RunTimeEndian::Little
    } else {
        gimli::RunTimeEndian::Big
    };
    let section = |id: gimli::SectionId| -> Cow<'_, [u8]> {
        // Compressed sections count as missing.
        let data = file.section_by_name(id.name()).and_then(|s| s.uncompressed_data().ok());
        data.unwrap_or_default()
    };
    let sections = gimli::DwarfSections::load(|id| Ok::<_, gimli::Error>(section(id))).ok()?;
    let dwarf = sections.borrow(|section| gimli::EndianSlice::new(section, endian));
    let context = addr2line::Context::from_dwarf(dwarf).ok()?;
    let line = |address: &u64| {
        let location = context.find_location(*address).ok()??;
        Some(format!("{}:{}", location.file?, location.line?))
    };
    Some(addresses.iter().map(line).collect())
}
