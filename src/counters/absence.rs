//! The sentence and the remedy for each way in which a counter can be missing.

use super::environment::Environment;
use super::reading::ReadError;
use crate::sample::Absence;

const NOTHING: &str = "none on this machine";
const BARE_METAL: &str =
    "use bare metal, or an instance type whose hypervisor passes the counters through";

/// Why the kernel refused to open an event, from `errno` and the circumstances.
pub(super) fn refused(errno: i32, environment: &Environment) -> Absence {
    let guest = environment.guest;
    match errno {
        libc::EACCES => denied(environment),
        libc::EPERM => forbidden(environment),
        libc::ENOSYS => no_call(environment),
        libc::EBUSY => busy(environment),
        libc::EMFILE => Absence::new(
            "this process has no file descriptor left (EMFILE)",
            "raise the limit with ulimit -n",
        ),
        libc::ENFILE => Absence::new(
            "the system has no file descriptor left (ENFILE)",
            "raise fs.file-max or stop what holds the files",
        ),
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL if guest => {
            in_guest(errno, environment)
        }
        libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP | libc::EINVAL => {
            on_hardware(errno, environment)
        }
        _ => unusual(errno),
    }
}

fn in_guest(errno: i32, environment: &Environment) -> Absence {
    let name = errno_name(errno);
    if environment.pmu_listed {
        return Absence::new(
            format!("this virtual machine's counters do not offer the event ({name})"),
            BARE_METAL,
        );
    }
    Absence::new(
        format!("this virtual machine is given no performance counters ({name})"),
        BARE_METAL,
    )
}

fn on_hardware(errno: i32, environment: &Environment) -> Absence {
    if environment.hybrid && matches!(errno, libc::ENOENT | libc::ENXIO | libc::ENODEV) {
        return Absence::new(
            format!(
                "the counters of this kind of core do not offer the event ({})",
                errno_name(errno)
            ),
            "pin to the other kind of core with --cpu",
        );
    }
    let (why, remedy) = match errno {
        libc::ENOENT => (
            "the kernel has no such event or no driver for this processor's counters (ENOENT)",
            "use a newer kernel, with CONFIG_PERF_EVENTS and the processor's driver",
        ),
        libc::ENODEV => ("the processor lacks what the event needs (ENODEV)", NOTHING),
        libc::ENXIO => (
            "no counter device answers for this processor (ENXIO)",
            "pin to another processor with --cpu",
        ),
        libc::EOPNOTSUPP => (
            "the counter driver supports neither this event nor counting in user mode alone \
             (EOPNOTSUPP)",
            "use a newer kernel, or boot it with the local APIC enabled",
        ),
        _ => (
            "the kernel refuses the event's code with every set of attributes (EINVAL)",
            "check the code against the vendor's manual and give it with --event NAME=rCODE",
        ),
    };
    Absence::new(why, remedy)
}

fn denied(environment: &Environment) -> Absence {
    match environment.paranoid {
        Some(level) if level > 2 => Absence::new(
            format!("perf_event_paranoid is {level} and forbids counters to users (EACCES)"),
            "sysctl kernel.perf_event_paranoid=2, or run with CAP_PERFMON",
        ),
        Some(level) => Absence::new(
            format!(
                "a security policy forbids counters although perf_event_paranoid is only {level} \
                 (EACCES)"
            ),
            "allow perf_event in the security policy (SELinux, AppArmor), or run with CAP_PERFMON",
        ),
        None => Absence::new(
            "counters are forbidden to this user (EACCES)",
            "run with CAP_PERFMON, or lower kernel.perf_event_paranoid to 2",
        ),
    }
}

fn forbidden(environment: &Environment) -> Absence {
    if environment.seccomp {
        return Absence::new(
            "a seccomp filter, such as a container's default one, forbids perf_event_open (EPERM)",
            "allow perf_event_open in the filter: --cap-add PERFMON or --security-opt \
             seccomp=FILE with Docker",
        );
    }
    Absence::new(
        "the kernel demands a capability that this process lacks (EPERM)",
        "run as root or with CAP_PERFMON",
    )
}

fn no_call(environment: &Environment) -> Absence {
    if environment.seccomp {
        return Absence::new(
            "a seccomp filter hides perf_event_open (ENOSYS)",
            "allow perf_event_open in the container's filter",
        );
    }
    Absence::new(
        "this kernel or emulator has no perf_event_open (ENOSYS)",
        "run on Linux itself, with CONFIG_PERF_EVENTS",
    )
}

fn busy(environment: &Environment) -> Absence {
    if environment.watchdog {
        return Absence::new(
            "the NMI watchdog or another profiler holds the counters (EBUSY)",
            "sysctl kernel.nmi_watchdog=0, and stop other profilers",
        );
    }
    Absence::new("another program holds the counters for itself (EBUSY)", "stop other profilers")
}

fn unusual(errno: i32) -> Absence {
    let fault = "report this as a fault, with the output of stackphase machine --json";
    let (why, remedy) = match errno {
        libc::E2BIG => {
            ("the kernel is too old for the attributes asked for (E2BIG)", "use a newer kernel")
        }
        libc::EBADF => ("the group's first counter is gone (EBADF)", fault),
        libc::EFAULT => ("the kernel could not read the attributes (EFAULT)", fault),
        libc::EINTR => {
            ("a trace of the same place got in the way (EINTR)", "stop other tracers and run again")
        }
        libc::ENOMEM => ("the kernel has no memory for a counter (ENOMEM)", "free memory"),
        libc::ENOSPC => (
            "all debug registers are in use (ENOSPC)",
            "detach debuggers and other watchpoints from this process",
        ),
        libc::EOVERFLOW => {
            ("the kernel's limit on call chains is lower than asked for (EOVERFLOW)", fault)
        }
        libc::ESRCH => {
            ("the process to be counted has ended (ESRCH)", "give a command that runs longer")
        }
        _ => {
            let text = std::io::Error::from_raw_os_error(errno);
            return Absence::new(
                format!("perf_event_open failed: {text}"),
                "see perf_event_open(2)",
            );
        }
    };
    Absence::new(why, remedy)
}

