//! `stackphase forwarding`: the map of this core's store-to-load forwarding.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::run::plan_document;
use super::{Exit, Output};
use crate::Failure;
use crate::machine::{Machine, choose_cpu, pin};
use crate::probes::forwarding::{Extent, GridPreset, Map, Plan, measure, to_csv, to_json, widths};
use crate::record::{MACHINE, PLAN, RunDirectory};
use crate::report::svg;
use crate::sys::signals::{Stop, remember_stop_requests, stop_requested};

/// Arguments of `forwarding`.
#[derive(clap::Args)]
#[command(after_help = "\
Each cell is one store (or a pair) and one load: its time, its twin whose load is on another line, \
and a class. Stores and loads of 1 to 64 bytes, as far as the machine has them.

Defaults: every touching offset at six residues and at a page's end, 5 repeats (half a minute). \
--quick: telling offsets at four residues, chained, 3 repeats. --full: every residue, both forms \
(tens of minutes).

Examples:
  stackphase forwarding                 the map and its rules
  stackphase forwarding --grid 64x16    64 store offsets by 64 load offsets
  stackphase forwarding --out map       keep forwarding.json, .csv and plots/forwarding.svg in map")]
pub struct ForwardingArgs {
    /// One store width and one load width at every two offsets of a line: 8x4, 16x16 or 64x16
    #[arg(long, value_name = "STORExLOAD", conflicts_with = "full")]
    grid: Option<GridPreset>,
    /// The whole product: every residue, both forms, pairs and gaps
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Fewer offsets and three repeats, for a first look
    #[arg(long)]
    quick: bool,
    /// Visits to each cell
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Run directory [default: results/<UTC stamp>-<cpu>]; never overwritten
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of the visiting order; recorded [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Logical processor to pin to [default: the last one permitted]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Print the resolved plan and stop
    #[arg(long)]
    plan: bool,
}

impl ForwardingArgs {
    fn resolve(&self) -> Result<Plan, Failure> {
        let (present, absent) = widths();
        let extent = match (self.grid, self.full, self.quick) {
            (Some(grid), _, _) => Extent::Grid(grid),
            (_, true, _) => Extent::Full,
            (_, _, true) => Extent::Quick,
            _ => Extent::Default,
        };
        if let Some(grid) = self.grid {
            let missing = |entry: &&crate::probes::forwarding::WidthAbsence| {
                entry.bytes == grid.store_bytes || entry.bytes == grid.load_bytes
            };
            if let Some(entry) = absent.iter().find(missing) {
                return Err(Failure::new(
                    format!("cannot measure {}-byte accesses: {}", entry.bytes, entry.absence.why),
                    format!("--grid {grid}"),
                    "choose another grid (8x4 runs everywhere), or another machine",
                ));
            }
        }
        let mut plan = Plan::new(extent, &present);
        let quick_grid = (self.quick && self.grid.is_some()).then_some(3);
        plan.repeats = self.rounds.or(quick_grid).unwrap_or(plan.repeats);
        Ok(plan)
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| fastrand::u64(..1 << 53))
    }
}

/// Measures the map, keeps it and prints it.
///
/// # Errors
/// When the plan cannot be, or the results cannot be kept.
pub fn run(args: &ForwardingArgs, output: &mut Output) -> Result<Exit, Failure> {
    let plan = args.resolve()?;
    let seed = args.seed();
    let cpu = choose_cpu(args.cpu)?.0;
    let document = plan_document(&serde_json::json!({
        "command": "forwarding",
        "cells": plan.experiments.len(),
        "repeats": plan.repeats,
        "grid": plan.grid.map(|grid| grid.to_string()),
        "seed": seed,
        "cpu": cpu,
    }));
    if args.plan {
        return output.document(&document).map(|()| Exit::Done);
    }
    let machine = Machine::describe();
    let directory = RunDirectory::create(args.out.as_deref(), &machine.processor.name)?;
    directory.write_document(PLAN, &document)?;
    directory.write_document(MACHINE, &machine)?;
    remember_stop_requests().map_err(|error| {
        Failure::new(format!("cannot catch signals: {error}"), "process", "report this as a fault")
    })?;
    if let Some(warning) = cpu.and_then(pin) {
        output.warn(&warning);
    }
    let mut progress = Progress::new();
    let measured = measure(&plan, seed, |done, total| {
        progress.show(done, total);
        stop_requested().is_none()
    })?;
    progress.clear();
    let mut map = measured.map;
    map.machine = Some(machine.line());
    map.command = Some(command(args));
    map.measured = Some(crate::record::utc_stamp(std::time::SystemTime::now()));
    if measured.stopped {
        map.notes.push(
            "stopped before the end, so that cells rest on fewer visits: run it again".to_owned(),
        );
    }
    keep(&map, &directory)?;
    for note in &map.notes {
        output.warn(note);
    }
    print(&map, directory.path(), output)?;
    Ok(match stop_requested() {
        Some(Stop::Interrupted) => Exit::Interrupted,
        Some(Stop::Terminated) => Exit::Terminated,
        None => Exit::Done,
    })
}

