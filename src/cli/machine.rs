//! `stackphase machine`: what is known of the host.

use std::fmt::Write;

use super::{Exit, Output};
use crate::Failure;
use crate::machine::Machine;

/// Arguments of `machine`.
#[derive(clap::Args)]
pub struct MachineArgs {}

/// Describes the host.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(_args: &MachineArgs, output: &mut Output) -> Result<Exit, Failure> {
    let machine = Machine::describe();
    if output.json() {
        output.document(&machine)?;
    } else {
        output.text(&text(&machine))?;
    }
    Ok(Exit::Done)
}

fn text(machine: &Machine) -> String {
    let library = &machine.c_library;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    let shown = |value: Option<String>| known(&value);
    let cpus: Vec<String> = machine.permitted_cpus.iter().map(usize::to_string).collect();
    let fix = if machine.blake3.has_the_fix() { "aligned (has the fix)" } else { "as in 1.8.7" };
    let rows = [
        ("machine", machine.line()),
        ("widest store", format!("{} bytes", machine.processor.widest_store_bytes)),
        ("C library", known(&library.path)),
        ("build-id", known(&library.build_id)),
        ("memcpy", format!("file offset {}", known(&library.memcpy_file_offset))),
        ("blake3 buffers", fix.to_owned()),
        ("processors permitted", cpus.join(", ")),
        ("page", format!("{} bytes", machine.page_bytes)),
        ("cache line", shown(machine.cache_line_bytes.map(|bytes| format!("{bytes} bytes")))),
        ("governor", known(&machine.governor)),
        ("boost", shown(machine.boost.map(|on| if on { "on" } else { "off" }.to_owned()))),
        ("huge pages", known(&machine.transparent_huge_pages)),
        ("perf_event_paranoid", shown(machine.perf_event_paranoid.map(|level| level.to_string()))),
    ];
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<21} {value}");
    }
    for disturbance in &machine.disturbances {
        let _ = writeln!(text, "disturbs: {disturbance}");
    }
    text
}
