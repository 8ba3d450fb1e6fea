//! The commands for networks as their users see them.

use super::networks_common::{self, posterior};
use assert_cmd::Command;
use serde_json::Value;
use std::time::{Duration, Instant};

fn json(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A curve as a table, an architecture for it, and the flags of a short run.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..200).map(|i| format!("{},{}\n", i as f64 / 50.0, 10.0 + 5.0 * (i as f64 / 20.0).sin()));
    std::fs::write(folder.path().join("curve.csv"), "x,y\n".to_string() + &rows.collect::<String>()).unwrap();
    let architecture =
        "kind = \"perceptron\"\ninputs = 1\nhidden = [16, 16]\noutputs = 1\nactivation = \"tanh\"\n";
    std::fs::write(folder.path().join("net.toml"), architecture).unwrap();
    folder
}

const TRAIN: [&str; 11] = [
    "train",
    "net.toml",
    "curve.csv",
    "--target",
    "y",
    "--loss",
    "gaussian",
    "--learning-rate",
    "0.01",
    "--batch",
    "16",
];

#[test]
fn train_inspect_forward() {
    let folder = folder();
    let at = folder.path();
    let flags = [
        "--epochs",
        "60",
        "--schedule",
        "cosine",
        "--validation-fraction",
        "0.2",
        "--output",
        "net.safetensors",
        "--json",
    ];
    let report = json(posterior(at).args(TRAIN).args(flags));
    assert_eq!(report["plan"]["examples"], 160);
    assert_eq!(report["history"].as_array().unwrap().len(), 60);
    let loss = |i: usize| report["history"][i]["train_loss"].as_f64().unwrap();
    assert!(loss(59) < loss(0) - 1.0, "{} {}", loss(0), loss(59));
    assert!(report["noise_variance"][0].as_f64().unwrap() < 0.2);
    // The network keeps its architecture and its units: raw inputs in, raw outputs out.
    let layers = json(posterior(at).args(["inspect", "net.safetensors", "--json"]));
    assert_eq!(
        (layers["parameters"].as_u64(), layers["format"].as_str()),
        (Some(16 * 2 + 17 * 16 + 17), Some("safetensors"))
    );
    let mut npy: Vec<u8> = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }";
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend([0.5f64, 1.5].iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(at.join("x.npy"), npy).unwrap();
    let forward = ["forward", "net.safetensors", "x.npy", "--output", "y.npy", "--precision", "f64"];
    let report = json(posterior(at).args(forward).arg("--json"));
    assert_eq!(report["shape"], serde_json::json!([2, 1]));
    let bytes = std::fs::read(at.join("y.npy")).unwrap();
    for (i, x) in [0.5f64, 1.5].into_iter().enumerate() {
        let start = bytes.len() - 16 + 8 * i;
        let y = f64::from_le_bytes(bytes[start..start + 8].try_into().unwrap());
        let truth = 10.0 + 5.0 * (x * 2.5).sin();
        assert!((y - truth).abs() < 1.0, "{x}: {y} against {truth}");
    }
    // A table is no array, and nothing is left behind.
    let message = error(posterior(at).args(["forward", "net.safetensors", "curve.csv", "--output", "z.npy"]));
    assert!(message.contains("curve.csv"), "{message}");
    assert!(!at.join("z.npy").exists());
}

#[test]
fn runs_repeat_and_resume_after_kill_bit_for_bit() {
    let folder = folder();
    let at = folder.path();
    let run = |out: &str, more: &[&str]| {
        let mut command = posterior(at);
        command
            .args(TRAIN)
            .args(["--epochs", "400", "--seed", "7", "--checkpoint-every", "50", "--output", out])
            .args(more);
        command
    };
    run("a.safetensors", &[]).assert().success();
    run("b.safetensors", &[]).assert().success();
    let bytes = |name: &str| std::fs::read(at.join(name)).unwrap();
    assert_eq!(bytes("a.safetensors"), bytes("b.safetensors"));
    // kill -9 once the first checkpoint is there.
    let program = assert_cmd::cargo::cargo_bin("posterior");
    let mut child = std::process::Command::new(program)
        .current_dir(at)
        .args(TRAIN)
        .args(["--epochs", "400", "--seed", "7", "--checkpoint-every", "50", "--output", "c.safetensors"])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !at.join("c.safetensors.checkpoint").exists() && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!at.join("c.safetensors").exists(), "killed in the middle");
    let report = json(run("c.safetensors", &["--resume"]).arg("--json"));
    assert!(report["resumed_from"].as_u64().unwrap() >= 50);
    assert_eq!(bytes("a.safetensors"), bytes("c.safetensors"));
    // Other settings do not go on from it.
    let message = error(run("c.safetensors", &["--resume"]).args(["--weight-decay", "0.1"]));
    assert!(message.contains("other settings"), "{message}");
}

