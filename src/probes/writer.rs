//! Who writes a buffer: a hardware watchpoint on its first byte.
//!
//! *Hypothesis*: the buffer that a slow load reads is written by a copy routine that the C library
//! chose. *Control*: the watchpoint reports every access there is, whoever makes it; what comes
//! before the operation is told apart by one operation more. *Cannot show*: writes that leave the
//! first byte out, and those of other threads.

use serde::Serialize;
use stack_trampoline::Alignment;

use crate::Failure;
use crate::block::{Located, Locator, Place, first_written, run_at};
use crate::sys::breakpoint::{Access, Hit, watch};
use crate::sys::copy::CopyRoutine;
use crate::trace::{AccessKind, Request, Symbols, WatchedData, instruction_before, watch_program};
use crate::workloads::Spec;

/// The schema of [`WriterDocument`].
pub const SCHEMA: &str = "stackphase/writer/1";

/// Who accessed the first byte of a buffer, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriterDocument {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The workload, of which one operation was watched; `None` for a program.
    pub workload: Option<String>,
    /// Bytes of its operation.
    pub len: Option<u64>,
    /// The shift of its stack.
    pub shift: Option<u64>,
    /// The address watched.
    pub buffer: String,
    /// That address modulo 64.
    pub buf_mod64: u8,
    /// Writes, in order.
    pub writes: Vec<Accessor>,
    /// Reads, in order; `null` where they were not watched.
    pub reads: Option<Vec<Accessor>>,
    /// Why this may not be all; empty when it is.
    pub partial: Vec<String>,
}

/// One access and the instruction that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accessor {
    /// Address of the instruction; of the one after it where the instruction is not known.
    pub ip: String,
    /// The function, where a symbol table or a debug file of that build-id names it.
    pub symbol: Option<String>,
    /// Name of the mapped file.
    pub file: Option<String>,
    /// Where `ip` lies in it, hexadecimal.
    pub file_offset: Option<String>,
    /// Its build-id: with the offset this names the instruction although the file is stripped.
    pub build_id: Option<String>,
    /// `file:line`, where there is debug information.
    pub line: Option<String>,
    /// The instruction; `null` where no access ends at the address reported.
    pub text: Option<String>,
    /// Width of the access in bytes.
    pub bytes: Option<u32>,
}

/// Watches the buffer of one operation of `spec` with its stack shifted by `shift`.
///
/// # Errors
/// Where the workload has no buffer, the stack cannot be put there, or no watchpoint can be had.
pub fn of_workload(spec: &Spec, shift: usize, reads: bool) -> Result<WriterDocument, Failure> {
    crate::sys::breakpoint::prove()?;
    let mut timed = spec.build(CopyRoutine::of_c_library())?;
    let place = Place::Shifted(Alignment::Page, shift);
    let mut random = fastrand::Rng::new();
    let located =
        Locator::default().locate(place, timed.as_mut(), &mut random, &mut first_written)?;
    if let Located::Absent(absence) = &located {
        let (why, remedy) = (absence.why.clone(), absence.remedy.clone());
        return Err(Failure::new(why, spec.name.as_str(), remedy));
    }
    let mut address = 0;
    let mut seen = |access, iterations| -> Result<Vec<Hit>, Failure> {
        // Two callers of different depth may be placed whole pages apart: asked again from here.
        let (here, _) = run_at(place, timed.as_mut(), 1, None)?;
        address = located.address_at(here.sp).unwrap_or_default();
        let mut watch = watch(address as usize, 1, access)?;
        run_at(place, timed.as_mut(), iterations, None)?;
        watch.disable()?;
        Ok(watch.take())
    };
    // What comes before the loop (the frame, the calls down to it) is in both.
    let mut last_operation = |access| -> Result<Vec<Hit>, Failure> {
        let before = seen(access, 1)?.len();
        let both = seen(access, 2)?;
        Ok(both.into_iter().skip(before).collect())
    };
    let writes = last_operation(Access::Write)?;
    let reads = reads.then(|| last_operation(Access::ReadWrite)).transpose()?;
    let reads = reads.map(|all| reads_of(all, &writes));
    let mut symbols = symbols_of_self()?;
    Ok(WriterDocument {
        workload: Some(spec.name.to_string()),
        len: spec.sample_len(),
        shift: Some(shift as u64),
        ..document(address, &writes, reads.as_deref(), &mut symbols, Vec::new())
    })
}

