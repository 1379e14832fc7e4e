//! A command's processes: finding what it left behind, and ending all of them.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Processes that end this soon after the command are its last moments, not left behind.
const GRACE: Duration = Duration::from_millis(100);
/// How long ending what was left may take before it is given up.
const ENDING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

/// The children of one task.
pub(super) fn children_of_task(process: i32, task: i32) -> Vec<i32> {
    let path = format!("/proc/{process}/task/{task}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// All children of this process.
pub(super) fn own_children() -> BTreeSet<i32> {
    let own = std::process::id() as i32;
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return BTreeSet::new() };
    // Not every kernel lists children.
    if !std::path::Path::new(&format!("/proc/self/task/{own}/children")).exists() {
        return children_in_the_process_table();
    }
    let tasks = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tasks.flat_map(|task| children_of_task(own, task)).collect()
}

fn children_in_the_process_table() -> BTreeSet<i32> {
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeSet::new() };
    let parent = |pid: i32| {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // After the name come the state and the parent.
        text[text.rfind(')')? + 1..].split_whitespace().nth(1).map(str::to_owned)
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| parent(pid).as_deref() == Some(&own))
        .collect()
}

/// What may be left of a command after its own process has ended and was reaped.
pub(super) struct Remains<'a> {
    /// The command's process group.
    pub group: i32,
    /// Children of this process that it had before.
    pub before: &'a BTreeSet<i32>,
}

impl Remains<'_> {
    /// Processes of the group, and orphans of it that became children of this process. Those that
    /// have ended are reaped.
    fn left(&self) -> (bool, Vec<i32>) {
        let mut orphans: Vec<i32> =
            own_children().into_iter().filter(|pid| !self.before.contains(pid)).collect();
        orphans.retain(|&pid| {
            !matches!(
                waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)),
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))
            )
        });
        let group = killpg(Pid::from_raw(self.group), None).is_ok();
        (group, orphans)
    }

    /// Waits a moment for what is left to end by itself; ends the rest. Returns how many there
    /// were to end, at least.
    pub(super) fn end(&self) -> usize {
        let start = Instant::now();
        let mut ended = BTreeSet::new();
        loop {
            let (group, orphans) = self.left();
            if !group && orphans.is_empty() {
                return ended.len();
            }
            if start.elapsed() > GRACE {
                // Whoever is left of the group is an orphan too, or a descendant of one; unless
                // orphans cannot be seen here.
                ended.extend(orphans.iter().copied());
                if group {
                    if orphans.is_empty() && ended.is_empty() {
                        ended.insert(self.group);
                    }
                    // Errors mean that they are gone already.
                    let _ = killpg(Pid::from_raw(self.group), Signal::SIGKILL);
                }
                for orphan in orphans {
                    let _ = kill(Pid::from_raw(orphan), Signal::SIGKILL);
                }
            }
            if start.elapsed() > GRACE + ENDING {
                return ended.len().max(1);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_among_the_processes() -> std::io::Result<()> {
        let mut child = std::process::Command::new("sleep").arg("5").spawn()?;
        let pid = child.id() as i32;
        let found = [own_children(), children_in_the_process_table()];
        child.kill()?;
        child.wait()?;
        assert!(found.iter().all(|children| children.contains(&pid)), "{found:?}");
        Ok(())
    }
}
