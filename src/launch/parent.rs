//! The parent's side: start a worker, give it jobs, end it.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::environment::Environment;
use super::executable::Executable;
use super::protocol::{Hello, Job, PROTOCOL, Reply};
use super::worker::{DESCRIPTOR, WORKER_COMMAND};
use crate::Failure;
use crate::block::GuardReading;
use crate::sample::Sample;
use crate::sys::signals::{Stop, stop_requested};
use crate::sys::spawn::{ChildSetup, prepare};

/// The longest silence after the start.
const HELLO_WITHIN: Duration = Duration::from_secs(2);

/// The longest silence inside a job: the longest single block by far.
const SILENCE: Duration = Duration::from_secs(60);

/// Jobs are sent in lines of a multiple of so many bytes.
const JOB_BYTES: usize = 4096;

/// How often a waiting parent looks whether it should stop.
const TICK: Duration = Duration::from_millis(50);

/// How a worker is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOptions {
    /// Its whole environment.
    pub environment: Environment,
    /// Ask for a process without address-space randomisation.
    pub randomisation_off: bool,
}

/// A worker that could not be started or did not do its job.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program could not be started.
    #[error("cannot start a worker: {0}")]
    Start(std::io::Error),
    /// It said nothing for too long and was ended.
    #[error("the worker was silent for {seconds} s and was ended")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It ended in mid-job.
    #[error("the worker ended: {0}")]
    Ended(String),
    /// What it said is not of the protocol.
    #[error("the worker speaks another protocol: {0}")]
    Protocol(String),
    /// A stop was asked for.
    #[error("stopped")]
    Stopped(Stop),
    /// The worker could not do the job.
    #[error("{0}")]
    Job(Failure),
    /// A sample could not be kept.
    #[error("{0}")]
    Sink(#[from] crate::sample::SinkError),
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        let remedy = match error {
            LaunchError::Job(failure) => return failure,
            LaunchError::Sink(error) => {
                return Failure::new(error.what, error.place, error.remedy);
            }
            LaunchError::Start(_) => "check the limits on processes and memory",
            LaunchError::Silent { .. } => "try again on a machine with less load",
            LaunchError::Ended(_) => "check the memory limit and the kernel log",
            LaunchError::Protocol(_) => "call stackphase by its full path",
            LaunchError::Stopped(_) => "go on with --resume",
        };
        Failure::new(error.to_string(), "worker", remedy)
    }
}

/// A running worker. Dropping it ends its whole process group.
pub struct Worker {
    child: Child,
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    /// What the worker said of itself.
    pub hello: Hello,
}

impl Worker {
    /// Starts a worker and waits for its hello.
    ///
    /// # Errors
    /// When it cannot be started, says nothing within two seconds, or is not this program.
    pub fn start(executable: &Executable, options: &LaunchOptions) -> Result<Self, LaunchError> {
        let (ours, theirs) = UnixStream::pair().map_err(LaunchError::Start)?;
        ours.set_read_timeout(Some(TICK)).map_err(LaunchError::Start)?;
        let reader = BufReader::new(ours.try_clone().map_err(LaunchError::Start)?);
        // `Executable` holds at least the program.
        let (program, before) = executable
            .command
            .split_first()
            .ok_or_else(|| LaunchError::Protocol("no program".into()))?;
        let mut command = Command::new(options.environment.longer(program));
        command.args(before).arg(WORKER_COMMAND).args(options.environment.argument());
        command.env_clear().envs(options.environment.variables());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let setup = ChildSetup {
            no_randomisation: options.randomisation_off,
            inherit: Some((theirs.into(), DESCRIPTOR)),
            die_with_parent: true,
        };
        prepare(&mut command, setup);
        let child = command.spawn().map_err(LaunchError::Start)?;
        // The command holds the child's end of the line, which must close when the child ends.
        drop(command);
        let mut worker = Worker { child, stream: ours, reader, hello: Hello::unknown() };
        worker.hello = match worker.next(HELLO_WITHIN)? {
            Reply::Hello(hello) if hello.protocol == PROTOCOL => hello,
            other => return Err(LaunchError::Protocol(format!("{other:?}"))),
        };
        Ok(worker)
    }

    /// Gives the worker a job and passes on its samples and warnings until it is done.
    ///
    /// # Errors
    /// When the worker fails, ends or falls silent, when `sample` fails, or when a stop was asked
    /// for; samples passed on before stay valid.
    pub fn run(
        &mut self,
        job: &Job,
        mut sample: impl FnMut(Sample) -> Result<(), LaunchError>,
        mut warning: impl FnMut(String),
    ) -> Result<Option<GuardReading>, LaunchError> {
        let mut line =
            serde_json::to_vec(job).map_err(|error| LaunchError::Protocol(error.to_string()))?;
        // Of one length whatever the job, within reason: the worker's heap must not tell which
        // placement it is to measure.
        line.resize((line.len() + 1).next_multiple_of(JOB_BYTES) - 1, b' ');
        line.push(b'\n');
        self.stream.write_all(&line).map_err(|error| LaunchError::Ended(error.to_string()))?;
        loop {
            match self.next(SILENCE)? {
                Reply::Sample(one) => sample(*one)?,
                Reply::Warning(text) => warning(text),
                Reply::Done(best) => return Ok(best),
                Reply::Failed { what, place, remedy } => {
                    return Err(LaunchError::Job(Failure::new(what, place, remedy)));
                }
                other @ Reply::Hello(_) => return Err(LaunchError::Protocol(format!("{other:?}"))),
            }
        }
    }

    fn next(&mut self, within: Duration) -> Result<Reply, LaunchError> {
        let start = Instant::now();
        let mut line = Vec::new();
        loop {
            if let Some(stop) = stop_requested() {
                return Err(LaunchError::Stopped(stop));
            }
            match self.reader.read_until(b'\n', &mut line) {
                Ok(_) if line.last() == Some(&b'\n') => {
                    return serde_json::from_slice(&line)
                        .map_err(|error| LaunchError::Protocol(error.to_string()));
                }
                Ok(_) => return Err(LaunchError::Ended(self.how_it_ended())),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(LaunchError::Ended(error.to_string())),
            }
            if start.elapsed() > within {
                return Err(LaunchError::Silent { seconds: within.as_secs() });
            }
        }
    }

    fn how_it_ended(&mut self) -> String {
        match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A worker that is done ends by itself once the line closes; one that is not is ended.
        // Errors mean that it is gone already.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

impl Hello {
    /// Before anything was said.
    fn unknown() -> Self {
        Hello {
            protocol: 0,
            pid: 0,
            randomisation_off: None,
            stack_start: None,
            env_bytes: None,
            argv_bytes: None,
            text: 0,
            heap: 0,
        }
    }
}
