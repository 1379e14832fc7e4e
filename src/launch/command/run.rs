//! One launch of a command, from `fork` to the last of its processes.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, pipe2};

use super::failure::LaunchFailure;
use super::metric::{Figure, Metric};
use super::output::{Matches, Stream};
use super::program::{CommandError, Found};
use super::tasks::{TasksSeen, Watch};
use super::tree::{Remains, own_children};
use crate::counters::{Context, Set};
use crate::launch::Environment;
use crate::placement::ProcessStack;
use crate::sys::exec::{Program, Started, adopt_orphans, end_of};
use crate::sys::signals::{Stop, stop_requested};

/// What stands for the added argument in a command; without it the argument comes last.
pub const PLACEHOLDER: &str = "{pad}";

/// How often a waiting parent looks whether it should stop.
const TICK: Duration = Duration::from_millis(50);
/// What is read at once.
const CHUNK: usize = 64 << 10;
/// Chunks read between two looks at the clock.
const CHUNKS: usize = 16;
/// `ADDR_NO_RANDOMIZE` in `/proc/<pid>/personality`.
const NO_RANDOMISATION: u32 = 0x0004_0000;

/// How every launch of a command is made.
#[derive(Clone, Debug)]
pub struct CommandOptions {
    /// The command.
    pub found: Found,
    /// What is kept of the environment, beside what moves the stack.
    pub kept: Vec<(OsString, OsString)>,
    /// Ask for a process without address-space randomisation.
    pub randomisation_off: bool,
    /// The longest that a launch may take.
    pub timeout: Duration,
    /// What to read from its output; `None` takes its wall time.
    pub metric: Option<Metric>,
    /// Counters to open on it.
    pub counters: Option<Context>,
}

/// What a launch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The stack that the kernel gave it; `None` where `/proc` hides it.
    pub stack: Option<ProcessStack>,
    /// Whether the kernel says that it is not randomised.
    pub randomisation_off: Option<bool>,
    /// From its first instruction to its end.
    pub wall: Duration,
    /// The figure that was read from its output, `None` where its wall time is the figure.
    pub figure: Result<Option<Figure>, LaunchFailure>,
    /// Its tasks.
    pub tasks: TasksSeen,
    /// The processor that it last ran on.
    pub cpu: Option<u32>,
    /// Counter names and events of the whole launch.
    pub events: Vec<(String, Option<f64>)>,
    /// Time running over time enabled of the counters.
    pub running_ratio: Option<f64>,
}

/// Launches one command again and again.
///
/// Orphans of the command become children of this process, so that they can be ended: there must
/// not be other threads that start processes meanwhile.
pub struct Runner {
    options: CommandOptions,
    before: BTreeSet<i32>,
    null: File,
}

/// A started command with its pipes.
struct Running {
    started: Started,
    pipes: [Option<File>; 2],
    counters: Option<Set>,
}

impl Runner {
    /// Gets ready to launch.
    ///
    /// # Errors
    /// Where `/dev/null` cannot be opened or orphans cannot be adopted.
    pub fn new(options: CommandOptions) -> io::Result<Self> {
        adopt_orphans()?;
        Ok(Runner { options, before: own_children(), null: File::open("/dev/null")? })
    }

    /// What is launched.
    pub fn options(&self) -> &CommandOptions {
        &self.options
    }

    /// Proves that the command can be executed in these surroundings: it is started and ended
    /// before its first instruction. Returns whether randomisation was off then, where it is known.
    ///
    /// A command that gains privileges is not tried: it cannot be stopped that early.
    ///
    /// # Errors
    /// When the kernel does not execute it.
    pub fn trial(&self, surroundings: &Environment) -> Result<Option<bool>, CommandError> {
        if self.options.found.gains_privileges {
            return Ok(None);
        }
        let refused =
            |source| CommandError::Refused { path: self.options.found.path.clone(), source };
        let running = self.start(surroundings, None).map_err(refused)?;
        let off = randomisation_off(running.started.process);
        self.end_everything(running.started.process);
        Ok(off)
    }

    /// One launch, to its end.
    ///
    /// # Errors
    /// When a stop was asked for; the command is ended then.
    pub fn launch(&self, surroundings: &Environment, cpu: Option<usize>) -> Result<Ended, Stop> {
        let failed = |error: io::Error| Ended {
            stack: None,
            randomisation_off: None,
            wall: Duration::ZERO,
            figure: Err(LaunchFailure::Start(error.to_string())),
            tasks: TasksSeen::default(),
            cpu: None,
            events: Vec::new(),
            running_ratio: None,
        };
        match self.start(surroundings, cpu) {
            Ok(running) => self.follow(running),
            Err(error) => Ok(failed(error)),
        }
    }

