//! Arguments of `pad`, and the plan that they resolve to.

use std::time::Duration;

use crate::Failure;
use crate::cli::run::Counts;
use crate::cli::{GateArgs, RunArgs};
use crate::counters::{Context, Set};
use crate::launch::Executable;
use crate::launch::command::{CommandOptions, Found, Metric, Runner, inherited, search_path};
use crate::probes::pad::{Arm, Axis, CommandPlan, OwnPlan, PadPlan};
use crate::workloads::{Name, Spec};

const FULL: Counts = Counts { rounds: 12, launches: 3 };
const QUICK: Counts = Counts { rounds: 5, launches: 1 };
/// Launches under randomisation, where each is at a place of its own.
const RANDOMISED: Counts = Counts { rounds: 12, launches: 64 };
const RANDOMISED_QUICK: Counts = Counts { rounds: 5, launches: 16 };
/// Random placements stand for all of them: more placements tell more than more launches at each.
const RANDOM: Counts = Counts { rounds: 12, launches: 1 };

/// The longest variable that the kernel takes: 32 pages with `PAD=` and the terminator.
const MOST_ENV: usize = 131_067;
/// The longest argument.
const MOST_ARGV: usize = 131_071;
/// The longest path that the kernel takes, with its terminator.
const MOST_PATH: usize = 4096;
/// Random paddings are drawn from a page of them where nothing else is asked.
const PAGE: usize = 4096;

/// The environment-padding sweep: own workload, or any command after `--`
///
/// The kernel copies the environment to the top of the stack, so that padding it by N bytes puts
/// the stack N bytes lower, in steps of 16. Each launch is one process at one padding. For a
/// command each launch is one row: its wall time, or what `--metric` reads from its output.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Defaults: 3 launches a padding, of 12 rounds each (a command's launch is one round); --quick:
1 launch of 5 rounds; --random: 1 launch; --aslr-on: 64 launches, with --quick 16.

Examples:
  stackphase pad                                   blake3 at 64 bytes, 36 paddings from 0 to 140
  stackphase pad -- ./my-benchmark --short         its wall time
  stackphase pad --metric 'mean: ([0-9.]+ ns)' -- ./my-benchmark
  stackphase pad --random 32 -- ./my-benchmark     the figure averaged over layouts
  stackphase pad --aslr-on                         64 launches wherever the kernel puts them
  stackphase pad --to 8192 --step 16               two pages")]
pub struct PadArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// What to time; may be given several times
    #[arg(long, value_name = "NAME", default_value = "blake3", value_parser = crate::cli::workload_name, conflicts_with = "command")]
    workload: Vec<Name>,
    /// Bytes an operation
    #[arg(long, value_name = "BYTES", default_value_t = 64, conflicts_with = "command")]
    len: usize,
    /// First padding
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    from: usize,
    /// Last padding [default: 140 more than the first, with --random 4095 more]
    #[arg(long, value_name = "BYTES")]
    to: Option<usize>,
    /// Bytes from padding to padding
    #[arg(long, value_name = "BYTES", default_value_t = 4, value_parser = step)]
    step: usize,
    /// N paddings drawn at random instead: the mean over them is what a benchmark should quote
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..), conflicts_with = "step")]
    random: Option<u32>,
    /// What is made longer: the environment, an argument ({pad} in the command, else one at its
    /// end), or the program's path
    #[arg(long, value_name = "AXIS", default_value = "env", value_parser = axis)]
    axis: Axis,
    /// Leave address-space randomisation on: every launch is at a place of its own
    #[arg(long, conflicts_with_all = ["from", "to", "step", "random", "axis"])]
    aslr_on: bool,
    /// Every launch also unpinned, and the factor between both
    #[arg(long)]
    unpinned: bool,
    /// Regular expression whose first group is the command's figure, a number with or without a
    /// unit, in one line of its stdout or stderr
    #[arg(long, value_name = "REGEX", requires = "command")]
    metric: Option<String>,
    /// The metric is a rate (units per second are taken for one anyway)
    #[arg(long, requires = "metric")]
    higher_is_better: bool,
    /// Empty the command's environment of all but the padding
    #[arg(long, requires = "command")]
    clean_env: bool,
    /// Seconds that a launch of the command may take
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: f64,
    #[command(flatten)]
    pub(super) gate: GateArgs,
    /// The command, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

