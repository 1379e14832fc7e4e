//! From addresses of a process to functions and lines, and back.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::mappings::{Mapping, mappings};

/// What is known of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function, if a symbol table names it.
    pub symbol: Option<String>,
    /// Bytes from the function's start.
    pub symbol_offset: Option<u64>,
    /// The file that is mapped there.
    pub file: Option<PathBuf>,
    /// Where in that file.
    pub file_offset: Option<u64>,
    /// Build-id of that file.
    pub build_id: Option<String>,
    /// `file:line`, where there is debug information.
    pub line: Option<String>,
}

/// A function found by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address in the process.
    pub address: u64,
    /// The file that defines it.
    pub file: PathBuf,
    /// It chooses, when called, which function is meant (a GNU indirect function).
    pub chooses: bool,
}

/// The mapped files of one process and their symbols, read when they are first needed.
pub struct Symbols {
    mappings: Vec<Mapping>,
    files: HashMap<PathBuf, Option<Elf>>,
}

impl Symbols {
    /// Of the process `process` as it is now.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn of_process(process: i32) -> io::Result<Symbols> {
        Ok(Symbols { mappings: mappings(process)?, files: HashMap::new() })
    }

    /// What is known of each of `addresses`, lines included.
    pub fn places(&mut self, addresses: impl IntoIterator<Item = u64>) -> BTreeMap<u64, Place> {
        let mut places: BTreeMap<u64, Place> = BTreeMap::new();
        let mut by_file: HashMap<PathBuf, Vec<(u64, u64)>> = HashMap::new();
        for address in addresses {
            if places.contains_key(&address) {
                continue;
            }
            let place = self.place(address);
            if let (Some(file), Some(bias)) = (&place.file, self.bias_at(address)) {
                by_file
                    .entry(file.clone())
                    .or_default()
                    .push((address, address.wrapping_sub(bias)));
            }
            places.insert(address, place);
        }
        for (file, addresses) in by_file {
            let Some(elf) = self.elf(&file) else { continue };
            let in_file: Vec<u64> = addresses.iter().map(|(_, in_file)| *in_file).collect();
            for ((address, _), line) in addresses.iter().zip(elf.lines(&in_file)) {
                if let Some(place) = places.get_mut(address) {
                    place.line = line;
                }
            }
        }
        places
    }

    /// What is known of `address`, without its line.
    pub fn place(&mut self, address: u64) -> Place {
        let Some(mapping) = self.mapping_at(address).cloned() else { return Place::default() };
        let bias = self.bias_at(address);
        let mut place = Place {
            file: Some(mapping.path.clone()),
            file_offset: Some(address - mapping.start + mapping.offset),
            ..Place::default()
        };
        let Some(elf) = self.elf(&mapping.path) else { return place };
        place.build_id.clone_from(&elf.build_id);
        if let Some(in_file) = bias.map(|bias| address.wrapping_sub(bias))
            && let Some(function) = elf.function_at(in_file)
        {
            place.symbol = Some(function.name.clone());
            place.symbol_offset = Some(in_file - function.address);
        }
        place
    }

    /// Functions called `name`, in mangled or readable form: those of the program itself, else
    /// those of its libraries.
    pub fn find(&mut self, name: &str, program: &Path) -> Vec<Found> {
        let mut paths: Vec<PathBuf> = vec![program.to_owned()];
        for mapping in &self.mappings {
            if mapping.executable && !paths.contains(&mapping.path) {
                paths.push(mapping.path.clone());
            }
        }
        for path in paths {
            let Some(bias) = self.bias_of(&path) else { continue };
            let Some(elf) = self.elf(&path) else { continue };
            let found: Vec<Found> = elf
                .named(name)
                .into_iter()
                .map(|function| Found {
                    address: function.address.wrapping_add(bias),
                    file: path.clone(),
                    chooses: function.chooses,
                })
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Where `address`, as `nm` prints it for a mapped file of this name (or whole path), lies in
    /// the process.
    pub fn in_file(&mut self, file: &Path, address: u64) -> Option<u64> {
        let matches = |path: &Path| path == file || path.file_name() == Some(file.as_os_str());
        let path = self.mappings.iter().map(|m| &m.path).find(|path| matches(path))?.clone();
        Some(address.wrapping_add(self.bias_of(&path)?))
    }

    /// Whether `address` is in an executable mapping.
    pub fn is_code(&self, address: u64) -> bool {
        self.mapping_at(address).is_some_and(|mapping| mapping.executable)
    }

    /// Whether the process has a dynamic loader.
    pub fn has_loader(&self) -> bool {
        let is_loader = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-linux") || name.starts_with("ld-") || name.starts_with("ld.so")
        };
        self.mappings.iter().any(|mapping| is_loader(&mapping.path))
    }

    fn mapping_at(&self, address: u64) -> Option<&Mapping> {
        self.mappings.iter().find(|m| (m.start..m.end).contains(&address))
    }

    fn bias_at(&mut self, address: u64) -> Option<u64> {
        let mapping = self.mapping_at(address)?.clone();
        self.elf(&mapping.path)?.bias(mapping.start, mapping.offset, mapping.executable)
    }

    fn bias_of(&mut self, path: &Path) -> Option<u64> {
        let code = self.mappings.iter().find(|m| m.path == path && m.executable)?.clone();
        self.elf(path)?.bias(code.start, code.offset, true)
    }

    fn elf(&mut self, path: &Path) -> Option<&Elf> {
        if !self.files.contains_key(path) {
            // Names in brackets are no files.
            let elf = path.is_absolute().then(|| Elf::open(path)).flatten();
            self.files.insert(path.to_owned(), elf);
        }
        self.files.get(path)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_to_be_found() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn finds_a_function_of_ours_and_names_it() {
        let address = a_function_to_be_found as fn() -> u32 as usize as u64;
        let process = std::process::id() as i32;
        let mut symbols = Symbols::of_process(process).expect("maps");
        let place = symbols.places([address]).remove(&address).expect("asked for");
        let name = place.symbol.expect("a symbol");
        assert!(name.ends_with("tests::a_function_to_be_found"), "{name}");
        assert_eq!(place.symbol_offset, Some(0));
        let line = place.line.expect("debug information");
        // The innermost inlined function's line counts.
        let (file, number) = line.rsplit_once(':').expect("file and line");
        assert!(file.ends_with(".rs") && number.parse::<u32>().is_ok_and(|n| n > 0), "{line}");

        let program = super::super::mappings::executable(process).expect("exe");
        let found = symbols.find(&name, &program);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address, address);
        assert!(!found[0].chooses);
        assert!(symbols.is_code(address));
        assert!(symbols.find("no_function_has_this_name", &program).is_empty());
    }

    #[test]
    fn a_library_function_that_chooses_its_code_is_marked() {
        if !cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
            eprintln!("skipped: only glibc on x86-64 is known to choose memcpy at run time");
            return;
        }
        let mut symbols = Symbols::of_process(std::process::id() as i32).expect("maps");
        let found = symbols.find("memcpy", Path::new("/nonexistent"));
        assert!(!found.is_empty() && found.iter().any(|f| f.chooses), "{found:?}");
        let place = symbols.place(libc::memcpy as *const () as usize as u64);
        assert!(place.build_id.is_some_and(|id| id.len() >= 16));
        assert!(place.file_offset.is_some());
    }

    #[test]
    fn an_address_of_nothing_has_no_place() {
        let mut symbols = Symbols::of_process(std::process::id() as i32).expect("maps");
        assert_eq!(symbols.place(16), Place::default());
        assert!(!symbols.is_code(16));
    }
}
