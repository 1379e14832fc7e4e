//! Which file to start as a worker: this very program, found and checked.
//!
//! `/proc/self/exe` is a path of one length wherever the program is installed, and is replaced
//! neither by a rebuild nor by a move. But under an emulator or another loader it names *that*
//! program: the build-id in the file must be ours, or another path is tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use object::Object;

/// The program to start as a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// The program, and what precedes it (a loader with its options).
    pub command: Vec<OsString>,
    /// Its build-id in hexadecimal; `None` where the linker wrote none.
    pub build_id: Option<String>,
}

/// No file that could be started is this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no file on disk is this running program (tried {tried})")]
pub struct ExecutableError {
    /// The paths that were tried.
    pub tried: String,
}

impl From<ExecutableError> for crate::Failure {
    fn from(error: ExecutableError) -> Self {
        crate::Failure::new(
            error.to_string(),
            "worker",
            "call stackphase by its full path, from a file that was not replaced since",
        )
    }
}

const SELF: &str = "/proc/self/exe";

impl Executable {
    /// Finds the running program.
    ///
    /// # Errors
    /// When none of the candidates has the running program's build-id.
    pub fn current() -> Result<Self, ExecutableError> {
        let ours = running_build_id();
        let argv0 = std::env::args_os().next().map(PathBuf::from);
        let candidates: Vec<PathBuf> =
            [Some(PathBuf::from(SELF)), std::env::current_exe().ok(), argv0]
                .into_iter()
                .flatten()
                .collect();
        for candidate in &candidates {
            let Some(theirs) = file_build_id(candidate) else { continue };
            // Without a build-id in memory there is nothing to check against, and only the
            // kernel's own name for this program can be trusted.
            if ours.as_ref().map_or(candidate == Path::new(SELF), |ours| *ours == theirs) {
                return Ok(Executable {
                    command: vec![candidate.clone().into_os_string()],
                    build_id: ours,
                });
            }
        }
        let tried: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
        Err(ExecutableError { tried: tried.join(", ") })
    }
}

/// The build-id of the file; empty where it is an ELF file without one, `None` where it is none.
fn file_build_id(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    Some(file.build_id().ok().flatten().map(hexadecimal).unwrap_or_default())
}

/// The build-id in the memory of the running program.
fn running_build_id() -> Option<String> {
    crate::sys::image::build_id().map(hexadecimal)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_test_program() -> Result<(), ExecutableError> {
        let executable = Executable::current()?;
        assert_eq!(executable.command, ["/proc/self/exe"]);
        assert_eq!(executable.build_id, running_build_id());
        Ok(())
    }

    #[test]
    fn a_file_that_is_no_program_has_no_build_id() {
        assert_eq!(file_build_id(Path::new("/proc/self/stat")), None);
        assert_eq!(file_build_id(Path::new("/nonexistent")), None);
    }
}
