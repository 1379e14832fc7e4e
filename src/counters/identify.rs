//! Which core this is: a pure function from what the processor says of itself to a [`Core`], and
//! the reading of that.
//!
//! Hybrid processors answer differently on each core: the reading holds for the core that the
//! calling thread runs on, so it must be pinned first.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

/// Which of the kinds of core in one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreType {
    /// All cores are of one kind.
    Uniform,
    /// A performance core (Intel "Core", CPUID leaf 0x1A type 0x40).
    Performance,
    /// An efficient core (Intel "Atom", CPUID leaf 0x1A type 0x20).
    Efficient,
}

impl CoreType {
    /// The spelling in the event table and in text; empty for uniform processors.
    pub fn as_str(self) -> &'static str {
        match self {
            CoreType::Uniform => "",
            CoreType::Performance => "performance",
            CoreType::Efficient => "efficient",
        }
    }

    pub(super) fn parse(text: &str) -> Option<CoreType> {
        [CoreType::Uniform, CoreType::Performance, CoreType::Efficient]
            .into_iter()
            .find(|core_type| core_type.as_str() == text)
    }
}

/// What a processor says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuId {
    /// The CPUID vendor, or on arm64 the MIDR's implementer as `0x41`.
    pub vendor: String,
    /// The family with its extension; 0 on arm64.
    pub family: u32,
    /// The model with its extension, or on arm64 the MIDR's part number.
    pub model: u32,
    /// The kind of core.
    pub core_type: CoreType,
}

impl CpuId {
    /// From arm64's main identification register: implementer in bits 24 to 31, part in 4 to 15.
    pub fn from_midr(midr: u64) -> CpuId {
        CpuId {
            vendor: format!("{:#04x}", midr >> 24 & 0xff),
            family: 0,
            model: (midr >> 4 & 0xfff) as u32,
            core_type: CoreType::Uniform,
        }
    }

    /// The processor that the calling thread runs on; `root` is `/` outside tests.
    ///
    /// Where nothing can be read the vendor is `unknown`.
    pub fn current(root: &Path) -> CpuId {
        read_current(root).unwrap_or_else(|| CpuId {
            vendor: "unknown".to_owned(),
            family: 0,
            model: 0,
            core_type: CoreType::Uniform,
        })
    }

    /// How the fields of a raw event are packed into a number on this vendor's processors.
    pub fn layout(&self) -> super::Layout {
        match self.vendor.as_str() {
            "AuthenticAMD" | "HygonGenuine" => super::Layout::Amd,
            vendor if vendor.starts_with("0x") => super::Layout::Arm,
            _ => super::Layout::Intel,
        }
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.vendor.starts_with("0x") {
            return write!(f, "implementer {} part {:#05x}", self.vendor, self.model);
        }
        write!(f, "{} family {} model {:#04x}", self.vendor, self.family, self.model)?;
        match self.core_type {
            CoreType::Uniform => Ok(()),
            other => write!(f, " ({} core)", other.as_str()),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn read_current(_root: &Path) -> Option<CpuId> {
    let cpuid = raw_cpuid::CpuId::new();
    let features = cpuid.get_feature_info()?;
    let has_core_type = raw_cpuid::cpuid!(0).eax >= 0x1a;
    let core_type = match has_core_type.then(|| raw_cpuid::cpuid!(0x1a).eax >> 24) {
        Some(0x20) => CoreType::Efficient,
        Some(0x40) => CoreType::Performance,
        _ => CoreType::Uniform,
    };
    Some(CpuId {
        vendor: cpuid.get_vendor_info()?.as_str().to_owned(),
        family: features.family_id().into(),
        model: features.model_id().into(),
        core_type,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn read_current(root: &Path) -> Option<CpuId> {
    let cpu = nix::sched::sched_getcpu().unwrap_or(0);
    let file = root.join(format!("sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1"));
    if let Ok(text) = std::fs::read_to_string(file) {
        return u64::from_str_radix(text.trim().trim_start_matches("0x"), 16)
            .ok()
            .map(CpuId::from_midr);
    }
    std::fs::read_to_string(root.join("proc/cpuinfo")).ok().and_then(|text| from_cpuinfo(&text))
}

/// Implementer and part from arm64's `/proc/cpuinfo`, where sysfs has no register (old kernels).
#[cfg_attr(target_arch = "x86_64", cfg_attr(not(test), expect(dead_code)))]
fn from_cpuinfo(text: &str) -> Option<CpuId> {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let value = line.split_once(':')?.1.trim().trim_start_matches("0x");
        u64::from_str_radix(value, 16).ok()
    };
    let midr = field("CPU implementer")? << 24 | field("CPU part")? << 4;
    Some(CpuId::from_midr(midr))
}

/// A core that the event table knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The table's name of it: the directory name of Linux's event lists.
    pub name: String,
    /// The name a person knows it by.
    pub title: String,
    /// Which kind of core in a hybrid processor.
    pub core_type: CoreType,
}

struct Row {
    vendor: String,
    family: u32,
    models: std::ops::RangeInclusive<u32>,
    core: Core,
}

/// Which core of the event table a processor has, if the table knows it.
///
/// A processor whose table entries are all of one kind of core (Alder Lake-N has efficient cores
/// only) matches also where it does not name its core type, as hypervisors hide that leaf.
pub fn identify(cpu: &CpuId) -> Option<&'static Core> {
    let rows: Vec<&Row> = rows()
        .iter()
        .filter(|row| row.vendor == cpu.vendor && row.family == cpu.family)
        .filter(|row| row.models.contains(&cpu.model))
        .collect();
    let exact = rows.iter().find(|row| row.core.core_type == cpu.core_type);
    let found = exact.or(match rows.as_slice() {
        // A uniform part may still answer the core-type leaf: Sapphire Rapids and Sierra Forest do.
        [only] => Some(only),
        _ => None,
    });
    found.map(|row| &row.core)
}

fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut reader = csv::Reader::from_reader(include_str!("cores.csv").as_bytes());
        // A row that does not parse would silently be missing: a test compares the counts.
        reader.records().filter_map(|record| row(&record.ok()?)).collect()
    })
}

