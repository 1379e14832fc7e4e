//! The logical processors that this process may use, and pinning to one of them.

/// The processors that the calling thread may run on, ascending; empty where that is not known.
pub fn permitted_cpus() -> Vec<usize> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    let mut cpus: Vec<usize> = ids.into_iter().map(|core| core.id).collect();
    cpus.sort_unstable();
    cpus
}

/// Pins the calling thread to `cpu`; returns a warning, which ends in its remedy, where that is not
/// in force afterwards.
pub fn pin(cpu: usize) -> Option<String> {
    // The crate indexes a mask of 1024 processors unchecked: only what the kernel permits reaches it.
    let known = permitted_cpus().contains(&cpu);
    let set = known && core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
    // Success of the call is not proof: where the mask is faked only the outcome counts.
    let proven = set && permitted_cpus() == [cpu];
    (!proven).then(|| {
        format!(
            "could not pin to processor {cpu}: the scheduler may move the measurement; \
             choose one of the permitted processors with --cpu"
        )
    })
}

/// Gives the calling thread the processors back that it had, when dropped.
#[must_use = "the processors are given back when this is dropped"]
pub struct Affinity {
    #[cfg(target_os = "linux")]
    before: Option<nix::sched::CpuSet>,
}

impl Affinity {
    /// Remembers the processors of the calling thread. Where they cannot be read there is nothing
    /// to give back.
    #[cfg(target_os = "linux")]
    pub fn hold() -> Self {
        Affinity { before: nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).ok() }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Affinity {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The set was in force before; a cpuset that shrank meanwhile keeps the thread inside.
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), before);
        }
    }
}

/// The processor that the calling thread runs on at this moment.
pub fn current_cpu() -> Option<u32> {
    nix::sched::sched_getcpu().ok().and_then(|cpu| u32::try_from(cpu).ok())
}

/// The processor to measure on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenCpu(pub Option<usize>);

/// A processor that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("processor {cpu} is not permitted here")]
pub struct CpuError {
    /// What was asked for.
    pub cpu: usize,
    /// What is permitted.
    pub permitted: Vec<usize>,
}

impl From<CpuError> for crate::Failure {
    fn from(error: CpuError) -> Self {
        let permitted: Vec<String> = error.permitted.iter().map(usize::to_string).collect();
        crate::Failure::usage(
            error.to_string(),
            "--cpu",
            format!("choose one of {}", permitted.join(", ")),
        )
    }
}

/// Checks the processor asked for, or chooses the last one permitted: the first takes most
/// interrupts. `None` where the permitted ones are not known.
///
/// # Errors
/// When the one asked for is not permitted.
pub fn choose_cpu(asked: Option<usize>) -> Result<ChosenCpu, CpuError> {
    let permitted = permitted_cpus();
    match asked {
        Some(cpu) if !permitted.contains(&cpu) => Err(CpuError { cpu, permitted }),
        Some(cpu) => Ok(ChosenCpu(Some(cpu))),
        None => Ok(ChosenCpu(permitted.last().copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_to_the_last_permitted_processor() -> Result<(), CpuError> {
        let Some(cpu) = choose_cpu(None)?.0 else {
            eprintln!("skipped: the permitted processors are not known here");
            return Ok(());
        };
        assert_eq!(pin(cpu), None);
        assert_eq!(current_cpu(), Some(cpu as u32));
        Ok(())
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused_by_name() {
        let error = choose_cpu(Some(99_999)).map_err(crate::Failure::from);
        let failure = error.err().map(|failure| (failure.usage, failure.to_string()));
        assert!(failure.is_some_and(|(usage, text)| usage && text.contains("choose one of")));
        assert!(pin(99_999).is_some(), "a refusal is a warning");
    }
}
