//! The program, run as its users run it.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A command line in a folder, its words separated by spaces.
pub(super) fn run(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posterior"));
    command.current_dir(folder).args(line.split_whitespace()).output().unwrap()
}

/// What it prints for programs; it must succeed.
pub(super) fn json(folder: &Path, line: &str) -> Value {
    let output = run(folder, &format!("--json {line}"));
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What it says as it fails.
pub(super) fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(!output.status.success(), "{line}");
    String::from_utf8(output.stderr).unwrap()
}
