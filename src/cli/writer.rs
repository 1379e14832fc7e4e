//! `stackphase writer`: who writes a buffer, which instruction, and how wide.

use std::ffi::OsString;

use super::trace::parse_address;
use super::{Exit, Output};
use crate::Failure;
use crate::probes::writer::{Accessor, WriterDocument, of_program, of_workload};
use crate::trace::{Request, Target, WatchedData};
use crate::workloads::{Name, Spec};

/// Put a hardware watchpoint on a buffer's first byte: who writes it, which instruction, how wide
///
/// writer [--workload NAME] [--len N] [--shift N] [--reads]
/// writer --function NAME --arg-pointer N [--call N] [--reads] -- PROGRAM ARGS
/// writer --address ADDRESS [--reads] -- PROGRAM ARGS
///
/// No hardware counter is needed. A program's standard output goes to standard error.
#[derive(clap::Args)]
pub struct WriterArgs {
    /// The workload of which one operation is watched
    #[arg(long, value_name = "NAME", default_value = "blake3", value_parser = super::workload_name)]
    workload: Name,
    /// Bytes an operation
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    len: usize,
    /// How far the workload's stack is shifted down from its page's anchor, a multiple of 16
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shift: usize,
    /// Report reads as well
    #[arg(long)]
    reads: bool,
    /// Function of the program during whose call its argument's buffer is watched
    #[arg(long, value_name = "NAME", requires = "arg_pointer", conflicts_with = "address")]
    function: Option<String>,
    /// Which argument points to the buffer
    #[arg(long, value_name = "1..6", requires = "function", value_parser = clap::value_parser!(u8).range(1..=6))]
    arg_pointer: Option<u8>,
    /// Which call of the function
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    call: u64,
    /// Data to watch from the program's start to its end, as nm prints it: 0x1234, or LIBRARY+0x1234
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Program and arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Watches and prints.
///
/// # Errors
/// Where no watchpoint can be had, or there is nothing to watch.
pub fn run(args: &WriterArgs, output: &mut Output) -> Result<Exit, Failure> {
    let document = match args.command.split_first() {
        Some((program, rest)) => foreign(args, program, rest)?,
        None if args.function.is_some() || args.address.is_some() => {
            return Err(Failure::usage("no program to watch", "writer", "put it behind `--`"));
        }
        None => of_workload(&Spec::new(args.workload, args.len), args.shift, args.reads)?,
    };
    for reason in &document.partial {
        output.warn(&format!("this may not be all: {reason}"));
    }
    if output.json() {
        output.document(&document)?;
    } else {
        output.text(&text(&document))?;
    }
    Ok(Exit::Done)
}

fn foreign(
    args: &WriterArgs,
    program: &OsString,
    rest: &[OsString],
) -> Result<WriterDocument, Failure> {
    let (target, data) = match (&args.function, args.arg_pointer, &args.address) {
        (Some(name), Some(number), _) => {
            (Target::Function(name.clone()), WatchedData::Argument(number))
        }
        (_, _, Some(address)) => {
            let target = parse_address(address)?;
            (target.clone(), WatchedData::Address(target))
        }
        _ => {
            return Err(Failure::usage(
                "nothing to watch in the program",
                "writer",
                "name --function and --arg-pointer, or an --address",
            ));
        }
    };
    let request = Request { program, args: rest, target: &target, call: args.call };
    of_program(&request, &data, args.reads)
}

fn text(document: &WriterDocument) -> String {
    let what = match (&document.workload, document.len) {
        (Some(workload), Some(len)) => format!("one operation of {workload}, {len} bytes: "),
        (Some(workload), None) => format!("one operation of {workload}: "),
        _ => String::new(),
    };
    let mut text = format!(
        "{what}buffer at {}, residue {} of its line\n",
        document.buffer, document.buf_mod64
    );
    text += &list("writes", &document.writes);
    if let Some(reads) = &document.reads {
        text += &list("reads", reads);
    }
    for reason in &document.partial {
        text += &format!("partial: {reason}\n");
    }
    let unnamed = document.writes.iter().any(|a| a.symbol.is_none() && a.file.is_some());
    if unnamed {
        text += "a stripped file names no function: install its debug file (Debian: libc6-dbg), \
                 or look the offset up in a copy with symbols of the same build-id\n";
    }
    text
}

fn list(title: &str, accesses: &[Accessor]) -> String {
    if accesses.is_empty() {
        return format!("no {title} of its first byte\n");
    }
    let mut text = format!("{title}, in order:\n");
    for access in accesses {
        let width = access.bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
        let instruction = access.text.as_deref().unwrap_or("(not known: reached by a jump)");
        let file = access.file.as_deref().unwrap_or("?");
        let offset = access.file_offset.as_deref().unwrap_or("?");
        let symbol = access.symbol.as_deref().map_or_else(String::new, |s| format!(" {s}"));
        text += &format!("  {width:>3} bytes  {instruction}  [{file}+{offset}{symbol}]\n");
    }
    text
}
