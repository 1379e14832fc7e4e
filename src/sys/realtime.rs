//! Real-time priority for the calling thread.

/// The lowest real-time priority: above everything that is not real-time, below everything that is.
const PRIORITY: i32 = 1;

/// Puts the calling thread under `SCHED_FIFO` at the lowest real-time priority. A worker does so for
/// itself, and the setting ends with it.
///
/// # Errors
/// EPERM without the privilege (`CAP_SYS_NICE`, or `ulimit -r`).
pub fn enter() -> std::io::Result<()> {
    // SAFETY: an all-zero parameter is a valid one; its only portable field is set below.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = PRIORITY;
    // SAFETY: 0 is the calling thread, and the parameters live through the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Whether the calling thread is under `SCHED_FIFO`.
pub fn is_entered() -> bool {
    // SAFETY: reads the policy of the calling thread.
    unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_entered_or_refused() {
        // On a thread of its own: what it sets ends with it.
        std::thread::spawn(|| {
            assert!(!is_entered());
            match enter() {
                Ok(()) => assert!(is_entered()),
                Err(error) => {
                    assert!(!is_entered());
                    eprintln!("skipped: real-time priority is refused: {error}");
                }
            }
        })
        .join()
        .expect("ends");
    }
}
