//! Which file a command is, found before anything is launched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A command whose program was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file: `execve` does not search.
    pub path: PathBuf,
    /// All arguments, the program's name as it was given first.
    pub arguments: Vec<String>,
    /// Whether it gains privileges by being executed.
    pub gains_privileges: bool,
}

/// A command that cannot be launched.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Nothing was given.
    #[error("there is no command")]
    Empty,
    /// There is no such file.
    #[error("there is no such command")]
    NotFound {
        /// What was looked for.
        name: String,
    },
    /// There is one that may not be executed.
    #[error("it is not executable{0}", if *.directory { " (a directory)" } else { "" })]
    NotExecutable {
        /// The file.
        path: PathBuf,
        /// Whether it is a directory.
        directory: bool,
    },
    /// The kernel refused to execute it.
    #[error("it cannot be executed: {source}")]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// An argument that no program can be given.
    #[error("an argument holds a NUL byte")]
    Nul,
}

impl From<CommandError> for crate::Failure {
    fn from(error: CommandError) -> Self {
        let what = error.to_string();
        match error {
            CommandError::Empty | CommandError::Nul => crate::Failure::usage(
                what,
                "command",
                "give the command and its arguments after --",
            ),
            CommandError::NotFound { name } => {
                crate::Failure::new(what, name, "give its path, or the directory it is in to PATH")
            }
            CommandError::NotExecutable { path, .. } => crate::Failure::new(
                what,
                path.display().to_string(),
                "give a program, or make it one with chmod +x",
            ),
            CommandError::Refused { path, source } => {
                let remedy = match source.raw_os_error() {
                    Some(libc::ENOEXEC) => "give a script a first line such as #!/bin/sh",
                    Some(libc::ENOENT) => "install the interpreter or loader that it names",
                    Some(libc::E2BIG) => "sweep less far (--to), or use --clean-env",
                    _ => "check the limits on processes and memory",
                };
                crate::Failure::new(what, path.display().to_string(), remedy)
            }
        }
    }
}

impl Found {
    /// Finds the program of `command`: its path, else the first file of that name in `PATH` that
    /// may be executed.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(command: &[String], search: Option<&OsStr>) -> Result<Self, CommandError> {
        let name = command.first().filter(|name| !name.is_empty()).ok_or(CommandError::Empty)?;
        let path =
            if name.contains('/') { check(Path::new(name), name)? } else { in_path(name, search)? };
        let mode = std::fs::metadata(&path).map_or(0, |metadata| metadata.permissions().mode());
        Ok(Found { path, arguments: command.to_vec(), gains_privileges: mode & 0o6000 != 0 })
    }

    /// The program's file name: what may be told of a command in public.
    pub fn name(&self) -> String {
        let path = self.arguments.first().map_or(Path::new("command"), Path::new);
        path.file_name().unwrap_or(OsStr::new("command")).to_string_lossy().into_owned()
    }
}

fn in_path(name: &str, search: Option<&OsStr>) -> Result<PathBuf, CommandError> {
    // What `execvp` takes where the variable is missing.
    let search = search.map_or_else(|| OsString::from("/bin:/usr/bin"), OsStr::to_owned);
    let mut refused = None;
    for directory in std::env::split_paths(&search) {
        let directory =
            if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        match check(&directory.join(name), name) {
            Ok(path) => return Ok(path),
            Err(error @ CommandError::NotExecutable { directory: false, .. }) => {
                refused.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or(CommandError::NotFound { name: name.to_owned() }))
}

fn check(path: &Path, name: &str) -> Result<PathBuf, CommandError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(CommandError::Nul);
    }
    let Ok(metadata) = std::fs::metadata(path) else {
        return Err(CommandError::NotFound { name: name.to_owned() });
    };
    let directory = metadata.is_dir();
    if directory || access(path, AccessFlags::X_OK).is_err() {
        return Err(CommandError::NotExecutable { path: path.to_owned(), directory });
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, search: &str) -> Result<PathBuf, String> {
        Found::find(&[name.to_owned()], Some(OsStr::new(search)))
            .map(|found| found.path)
            .map_err(|error| crate::Failure::from(error).to_string())
    }

    #[test]
    fn the_first_that_may_be_executed_is_taken() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let text = dir.path().join("a");
        std::fs::create_dir_all(&text)?;
        std::fs::write(text.join("tool"), "")?;
        let program = dir.path().join("b");
        std::fs::create_dir_all(program.join("x"))?;
        std::fs::write(program.join("tool"), "")?;
        std::fs::set_permissions(program.join("tool"), PermissionsExt::from_mode(0o755))?;
        let search = format!("{}:{}", text.display(), program.display());
        assert_eq!(find("tool", &search), Ok(program.join("tool")));
        let alone = find("tool", &text.display().to_string()).expect_err("no x");
        assert!(alone.starts_with("it is not executable: "), "{alone}");
        let missing = find("nothing", &search).expect_err("is not there");
        assert!(missing.starts_with("there is no such command: nothing; "), "{missing}");
        let directory = find(&program.display().to_string(), "").expect_err("is a directory");
        assert!(directory.contains("(a directory)"), "{directory}");
        Ok(())
    }

    #[test]
    fn no_name_is_usage() {
        for command in [vec![], vec![String::new()]] {
            let failure = Found::find(&command, None).map_err(crate::Failure::from);
            assert!(failure.is_err_and(|failure| failure.usage));
        }
    }
}