fn row(record: &csv::StringRecord) -> Option<Row> {
    let core_type = CoreType::parse(record.get(4)?)?;
    Some(Row {
        vendor: record.get(0)?.to_owned(),
        family: record.get(1)?.parse().ok()?,
        models: super::number(record.get(2)?)? as u32..=super::number(record.get(3)?)? as u32,
        core: Core { name: record.get(5)?.to_owned(), title: record.get(6)?.to_owned(), core_type },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(vendor: &str, family: u32, model: u32, core_type: CoreType) -> Option<String> {
        let cpu = CpuId { vendor: vendor.to_owned(), family, model, core_type };
        identify(&cpu).map(|core| format!("{}/{}", core.name, core.core_type.as_str()))
    }

    #[test]
    fn every_row_parses_and_names_a_core_of_the_event_table() {
        assert_eq!(rows().len(), include_str!("cores.csv").lines().count() - 1);
        for row in rows() {
            assert!(
                super::super::table::knows(&row.core),
                "{} {:?} has no events",
                row.core.name,
                row.core.core_type
            );
        }
    }

    #[test]
    fn no_processor_has_two_answers() {
        for (i, a) in rows().iter().enumerate() {
            for b in &rows()[i + 1..] {
                let same = a.vendor == b.vendor
                    && a.family == b.family
                    && a.core.core_type == b.core.core_type
                    && a.models.start() <= b.models.end()
                    && b.models.start() <= a.models.end();
                assert!(!same, "{} and {}", a.core.title, b.core.title);
            }
        }
    }

    #[test]
    fn amd_by_family_and_model() {
        use CoreType::Uniform;
        let amd = |family, model| x86("AuthenticAMD", family, model, Uniform);
        assert_eq!(amd(23, 0x01).as_deref(), Some("amdzen1/"));
        assert_eq!(amd(23, 0x18).as_deref(), Some("amdzen1/"));
        assert_eq!(amd(23, 0x31).as_deref(), Some("amdzen2/"));
        assert_eq!(amd(23, 0x71).as_deref(), Some("amdzen2/"));
        assert_eq!(amd(25, 0x01).as_deref(), Some("amdzen3/"));
        assert_eq!(amd(25, 0x50).as_deref(), Some("amdzen3/"));
        assert_eq!(amd(25, 0x11).as_deref(), Some("amdzen4/"));
        assert_eq!(amd(25, 0x61).as_deref(), Some("amdzen4/"));
        assert_eq!(amd(25, 0xa0).as_deref(), Some("amdzen4/"));
        assert_eq!(amd(26, 0x02).as_deref(), Some("amdzen5/"));
        assert_eq!(amd(26, 0x44).as_deref(), Some("amdzen5/"));
        assert_eq!(amd(26, 0x50).as_deref(), Some("amdzen6/"));
        assert_eq!(amd(21, 0x02), None, "Bulldozer is not in the table");
    }

    #[test]
    fn hybrid_cores_are_told_apart_and_not_guessed() {
        use CoreType::{Efficient, Performance, Uniform};
        let intel = |model, core_type| x86("GenuineIntel", 6, model, core_type);
        assert_eq!(intel(0x97, Performance).as_deref(), Some("alderlake/performance"));
        assert_eq!(intel(0x97, Efficient).as_deref(), Some("alderlake/efficient"));
        assert_eq!(intel(0x97, Uniform), None, "a guest that hides the core type");
        assert_eq!(intel(0xbe, Uniform).as_deref(), Some("alderlake/efficient"));
        assert_eq!(intel(0xc6, Efficient).as_deref(), Some("lunarlake/efficient"));
        assert_eq!(intel(0x8f, Performance).as_deref(), Some("sapphirerapids/"));
        assert_eq!(intel(0xaf, Efficient).as_deref(), Some("sierraforest/"));
        assert_eq!(intel(0x3c, Uniform).as_deref(), Some("haswell/"));
        assert_eq!(intel(0x0f, Uniform), None);
    }

    #[test]
    fn arm_by_main_identification_register() {
        let of = |midr| identify(&CpuId::from_midr(midr)).map(|core| core.name.as_str());
        assert_eq!(of(0x413f_d0c1), Some("neoverse-n1"), "revision and variant do not matter");
        assert_eq!(of(0x410f_d4f0), Some("neoverse-v2"));
        assert_eq!(of(0xc00f_ac30), Some("ampereone"));
        assert_eq!(of(0x610f_0220), None);
    }

    #[test]
    fn cpuinfo_stands_in_for_the_register() {
        let text = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        let cpu = from_cpuinfo(text).expect("both fields are there");
        assert_eq!(cpu.to_string(), "implementer 0x41 part 0xd40");
        assert_eq!(from_cpuinfo("processor : 0\n"), None);
    }

    #[test]
    fn this_machine_answers() {
        let cpu = CpuId::current(Path::new("/"));
        assert_ne!(cpu.vendor, "unknown");
    }
}
