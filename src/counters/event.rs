//! What is counted: an event, its code, and how that code is packed for the kernel.

use super::{Context, CoreType};

/// The counters this tool reads where the core has them, in the order of columns, with what each
/// counts. `<name>_per_op` is the column of a counter.
pub const STANDARD: [(&str, &str); 8] = [
    ("instructions", "retired instructions"),
    ("cycles", "core clock cycles while not halted"),
    ("store_forward_failures", "loads that could not forward from an in-flight store"),
    ("store_forwards", "loads served by forwarding from an in-flight store"),
    ("address_aliases", "loads held up by an older store at the same offset of another 4 KiB page"),
    ("split_loads", "loads across a cache-line boundary"),
    ("split_stores", "stores across a cache-line boundary"),
    ("store_queue_stalls", "cycles without progress because the store queue was full"),
];

/// How the fields of a raw event are packed into the kernel's `config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Intel: event 0-7, umask 8-15 and 40-47, edge 18, any 21, inv 23, cmask 24-31.
    Intel,
    /// AMD: event 0-7 and 32-35, umask 8-15, edge 18, inv 23, cmask 24-31.
    Amd,
    /// Arm: event 0-15, nothing else.
    Arm,
}

/// A field that does not fit the layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}={value:#x} does not fit this processor's raw events (at most {largest:#x})")]
pub struct FieldTooLarge {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// The largest value that fits.
    pub largest: u64,
}

/// The fields of a raw event, as vendors document them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Event select.
    pub event: u64,
    /// Unit mask.
    pub umask: u64,
    /// Counter mask: counts cycles in which at least this many events occur.
    pub cmask: u64,
    /// Invert the comparison of `cmask`.
    pub inv: bool,
    /// Count rising edges only.
    pub edge: bool,
    /// Count for both threads of the core (Intel, before Ice Lake).
    pub any: bool,
}

impl Fields {
    /// Packs the fields for the kernel.
    ///
    /// # Errors
    /// When a field is too large for `layout`.
    pub fn config(&self, layout: Layout) -> Result<u64, FieldTooLarge> {
        let check = |field, value, largest| {
            if value > largest { Err(FieldTooLarge { field, value, largest }) } else { Ok(value) }
        };
        if layout == Layout::Arm {
            check("umask", self.umask, 0)?;
            check("cmask", self.cmask, 0)?;
            check("inv", self.inv.into(), 0)?;
            check("edge", self.edge.into(), 0)?;
            check("any", self.any.into(), 0)?;
            return check("event", self.event, 0xffff);
        }
        let (event, umask) = if layout == Layout::Amd {
            check("any", self.any.into(), 0)?;
            let event = check("event", self.event, 0xfff)?;
            (event & 0xff | (event & 0xf00) << 24, check("umask", self.umask, 0xff)? << 8)
        } else {
            let umask = check("umask", self.umask, 0xffff)?;
            (check("event", self.event, 0xff)?, (umask & 0xff) << 8 | (umask & 0xff00) << 32)
        };
        let cmask = check("cmask", self.cmask, 0xff)? << 24;
        let flags = u64::from(self.edge) << 18 | u64::from(self.any) << 21;
        Ok(event | umask | flags | u64::from(self.inv) << 23 | cmask)
    }
}

/// A generic hardware event, for processors that the table does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// Retired instructions.
    Instructions,
    /// Cycles of the core clock.
    Cycles,
}

/// An event that the kernel counts in software; never a substitute for a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// Nanoseconds that the thread was on a processor.
    TaskClock,
    /// Page faults, major and minor.
    PageFaults,
    /// Context switches.
    ContextSwitches,
}

/// Which of the kernel's event sources counts, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A raw event of the core by its fields.
    Fields {
        /// The PMU as the kernel names it; `None`: that of the core that the thread is pinned to.
        pmu: Option<String>,
        /// The fields.
        fields: Fields,
    },
    /// A raw event of the core, packed already.
    Config {
        /// As in [`Encoding::Fields`].
        pmu: Option<String>,
        /// The kernel's `config`.
        config: u64,
    },
    /// A generic hardware event.
    Hardware(Hardware),
    /// A software event.
    Software(Software),
    /// A hardware breakpoint: writes to `len` bytes at `address`.
    Writes {
        /// Address, a multiple of `len`.
        address: u64,
        /// 1, 2, 4 or 8 bytes.
        len: u64,
    },
}

