//! Opening events: which attributes are asked for, in which order, and what a refusal means.
//!
//! The ladder: kernel and hypervisor excluded; the guest excluded as well, which some drivers
//! demand; then both without the hypervisor bit, which others refuse. The kernel is excluded on
//! every rung, since a count with the kernel in it is another quantity; idle time never is, since
//! arm64 refuses that. Only a refusal of attributes leads to the next rung.

use perf_event::events::{self, Breakpoint};
use perf_event::{Builder, Counter, Group};

use super::absence;
use super::environment::Context;
use super::event::{Encoding, Event, FieldTooLarge, Hardware, Software};
use crate::sample::Absence;

/// Why an event could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The kernel refused.
    #[error("perf_event_open gave {}", absence::errno_name(*errno))]
    Refused {
        /// The error number.
        errno: i32,
    },
    /// The event names a PMU that the kernel does not list.
    #[error("the kernel lists no PMU `{0}`")]
    NoPmu(String),
    /// A field does not fit.
    #[error(transparent)]
    Field(#[from] FieldTooLarge),
}

impl OpenError {
    pub(super) fn absence(&self, context: &Context) -> Absence {
        match self {
            OpenError::Refused { errno } => absence::refused(*errno, &context.environment),
            OpenError::NoPmu(name) => Absence::new(
                format!("the kernel lists no PMU `{name}`"),
                "name one of /sys/bus/event_source/devices",
            ),
            OpenError::Field(error) => {
                Absence::new(error.to_string(), "check the code against the vendor's manual")
            }
        }
    }
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        // The crate passes on what the kernel said; without a number nothing was asked of it.
        OpenError::Refused { errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

/// What is excluded besides the kernel: the hypervisor, the guest.
const LADDER: [(bool, bool); 4] = [(true, false), (true, true), (false, false), (false, true)];

/// Whose events are counted.
pub(super) enum Whom<'a> {
    /// The calling thread's, as a member of a group.
    ThreadIn(&'a mut Group),
    /// Those of a process that has not started its program yet, and of all its children.
    Child(i32),
}

/// Opens a group's leader: an event that counts nothing, so that members can come and go.
pub(super) fn leader() -> Result<Group, OpenError> {
    Group::new().map_err(OpenError::from)
}

/// Opens one event.
pub(super) fn event(
    event: &Event,
    context: &Context,
    mut whom: Whom<'_>,
) -> Result<Counter, OpenError> {
    let mut last = OpenError::Refused { errno: libc::EINVAL };
    for (hypervisor, guest) in LADDER {
        let mut builder = builder(event, context)?;
        builder.exclude_hv(hypervisor).exclude_guest(guest);
        let opened = match &mut whom {
            Whom::ThreadIn(group) => builder.group(group).build(),
            Whom::Child(process) => {
                builder.inherit(true).enable_on_exec(true);
                builder.observe_pid(*process).build()
            }
        };
        match opened {
            Ok(counter) => return Ok(counter),
            Err(error) => last = error.into(),
        }
        let attributes = matches!(
            last,
            OpenError::Refused { errno: libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM }
        );
        if !attributes {
            break;
        }
    }
    Err(last)
}

fn builder(event: &Event, context: &Context) -> Result<Builder<'static>, OpenError> {
    let mut builder = Builder::new();
    let raw = |mut builder: Builder<'static>, pmu: &Option<String>, config| {
        let kind = context.pmu_kind(pmu.as_deref());
        let kind = kind.ok_or_else(|| OpenError::NoPmu(pmu.clone().unwrap_or_default()))?;
        let attributes = builder.attrs_mut();
        attributes.type_ = kind;
        attributes.config = config;
        Ok::<_, OpenError>(builder)
    };
    builder = match &event.encoding {
        Encoding::Fields { pmu, fields } => {
            let config = fields.config(context.cpu.layout())?;
            raw(builder, pmu, config)?
        }
        Encoding::Config { pmu, config } => raw(builder, pmu, *config)?,
        Encoding::Hardware(Hardware::Instructions) => builder.kind(events::Hardware::INSTRUCTIONS),
        Encoding::Hardware(Hardware::Cycles) => builder.kind(events::Hardware::CPU_CYCLES),
        Encoding::Software(Software::TaskClock) => builder.kind(events::Software::TASK_CLOCK),
        Encoding::Software(Software::PageFaults) => builder.kind(events::Software::PAGE_FAULTS),
        Encoding::Software(Software::ContextSwitches) => {
            builder.kind(events::Software::CONTEXT_SWITCHES)
        }
        Encoding::Writes { address, len } => builder.kind(Breakpoint::write(*address, *len)),
    };
    Ok(builder)
}
