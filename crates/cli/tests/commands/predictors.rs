//! One saved model for each kind of predictor. Each is read, and predicts what it predicted when it was saved.

use super::running::run;
use std::path::{Path, PathBuf};

/// Names of the files, with how they were fitted.
const MODELS: [(&str, &str); 11] = [
    ("exact", "fit gp --target y --method exact --steps 3 --restarts 1"),
    (
        "behind",
        "fit gp --target y --method dkl --dense --objective evidence --basis features.toml --iterations 3",
    ),
    (
        "single",
        "fit gp --target y --method cg --iterations 20 --samples 4 --random-features 20 --blocks 1 --block-size 20 --refining-rows 0",
    ),
    (
        "double",
        "fit gp --target y --method cg --iterations 20 --samples 4 --random-features 20 --blocks 1 --block-size 20 --refining-rows 0 --precision f64",
    ),
    ("inducing", "fit gp --target y --method sgpr --iterations 3 --inducing 6"),
    (
        "learned",
        "fit gp --target y --method dbk --objective evidence --basis features.toml --iterations 3 --patience 2 --batch 16",
    ),
    ("generalised", "fit gp --target y --method gvi --iterations 3 --inducing 6 --prior-rows 20"),
    (
        "mode",
        "fit gp --target answer --method exact --likelihood bernoulli --inference laplace --steps 3 --restarts 1",
    ),
    ("independent", "fit gp --target colour --method exact --steps 3 --restarts 1"),
    (
        "network",
        "fit laplace --network nets/1.safetensors --target y --likelihood gaussian --curvature last-layer",
    ),
    ("ensemble", "fit laplace --network nets --target y --likelihood gaussian --curvature last-layer"),
];

fn succeeds(at: &Path, line: &str) {
    let output = run(at, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Trains the networks and fits the models anew, where `POSTERIOR_FIXTURES=write` says so: for another layout of files.
fn write(at: &Path) {
    for seed in [1, 2] {
        succeeds(
            at,
            &format!(
                "train --architecture net.toml --data train.csv --features a,b --target y --loss mse --epochs 20 --seed {seed} --out nets/{seed}.safetensors --force"
            ),
        );
    }
    for (name, fit) in MODELS {
        let features = if fit.starts_with("fit gp") { "--features a,b" } else { "" };
        succeeds(at, &format!("{fit} {features} --data train.csv --seed 1 --out {name}.posterior --force"));
        succeeds(at, &format!("predict --model {name}.posterior --data new.csv --out {name}.csv --force"));
    }
}

/// The cells of a table, row by row.
fn cells(path: PathBuf) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split(',').map(String::from).collect()).collect()
}

/// Mutation: `Latent::variance` of `models/src/latent.rs` times 1 + 1e-8.
#[test]
fn saved_models_of_every_predictor_predict_as_before() {
    let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/predictors");
    if std::env::var("POSTERIOR_FIXTURES").is_ok_and(|v| v == "write") {
        write(&at);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in MODELS {
        let out = folder.path().join("p.csv");
        let to = out.display();
        succeeds(&at, &format!("predict --model {name}.posterior --data new.csv --out {to} --force"));
        let (found, expected) = (cells(out), cells(at.join(format!("{name}.csv"))));
        assert_eq!((found.len(), &found[0]), (expected.len(), &expected[0]), "{name}");
        for (own, stored) in found.iter().flatten().zip(expected.iter().flatten()) {
            match (own.parse::<f64>(), stored.parse::<f64>()) {
                (Ok(own), Ok(stored)) => {
                    assert!((own - stored).abs() <= 1e-10 * stored.abs().max(1.0), "{name}: {own} {stored}");
                }
                _ => assert_eq!(own, stored, "{name}"),
            }
        }
    }
}