/// Something that can be counted, under the name of its column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name of the counter; the column is `<name>_per_op`.
    pub name: String,
    /// What the vendor calls it, where it is from the table.
    pub native: Option<String>,
    /// Where its code is from; `None` where the user gave it.
    pub source: Option<String>,
    /// What the kernel is asked for.
    pub encoding: Encoding,
}

impl Event {
    fn plain(name: &str, encoding: Encoding) -> Event {
        Event { name: name.to_owned(), native: None, source: None, encoding }
    }

    /// The generic retired-instructions event of the kernel.
    pub fn generic_instructions() -> Event {
        Event::plain("instructions", Encoding::Hardware(Hardware::Instructions))
    }

    /// The generic cycles event of the kernel.
    pub fn generic_cycles() -> Event {
        Event::plain("cycles", Encoding::Hardware(Hardware::Cycles))
    }

    /// Nanoseconds that the thread was on a processor, as column `task_clock_ns`.
    pub fn task_clock() -> Event {
        Event::plain("task_clock_ns", Encoding::Software(Software::TaskClock))
    }

    /// Page faults, as column `page_faults`.
    pub fn page_faults() -> Event {
        Event::plain("page_faults", Encoding::Software(Software::PageFaults))
    }

    /// Context switches, as column `context_switches`.
    pub fn context_switches() -> Event {
        Event::plain("context_switches", Encoding::Software(Software::ContextSwitches))
    }

    /// Writes to `len` (1, 2, 4 or 8) bytes at `address`, counted by a hardware breakpoint.
    pub fn writes(address: u64, len: u64) -> Event {
        Event::plain("buffer_writes", Encoding::Writes { address, len })
    }

    /// Whether the processor's PMU counts it (and not the kernel or a breakpoint register).
    pub fn is_hardware(&self) -> bool {
        !matches!(self.encoding, Encoding::Software(_) | Encoding::Writes { .. })
    }

    /// The code as `perf` writes it: `r0224`, or the kernel's name of a generic event.
    ///
    /// # Errors
    /// When a field does not fit this processor's raw events.
    pub fn raw(&self, layout: Layout) -> Result<String, FieldTooLarge> {
        Ok(match &self.encoding {
            Encoding::Fields { fields, .. } => format!("r{:04x}", fields.config(layout)?),
            Encoding::Config { config, .. } => format!("r{config:04x}"),
            Encoding::Hardware(Hardware::Instructions) => "PERF_COUNT_HW_INSTRUCTIONS".to_owned(),
            Encoding::Hardware(Hardware::Cycles) => "PERF_COUNT_HW_CPU_CYCLES".to_owned(),
            Encoding::Software(Software::TaskClock) => "PERF_COUNT_SW_TASK_CLOCK".to_owned(),
            Encoding::Software(Software::PageFaults) => "PERF_COUNT_SW_PAGE_FAULTS".to_owned(),
            Encoding::Software(Software::ContextSwitches) => {
                "PERF_COUNT_SW_CONTEXT_SWITCHES".to_owned()
            }
            Encoding::Writes { address, len } => format!("mem:{address:#x}/{len}:w"),
        })
    }

