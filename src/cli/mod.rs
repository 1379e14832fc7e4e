//! The command line: one file a subcommand, each with its arguments and one `run`.
//!
//! stdout is the result and nothing else; progress and warnings go to stderr. Exit status: 0
//! measured, 1 could not measure, 2 usage; with `--gate` 3 affected, 4 inconclusive.

mod analyze;
#[cfg(target_os = "linux")]
mod check;
mod common;
mod completions;
#[cfg(target_os = "linux")]
mod counters;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod explain;
#[cfg(target_os = "linux")]
mod forwarding;
mod gate;
#[cfg(target_os = "linux")]
mod machine;
mod output;
#[cfg(target_os = "linux")]
mod pad;
#[cfg(target_os = "linux")]
mod phase;
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;
mod verdicts;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod writer;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod x86_only;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use common::RunArgs;
pub use gate::GateArgs;
pub use output::{ColorWhen, Output};
use verdicts::{judge_directory, print_verdicts};

use crate::Failure;

/// How a subcommand ended when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Measured (or printed), whatever was found.
    Done,
    /// `--gate`: a subject is affected (or the candidate is worse).
    GateAffected,
    /// `--gate`: inconclusive, or a positive control failed.
    GateInconclusive,
    /// Stopped by SIGINT after finished rows were kept.
    Interrupted,
    /// Stopped by SIGTERM after finished rows were kept.
    Terminated,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::GateAffected => 3,
            Exit::GateInconclusive => 4,
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
        }
    }
}

/// Find out whether a program's speed depends on where its stack was put, why, and what fixes it.
#[derive(Parser)]
#[command(name = "stackphase", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Args)]
struct GlobalArgs {
    /// Print one JSON document on stdout instead of text
    #[arg(long, global = true)]
    json: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    color: ColorWhen,
}

// One line a subcommand here, one in `dispatch`: nothing else needs to know of a new one.
#[derive(Subcommand)]
enum Command {
    /// The one-evening check: does the speed of BLAKE3 at 64 bytes depend on the stack's phase here?
    #[cfg(target_os = "linux")]
    Check(Box<check::CheckArgs>),
    /// The map of this core's store-to-load forwarding
    #[cfg(target_os = "linux")]
    Forwarding(forwarding::ForwardingArgs),
    /// What is known of this host, and what would disturb a measurement
    #[cfg(target_os = "linux")]
    Machine(machine::MachineArgs),
    #[cfg(target_os = "linux")]
    Pad(pad::PadArgs),
    /// The trampoline grid: one workload at every stack phase
    #[cfg(target_os = "linux")]
    Phase(phase::PhaseArgs),
    Report(report::Args),
    #[cfg(target_os = "linux")]
    Counters(counters::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Explain(Box<explain::ExplainArgs>),
    /// Explain the placements by the forwarding map (x86-64 Linux only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    Explain(x86_only::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Trace(trace::TraceArgs),
    /// Single-step one call (x86-64 Linux only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    Trace(x86_only::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Writer(writer::WriterArgs),
    /// Watch who writes a buffer (x86-64 Linux only)
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    Writer(x86_only::Args),
    Analyze(analyze::AnalyzeArgs),
    /// Completions for a shell, on stdout
    Completions(completions::CompletionsArgs),
    /// Write manual pages into a directory
    Man(completions::ManArgs),
}

fn dispatch(command: Command, output: &mut Output) -> Result<Exit, Failure> {
    match command {
        #[cfg(target_os = "linux")]
        Command::Check(args) => check::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Forwarding(args) => forwarding::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Machine(args) => machine::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Pad(args) => pad::run(&args, output),
        #[cfg(target_os = "linux")]
        Command::Phase(args) => phase::run(&args, output),
        Command::Report(args) => report::run(args, output),
        #[cfg(target_os = "linux")]
        Command::Counters(args) => counters::run(&args, output),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Explain(args) => explain::run(&args, output),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Command::Explain(_) => x86_only::run("explain", output),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Trace(args) => trace::run(&args, output),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Command::Trace(_) => x86_only::run("trace", output),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Writer(args) => writer::run(&args, output),
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        Command::Writer(_) => x86_only::run("writer", output),
        Command::Analyze(args) => analyze::run(&args, output),
        Command::Completions(args) => completions::completions(&args, output),
        Command::Man(args) => completions::man(&args, output),
    }
}

const GUIDE: &str = "\
stackphase: does this code's speed depend on where its stack was put?

  stackphase check              the one-evening check of this machine
  stackphase pad -- COMMAND     is stack placement why my benchmark has two speeds?
  stackphase --help             everything else
";

/// Parses `args`, runs the subcommand, and maps what came of it to an exit status.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // A worker must reach its work by the same short way in every launch. A second argument means
    // nothing but its length.
    #[cfg(target_os = "linux")]
    if matches!(args.len(), 2 | 3) && args[1] == crate::launch::WORKER_COMMAND {
        return match crate::launch::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => Output::new(false, ColorWhen::Never).fail(&failure),
        };
    }
    // clap's own errors must honour `--json` too, before there is a parsed command line.
    let json = args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, json),
    };
    let mut output = Output::new(cli.global.json, cli.global.color);
    let result = match cli.command {
        Some(command) => dispatch(command, &mut output),
        None => output.text(GUIDE).map(|()| Exit::Done),
    };
    match result {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(failure) => output.fail(&failure),
    }
}

/// Help and version are results; a mistake is one document or clap's own message, status 2.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        let mut output = Output::new(false, ColorWhen::Auto);
        return match output.text(&error.render().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => output.fail(&failure),
        };
    }
    if json {
        let rendered = error.render().to_string();
        let what = rendered.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let failure = Failure::usage(what, "command line", "see stackphase --help");
        return Output::new(true, ColorWhen::Never).fail(&failure);
    }
    // A closed stderr leaves nobody to tell.
    let _ = error.print();
    ExitCode::from(2)
}

/// Parses a workload's name.
fn workload_name(text: &str) -> Result<crate::workloads::Name, String> {
    text.parse().map_err(|error: crate::sample::UnknownName| error.to_string())
}

/// The whole command line as clap knows it, for completions, man pages and the command reference.
pub fn command() -> clap::Command {
    Cli::command()
}
