//! Which tasks a command runs, and on whose stack it spends its time.
//!
//! Padding moves the stack that `execve` made, which is that of a process's first task; the stacks
//! of its threads are mapped elsewhere and stay. So while a command runs its tasks are listed, with
//! the processor time of each.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use super::tree::children_of_task;

/// A smaller share of the time than this cannot carry the effect that is looked for.
const SHARE: f64 = 0.05;
/// The first look; each later one waits twice as long, up to the longest.
const FIRST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(64);
/// More processes than this are not followed: the looking would disturb.
const MOST_PROCESSES: usize = 64;

/// What was seen of a command's tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TasksSeen {
    /// Processes, the command's own among them.
    pub processes: usize,
    /// Threads beside each process's first task.
    pub threads: usize,
    /// The threads' share of the processor time, from 0 to 1; `None` where the kernel does not say.
    pub share: Option<f64>,
}

impl TasksSeen {
    /// Whether the hot code may run on a stack that padding does not move.
    pub fn off_the_main_stack(&self) -> bool {
        self.threads > 0 && self.share.is_none_or(|share| share > SHARE)
    }
}

/// Looks at a running command from time to time.
pub(super) struct Watch {
    process: i32,
    /// Processor time of each `(process, task)`, in ns, as last seen.
    seen: BTreeMap<(i32, i32), Option<u64>>,
    wait: Duration,
    next: Instant,
}

impl Watch {
    pub(super) fn new(process: i32, now: Instant) -> Self {
        Watch { process, seen: BTreeMap::new(), wait: FIRST, next: now + FIRST }
    }

    /// Time until the next look is due.
    pub(super) fn due_in(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// Looks, if it is time.
    pub(super) fn look_if_due(&mut self, now: Instant) {
        if self.next <= now {
            self.look();
            self.wait = (2 * self.wait).min(LONGEST);
            self.next = Instant::now() + self.wait;
        }
    }

    /// Lists the tasks of the command's process and of all its descendants.
    pub(super) fn look(&mut self) {
        let mut processes = vec![self.process];
        let mut next = 0;
        while let Some(&process) = processes.get(next) {
            next += 1;
            for task in tasks(process) {
                // A task that ended between listing and reading keeps what was last seen of it.
                let time = processor_time(process, task);
                let entry = self.seen.entry((process, task)).or_insert(time);
                *entry = time.or(*entry);
                if processes.len() < MOST_PROCESSES {
                    processes.extend(children_of_task(process, task));
                }
            }
        }
    }

    /// What was seen in all.
    pub(super) fn seen(&self) -> TasksSeen {
        let threads = || self.seen.iter().filter(|((process, task), _)| process != task);
        let sum = |all: &mut dyn Iterator<Item = Option<u64>>| -> Option<u64> { all.sum() };
        let all = sum(&mut self.seen.values().copied());
        let off = sum(&mut threads().map(|(_, time)| *time));
        TasksSeen {
            processes: self.seen.keys().filter(|(process, task)| process == task).count().max(1),
            threads: threads().count(),
            share: match (off, all) {
                (Some(off), Some(all)) if all > 0 => Some(off as f64 / all as f64),
                _ => None,
            },
        }
    }
}

fn tasks(process: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// ns on a processor, from the first field of `schedstat`.
fn processor_time(process: i32, task: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{task}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(seen: &[((i32, i32), Option<u64>)]) -> TasksSeen {
        let mut watch = Watch::new(1, Instant::now());
        watch.seen = seen.iter().copied().collect();
        watch.seen()
    }

    #[test]
    fn idle_threads_do_not_matter_and_busy_ones_do() {
        let idle = watch(&[((1, 1), Some(1000)), ((1, 2), Some(10))]);
        assert_eq!((idle.processes, idle.threads), (1, 1));
        assert!(!idle.off_the_main_stack(), "{idle:?}");
        let busy = watch(&[((1, 1), Some(1000)), ((1, 2), Some(500))]);
        assert!(busy.off_the_main_stack(), "{busy:?}");
        let unknown = watch(&[((1, 1), Some(1000)), ((1, 2), None)]);
        assert!(unknown.off_the_main_stack(), "nothing speaks for its being idle");
        let children = watch(&[((1, 1), Some(10)), ((2, 2), Some(1000)), ((3, 3), Some(9))]);
        assert_eq!((children.processes, children.threads), (3, 0));
        assert!(!children.off_the_main_stack(), "each has a main stack of its own");
    }

    #[test]
    fn finds_the_threads_of_this_process() {
        let process = std::process::id() as i32;
        let mut watch = Watch::new(process, Instant::now());
        let busy = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while busy.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            std::thread::sleep(Duration::from_millis(20));
            watch.look();
            busy.store(false, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(watch.seen().threads >= 1, "{:?}", watch.seen());
    }
}
