//! What decides whether counters can be opened here: processor, PMU, permissions, watchdog.

use std::path::{Path, PathBuf};

use super::event::{Event, STANDARD};
use super::identify::{Core, CoreType, CpuId, identify};
use super::table;
use crate::sample::Absence;

/// A PMU as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Its directory under `/sys/bus/event_source/devices`.
    pub name: String,
    /// The kernel's number for it.
    pub kind: u32,
}

/// The circumstances that explain a refusal; every one read, none guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `kernel.perf_event_paranoid`, where it can be read.
    pub paranoid: Option<i32>,
    /// Whether the NMI watchdog runs and holds a counter.
    pub watchdog: bool,
    /// Whether a hypervisor is underneath.
    pub guest: bool,
    /// Whether a seccomp filter is on this thread.
    pub seccomp: bool,
    /// Whether the kernel lists a PMU of the core.
    pub pmu_listed: bool,
    /// Whether the processor has two kinds of core.
    pub hybrid: bool,
    /// Whether the thread may move between kinds of core.
    pub unpinned: bool,
}

/// Everything that opening counters needs to know of the core the thread is pinned to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// What the processor says of itself.
    pub cpu: CpuId,
    /// The core in the event table; `None` where the table does not know it.
    pub core: Option<Core>,
    /// The core's PMU, where the kernel lists one.
    pub pmu: Option<Pmu>,
    /// The circumstances.
    pub environment: Environment,
    /// Where `/sys` and `/proc` hang; `/` outside tests.
    pub root: PathBuf,
}

impl Context {
    /// Reads the circumstances of the calling thread, which must be pinned already where cores
    /// differ.
    pub fn detect() -> Context {
        let root = Path::new("/");
        let allowed = allowed_cpus();
        Context::read(root, CpuId::current(root), &allowed, is_guest(root))
    }

    /// The same over another `root`, for a given processor and given permitted processors.
    pub fn read(root: &Path, cpu: CpuId, allowed: &[usize], guest: bool) -> Context {
        let types = core_types(root);
        let hybrid = types.len() > 1;
        let mine = |cpus: &[usize]| allowed.iter().any(|cpu| cpus.contains(cpu));
        let core = identify(&cpu).cloned();
        let pmu = core_pmu(root, cpu.core_type, hybrid, allowed);
        let environment = Environment {
            paranoid: read_number(&root.join("proc/sys/kernel/perf_event_paranoid")),
            watchdog: read_number::<u32>(&root.join("proc/sys/kernel/nmi_watchdog")) == Some(1),
            guest,
            seccomp: status_field(root, "Seccomp:") == Some(2),
            pmu_listed: pmu.is_some(),
            hybrid,
            unpinned: hybrid && types.iter().filter(|(_, cpus)| mine(cpus)).count() > 1,
        };
        Context { cpu, core, pmu, environment, root: root.to_owned() }
    }

    /// A name for a person: the table's, or what the processor says of itself.
    pub fn title(&self) -> String {
        match &self.core {
            Some(core) => core.title.clone(),
            None => self.cpu.to_string(),
        }
    }

    /// The standard counters of this core followed by `extra`, and those it has no event for.
    ///
    /// An extra event named like a standard one takes its place (and has to pass its self-test).
    pub fn events(&self, extra: &[Event]) -> (Vec<Event>, Vec<(String, Absence)>) {
        let mut events = Vec::new();
        let mut absent = Vec::new();
        for (name, meaning) in STANDARD {
            if extra.iter().any(|event| event.name == name) {
                continue;
            }
            match self.standard(name, meaning) {
                Ok(event) => events.push(event),
                Err(absence) => absent.push((name.to_owned(), absence)),
            }
        }
        events.extend_from_slice(extra);
        (events, absent)
    }

    fn standard(&self, name: &str, meaning: &str) -> Result<Event, Absence> {
        match (&self.core, name) {
            (Some(core), _) => table::lookup(core, name).ok_or_else(|| {
                Absence::new(
                    format!("no event of {} is known for {meaning}", core.title),
                    format!(
                        "a code from the vendor's manual can be tried with --event {name}=rCODE"
                    ),
                )
            }),
            (None, "instructions") => Ok(Event::generic_instructions()),
            (None, "cycles") => Ok(Event::generic_cycles()),
            (None, _) => Err(Absence::new(
                format!("the event table does not know this processor ({})", self.cpu),
                format!("give the code from the vendor's manual with --event {name}=rCODE"),
            )),
        }
    }

