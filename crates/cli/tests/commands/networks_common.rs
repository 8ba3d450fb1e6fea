//! What tests of networks share: the binary, small tables and two networks that were trained on them.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

pub(crate) fn posterior(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("posterior").unwrap();
    command.current_dir(folder);
    command
}

pub(crate) fn json(folder: &Path, line: &str) -> Value {
    let output = posterior(folder).args(line.split_whitespace()).arg("--json").output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Status and message of a command that must fail.
pub(crate) fn failure(folder: &Path, line: &str) -> (Option<i32>, String) {
    let output = posterior(folder).args(line.split_whitespace()).output().unwrap();
    assert!(!output.status.success(), "{line} succeeded");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

pub(crate) fn error(folder: &Path, line: &str) -> String {
    failure(folder, line).1
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

pub(crate) fn network(at: &Path, name: &str, inputs: usize, outputs: usize) {
    let text = format!(
        "kind = \"perceptron\"\ninputs = {inputs}\nhidden = [20, 20]\noutputs = {outputs}\nactivation = \"tanh\"\n"
    );
    std::fs::write(at.join(name), text).unwrap();
}

/// Uniform numbers in [0, 1) that look random.
pub(crate) fn uniform(i: usize, salt: f64) -> f64 {
    ((i as f64 + 1.0) * 12.9898 + salt).sin().mul_add(43_758.545_3, 0.0).rem_euclid(1.0)
}

/// Standard normals.
pub(crate) fn normal(i: usize, salt: f64) -> f64 {
    let (u, v) = (uniform(2 * i, salt).max(1e-12), uniform(2 * i + 1, salt + 7.7));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A trained network as `net.safetensors`. The tables and architectures below, and the commands in their comments, made the two files of `tests/fixtures`.
fn trained(at: &Path, fixture: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    std::fs::copy(path, at.join("net.safetensors")).unwrap();
}

/// 60 points of a curve with noise of deviation 0.2, 400 more to score on, and a network that fits them closely.
pub(crate) fn curve() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let row = |i: usize| {
        let x = 4.0 * uniform(i, 0.3) - 2.0;
        format!("{x},{}\n", (2.5 * x).sin() + 0.2 * normal(i, 1.1))
    };
    let rows = |range: std::ops::Range<usize>| "x,y\n".to_string() + &range.map(row).collect::<String>();
    std::fs::write(at.join("train.csv"), rows(0..60)).unwrap();
    std::fs::write(at.join("test.csv"), rows(60..460)).unwrap();
    network(at, "net.toml", 1, 1);
    // train net.toml train.csv --target y --loss mse --learning-rate 0.01 --batch 16 --epochs 300
    trained(at, "curve.safetensors");
    folder
}

/// Three rings that overlap, labelled in words whose alphabetical order is not that of the radii.
pub(crate) fn rings(at: &Path, name: &str, range: std::ops::Range<usize>) {
    let mut text = String::from("a,b,colour\n");
    for i in range {
        let (kind, angle) = ((3.0 * uniform(i, 5.0)) as usize, std::f64::consts::TAU * uniform(i, 9.0));
        let radius = 0.4 + kind as f64 + 0.35 * normal(i, 2.0);
        text += &format!(
            "{},{},{}\n",
            radius * angle.cos(),
            radius * angle.sin(),
            ["red", "green", "blue"][kind]
        );
    }
    std::fs::write(at.join(name), text).unwrap();
}

pub(crate) fn classifier() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    rings(at, "train.csv", 0..400);
    rings(at, "test.csv", 400..1400);
    network(at, "net.toml", 2, 3);
    // train net.toml train.csv --target colour --loss cross-entropy --learning-rate 0.01 --batch 32 --epochs 100
    trained(at, "rings.safetensors");
    folder
}