    fn start(&self, surroundings: &Environment, cpu: Option<usize>) -> io::Result<Running> {
        let found = &self.options.found;
        let path = text(surroundings.longer(found.path.as_os_str()))?;
        let arguments = arguments(&found.arguments, surroundings.argument())
            .into_iter()
            .map(text)
            .collect::<io::Result<Vec<_>>>()?;
        let environment = self.environment(surroundings)?;
        let (out, out_end) = pipe2(OFlag::O_CLOEXEC)?;
        let (err, err_end) = pipe2(OFlag::O_CLOEXEC)?;
        let held = Program {
            path: &path,
            arguments: &arguments,
            environment: &environment,
            standard: [self.null.as_fd(), out_end.as_fd(), err_end.as_fd()],
            no_randomisation: self.options.randomisation_off,
            cpu,
            stop_at_start: !found.gains_privileges,
        }
        .fork()?;
        let counters = self
            .options
            .counters
            .as_ref()
            .map(|context| Set::open_on_child(context, held.process(), &[]).0);
        let started = held.start()?;
        Ok(Running {
            started,
            pipes: [Some(not_blocking(out)?), Some(not_blocking(err)?)],
            counters,
        })
    }

    fn environment(&self, surroundings: &Environment) -> io::Result<Vec<CString>> {
        let kept = self.options.kept.iter().map(|(name, value)| (name, value));
        let padding: Vec<_> = surroundings.variables().collect();
        kept.filter(|(name, _)| !padding.iter().any(|(padding, _)| padding == name))
            .chain(padding.iter().copied())
            .map(|(name, value)| {
                let mut variable = name.clone();
                variable.push("=");
                variable.push(value);
                text(variable)
            })
            .collect()
    }

    /// Follows a started command to its end.
    fn follow(&self, mut running: Running) -> Result<Ended, Stop> {
        let process = running.started.process;
        let stack = u32::try_from(process).ok().and_then(|pid| ProcessStack::of(pid).ok());
        let off = randomisation_off(process);
        let mut watch = Watch::new(process, Instant::now());
        let mut matches = Matches::of(self.options.metric.as_ref());
        let mut streams = [Stream::default(), Stream::default()];
        let start = Instant::now();
        // It can be gone only if somebody else ended it, which its status will say.
        let _ = running.started.release();
        let outcome = self.wait(&mut running.pipes, process, start, &mut watch, |pipes| {
            drain(pipes, &mut streams, &mut matches);
        })?;
        watch.look();
        let cpu = last_processor(process);
        let wall = outcome.map_or(start.elapsed(), |(at, _)| at - start);
        let left = self.end_everything(process);
        // Nobody holds the other ends any more, so that what is left in the pipes is all.
        drain(&mut running.pipes, &mut streams, &mut matches);
        let [_, last] = streams.map(|mut stream| stream.finish(&mut matches));
        let figure = match outcome {
            None => Err(LaunchFailure::TimedOut { time: self.options.timeout }),
            Some((_, status)) => verdict_on(status, last, left).and_then(|()| matches.figure()),
        };
        let (events, running_ratio) = match &mut running.counters {
            Some(set) if !set.is_empty() => {
                let reading = set.read();
                (reading.per_op(1), reading.running_ratio())
            }
            _ => (Vec::new(), None),
        };
        Ok(Ended {
            stack,
            randomisation_off: off,
            wall,
            figure,
            tasks: watch.seen(),
            cpu,
            events,
            running_ratio,
        })
    }

    /// Waits for the end of a running command, looking at its tasks and taking what it prints;
    /// `None` when its time was over before.
    fn wait(
        &self,
        pipes: &mut [Option<File>; 2],
        process: i32,
        start: Instant,
        watch: &mut Watch,
        mut take: impl FnMut(&mut [Option<File>; 2]),
    ) -> Result<Option<(Instant, WaitStatus)>, Stop> {
        let end = end_of(process);
        loop {
            let now = Instant::now();
            if let Some(stop) = stop_requested() {
                self.end_everything(process);
                return Err(stop);
            }
            if now - start > self.options.timeout {
                return Ok(None);
            }
            watch.look_if_due(now);
            let left = self.options.timeout.saturating_sub(now - start);
            let wait = TICK.min(left).min(watch.due_in(now));
            let over = wait_for(pipes, end.as_ref(), wait);
            // Before anything else, which takes its time.
            let at = Instant::now();
            take(pipes);
            if over && let Some(status) = has_ended(process) {
                // Where the end itself does not wake this thread it was found only now.
                let at = if end.is_some() { at } else { Instant::now() };
                return Ok(Some((at, status)));
            }
        }
    }

