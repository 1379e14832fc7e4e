//! The logical processors that this process may use.

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
    let set = core_affinity::set_for_current(core_affinity::CoreId { id: cpu });
    // Success of the call is not proof: where the mask is faked only the outcome counts.
    let proven = set && permitted_cpus() == [cpu];
    (!proven).then(|| {
        format!(
            "could not pin to processor {cpu}: the scheduler may move the measurement; \
             choose one of the permitted processors with --cpu"
        )
    })
}

/// The processor that the calling thread runs on at this moment.
pub fn current_cpu() -> Option<u32> {
    nix::sched::sched_getcpu().ok().and_then(|cpu| u32::try_from(cpu).ok())
}
