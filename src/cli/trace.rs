//! `stackphase trace`: the store and load pairs of one call.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use comfy_table::{Table, presets};

use super::{Exit, Output};
use crate::Failure;
use crate::block::Place;
use crate::trace::{
    Event, EventSink, Limits, MOST_STEPS, PairEntry, Relation, Request, Site, Target, Trace,
    TraceDocument, WINDOW, trace_program, trace_workload,
};
use crate::workloads::{Name, Spec};
use stack_trampoline::Alignment;

/// Rows of the text table; the document has them all.
const ROWS: usize = 40;

/// Single-step one call; list each load whose bytes come from recent stores
///
/// trace --workload NAME [--len N] [--shift N]
/// trace --function NAME [--call N] -- PROGRAM ARGS
///
/// A workload is traced as it is timed: the second of three operations in the timed loop.
/// A program runs until the call begins, is stepped through it, and is then ended. Its standard
/// output goes to standard error. Its children are not followed.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// A workload of stackphase's own instead of a program
    #[arg(long, value_name = "NAME", value_parser = super::workload_name, conflicts_with_all = ["function", "address", "call", "command"])]
    workload: Option<Name>,
    /// Bytes an operation of the workload
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with_all = ["function", "address", "command"])]
    len: usize,
    /// How far the workload's stack is shifted down from its page's anchor, a multiple of 16
    #[arg(long, value_name = "BYTES", default_value_t = 0, conflicts_with_all = ["function", "address", "command"])]
    shift: usize,
    /// Function to trace, as in the symbol table or as a person writes it
    #[arg(long, value_name = "NAME", conflicts_with = "address")]
    function: Option<String>,
    /// Address to trace from, as nm prints it: 0x1234, or LIBRARY+0x1234
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Which call of it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    call: u64,
    /// How many instructions older than a load a store may be
    #[arg(long, value_name = "N", default_value_t = WINDOW, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    window: u64,
    /// Stop after so many steps; the result is then marked as partial
    #[arg(long, value_name = "N", default_value_t = MOST_STEPS, value_parser = clap::value_parser!(u64).range(1..))]
    max_steps: u64,
    /// Print every access as a line of JSON; the document then follows as the last line
    #[arg(long)]
    events: bool,
    /// Program and arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl TraceArgs {
    /// The function that the options name.
    fn target(&self) -> Result<Target, Failure> {
        match (&self.function, &self.address) {
            (Some(name), _) => Ok(Target::Function(name.clone())),
            (None, Some(address)) => parse_address(address),
            (None, None) => Err(Failure::usage(
                "no function to trace",
                "trace",
                "name one with --function NAME or --address ADDRESS, or a --workload",
            )),
        }
    }
}

/// `0x1234` or `FILE+0x1234`.
pub(super) fn parse_address(text: &str) -> Result<Target, Failure> {
    let (file, number) = match text.rsplit_once('+') {
        Some((file, number)) => (Some(PathBuf::from(file)), number),
        None => (None, text),
    };
    let digits = number.strip_prefix("0x").unwrap_or(number);
    match u64::from_str_radix(digits, 16) {
        Ok(address) => Ok(Target::Address { file, address }),
        Err(_) => Err(Failure::usage(
            format!("`{text}` is no address"),
            "--address",
            "give it in hexadecimal, as 0x1234 or libname.so+0x1234",
        )),
    }
}

/// Traces and prints.
///
/// # Errors
/// When the call could not be reached, or stdout not be written.
pub fn run(args: &TraceArgs, output: &mut Output) -> Result<Exit, Failure> {
    let limits = Limits { window: args.window, most_steps: args.max_steps };
    let mut lines = EventLines::default();
    let mut sink = |event: &Event<'_>| lines.write(event);
    let events = args.events.then_some(&mut sink as &mut EventSink<'_>);
    let document = match args.workload {
        Some(name) => own(args, name, limits, events)?,
        None => TraceDocument::of(&foreign(args, limits, events)?),
    };
    lines.finish()?;
    for reason in &document.partial {
        output.warn(&format!("this is not the whole call: {reason}"));
    }
    if args.events {
        // The last of the lines.
        let line = serde_json::to_string(&document).map_err(|error| {
            Failure::new(format!("cannot make JSON: {error}"), "trace", "report this as a fault")
        })?;
        output.text(&format!("{line}\n"))?;
    } else if output.json() {
        output.document(&document)?;
    } else {
        output.text(&text(&document))?;
    }
    Ok(Exit::Done)
}

/// One operation of a workload.
fn own(
    args: &TraceArgs,
    name: Name,
    limits: Limits,
    events: Option<&mut EventSink<'_>>,
) -> Result<TraceDocument, Failure> {
    let spec = Spec::new(name, args.len);
    let place = Place::Shifted(Alignment::Page, args.shift);
    let trace =
        trace_workload(&spec, place, limits, events).map_err(|error| error.at(name.as_str()))?;
    Ok(TraceDocument {
        workload: Some(name.to_string()),
        len: spec.sample_len(),
        shift: Some(args.shift as i64),
        ..TraceDocument::of(&trace)
    })
}

/// One call of a program.
fn foreign(
    args: &TraceArgs,
    limits: Limits,
    events: Option<&mut EventSink<'_>>,
) -> Result<Trace, Failure> {
    let target = args.target()?;
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program to trace", "trace", "put it behind `--`"));
    };
    let request = Request { program, args: rest, target: &target, call: args.call };
    trace_program(&request, limits, events).map_err(|error| error.at(program.to_string_lossy()))
}