fn step(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("paddings must differ".to_owned()),
        Ok(step) => Ok(step),
        Err(error) => Err(format!("{error}")),
    }
}

fn axis(text: &str) -> Result<Axis, String> {
    text.parse().map_err(|error: crate::sample::UnknownName| error.to_string())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("a number of seconds above 0 and up to 86400 is needed".to_owned()),
    }
}

/// What to count of a command, where this machine proves any counter.
fn counters() -> Option<Context> {
    let context = Context::detect();
    let usable = !Set::open_for_thread(&context, &[]).0.is_empty();
    usable.then_some(context)
}

impl PadArgs {
    /// The plan: that of the run to resume, with the command's arguments as they were given now,
    /// or a new one.
    pub fn plan(&self, resumed: Option<PadPlan>) -> Result<PadPlan, Failure> {
        if let Some(plan) = resumed {
            return self.resume(plan);
        }
        if self.run.realtime && !self.command.is_empty() {
            return Err(Failure::usage(
                "--realtime is for own workloads: a command that never sleeps would be stopped by \
                 the kernel's throttle",
                "--realtime",
                "put `chrt -f 1` before the command, knowing that",
            ));
        }
        let counts = self.run.counts(self.full(), self.quick());
        let cpu = self.run.resolved_cpu()?;
        let own = if self.command.is_empty() { Some(self.own(counts)?) } else { None };
        let seed = self.run.resolved_seed();
        let mut plan = PadPlan {
            probe: "pad".to_owned(),
            own,
            command: (!self.command.is_empty()).then(|| self.command_plan()),
            axis: self.axis,
            paddings: Vec::new(),
            random: self.random.is_some(),
            aslr_on: self.aslr_on,
            path_bytes: 0,
            launches: counts.launches,
            arms: if self.unpinned { vec![Arm::Pinned, Arm::Unpinned] } else { vec![Arm::Pinned] },
            seed,
            cpu,
        };
        plan.path_bytes = self.path_bytes()?;
        plan.paddings = self.paddings(seed, plan.path_bytes)?;
        Ok(plan)
    }

    fn full(&self) -> Counts {
        match (self.aslr_on, self.random) {
            (true, _) => RANDOMISED,
            (_, Some(_)) => RANDOM,
            _ => FULL,
        }
    }

    fn quick(&self) -> Counts {
        if self.aslr_on { RANDOMISED_QUICK } else { QUICK }
    }

    fn own(&self, counts: Counts) -> Result<OwnPlan, Failure> {
        let specs: Vec<Spec> =
            self.workload.iter().map(|&name| Spec::new(name, self.len)).collect();
        specs.iter().try_for_each(Spec::check)?;
        Ok(OwnPlan { specs, rounds: counts.rounds, extra_rounds: 3 })
    }

    fn command_plan(&self) -> CommandPlan {
        CommandPlan {
            argv: self.command.clone(),
            arguments: self.command.len(),
            redacted: false,
            metric: self.metric.clone(),
            higher_is_better: self.higher_is_better,
            clean_env: self.clean_env,
            timeout_s: self.timeout,
        }
    }

    /// Bytes of the path to the program, which the axis `path` adds to.
    fn path_bytes(&self) -> Result<usize, Failure> {
        if self.command.is_empty() {
            let executable = Executable::current()?;
            return Ok(executable.command.first().map_or(0, |path| path.len()));
        }
        let found = Found::find(&self.command, search_path().as_deref())?;
        Ok(found.path.as_os_str().len())
    }