#[test]
fn mistakes_are_explained() {
    let folder = folder();
    let at = folder.path();
    let message = error(posterior(at).args(TRAIN).args([
        "--output",
        "n.safetensors",
        "--learning-rate",
        "1e30",
        "--optimizer",
        "sgd",
    ]));
    assert!(message.contains("--learning-rate") && message.contains("multiple times"), "{message}");
    let flags = ["train", "net.toml", "curve.csv", "--target", "y"];
    let message = error(posterior(at).args(flags).args([
        "--loss",
        "mse",
        "--output",
        "n.safetensors",
        "--learning-rate",
        "1e30",
        "--optimizer",
        "sgd",
    ]));
    assert!(message.contains("not finite") && message.contains("step"), "{message}");
    assert!(!at.join("n.safetensors").exists());
    let message = error(posterior(at).args(flags).args([
        "--loss",
        "mse",
        "--output",
        "n.safetensors",
        "--memory",
        "1e-9",
    ]));
    assert!(message.contains("limit"), "{message}");
    let message =
        error(posterior(at).args(flags).args(["--loss", "cross-entropy", "--output", "n.safetensors"]));
    assert!(message.contains("class"), "{message}");
    std::fs::write(at.join("bad.toml"), "kind = \"perceptron\"\ninputs = 0\noutputs = 1\n").unwrap();
    let message = error(posterior(at).args(["inspect", "bad.toml"]));
    assert!(message.contains("bad.toml") || message.contains("perceptron"), "{message}");
    std::fs::write(at.join("bad.onnx"), b"not a model").unwrap();
    let message = error(posterior(at).args(["inspect", "bad.onnx"]));
    assert!(message.contains("bad.onnx"), "{message}");
    std::fs::write(at.join("bad.safetensors"), 1_000_000_000_000u64.to_le_bytes()).unwrap();
    let message = error(posterior(at).args(["inspect", "bad.safetensors"]));
    assert!(message.contains("bad.safetensors"), "{message}");
}

/// The steps of a recurrent layer are one line and one box, which reads what the layer reads.
#[test]
fn a_recurrent_layer_is_drawn_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = "kind = \"layers\"\ninput = [5, 2]\n[[layer]]\nname = \"r\"\noperation = \"lstm\"\nhidden = 3\nreturns = \"last\"\n\
                [[layer]]\nname = \"o\"\noperation = \"linear\"\noutputs = 1\n";
    std::fs::write(at.join("l.toml"), text).unwrap();
    let layers =
        networks_common::json(at, "inspect l.toml --report l.html")["layers"].as_array().unwrap().len();
    assert_eq!(layers, 2);
    let page = std::fs::read_to_string(at.join("l.html")).unwrap();
    assert_eq!(page.matches("class=\"column strong\"").count(), 2, "layers with weights");
    assert_eq!(page.matches("class=\"dot\"").count(), 1, "the input");
    assert!(page.contains("lstm") && page.contains("linear"));
}

/// The loss on a validation table with a target whose square no number holds is infinite: the checkpoint says so and goes on.
#[test]
fn a_run_with_an_infinite_validation_loss_resumes() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("far.csv"), "x,y\n1,10\n2,1e200\n").unwrap();
    let flags = ["train", "net.toml", "curve.csv", "--target", "y", "--loss", "mse"];
    let run = || {
        let mut command = posterior(at);
        command.args(flags).args(["--validation-data", "far.csv", "--precision", "f64", "--epochs", "3"]);
        command.args([
            "--batch",
            "16",
            "--checkpoint-every",
            "10",
            "--output",
            "n.safetensors",
            "--resume",
            "--json",
        ]);
        json(&mut command)
    };
    let first = run();
    assert_eq!(first["resumed_from"], 0);
    assert!(first.to_string().contains("\"Infinity\""), "{first}");
    assert!(run()["resumed_from"].as_u64().unwrap() >= 10);
}
