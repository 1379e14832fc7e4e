//! What surrounds a launch and moves its stack: an environment of nothing but what is asked for and
//! of known length, and, where they are the axis, an added argument and a longer path.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The variable whose only meaning is its length.
const PAD: &str = "PAD";

/// The complete environment of a worker. Everything else is cleared: whatever the caller's shell
/// holds would move the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    argument: Option<usize>,
    path_padding: usize,
}

impl Environment {
    /// `PAD` alone, of `bytes` bytes.
    pub fn padded(bytes: usize) -> Self {
        Environment {
            variables: vec![(PAD.into(), "x".repeat(bytes).into())],
            ..Environment::default()
        }
    }

    /// `name=value` besides a padding that brings the block to the length that it has with `PAD`
    /// of `bytes` bytes alone, so that the variable does not move the stack. `None` when it does
    /// not fit.
    pub fn with_variable(name: &str, value: &str, bytes: usize) -> Option<Self> {
        // A variable costs its text, one `=` and one terminator, and eight bytes of pointer, which
        // `PAD`, always there, cannot give back: an empty sibling stands for it in every arm.
        let padding = bytes.checked_sub(name.len() + value.len() + 2)?;
        let mut environment = Environment::padded(padding);
        environment.variables.push((name.into(), value.into()));
        Some(environment)
    }

    /// The same length as [`Environment::with_variable`], and as many variables, without one that
    /// means anything.
    pub fn neutral(bytes: usize) -> Option<Self> {
        Environment::with_variable("N", "", bytes)
    }

    /// The same with one more argument, of `bytes` bytes.
    pub fn with_argument(self, bytes: usize) -> Self {
        Environment { argument: Some(bytes), ..self }
    }

    /// The same with a path to the program that is `bytes` bytes longer.
    pub fn with_longer_path(self, bytes: usize) -> Self {
        Environment { path_padding: bytes, ..self }
    }

    /// The added argument: nothing but its length.
    pub fn argument(&self) -> Option<String> {
        self.argument.map(|bytes| "x".repeat(bytes))
    }

    /// `path`, longer by as many bytes as were asked for: the kernel takes any number of slashes
    /// for one, and copies the path to the stack as it was given. A path without a slash stays.
    pub fn longer(&self, path: &OsStr) -> OsString {
        let bytes = path.as_bytes();
        let Some(slash) = bytes.iter().rposition(|&byte| byte == b'/') else {
            return path.to_owned();
        };
        let slashes = vec![b'/'; self.path_padding];
        OsString::from_vec([&bytes[..slash], &slashes, &bytes[slash..]].concat())
    }

    /// The variables in order.
    pub fn variables(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.variables.iter().map(|(name, value)| (name, value))
    }

    /// Bytes of the block that the kernel will copy: `NAME=value` and a terminator each.
    pub fn bytes(&self) -> usize {
        self.variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_does_not_change_the_length() {
        let neutral = Environment::neutral(256).map(|e| (e.bytes(), e.variables.len()));
        for (name, value) in [("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F"), ("A", "")] {
            let with = Environment::with_variable(name, value, 256);
            assert_eq!(with.map(|e| (e.bytes(), e.variables.len())), neutral);
        }
        assert_eq!(neutral, Some((256 + 5, 2)));
        assert_eq!(Environment::with_variable("LONG", &"x".repeat(300), 256), None);
    }

    #[test]
    fn a_longer_path_names_the_same_file() -> std::io::Result<()> {
        for bytes in [0, 1, 17, 300] {
            let environment = Environment::padded(0).with_longer_path(bytes);
            let longer = environment.longer(OsStr::new("/proc/self/stat"));
            assert_eq!(longer.len(), "/proc/self/stat".len() + bytes);
            std::fs::read(&longer)?;
        }
        assert_eq!(Environment::padded(0).with_longer_path(3).longer(OsStr::new("sh")), "sh");
        Ok(())
    }

    #[test]
    fn padding_is_the_only_variable() {
        let environment = Environment::padded(64);
        assert_eq!(environment.bytes(), 64 + 5);
        assert_eq!(environment.variables().count(), 1);
    }
}