    fn paddings(&self, seed: u64, path_bytes: usize) -> Result<Vec<usize>, Failure> {
        if self.aslr_on {
            return Ok(vec![0]);
        }
        let to = match (self.to, self.random) {
            (Some(to), _) => to,
            (None, Some(_)) => self.from + PAGE - 1,
            (None, None) => self.from + 140,
        };
        let most = match self.axis {
            Axis::Env => MOST_ENV,
            Axis::Argv => MOST_ARGV,
            Axis::Path => MOST_PATH - 1 - path_bytes.min(MOST_PATH - 1),
        };
        if to < self.from || to > most {
            return Err(Failure::usage(
                format!("paddings from {} to {to} cannot be", self.from),
                "--from, --to",
                format!("end at or after the first, and at {most} at most on this axis"),
            ));
        }
        let Some(count) = self.random else {
            return Ok((self.from..=to).step_by(self.step).collect());
        };
        let count = count as usize;
        let range: Vec<usize> = (self.from..=to).collect();
        if range.len() < count {
            return Err(Failure::usage(
                format!("there are no {count} paddings from {} to {to}", self.from),
                "--random",
                "draw fewer, or from a wider range",
            ));
        }
        let mut drawn = fastrand::Rng::with_seed(seed).choose_multiple(range, count);
        drawn.sort_unstable();
        Ok(drawn)
    }

    /// Nothing of a resumed plan changes; the command's arguments, which may not have been kept,
    /// are given again.
    fn resume(&self, mut plan: PadPlan) -> Result<PadPlan, Failure> {
        let place = || "after --".to_owned();
        match (&mut plan.command, self.command.is_empty()) {
            (Some(kept), false) => {
                let name = |argv: &[String]| {
                    argv.first().map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
                };
                if name(&kept.argv) != name(&self.command) || kept.arguments != self.command.len() {
                    return Err(Failure::usage(
                        "this is another command than that of the run",
                        place(),
                        "give the same command, or start a new run",
                    ));
                }
                kept.argv.clone_from(&self.command);
                kept.redacted = false;
            }
            (Some(kept), true) if kept.redacted => {
                return Err(Failure::usage(
                    "the run does not keep the command's arguments",
                    place(),
                    "give the command again after --",
                ));
            }
            (None, false) => {
                return Err(Failure::usage(
                    "the run to resume is not one of a command",
                    place(),
                    "leave the command out",
                ));
            }
            _ => {}
        }
        Ok(plan)
    }

    /// The plan as it may be kept: without the command's arguments, unless they are to be kept.
    pub fn postable(&self, plan: &PadPlan) -> PadPlan {
        let mut plan = plan.clone();
        if let Some(command) = plan.command.as_mut().filter(|_| !self.run.no_redact) {
            let name = command.argv.first().cloned().unwrap_or_default();
            let more = command.argv.len() > 1;
            command.argv = vec![name.rsplit('/').next().unwrap_or(&name).to_owned()];
            command.argv.extend(more.then(|| "…".to_owned()));
            command.redacted = true;
        }
        plan
    }

    /// What launches the command of `plan`, once it is proven that it can be launched.
    pub fn runner(&self, plan: &PadPlan) -> Result<Option<Runner>, Failure> {
        let Some(command) = &plan.command else { return Ok(None) };
        let metric = command.metric.as_deref().map(Metric::new).transpose()?;
        let found = Found::find(&command.argv, search_path().as_deref())?;
        let options = CommandOptions {
            found,
            kept: if command.clean_env { Vec::new() } else { inherited() },
            randomisation_off: !plan.aslr_on,
            timeout: Duration::from_secs_f64(command.timeout_s),
            metric,
            counters: counters(),
        };
        let runner = Runner::new(options).map_err(|error| {
            Failure::new(format!("cannot get ready to launch: {error}"), "command", "report this")
        })?;
        // The longest first: what the kernel takes there it takes everywhere.
        let longest = plan.paddings.iter().copied().max().unwrap_or(0);
        runner.trial(&plan.surroundings(longest))?;
        Ok(Some(runner))
    }
}
