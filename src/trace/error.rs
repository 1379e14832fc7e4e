//! Why a call could not be traced.

use std::io;

use crate::Failure;

/// Why a call could not be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No such program, by path or in `PATH`.
    #[error("no such program")]
    NotFound,
    /// It is there, but cannot be executed.
    #[error("the program is not executable")]
    NotExecutable,
    /// The file holds nothing; a shell would take it for a script.
    #[error("the program is an empty file")]
    Empty,
    /// It was made for another processor, or another word length.
    #[error("the program is for {0}, not for this processor")]
    WrongArchitecture(String),
    /// It would change its user or group.
    #[error("the program is set-uid or set-gid, and a traced program does not get that privilege")]
    SetId,
    /// The kernel, a container or a security module forbids ptrace.
    #[error("this system forbids tracing ({0})")]
    Forbidden(io::Error),
    /// No function of that name in the program or its libraries.
    #[error("no function `{name}` in the program or the libraries it starts with{hint}")]
    NoFunction {
        /// The name asked for.
        name: String,
        /// What may explain it, with a leading separator, or nothing.
        hint: String,
    },
    /// The function chooses its code when the program starts, and that cannot be asked here.
    #[error("`{0}` is chosen at start by a statically linked program")]
    ChosenAtStart(String),
    /// Nothing executable is mapped at the address.
    #[error("no code at {0:#x}")]
    NoCode(u64),
    /// The program ended before the call was reached.
    #[error("the function was called {calls} times before the program {ending}{hint}")]
    NotReached {
        /// Calls seen.
        calls: u64,
        /// How it ended.
        ending: String,
        /// What may explain it, with a leading separator, or nothing.
        hint: String,
    },
    /// The child that calls a workload ended in the middle of it.
    #[error("the child that calls the workload {ending} before the call returned")]
    Ended {
        /// How it ended.
        ending: String,
    },
    /// The call takes more steps than was allowed.
    #[error("the call takes more than {0} steps")]
    TooLong(u64),
    /// The stack cannot be put there.
    #[error(transparent)]
    Place(#[from] crate::block::PlaceError),
    /// There is no such workload.
    #[error(transparent)]
    Workload(#[from] crate::workloads::SpecError),
    /// No thread could be started.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// The argument points to nothing that is mapped.
    #[error("argument {argument} of the function is {value:#x}, which points to nothing")]
    NoPointer {
        /// The argument, from 1.
        argument: u8,
        /// Its value.
        value: u64,
    },
    /// Nothing is mapped at the address.
    #[error("no data at {0:#x}")]
    NoData(u64),
    /// The watchpoint cannot be had.
    #[error(transparent)]
    Watch(#[from] crate::sys::breakpoint::WatchError),
    /// The system refused something in between.
    #[error("tracing broke off while {during}: {error}")]
    System {
        /// What was being done.
        during: &'static str,
        /// The system's answer.
        error: io::Error,
    },
}

impl TraceError {
    pub(super) fn during(during: &'static str) -> impl FnOnce(io::Error) -> TraceError {
        move |error| TraceError::System { during, error }
    }

    fn remedy(&self) -> &'static str {
        match self {
            TraceError::NotFound => "check the path",
            TraceError::Empty => "check the path, or build the program again",
            TraceError::NotExecutable => "chmod +x it, or name the interpreter first",
            TraceError::WrongArchitecture(_) => "use a build for this machine",
            TraceError::SetId => "trace a copy without the set-uid bit",
            TraceError::Forbidden(_) => {
                "in a container, start it with --cap-add SYS_PTRACE or \
                 --security-opt seccomp=unconfined; else see kernel.yama.ptrace_scope"
            }
            TraceError::NoFunction { .. } => {
                "look for it with nm -C PROGRAM (or nm -D LIBRARY), or give --address"
            }
            TraceError::ChosenAtStart(_) => "name the routine itself, or give its --address",
            TraceError::NoCode(_) => {
                "give the address as nm or objdump print it, or FILE+0xOFFSET for a library"
            }
            TraceError::NotReached { .. } => {
                "choose arguments with which the program calls it, or a smaller --call"
            }
            TraceError::NoPointer { .. } => {
                "choose the argument that holds the buffer's address (--arg-pointer), or another \
                 --call"
            }
            TraceError::NoData(_) => {
                "give the address as nm prints it, or FILE+0xOFFSET for a library"
            }
            TraceError::Watch(_) => "see stackphase writer --help",
            TraceError::Ended { .. } => "try again; report this as a fault if it stays",
            TraceError::TooLong(_) => "choose a smaller --len, or allow more with --max-steps",
            TraceError::Place(_) => "give a shift that is a multiple of 16, up to 131072",
            TraceError::Workload(_) => "choose another length or workload",
            TraceError::Thread(_) => "raise the limit on threads",
            TraceError::System { .. } => "see the error's text",
        }
    }

    /// The failure as a person reads it, `place` being the program.
    pub fn at(self, place: impl Into<String>) -> Failure {
        // It knows its own remedy.
        if let TraceError::Watch(error) = self {
            return error.into();
        }
        let failure = Failure::new(self.to_string(), place, self.remedy());
        // What was asked for cannot be, whatever the machine.
        let usage = matches!(self, TraceError::Place(_) | TraceError::Workload(_));
        if usage { Failure { usage, ..failure } } else { failure }
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Failure {
        error.at("trace")
    }
}
