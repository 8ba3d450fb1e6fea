//! Fits that are interrupted: what they keep, whose it is, and that they go on to the same numbers.

use super::laplace_searches::CURVE;
use super::networks_common::*;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Predictions, byte for byte.
fn predictions(at: &Path, model: &str) -> Vec<u8> {
    json(at, &format!("predict {model} test.csv -o p.csv --force"));
    std::fs::read(at.join("p.csv")).unwrap()
}

/// Interrupts a fit that writes `m.posterior` once it has something to keep, which is then in this file: later where it had nothing yet, sooner where it had ended. What it said.
fn interrupted(at: &Path, line: &str, checkpoint: &str) -> String {
    let mut wait = Duration::from_millis(100);
    for _ in 0..40 {
        let binary = assert_cmd::cargo::cargo_bin("posterior");
        let mut running = Command::new(binary)
            .current_dir(at)
            .args(format!("{line} -o m.posterior --force").split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(running.stderr.take().unwrap());
        let mut said = String::new();
        // The search begins after its plan.
        while !said.contains("plan:") && lines.read_line(&mut said).unwrap() > 0 {}
        std::thread::sleep(wait);
        let stop =
            Command::new("kill").args(["-INT", &running.id().to_string()]).stderr(Stdio::null()).status();
        let _ = stop.unwrap();
        lines.read_to_string(&mut said).unwrap();
        running.wait().unwrap();
        if at.join("m.posterior").exists() {
            std::fs::remove_file(at.join("m.posterior")).unwrap();
            wait = wait.mul_f64(0.6);
        } else if at.join(checkpoint).exists() {
            return said;
        } else {
            wait = wait.mul_f64(1.5);
        }
    }
    panic!("{line}: was never interrupted between its first step and its end")
}

/// What a fit that goes on says.
fn resumed(at: &Path, line: &str) -> String {
    let words = format!("{line} -o m.posterior --resume");
    let output = posterior(at).args(words.split_whitespace()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}: {said}");
    said
}

#[cfg(unix)]
#[test]
fn interrupted_searches_go_on_to_the_same_numbers() {
    let folder = curve();
    let at = folder.path();
    for flags in [
        "--method fixed-mean --set inducing-points=30 --set steps=1500 --set batch=30 --set validate-every=500 --set patience=100",
        "--method gwi --set inducing-points=30 --set steps=1500 --set patience=1000",
        "--method valla --set inducing-points=20 --set steps=1200 --set batch=30 --set validate-every=100 --set patience=100",
        "--method sampled --set solver=descent --set samples=16 --set em-samples=16 --set em-steps=6 --set epochs=100 --set batch=20",
        "--method mean-field --set epochs=800 --set batch=20",
    ] {
        let line = format!("{CURVE} {flags}");
        json(at, &format!("{line} -o whole.posterior --force"));
        interrupted(at, &line, "m.posterior.checkpoint");
        // More memory is the same fit.
        let said = resumed(at, &format!("{line} --memory 9"));
        assert!(said.contains("going on"), "{flags}: {said}");
        assert!(!at.join("m.posterior.checkpoint").exists(), "a finished fit needs no checkpoint");
        assert_eq!(predictions(at, "m.posterior"), predictions(at, "whole.posterior"), "{flags}");
        std::fs::remove_file(at.join("m.posterior")).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_checkpoint_belongs_to_one_fit() {
    let folder = curve();
    let at = folder.path();
    let line = format!(
        "{CURVE} --method fixed-mean --set inducing-points=30 --set steps=100000 --set batch=30 --set validate-every=1000 --set patience=100"
    );
    let said = interrupted(at, &line, "m.posterior.checkpoint");
    assert!(
        said.contains("what there is so far is in m.posterior.checkpoint: go on with --resume"),
        "{said}"
    );
    let refused = |line: &str, expected: &str| {
        let text = error(at, &format!("{line} -o m.posterior --resume"));
        assert!(text.contains(expected), "{line}: {text}");
    };
    refused(&format!("{line} --set alpha=0.5"), "alpha");
    refused(&format!("{line} --set trajectory-every=50"), "trajectory_every");
    let mut bytes = std::fs::read(at.join("net.safetensors")).unwrap();
    let sign = bytes.len() - 1;
    bytes[sign] ^= 0x80;
    std::fs::write(at.join("other.safetensors"), bytes).unwrap();
    refused(&line.replace("net.safetensors", "other.safetensors"), "the network");
    // Other rows to choose by: in another file, or in the same one.
    let test = std::fs::read_to_string(at.join("test.csv")).unwrap();
    std::fs::write(at.join("other.csv"), &test).unwrap();
    refused(
        &line.replace("test.csv", "other.csv"),
        "the validation data.files ([\"test.csv\"] there, [\"other.csv\"] now)",
    );
    std::fs::write(at.join("test.csv"), test.replace("\n1", "\n0")).unwrap();
    refused(&line, "the validation data.sha256");
    refused(
        &line
            .replace(" --validation-data test.csv", "")
            .replace(" --set validate-every=1000 --set patience=100", ""),
        "the validation data",
    );
    std::fs::write(at.join("test.csv"), test).unwrap();
    // Other rows to learn from.
    let train = std::fs::read_to_string(at.join("train.csv")).unwrap();
    std::fs::write(at.join("train.csv"), train.replace("\n1", "\n0")).unwrap();
    refused(&line, "the data");
}

#[cfg(unix)]
#[test]
fn an_interrupted_ensemble_says_how_to_go_on() {
    let folder = curve();
    let at = folder.path();
    std::fs::create_dir(at.join("nets")).unwrap();
    for name in ["a", "b"] {
        std::fs::copy(at.join("net.safetensors"), at.join(format!("nets/{name}.safetensors"))).unwrap();
    }
    let line = "fit train.csv --network nets --likelihood gaussian --method mean-field --set epochs=100000 --set batch=20";
    let said = interrupted(at, line, "m.posterior.checkpoint.a.safetensors.sums");
    assert!(
        said.contains("what there is so far is in m.posterior.checkpoint.*: go on with --resume"),
        "{said}"
    );
    let other = error(at, &format!("{line} --set learning-rate=0.01 -o m.posterior --resume"));
    assert!(other.contains("mean_rate"), "{other}");
}