    /// Ends the command, if it has not ended, and everything that it left; returns how many
    /// processes there were to end after it.
    fn end_everything(&self, process: i32) -> usize {
        let pid = Pid::from_raw(process);
        if has_ended(process).is_none() {
            // The whole group, at once: what it started must not outlive it unwatched.
            let _ = killpg(pid, Signal::SIGKILL);
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
        }
        while waitpid(pid, None) == Err(nix::errno::Errno::EINTR) {}
        Remains { group: process, before: &self.before }.end()
    }
}

/// The status of a process that has ended and was not reaped yet.
fn has_ended(process: i32) -> Option<WaitStatus> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(Pid::from_raw(process)), flags) {
        Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => Some(status),
        _ => None,
    }
}

fn verdict_on(status: WaitStatus, last: String, left: usize) -> Result<(), LaunchFailure> {
    match status {
        WaitStatus::Exited(_, 0) => {}
        WaitStatus::Exited(_, status) => return Err(LaunchFailure::Status { status, last }),
        WaitStatus::Signaled(_, signal, _) => {
            return Err(LaunchFailure::Signal { signal: signal.to_string(), last });
        }
        // `has_ended` gives no other.
        _ => {}
    }
    match left {
        0 => Ok(()),
        1 => Err(LaunchFailure::LeftRunning { processes: "a process".to_owned() }),
        n => Err(LaunchFailure::LeftRunning { processes: format!("{n} processes") }),
    }
}

/// Waits until there is something to read, the process ended, or the time is over; says whether
/// the process may have ended.
fn wait_for(pipes: &[Option<File>; 2], end: Option<&OwnedFd>, wait: Duration) -> bool {
    let readable = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
    let mut wanted: Vec<PollFd<'_>> = end.iter().map(|end| readable(end.as_fd())).collect();
    wanted.extend(pipes.iter().flatten().map(|pipe| readable(pipe.as_fd())));
    // Without a descriptor for its end the process has to be asked again and again.
    let wait = if end.is_some() { wait } else { wait.min(Duration::from_millis(1)) };
    // Rounded up to whole milliseconds, which is all that poll knows.
    let wait =
        PollTimeout::try_from(wait + Duration::from_micros(999)).unwrap_or(PollTimeout::ZERO);
    let waited = poll(&mut wanted, wait);
    end.is_none() || waited.is_err() || wanted[0].any().unwrap_or(true)
}

/// Reads what there is, up to some megabyte a stream; closes a stream that has ended.
fn drain(pipes: &mut [Option<File>; 2], streams: &mut [Stream; 2], matches: &mut Matches<'_>) {
    let mut buffer = [0u8; CHUNK];
    for (pipe, stream) in pipes.iter_mut().zip(streams) {
        for _ in 0..CHUNKS {
            match pipe.as_mut().map(|pipe| pipe.read(&mut buffer)) {
                Some(Ok(bytes)) if bytes > 0 => stream.take(&buffer[..bytes], matches),
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => break,
                _ => *pipe = None,
            }
        }
    }
}

fn not_blocking(descriptor: OwnedFd) -> io::Result<File> {
    let flags = OFlag::from_bits_truncate(fcntl(descriptor.as_fd(), FcntlArg::F_GETFL)?);
    fcntl(descriptor.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(File::from(descriptor))
}

/// The arguments with the added one in its place.
fn arguments(given: &[String], added: Option<String>) -> Vec<OsString> {
    let Some(added) = added else { return given.iter().map(OsString::from).collect() };
    if given.iter().any(|argument| argument.contains(PLACEHOLDER)) {
        return given.iter().map(|text| text.replace(PLACEHOLDER, &added).into()).collect();
    }
    given.iter().map(OsString::from).chain([OsString::from(added)]).collect()
}

fn text(text: OsString) -> io::Result<CString> {
    CString::new(text.into_vec())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text holds a NUL byte"))
}

fn randomisation_off(process: i32) -> Option<bool> {
    let text = std::fs::read_to_string(format!("/proc/{process}/personality")).ok()?;
    let bits = u32::from_str_radix(text.trim(), 16).ok()?;
    Some(bits & NO_RANDOMISATION != 0)
}

/// Field 39 of proc_pid_stat(5).
fn last_processor(process: i32) -> Option<u32> {
    let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text[text.rfind(')')? + 1..].split_whitespace().nth(36)?.parse().ok()
}

/// The variables to keep of this process's own environment.
pub fn inherited() -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| !name.as_bytes().is_empty()).collect()
}

/// The search path of this process.
pub fn search_path() -> Option<OsString> {
    std::env::var_os(OsStr::new("PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_added_argument_takes_its_place_or_comes_last() {
        let given = ["a".to_owned(), "--title={pad}".to_owned(), "b".to_owned()];
        assert_eq!(arguments(&given, Some("xx".into())), ["a", "--title=xx", "b"]);
        assert_eq!(arguments(&given[..1], Some("xx".into())), ["a", "xx"]);
        assert_eq!(arguments(&given[..1], None), ["a"]);
    }
}
