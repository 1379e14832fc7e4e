//! The worker's side: say hello, do jobs, end with the parent.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;

use super::protocol::{Hello, Job, PROTOCOL, Reply};
use crate::Failure;
use crate::block::GuardReading;
use crate::placement::ProcessStack;
use crate::sys::descriptor::take_inherited;

/// The one argument that makes this program a worker.
pub const WORKER_COMMAND: &str = "worker";

/// The number at which a worker finds its descriptor: the first after the standard three.
pub(super) const DESCRIPTOR: RawFd = 3;

/// Runs the worker until the parent closes the connection.
///
/// # Errors
/// When it was not started by this program, or the parent went away in mid-sentence.
pub fn serve() -> Result<(), Failure> {
    let broken = |error: std::io::Error| {
        Failure::new(format!("lost the parent: {error}"), "worker", "start the command again")
    };
    let stream = take_inherited(DESCRIPTOR).map(UnixStream::from).map_err(|_| {
        Failure::usage(
            "a worker is started by stackphase itself",
            "worker",
            "call another subcommand: see stackphase --help",
        )
    })?;
    let mut channel = Channel { stream: stream.try_clone().map_err(broken)? };
    channel.send(&Reply::Hello(hello())).map_err(broken)?;
    for line in BufReader::new(stream).lines() {
        let reply = match serde_json::from_str::<Job>(&line.map_err(broken)?) {
            Err(error) => Err(Failure::new(
                format!("not a job: {error}"),
                "worker protocol",
                "report this as a fault",
            )),
            Ok(Job::Nothing) => Ok(None),
            Ok(Job::Grid(job)) => {
                on_chosen_thread(job.on_thread, || super::grid::run(&job, &mut channel).map(Some))
            }
        };
        let reply = match reply {
            Ok(best) => Reply::Done(best),
            Err(Failure { what, place, remedy, .. }) => Reply::Failed { what, place, remedy },
        };
        channel.send(&reply).map_err(broken)?;
    }
    Ok(())
}

/// The line to the parent.
pub(super) struct Channel {
    stream: UnixStream,
}

impl Channel {
    /// Sends one reply as one line in one write.
    pub(super) fn send(&mut self, reply: &Reply) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}

/// Runs `work` on the main thread, whose stack the kernel placed, or on a spawned one.
fn on_chosen_thread(
    spawned: bool,
    work: impl FnOnce() -> Result<Option<GuardReading>, Failure> + Send,
) -> Result<Option<GuardReading>, Failure> {
    // The main thread's usual limit, so that a shift that fits there fits here.
    const STACK: usize = 8 << 20;
    if !spawned {
        return work();
    }
    let refused = |what: String| Failure::new(what, "worker", "raise the limit on threads");
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| refused(format!("cannot start a thread: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(refused("the thread panicked".to_owned())))
    })
}

fn hello() -> Hello {
    let stack = ProcessStack::of_self().ok();
    let first_allocation = Box::new(0u64);
    Hello {
        protocol: PROTOCOL,
        pid: std::process::id(),
        randomisation_off: randomisation_off(),
        stack_start: stack.map(|stack| stack.start),
        env_bytes: stack.map(|stack| stack.env_bytes),
        argv_bytes: stack.map(|stack| stack.argv_bytes),
        text: serve as fn() -> Result<(), Failure> as usize as u64,
        heap: std::ptr::from_ref(&*first_allocation) as usize as u64,
    }
}

/// What the kernel says of this process; not what was asked for.
fn randomisation_off() -> Option<bool> {
    nix::sys::personality::get()
        .ok()
        .map(|p| p.contains(nix::sys::personality::Persona::ADDR_NO_RANDOMIZE))
}