/// Why an open counter that was enabled never ran.
pub(super) fn never_ran(environment: &Environment) -> Absence {
    if environment.unpinned {
        return Absence::new(
            "the thread may run on two kinds of core and the counter belongs to the other one",
            "pin the thread to one core with --cpu",
        );
    }
    if environment.hybrid {
        return Absence::new(
            "the counter belongs to another kind of core than the one the thread is pinned to",
            "pin to a core of the counter's kind with --cpu",
        );
    }
    if environment.watchdog {
        return Absence::new(
            "it opens but never runs: the NMI watchdog holds a counter that it needs",
            "sysctl kernel.nmi_watchdog=0",
        );
    }
    Absence::new(
        "it opens but never runs: other users hold the counters",
        "stop other profilers, and in a virtual machine those of the host",
    )
}

/// Why a counter that stays 0 in its self-test is not used.
pub(super) fn counts_nothing(expected: &str, environment: &Environment) -> Absence {
    let remedy = if environment.guest { BARE_METAL } else { NOTHING };
    Absence::new(format!("it opens but counts nothing: 0 where {expected}"), remedy)
}

/// Why a counter whose self-test gave a wrong figure is not used.
pub(super) fn counts_nonsense(found: &str, expected: &str, environment: &Environment) -> Absence {
    let remedy = if environment.guest { BARE_METAL } else { NOTHING };
    Absence::new(format!("it opens but counts something else: {found} where {expected}"), remedy)
}

/// Why an open counter could not be read.
pub(super) fn unreadable(error: &ReadError) -> Absence {
    Absence::new(format!("{error}"), "run again; if it stays, see perf_event_open(2)")
}

/// The constant's name, or its number.
pub(super) fn errno_name(errno: i32) -> String {
    match nix::errno::Errno::from_raw(errno) {
        nix::errno::Errno::UnknownErrno => format!("errno {errno}"),
        known => format!("{known:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Environment {
        Environment { paranoid: Some(2), pmu_listed: true, ..Environment::default() }
    }

    #[test]
    fn every_errno_of_the_manual_names_itself_and_ends_in_a_remedy() {
        let manual = [
            libc::E2BIG,
            libc::EACCES,
            libc::EBADF,
            libc::EBUSY,
            libc::EFAULT,
            libc::EINTR,
            libc::EINVAL,
            libc::EMFILE,
            libc::ENODEV,
            libc::ENOENT,
            libc::ENOSPC,
            libc::ENOSYS,
            libc::EOPNOTSUPP,
            libc::EOVERFLOW,
            libc::EPERM,
            libc::ESRCH,
            libc::ENXIO,
            libc::ENFILE,
            libc::ENOMEM,
        ];
        let guest = Environment { guest: true, pmu_listed: false, ..quiet() };
        let mut sentences = std::collections::HashSet::new();
        for errno in manual {
            for environment in [quiet(), guest.clone()] {
                let absence = refused(errno, &environment);
                let name = errno_name(errno);
                assert!(absence.why.contains(&format!("({name})")), "{name}: {}", absence.why);
                assert!(!absence.remedy.is_empty());
            }
            assert!(sentences.insert(refused(errno, &quiet()).why), "{errno} shares a sentence");
        }
        assert!(refused(libc::EXDEV, &quiet()).why.contains("perf_event_open failed"));
        assert!(refused(9999, &quiet()).why.contains("9999"));
    }

    #[test]
    fn each_circumstance_has_its_own_sentence_and_remedy() {
        let cases = [
            refused(libc::EACCES, &Environment { paranoid: Some(3), ..quiet() }),
            refused(libc::EACCES, &quiet()),
            refused(libc::ENOENT, &Environment { guest: true, pmu_listed: false, ..quiet() }),
            refused(libc::ENOENT, &Environment { guest: true, ..quiet() }),
            refused(libc::EPERM, &Environment { seccomp: true, ..quiet() }),
            refused(libc::EPERM, &quiet()),
            refused(libc::ENOSYS, &Environment { seccomp: true, ..quiet() }),
            refused(libc::ENOSYS, &quiet()),
            refused(libc::EBUSY, &Environment { watchdog: true, ..quiet() }),
            refused(libc::EBUSY, &quiet()),
            refused(libc::ENOENT, &Environment { hybrid: true, ..quiet() }),
            refused(libc::ENOENT, &quiet()),
            never_ran(&Environment { hybrid: true, unpinned: true, ..quiet() }),
            never_ran(&Environment { hybrid: true, ..quiet() }),
            never_ran(&Environment { watchdog: true, ..quiet() }),
            never_ran(&quiet()),
        ];
        for (i, a) in cases.iter().enumerate() {
            for b in &cases[i + 1..] {
                assert_ne!(a.why, b.why);
            }
        }
        assert!(cases[0].remedy.contains("perf_event_paranoid=2"));
        assert!(cases[4].remedy.contains("--cap-add PERFMON"));
        assert!(cases[8].remedy.contains("nmi_watchdog=0"));
    }
}