    /// The event as an argument of `perf stat -e`, counting user mode only.
    pub fn perf_argument(&self, context: &Context) -> String {
        let own = || match (&context.pmu, context.cpu.layout(), context.cpu.core_type) {
            (Some(pmu), ..) => pmu.name.clone(),
            (None, Layout::Arm, _) => "armv8_pmuv3_0".to_owned(),
            (None, _, CoreType::Performance) if context.environment.hybrid => "cpu_core".to_owned(),
            (None, _, CoreType::Efficient) if context.environment.hybrid => "cpu_atom".to_owned(),
            (None, ..) => "cpu".to_owned(),
        };
        let name = &self.name;
        match &self.encoding {
            Encoding::Fields { pmu, fields } => {
                let pmu = pmu.clone().unwrap_or_else(own);
                format!("{pmu}/{},name={name}/u", perf_fields(fields))
            }
            Encoding::Config { pmu, config } => {
                let pmu = pmu.clone().unwrap_or_else(own);
                format!("{pmu}/config={config:#x},name={name}/u")
            }
            Encoding::Hardware(Hardware::Instructions) => "instructions:u".to_owned(),
            Encoding::Hardware(Hardware::Cycles) => "cycles:u".to_owned(),
            Encoding::Software(Software::TaskClock) => "task-clock:u".to_owned(),
            Encoding::Software(Software::PageFaults) => "page-faults:u".to_owned(),
            Encoding::Software(Software::ContextSwitches) => "context-switches:u".to_owned(),
            Encoding::Writes { address, len } => format!("mem:{address:#x}/{len}:wu"),
        }
    }
}

fn perf_fields(fields: &Fields) -> String {
    let mut text = format!("event={:#x}", fields.event);
    let mut push = |name: &str, value: u64| {
        if value != 0 {
            text.push_str(&format!(",{name}={value:#x}"));
        }
    };
    push("umask", fields.umask);
    push("cmask", fields.cmask);
    push("inv", fields.inv.into());
    push("edge", fields.edge.into());
    push("any", fields.any.into());
    text
}

/// The command that counts `events` over `command` with `perf` alone, in groups of at most four.
///
/// `command` is put in as it is: it must already be quoted for a shell.
pub fn perf_command(context: &Context, events: &[Event], command: &str) -> String {
    let groups: Vec<String> = events
        .chunks(super::GROUP)
        .map(|group| {
            let members: Vec<String> =
                group.iter().map(|event| event.perf_argument(context)).collect();
            format!("{{{}}}", members.join(","))
        })
        .collect();
    if groups.is_empty() {
        return format!("perf stat -- {command}");
    }
    // Braces and slashes mean something to shells.
    format!("perf stat -e '{}' -- {command}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_failures_pack_to_the_published_codes() {
        let fields = Fields { event: 0x24, umask: 0x02, ..Fields::default() };
        assert_eq!(fields.config(Layout::Amd), Ok(0x0224));
        let fields = Fields { event: 0x03, umask: 0x82, ..Fields::default() };
        assert_eq!(fields.config(Layout::Intel), Ok(0x8203));
    }

    #[test]
    fn wide_fields_go_where_each_vendor_puts_them() {
        let fields = Fields { event: 0x120, umask: 0x01, ..Fields::default() };
        assert_eq!(fields.config(Layout::Amd), Ok(0x1_0000_0120));
        assert_eq!(fields.config(Layout::Intel).map_err(|e| e.field), Err("event"));
        let fields = Fields { event: 0xa6, umask: 0x40, cmask: 2, ..Fields::default() };
        assert_eq!(fields.config(Layout::Intel), Ok(0x0200_40a6));
        let fields = Fields { event: 0x03, umask: 0x0182, ..Fields::default() };
        assert_eq!(fields.config(Layout::Intel), Ok(0x0100_0000_8203));
        let all = Fields { event: 1, inv: true, edge: true, any: true, ..Fields::default() };
        assert_eq!(all.config(Layout::Intel), Ok(1 | 1 << 18 | 1 << 21 | 1 << 23));
    }

    #[test]
    fn arm_has_no_unit_mask() {
        let fields = Fields { event: 0xd605, ..Fields::default() };
        assert_eq!(fields.config(Layout::Arm), Ok(0xd605));
        let fields = Fields { event: 0x08, umask: 1, ..Fields::default() };
        let error = fields.config(Layout::Arm).expect_err("there is no such field");
        assert_eq!(
            error.to_string(),
            "umask=0x1 does not fit this processor's raw events (at most 0x0)"
        );
    }
}