/// Watches data of a program.
///
/// # Errors
/// Where the call is not reached, tracing is forbidden, or no watchpoint can be had.
pub fn of_program(
    request: &Request<'_>,
    data: &WatchedData,
    reads: bool,
) -> Result<WriterDocument, Failure> {
    crate::sys::breakpoint::prove()?;
    let place = request.program.to_string_lossy();
    let mut watched = watch_program(request, data, reads).map_err(|error| error.at(place))?;
    let read = reads.then_some(watched.reads.as_slice());
    Ok(document(watched.address, &watched.writes, read, &mut watched.symbols, watched.partial))
}

/// The hardware cannot watch reads alone: they are the accesses of instructions that do not write.
fn reads_of(mut all: Vec<Hit>, writes: &[Hit]) -> Vec<Hit> {
    all.retain(|hit| !writes.iter().any(|write| write.ip == hit.ip));
    all
}

fn symbols_of_self() -> Result<Symbols, Failure> {
    Symbols::of_process(std::process::id() as i32).map_err(|error| {
        Failure::new(format!("cannot read the mappings: {error}"), "/proc/self/maps", "mount /proc")
    })
}

fn document(
    address: u64,
    writes: &[Hit],
    reads: Option<&[Hit]>,
    symbols: &mut Symbols,
    partial: Vec<String>,
) -> WriterDocument {
    let mut list = |hits: &[Hit], kind| -> Vec<Accessor> {
        hits.iter().map(|hit| accessor(hit.ip, kind, symbols)).collect()
    };
    WriterDocument {
        schema: SCHEMA,
        workload: None,
        len: None,
        shift: None,
        buffer: format!("{address:#x}"),
        buf_mod64: (address % 64) as u8,
        writes: list(writes, AccessKind::Store),
        reads: reads.map(|reads| list(reads, AccessKind::Load)),
        partial,
    }
}

/// The instruction before `next`, and whose it is.
fn accessor(next: u64, kind: AccessKind, symbols: &mut Symbols) -> Accessor {
    let listed = instruction_before(&symbols.place(next), next, kind);
    let ip = next - listed.as_ref().map_or(0, |listed| listed.length);
    let place = symbols.places([ip]).remove(&ip).unwrap_or_default();
    let name = |path: &std::path::PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
    Accessor {
        ip: format!("{ip:#x}"),
        symbol: place.symbol,
        file: place.file.as_ref().and_then(name),
        file_offset: place.file_offset.map(|offset| format!("{offset:#x}")),
        build_id: place.build_id,
        line: place.line,
        bytes: listed.as_ref().map(|listed| listed.bytes),
        text: listed.map(|listed| listed.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Name;

    /// `None` where there are no watchpoints.
    fn watched(spec: &Spec, reads: bool) -> Option<WriterDocument> {
        if let Err(error) = crate::sys::breakpoint::prove() {
            eprintln!("skipped: {error}");
            return None;
        }
        Some(of_workload(spec, 16, reads).expect("watched"))
    }

    #[test]
    fn the_c_librarys_copy_writes_the_buffer_of_a_copy() {
        let spec = Spec::new(Name::CopyChain, 64);
        let Some(document) = watched(&spec, true) else { return };
        // One store, or two that overlap, by the copy; and the second copy reads them.
        assert!((1..=2).contains(&document.writes.len()), "{document:?}");
        let routine = CopyRoutine::of_c_library().address() as u64;
        for write in &document.writes {
            let ip = u64::from_str_radix(write.ip.trim_start_matches("0x"), 16).expect("a number");
            assert!(ip.abs_diff(routine) < 4096, "{write:?}");
            assert!(write.bytes.is_some_and(|bytes| (8..=64).contains(&bytes)), "{write:?}");
            assert!(write.file_offset.is_some() && write.build_id.is_some(), "{write:?}");
        }
        assert!(document.reads.is_some_and(|reads| !reads.is_empty()));
    }

    #[test]
    fn what_has_no_buffer_has_no_writer() {
        let refusal = of_workload(&Spec::new(Name::Registers, 0), 0, false);
        assert!(refusal.is_err_and(|failure| failure.what.contains("nothing on the stack")
            || failure.place.contains("watchpoint")));
    }
}