    /// The kernel's number of the PMU called `name`, or of this core's where it is `None`.
    pub(super) fn pmu_kind(&self, name: Option<&str>) -> Option<u32> {
        match name {
            // The kernel accepts its fixed raw type for the only PMU of a uniform processor.
            None => Some(self.pmu.as_ref().map_or(RAW, |pmu| pmu.kind)),
            Some(name) => {
                read_number(&self.root.join("sys/bus/event_source/devices").join(name).join("type"))
            }
        }
    }
}

/// `PERF_TYPE_RAW`.
const RAW: u32 = 4;

/// The kinds of core of a hybrid processor with the processors of each kind; empty elsewhere.
pub fn core_types(root: &Path) -> Vec<(CoreType, Vec<usize>)> {
    let devices = root.join("sys/bus/event_source/devices");
    let kinds = [("cpu_core", CoreType::Performance), ("cpu_atom", CoreType::Efficient)];
    kinds
        .into_iter()
        .filter_map(|(name, core_type)| {
            let list = std::fs::read_to_string(devices.join(name).join("cpus")).ok()?;
            let cpus = cpu_list(&list);
            (!cpus.is_empty()).then_some((core_type, cpus))
        })
        .collect()
}

/// Parses the kernel's lists of processors, such as `0-3,8`; what does not parse is left out.
fn cpu_list(text: &str) -> Vec<usize> {
    text.trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            // A list that spans more than any kernel's processors is damaged.
            (last < 65_536).then_some(first..=last)
        })
        .flatten()
        .collect()
}

fn core_pmu(root: &Path, core_type: CoreType, hybrid: bool, allowed: &[usize]) -> Option<Pmu> {
    let devices = root.join("sys/bus/event_source/devices");
    let pmu = |name: &str| {
        let kind = read_number(&devices.join(name).join("type"))?;
        Some(Pmu { name: name.to_owned(), kind })
    };
    match (hybrid, core_type) {
        (true, CoreType::Performance) => return pmu("cpu_core"),
        (true, CoreType::Efficient) => return pmu("cpu_atom"),
        _ => {}
    }
    if let Some(found) = ["cpu", "cpu_core", "cpu_atom"].into_iter().find_map(pmu) {
        return Some(found);
    }
    // arm64 names the PMU after the architecture or the core, and has one for each kind of core.
    let entries = std::fs::read_dir(&devices).ok()?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            name.starts_with("armv8") || name.starts_with("armv9") || name.starts_with("apple_")
        })
        .collect();
    names.sort();
    let serves = |name: &String| {
        let list = std::fs::read_to_string(devices.join(name).join("cpus")).unwrap_or_default();
        let cpus = cpu_list(&list);
        cpus.is_empty() || allowed.iter().any(|cpu| cpus.contains(cpu))
    };
    names.iter().filter(|name| serves(name)).find_map(|name| pmu(name))
}

