//! What the tests of `pad` have in common: one run directory each, and its rows.
// Each test program uses its own part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A row of `samples.csv` by column.
pub type Row = BTreeMap<String, String>;

/// A place for one run.
pub struct Run {
    home: tempfile::TempDir,
}

impl Run {
    pub fn new() -> Self {
        Run { home: tempfile::tempdir().expect("a folder") }
    }

    pub fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    pub fn directory(&self) -> PathBuf {
        self.home.path().join("run")
    }

    pub fn script(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.home.path().join(name);
        std::fs::write(&path, text).expect("can be written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("is ours");
        path.display().to_string()
    }

    /// `pad` with these arguments, in this run's directory.
    pub fn pad(&self, args: &[&str]) -> Output {
        self.pad_with(args, &[])
    }

    pub fn pad_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(args).envs(variables.iter().copied()).output().expect("runs")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackphase"));
        command.arg("pad").arg("--out").arg(self.directory()).args(args);
        command
    }

    /// The text of a run of its own.
    pub fn pad_text(&self, args: &[&str]) -> String {
        let output = Run::new().pad(args);
        assert!(output.status.success(), "{}", text_of(&output));
        // Lines are broken at words: put together, a sentence is found whole.
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    pub fn rows(&self) -> Vec<Row> {
        rows_of(&self.directory())
    }
}

pub fn rows_of(directory: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(directory.join("samples.csv")).expect("is there");
    let names = reader.headers().expect("a header").clone();
    reader
        .records()
        .map(|record| {
            let record = record.expect("a row");
            names.iter().zip(record.iter()).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
        })
        .collect()
}

pub fn text_of(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

/// The one document on stdout of a command that ended with `status`.
pub fn document(output: &Output, status: i32) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(status), "{}", text_of(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text_of(output)))
}

/// Whether any process has `marker` among its arguments.
pub fn running(marker: &str) -> bool {
    std::fs::read_dir("/proc").expect("is mounted").flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == marker.as_bytes())
    })
}

/// An example program, if it was built.
pub fn example(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_BIN_EXE_stackphase")).parent()?.join("examples").join(name);
    path.exists().then(|| path.display().to_string())
}
