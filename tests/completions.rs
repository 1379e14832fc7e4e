//! What shells and `man` are given names every subcommand.

use std::process::Command;

fn stackphase(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase")).args(args).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn every_shell_completes_the_subcommands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stackphase(&["completions", shell]);
        for word in ["analyze", "report", "--json"] {
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
        }
    }
}

#[test]
fn every_subcommand_has_a_page() {
    let home = tempfile::tempdir().expect("a folder");
    let directory = home.path().join("man1");
    stackphase(&["man", directory.to_str().expect("text")]);
    for page in ["stackphase.1", "stackphase-analyze.1", "stackphase-report.1"] {
        let text = std::fs::read_to_string(directory.join(page)).expect("is there");
        assert!(text.contains(".TH"), "{page}");
    }
    let blocked = tempfile::NamedTempFile::new().expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_stackphase"))
        .args(["man", blocked.path().to_str().expect("text")])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
}
