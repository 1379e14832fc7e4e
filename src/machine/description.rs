//! The machine document: what is known of the host, `stackphase/machine/1`.

use serde::{Deserialize, Serialize};

use super::c_library::CLibrary;
use super::disturbance::disturbances;
use super::processor::permitted_cpus;
use super::system_files::{bracketed, line, number, value_of};

/// The schema of [`Machine`].
pub const SCHEMA: &str = "stackphase/machine/1";

/// What is known of the host. `null` where the system does not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The processor.
    pub processor: Processor,
    /// Kernel release and version.
    pub kernel: Option<String>,
    /// The C library and its copy routine.
    pub c_library: CLibrary,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Bytes of a line of the first-level data cache.
    pub cache_line_bytes: Option<u64>,
    /// Whether a hypervisor is present.
    pub guest: Option<bool>,
    /// The logical processors that this process may use.
    pub permitted_cpus: Vec<usize>,
    /// The frequency governor of the last permitted processor.
    pub governor: Option<String>,
    /// Whether boost (turbo) is on.
    pub boost: Option<bool>,
    /// Highest frequency that the governor may choose, kHz.
    pub max_khz: Option<u64>,
    /// Whether simultaneous multithreading is active.
    pub smt_active: Option<bool>,
    /// `kernel.randomize_va_space`: 0 off, 1 stack and libraries, 2 also the heap.
    pub randomize_va_space: Option<u8>,
    /// `kernel.perf_event_paranoid`.
    pub perf_event_paranoid: Option<i8>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Load average over a minute.
    pub load_average: Option<f64>,
    /// `size_of` and `align_of` of BLAKE3's types, which tell whether the buffers are aligned.
    pub blake3: Blake3Layout,
    /// What would disturb a measurement, each ending in its remedy.
    pub disturbances: Vec<String>,
}

/// The processor, as it names itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// The model's name.
    pub name: String,
    /// Vendor.
    pub vendor: Option<String>,
    /// Family (x86) as a number.
    pub family: Option<u32>,
    /// Model (x86) as a number.
    pub model: Option<u32>,
    /// Stepping (x86) as a number.
    pub stepping: Option<u32>,
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    /// The widest stores that the processor offers: 64, 32 or 16 bytes.
    pub widest_store_bytes: u32,
}

/// Layout of the types of the `blake3` crate in this build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blake3Layout {
    /// Size of `blake3::Hasher`, bytes.
    pub hasher_bytes: usize,
    /// Alignment of the same.
    pub hasher_align: usize,
    /// Size of `blake3::OutputReader`, bytes.
    pub output_reader_bytes: usize,
    /// Alignment of the same.
    pub output_reader_align: usize,
}

impl Blake3Layout {
    /// Of this build.
    pub fn of_self() -> Self {
        Blake3Layout {
            hasher_bytes: size_of::<blake3::Hasher>(),
            hasher_align: align_of::<blake3::Hasher>(),
            output_reader_bytes: size_of::<blake3::OutputReader>(),
            output_reader_align: align_of::<blake3::OutputReader>(),
        }
    }

    /// Whether both on-stack block buffers are 64-byte aligned, as BLAKE3 pull request 582 makes
    /// them: that changes the layout from 1920 and 120 bytes to 1984 and 192.
    pub fn has_the_fix(&self) -> bool {
        self.hasher_align >= 64 && self.output_reader_align >= 64
    }
}

