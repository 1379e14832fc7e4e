//! `stackphase counters`: which counters this machine has, each proven, and why others are absent.

use serde::Serialize;

use super::{Exit, Output};
use crate::Failure;
use crate::counters::{
    self, Context, CoreType, Event, Standing, Surveyed, perf_command, survey, survey_software,
};
use crate::machine;

/// Which counters this machine has, each proven by a self-test, and why the others are absent
///
/// Each counter is opened for this thread, alone, and run over a loop with a known number of what
/// it counts. A hybrid processor is surveyed once for each kind of core, unless --cpu names one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Logical processor to pin to [default: one of each kind of core]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// A counter of your own: NAME=r0224 or NAME=cpu/event=0x24,umask=0x02,cmask=…/; may be
    /// repeated. Named like a standard counter it takes its place, and its self-test
    #[arg(long = "event", value_name = "NAME=CODE", value_parser = parse)]
    events: Vec<Event>,
    /// Print the perf command that counts the same, and stop
    #[arg(long)]
    plan: bool,
}

fn parse(text: &str) -> Result<Event, counters::BadEvent> {
    text.parse()
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    processor: String,
    cpu: Option<usize>,
    core_type: Option<&'static str>,
    perf_event_paranoid: Option<i32>,
    virtual_machine: bool,
    counters: Vec<Entry>,
    software: Vec<Entry>,
    perf: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_cores: Vec<Document>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Usable {
        name: String,
        raw: String,
        proven: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        unproven: Option<String>,
        native: Option<String>,
        source: Option<String>,
    },
    Absent {
        name: String,
        raw: Option<String>,
        unavailable: String,
        remedy: String,
    },
}

/// Surveys the counters and prints them.
///
/// # Errors
/// When an event is given twice or the processor asked for cannot be pinned to.
pub fn run(args: &Args, output: &mut Output) -> Result<Exit, Failure> {
    refuse_repeats(&args.events)?;
    let mut documents = Vec::new();
    for cpu in cpus(args)? {
        if let Some(warning) = cpu.and_then(machine::pin) {
            output.warn(&warning);
        }
        let context = Context::detect();
        if args.plan {
            let (events, _) = context.events(&args.events);
            output.text(&format!("{}\n", perf_command(&context, &events, "COMMAND")))?;
            continue;
        }
        documents.push(document(&context, cpu, &args.events));
    }
    if args.plan {
        return Ok(Exit::Done);
    }
    if output.json() {
        let mut documents = documents.into_iter();
        if let Some(mut first) = documents.next() {
            first.other_cores = documents.collect();
            output.document(&first)?;
        }
    } else {
        for document in &documents {
            output.text(&text(document))?;
        }
    }
    Ok(Exit::Done)
}

fn refuse_repeats(events: &[Event]) -> Result<(), Failure> {
    for (i, event) in events.iter().enumerate() {
        if events[..i].iter().any(|other| other.name == event.name) {
            let remedy = "give each --event a name of its own";
            return Err(Failure::usage(
                format!("two events are called {}", event.name),
                "--event",
                remedy,
            ));
        }
    }
    Ok(())
}

/// One processor of each kind of core, or the one asked for.
fn cpus(args: &Args) -> Result<Vec<Option<usize>>, Failure> {
    if args.cpu.is_some() {
        return Ok(vec![machine::choose_cpu(args.cpu)?.0]);
    }
    let permitted = machine::permitted_cpus();
    let kinds: Vec<(CoreType, Vec<usize>)> = counters::core_types(std::path::Path::new("/"));
    let one_each: Vec<Option<usize>> = kinds
        .iter()
        .filter_map(|(_, cpus)| cpus.iter().rev().find(|cpu| permitted.contains(cpu)))
        .map(|&cpu| Some(cpu))
        .collect();
    if one_each.is_empty() {
        return Ok(vec![machine::choose_cpu(None)?.0]);
    }
    Ok(one_each)
}

fn document(context: &Context, cpu: Option<usize>, extra: &[Event]) -> Document {
    let surveyed = survey(context, extra);
    let usable: Vec<Event> = surveyed
        .iter()
        .filter(|surveyed| !matches!(surveyed.standing, Standing::Absent(_)))
        .filter_map(|surveyed| surveyed.event.clone())
        .collect();
    Document {
        schema: "stackphase/counters/1",
        processor: context.title(),
        cpu,
        core_type: Some(context.cpu.core_type.as_str()).filter(|name| !name.is_empty()),
        perf_event_paranoid: context.environment.paranoid,
        virtual_machine: context.environment.guest,
        counters: surveyed.into_iter().map(|surveyed| entry(surveyed, context)).collect(),
        software: survey_software(context).into_iter().map(|s| entry(s, context)).collect(),
        perf: perf_command(context, &usable, "COMMAND"),
        other_cores: Vec::new(),
    }
}

fn entry(surveyed: Surveyed, context: &Context) -> Entry {
    let Surveyed { name, event, standing } = surveyed;
    let raw = event.as_ref().and_then(|event| event.raw(context.cpu.layout()).ok());
    let (native, source) = match event {
        Some(event) => (event.native, event.source),
        None => (None, None),
    };
    let usable = |proven, unproven| Entry::Usable {
        name: name.clone(),
        raw: raw.clone().unwrap_or_default(),
        proven,
        unproven,
        native,
        source,
    };
    match standing {
        Standing::Proven => usable(true, None),
        Standing::Unproven(why) => usable(false, Some(why)),
        Standing::Absent(absence) => {
            Entry::Absent { name, raw, unavailable: absence.why, remedy: absence.remedy }
        }
    }
}

fn text(document: &Document) -> String {
    let mut text = format!("counters of {}", document.processor);
    if let Some(cpu) = document.cpu {
        text += &format!(", processor {cpu}");
    }
    if document.virtual_machine {
        text += ", in a virtual machine";
    }
    if let Some(level) = document.perf_event_paranoid {
        text += &format!(", perf_event_paranoid {level}");
    }
    text += "\n\n";
    for entry in &document.counters {
        text += &line(entry);
    }
    text += "\ncounted by the kernel, without the processor's counters\n\n";
    for entry in &document.software {
        text += &line(entry);
    }
    text + "\nto repeat with perf alone:\n  " + &document.perf + "\n"
}

fn line(entry: &Entry) -> String {
    match entry {
        Entry::Usable { name, raw, proven: true, .. } => format!("  {name:<24} {raw:<10} proven\n"),
        Entry::Usable { name, raw, unproven, .. } => {
            let why = unproven.as_deref().unwrap_or_default();
            format!("  {name:<24} {raw:<10} opens and runs, unproven: {why}\n")
        }
        Entry::Absent { name, raw, unavailable, remedy } => {
            let raw = raw.as_deref().unwrap_or("-");
            format!("  {name:<24} {raw:<10} absent: {unavailable}\n{:38}remedy: {remedy}\n", "")
        }
    }
}