/// The command as anyone would type it: no paths, since maps are posted.
fn command(args: &ForwardingArgs) -> String {
    let mut text = "stackphase forwarding".to_owned();
    if let Some(grid) = args.grid {
        let _ = write!(text, " --grid {grid}");
    }
    for (given, name) in [(args.full, " --full"), (args.quick, " --quick")] {
        text.push_str(if given { name } else { "" });
    }
    if let Some(rounds) = args.rounds {
        let _ = write!(text, " --rounds {rounds}");
    }
    text
}

fn json(map: &Map) -> Result<String, Failure> {
    to_json(map).map_err(|error| {
        Failure::new(
            format!("cannot make JSON: {error}"),
            "forwarding map",
            "report this as a fault",
        )
    })
}

fn keep(map: &Map, directory: &RunDirectory) -> Result<(), Failure> {
    let text = json(map)?;
    directory.write_file("forwarding.json", text.as_bytes())?;
    directory.write_file("forwarding.csv", to_csv(map).as_bytes())?;
    // The chart reads the document as a stranger would.
    let value = serde_json::from_str(&text).unwrap_or_default();
    if let Some(picture) = svg::forwarding(&value, svg::Use::file()) {
        directory.write_file("plots/forwarding.svg", picture.as_bytes())?;
    }
    Ok(())
}

fn print(map: &Map, kept_in: &Path, output: &mut Output) -> Result<(), Failure> {
    if output.json() {
        return output.text(&json(map)?);
    }
    output.text(&text(map, kept_in))
}

fn text(map: &Map, kept_in: &Path) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", map.machine.as_deref().unwrap_or("machine not known"));
    if let (Some(cycle), Some(load)) = (map.cycle_ns, map.load_to_use_cycles) {
        let _ = writeln!(text, "one cycle {cycle:.3} ns, load from the cache {load:.1} cycles");
    }
    for entry in &map.widths_absent {
        let _ = writeln!(text, "{} bytes: absent, {}", entry.bytes, entry.absence);
    }
    let _ = writeln!(text, "\nchained, inside the store, cycles net of the twin:");
    let _ = writeln!(text, "{}", table(map));
    let counts: Vec<String> = map
        .counts()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| format!("{count} {class}"))
        .collect();
    let _ = writeln!(text, "\n{} cells: {}", map.all().count(), counts.join(", "));
    let _ = writeln!(text, "\nrules:");
    for rule in &map.rules {
        let _ = writeln!(text, "  {rule}");
    }
    let _ = writeln!(text, "\nkept in {}", kept_in.display());
    text
}

/// Store widths down, load widths across.
fn table(map: &Map) -> Table {
    let entries = map.summary();
    let mut loads: Vec<u8> = entries.keys().map(|(_, load)| *load).collect();
    loads.sort_unstable();
    loads.dedup();
    let mut stores: Vec<u16> = entries.keys().map(|(store, _)| *store).collect();
    stores.dedup();
    let mut table = Table::new();
    table.load_preset(NOTHING);
    let heads = loads.iter().map(|load| format!("load {load}"));
    table.set_header(std::iter::once("store".to_owned()).chain(heads));
    for store in stores {
        let cells = loads.iter().map(|&load| match entries.get(&(store, load)) {
            None => String::new(),
            Some(entry) => {
                let cycles = entry.cycles.map_or_else(String::new, |(low, high)| {
                    if high - low < 1.0 {
                        format!("{high:.0}")
                    } else {
                        format!("{low:.0}–{high:.0}")
                    }
                });
                format!("{}\n{cycles}", entry.words())
            }
        });
        table.add_row(std::iter::once(store.to_string()).chain(cells));
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A line on the terminal that says how far it is; nothing where stderr is a file.
struct Progress {
    shown: Option<u64>,
}

impl Progress {
    fn new() -> Self {
        Progress { shown: None }
    }

    fn show(&mut self, done: u64, total: u64) {
        let percent = done * 100 / total.max(1);
        if self.shown == Some(percent) || !std::io::stderr().is_terminal() {
            return;
        }
        self.shown = Some(percent);
        // A closed stderr leaves nobody to tell.
        let _ = write!(std::io::stderr(), "\rforwarding: {percent} %");
    }

    fn clear(&self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
