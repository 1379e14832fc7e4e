//! What the kernel says of a process's stack: where it starts, and how large the blocks above it
//! are.

use std::io;

/// The start of a process's main stack, as the kernel laid it out at `exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStack {
    /// Address of the bottom of the stack at `exec` (`start_stack`): the argument count. Its
    /// residue is the process's stack phase; the kernel keeps it a multiple of 16.
    pub start: u64,
    /// Bytes of the environment strings with their terminators.
    pub env_bytes: u64,
    /// Bytes of the argument strings with their terminators.
    pub argv_bytes: u64,
}

/// Why the start of a stack is not known.
#[derive(Debug, thiserror::Error)]
pub enum ProcessStackError {
    /// `/proc/<pid>/stat` could not be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel hides addresses from this reader (they read as 0) or the text is not as
    /// documented in proc_pid_stat(5).
    #[error("{path} gives no stack address")]
    Hidden {
        /// The file.
        path: String,
    },
}

impl ProcessStack {
    /// Of the calling process.
    ///
    /// # Errors
    /// As [`ProcessStackError`] says.
    pub fn of_self() -> Result<Self, ProcessStackError> {
        Self::read("/proc/self/stat")
    }

    /// Of another process, which this one must be allowed to trace.
    ///
    /// # Errors
    /// As [`ProcessStackError`] says.
    pub fn of(pid: u32) -> Result<Self, ProcessStackError> {
        Self::read(&format!("/proc/{pid}/stat"))
    }

    fn read(path: &str) -> Result<Self, ProcessStackError> {
        let text = std::fs::read(path)
            .map_err(|source| ProcessStackError::Unreadable { path: path.to_owned(), source })?;
        // The command name may hold any byte: read lossily, and skip it by its closing bracket.
        Self::parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| ProcessStackError::Hidden { path: path.to_owned() })
    }

    /// Reads the text of `/proc/<pid>/stat`; `None` where the addresses are hidden or missing.
    pub fn parse(text: &str) -> Option<Self> {
        let after_name = &text[text.rfind(')')? + 1..];
        // Field numbers of proc_pid_stat(5) start at 1; the state, after the name, is field 3.
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let (start, arg_start, arg_end) = (field(28)?, field(48)?, field(49)?);
        let (env_start, env_end) = (field(50)?, field(51)?);
        // A tracer without permission reads 0; 1 stands for a process that has no memory.
        if start <= 1 {
            return None;
        }
        Some(ProcessStack {
            start,
            env_bytes: env_end.checked_sub(env_start)?,
            argv_bytes: arg_end.checked_sub(arg_start)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, start: &str) -> String {
        let mut fields = vec!["0".to_owned(); 52];
        fields[0] = "7".into();
        fields[1] = format!("({name})");
        fields[2] = "R".into();
        fields[27] = start.into();
        for (number, value) in [(48, "100"), (49, "111"), (50, "111"), (51, "300")] {
            fields[number - 1] = value.into();
        }
        fields.join(" ")
    }

    #[test]
    fn reads_past_any_name() {
        for name in ["sh", "a) R 1 (b", "x y", ")"] {
            let stack = ProcessStack::parse(&line(name, "140737488348160"));
            assert_eq!(
                stack,
                Some(ProcessStack { start: 0x7fff_ffff_e400, env_bytes: 189, argv_bytes: 11 }),
                "{name}"
            );
        }
    }

    #[test]
    fn hidden_or_short_is_absent() {
        assert_eq!(ProcessStack::parse(&line("sh", "0")), None);
        assert_eq!(ProcessStack::parse("7 (sh) R 1 2"), None);
        assert_eq!(ProcessStack::parse(""), None);
    }

    #[test]
    fn our_own_stack_starts_above_a_local() -> Result<(), ProcessStackError> {
        // The main thread's stack: a test runs on another, so only plausibility is checked.
        let stack = match ProcessStack::of_self() {
            Err(error @ ProcessStackError::Hidden { .. }) => {
                eprintln!("skipped: {error} (an emulator's /proc has none)");
                return Ok(());
            }
            known => known?,
        };
        assert!(stack.start > 0x1000 && stack.start % 16 == 0, "{stack:?}");
        assert!(stack.argv_bytes > 0, "{stack:?}");
        Ok(())
    }
}