/// Accesses as lines on stdout; the first error is kept, the rest is dropped.
#[derive(Default)]
struct EventLines {
    out: Option<std::io::BufWriter<std::io::Stdout>>,
    error: Option<std::io::Error>,
}

impl EventLines {
    fn write(&mut self, event: &Event<'_>) {
        if self.error.is_some() {
            return;
        }
        let out = self.out.get_or_insert_with(|| std::io::BufWriter::new(std::io::stdout()));
        let written = serde_json::to_writer(&mut *out, event)
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"));
        self.error = written.err();
    }

    fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        match self.error.map_or(flushed, Err) {
            // Whoever read the lines had enough.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
                format!("cannot write the events: {error}"),
                "stdout",
                "free space or choose another target",
            )),
            _ => Ok(()),
        }
    }
}

fn text(document: &TraceDocument) -> String {
    let mut text = String::new();
    if let Some(workload) = &document.workload {
        let len = document.len.map_or_else(String::new, |len| format!(", {len} bytes"));
        let shift = document.shift.unwrap_or_default();
        text += &format!("one operation of {workload}{len}, at shift {shift}\n");
    }
    text += &format!("{} instructions", document.instructions);
    if document.steps != document.instructions {
        text += &format!(" ({} steps with the elements of string instructions)", document.steps);
    }
    if document.system_calls > 0 {
        text += &format!(", {} system calls", document.system_calls);
    }
    if document.signals > 0 {
        text += &format!(", {} signals", document.signals);
    }
    text += &format!(
        "\n{} kinds of loads take bytes from stores at most {} steps older\n",
        document.pairs.len(),
        document.window
    );
    for reason in &document.partial {
        text += &format!("partial: {reason}\n");
    }
    if document.pairs.is_empty() {
        return text;
    }
    text += &table(document);
    text.push('\n');
    if document.pairs.len() > ROWS {
        let more = document.pairs.len() - ROWS;
        text += &format!("… and {more} kinds more, all contained or rarer: see --json\n");
    }
    text
}

/// Those that a core may block first: several stores, then loads that differ from their store in
/// width or place.
fn table(document: &TraceDocument) -> String {
    let rank = |pair: &PairEntry| {
        let relation = match pair.relation {
            Relation::Spans => 0,
            Relation::Partial => 1,
            Relation::Contained if pair.store_bytes != pair.load_bytes => 2,
            Relation::Contained => 3,
        };
        (
            relation,
            std::cmp::Reverse(pair.store_bytes.max(pair.load_bytes)),
            std::cmp::Reverse(pair.count),
        )
    };
    let mut pairs: Vec<&PairEntry> = document.pairs.iter().collect();
    pairs.sort_by_key(|pair| rank(pair));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "relation",
        "count",
        "store→load",
        "offset",
        "distance",
        "store mod 64",
        "store",
        "load",
    ]);
    for pair in pairs.into_iter().take(ROWS) {
        let relation = match pair.relation {
            Relation::Contained => "contained",
            Relation::Spans => "spans",
            Relation::Partial => "partial",
        };
        let stores: Vec<String> = pair.stores.iter().map(site).collect();
        table.add_row([
            relation.to_owned(),
            pair.count.to_string(),
            format!("{}→{}", pair.store_bytes, pair.load_bytes),
            pair.offset.to_string(),
            pair.distance.to_string(),
            residues(&pair.residues),
            stores.join("\n"),
            site(&pair.load),
        ]);
    }
    table.trim_fmt()
}

fn residues(residues: &[u8]) -> String {
    if residues.len() > 6 {
        return format!("{} values", residues.len());
    }
    residues.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
}

fn site(site: &Site) -> String {
    let place = site.symbol.as_deref().unwrap_or(&site.ip);
    format!("{}{}  [{place}]", site.text, if site.string { " (string)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let address = |text| parse_address(text).expect("an address");
        assert_eq!(address("0x10"), Target::Address { file: None, address: 16 });
        assert_eq!(address("10"), Target::Address { file: None, address: 16 });
        let file = Some(PathBuf::from("libc++.so.6"));
        assert_eq!(address("libc++.so.6+0x1f"), Target::Address { file, address: 31 });
        assert!(parse_address("main").is_err_and(|failure| failure.usage));
    }
}