impl Machine {
    /// Looks at the host now.
    pub fn describe() -> Self {
        let permitted_cpus = permitted_cpus();
        let frequency = permitted_cpus
            .last()
            .map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq"))
            .unwrap_or_default();
        let cpuinfo = std::fs::read("/proc/cpuinfo").unwrap_or_default();
        let cpuinfo = String::from_utf8_lossy(&cpuinfo);
        let mut machine = Machine {
            schema: SCHEMA.to_owned(),
            processor: Processor::describe(&cpuinfo),
            kernel: kernel(),
            c_library: CLibrary::of_self(),
            page_bytes: stack_trampoline::page_size(),
            cache_line_bytes: number(
                "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size",
            ),
            guest: guest(&cpuinfo),
            permitted_cpus,
            governor: line(format!("{frequency}/scaling_governor")),
            boost: boost(),
            max_khz: number(format!("{frequency}/scaling_max_freq")),
            smt_active: number::<u8>("/sys/devices/system/cpu/smt/active").map(|v| v == 1),
            randomize_va_space: number("/proc/sys/kernel/randomize_va_space"),
            perf_event_paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
            transparent_huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| bracketed(&text).map(str::to_owned)),
            load_average: line("/proc/loadavg")
                .and_then(|text| text.split(' ').next().and_then(|first| first.parse().ok())),
            blake3: Blake3Layout::of_self(),
            disturbances: Vec::new(),
        };
        machine.disturbances = disturbances(&machine);
        machine
    }

    /// One line that names the machine in a table or an issue thread.
    pub fn line(&self) -> String {
        let mut parts = vec![self.processor.name.clone()];
        if let (Some(family), Some(model)) = (self.processor.family, self.processor.model) {
            parts.push(format!("family {family} model {model}"));
        }
        parts.extend(self.kernel.clone().map(|kernel| format!("Linux {kernel}")));
        parts.extend(self.c_library.version.clone());
        if self.guest == Some(true) {
            parts.push("guest".to_owned());
        }
        parts.join(", ")
    }
}

impl Processor {
    fn describe(cpuinfo: &str) -> Self {
        let number = |key| value_of(cpuinfo, key).and_then(|text| text.parse().ok());
        Processor {
            name: value_of(cpuinfo, "model name")
                .or_else(|| value_of(cpuinfo, "CPU part").map(|part| format!("arm64 part {part}")))
                .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH)),
            vendor: value_of(cpuinfo, "vendor_id").or_else(|| value_of(cpuinfo, "CPU implementer")),
            family: number("cpu family"),
            model: number("model"),
            stepping: number("stepping"),
            architecture: std::env::consts::ARCH.to_owned(),
            widest_store_bytes: widest_store_bytes(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn widest_store_bytes() -> u32 {
    if std::arch::is_x86_feature_detected!("avx512f") {
        64
    } else if std::arch::is_x86_feature_detected!("avx") {
        32
    } else {
        16
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest_store_bytes() -> u32 {
    16
}

fn kernel() -> Option<String> {
    let names = nix::sys::utsname::uname().ok()?;
    Some(names.release().to_string_lossy().into_owned())
}

fn boost() -> Option<bool> {
    if let Some(boost) = number::<u8>("/sys/devices/system/cpu/cpufreq/boost") {
        return Some(boost == 1);
    }
    number::<u8>("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0)
}

/// x86 announces a hypervisor among its flags; elsewhere only a device tree may tell.
fn guest(cpuinfo: &str) -> Option<bool> {
    value_of(cpuinfo, "flags")
        .map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
        .or_else(|| line("/sys/hypervisor/type").map(|_| true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_leave_gaps_and_nothing_else() {
        let processor = Processor::describe("");
        assert_eq!((processor.family, processor.vendor), (None, None));
        assert!(!processor.name.is_empty());
    }

    #[test]
    fn the_document_reads_back() -> Result<(), serde_json::Error> {
        let machine = Machine::describe();
        let text = serde_json::to_string(&machine)?;
        assert_eq!(serde_json::from_str::<Machine>(&text)?, machine);
        assert!(!machine.line().contains('\n'));
        Ok(())
    }

    #[test]
    fn arm64_names_its_part() {
        let text = "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n";
        let processor = Processor::describe(text);
        assert_eq!(processor.name, "arm64 part 0xd4f");
        assert_eq!(processor.vendor.as_deref(), Some("0x41"));
    }
}
