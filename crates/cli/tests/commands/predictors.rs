//! One saved model for each kind of predictor. Each is read, and predicts what it predicted when it was saved.

use super::running::run;
use std::path::{Path, PathBuf};

/// Names of the files, with how they were fitted.
const MODELS: [(&str, &str); 11] = [
    ("exact", "fit --target y --method exact --set steps=3 --set restarts=1"),
    (
        "behind",
        "fit --target y --method dkl --set dense --set objective=evidence --set basis=features.toml --set iterations=3",
    ),
    (
        "single",
        "fit --target y --method cg --set iterations=20 --set samples=4 --set random-features=20 --set blocks=1 --set block-size=20 --set refining-rows=0",
    ),
    (
        "double",
        "fit --target y --method cg --set iterations=20 --set samples=4 --set random-features=20 --set blocks=1 --set block-size=20 --set refining-rows=0 --set precision=f64",
    ),
    ("inducing", "fit --target y --method sgpr --set iterations=3 --set inducing=6"),
    (
        "learned",
        "fit --target y --method dbk --set objective=evidence --set basis=features.toml --set iterations=3 --set patience=2 --set batch=16",
    ),
    ("generalised", "fit --target y --method gvi --set iterations=3 --set inducing=6 --set prior-rows=20"),
    (
        "mode",
        "fit --target answer --method exact --likelihood bernoulli --inference laplace --set steps=3 --set restarts=1",
    ),
    ("independent", "fit --target colour --method exact --set steps=3 --set restarts=1"),
    ("network", "fit --network nets/1.safetensors --target y --likelihood gaussian --method last-layer"),
    ("ensemble", "fit --network nets --target y --likelihood gaussian --method last-layer"),
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
                "train net.toml train.csv --features a,b --target y --loss mse --epochs 20 --seed {seed} -o nets/{seed}.safetensors --force"
            ),
        );
    }
    for (name, fit) in MODELS {
        let features = if fit.contains("--network") { "" } else { "--features a,b" };
        succeeds(at, &format!("{fit} {features} train.csv --seed 1 -o {name}.posterior --force"));
        succeeds(at, &format!("predict {name}.posterior new.csv -o {name}.csv --force"));
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
        succeeds(&at, &format!("predict {name}.posterior new.csv -o {to} --force"));
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