fn read_number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn status_field(root: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/self/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

fn allowed_cpus() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

#[cfg(target_arch = "x86_64")]
fn is_guest(_root: &Path) -> bool {
    raw_cpuid::CpuId::new().get_feature_info().is_some_and(|info| info.has_hypervisor())
}

#[cfg(not(target_arch = "x86_64"))]
fn is_guest(root: &Path) -> bool {
    // Firmware names the hypervisor in DMI or in the device tree; there is no register to ask.
    let vendor = std::fs::read_to_string(root.join("sys/class/dmi/id/sys_vendor"));
    let product = std::fs::read_to_string(root.join("sys/class/dmi/id/product_name"));
    let text = vendor.unwrap_or_default() + &product.unwrap_or_default();
    let words = [
        "QEMU",
        "KVM",
        "VMware",
        "Google Compute",
        "Virtual",
        "Parallels",
        "Apple Inc. Apple Virt",
    ];
    // EC2 says so in the vendor; its metal sizes in the product.
    words.iter().any(|word| text.contains(word))
        || (text.contains("Amazon EC2") && !text.contains("metal"))
        || root.join("proc/device-tree/hypervisor").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("has a folder")).expect("makes it");
        std::fs::write(path, text).expect("writes");
    }

    fn intel(model: u32, core_type: CoreType) -> CpuId {
        CpuId { vendor: "GenuineIntel".into(), family: 6, model, core_type }
    }

    #[test]
    fn a_hybrid_core_opens_on_its_own_pmu() {
        let dir = tempfile::tempdir().expect("temporary folder");
        write(dir.path(), "sys/bus/event_source/devices/cpu_core/type", "4\n");
        write(dir.path(), "sys/bus/event_source/devices/cpu_core/cpus", "0-7\n");
        write(dir.path(), "sys/bus/event_source/devices/cpu_atom/type", "10\n");
        write(dir.path(), "sys/bus/event_source/devices/cpu_atom/cpus", "8-11,13\n");
        write(dir.path(), "proc/sys/kernel/perf_event_paranoid", "2\n");
        write(dir.path(), "proc/sys/kernel/nmi_watchdog", "1\n");
        let context = Context::read(dir.path(), intel(0x97, CoreType::Efficient), &[9], false);
        assert_eq!(context.pmu, Some(Pmu { name: "cpu_atom".into(), kind: 10 }));
        assert_eq!(context.pmu_kind(None), Some(10));
        assert_eq!(context.pmu_kind(Some("cpu_core")), Some(4));
        assert_eq!(context.pmu_kind(Some("uncore")), None);
        let environment = &context.environment;
        assert_eq!(environment.paranoid, Some(2));
        assert!(environment.watchdog && environment.hybrid && !environment.unpinned);
        assert_eq!(core_types(dir.path())[1], (CoreType::Efficient, vec![8, 9, 10, 11, 13]));
        let roaming = Context::read(dir.path(), intel(0x97, CoreType::Efficient), &[0, 9], false);
        assert!(roaming.environment.unpinned);
    }

    #[test]
    fn gracemont_has_no_event_for_forwarding_failures_and_says_so() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let context = Context::read(dir.path(), intel(0x97, CoreType::Efficient), &[0], false);
        let (events, absent) = context.events(&[]);
        assert!(events.iter().all(|event| event.name != "store_forward_failures"));
        let (_, absence) = absent
            .iter()
            .find(|(name, _)| name == "store_forward_failures")
            .expect("it is among the absent");
        assert_eq!(
            absence.why,
            "no event of Intel Alder Lake E-core is known for loads that could not forward from an \
             in-flight store"
        );
        assert_eq!(events.len() + absent.len(), STANDARD.len());
    }

    #[test]
    fn an_unknown_processor_gets_the_generic_events_and_takes_the_users() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let context = Context::read(dir.path(), intel(0x0f, CoreType::Uniform), &[0], false);
        let (events, absent) = context.events(&[]);
        assert_eq!(events, [Event::generic_instructions(), Event::generic_cycles()]);
        assert!(absent[0].1.remedy.contains("--event store_forward_failures=rCODE"));
        let own: Event = "store_forward_failures=r0203".parse().expect("is well formed");
        let (events, absent) = context.events(std::slice::from_ref(&own));
        assert_eq!(events[2], own);
        assert_eq!(events.len() + absent.len(), STANDARD.len());
    }

    #[test]
    fn damaged_lists_of_processors_do_no_harm() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list(""), [] as [usize; 0]);
        assert_eq!(cpu_list("x,3-1,0-99999999999,7"), [7]);
    }

    #[test]
    fn arm_pmus_are_found_by_their_processors() {
        let dir = tempfile::tempdir().expect("temporary folder");
        write(dir.path(), "sys/bus/event_source/devices/armv8_cortex_a55/type", "7\n");
        write(dir.path(), "sys/bus/event_source/devices/armv8_cortex_a55/cpus", "0-3\n");
        write(dir.path(), "sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
        write(dir.path(), "sys/bus/event_source/devices/armv8_pmuv3_0/cpus", "4-7\n");
        let context = Context::read(dir.path(), CpuId::from_midr(0x410f_d0c0), &[5], true);
        assert_eq!(context.pmu, Some(Pmu { name: "armv8_pmuv3_0".into(), kind: 8 }));
    }

    #[test]
    fn this_machine_is_read_without_panicking() {
        let context = Context::detect();
        assert!(!context.title().is_empty());
        assert!(!context.environment.unpinned || context.environment.hybrid);
    }
}
