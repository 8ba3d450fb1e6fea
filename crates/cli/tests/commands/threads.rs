//! The same seed gives the same files and predictions, byte for byte, on any number of threads. What a model file says about the clock and about planned
//! memory, part of which each thread takes, is left out.

use super::networks_common::{network, posterior, uniform};
use serde_json::Value;
use std::path::Path;

/// One thread shares nothing; four share everything that is large enough.
const THREADS: [usize; 2] = [1, 4];

const TABLE: &str = "fit t.csv --features a,b,c --target y --method";

/// A short search for hyperparameters and a short solve.
const QUICK: &str = "--set blocks=1 --set block-size=200 --set refining-rows=0 --set steps=2 --set iterations=20 --set samples=4";

/// A file in two parts: what its header says, and its bytes behind that.
fn read(path: &Path) -> (Value, Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_some_and(|e| e == "csv" || e == "npy") {
        return (Value::Null, bytes);
    }
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    for text in header["__metadata__"].as_object_mut().into_iter().flat_map(|m| m.values_mut()) {
        if let Ok(mut parsed) = serde_json::from_str(text.as_str().unwrap()) {
            forget(&mut parsed);
            *text = parsed;
        }
    }
    (header, bytes[8 + length..].to_vec())
}

fn forget(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            ["seconds", "reached_seconds", "plan", "peak_memory_bytes"]
                .iter()
                .for_each(|name| drop(entries.remove(*name)));
            entries.values_mut().for_each(forget);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Runs the command on each number of threads and wants the same bytes of the files that it leaves.
fn same(at: &Path, lines: &[&str], files: &[&str]) {
    let mut first: Option<Vec<(Value, Vec<u8>)>> = None;
    for threads in THREADS {
        for line in lines {
            let threads = threads.to_string();
            let flags = ["--force", "--seed", "3", "--threads", &threads];
            let seedless = line.starts_with("predict") || line.contains("--continue");
            let flags = if seedless { &[flags[0], flags[3], flags[4]][..] } else { &flags[..] };
            posterior(at).args(line.split_whitespace()).args(flags).assert().success();
        }
        let found: Vec<_> = files.iter().map(|file| read(&at.join(file))).collect();
        let first = first.get_or_insert_with(|| found.clone());
        for ((file, found), first) in files.iter().zip(&found).zip(first) {
            assert_eq!(found.0, first.0, "the header of {file} of `{}` with {threads} threads", lines[0]);
            assert!(found.1 == first.1, "{file} of `{}` is another with {threads} threads", lines[0]);
        }
    }
}

/// Fits by each of the methods and predicts.
fn fits(at: &Path, fit: &str, methods: &[&str]) {
    for method in methods {
        let line = format!("{fit} {method} -o m.posterior");
        let predict = "predict m.posterior new.csv -o p.csv";
        same(at, &[&line, predict], &["m.posterior", "p.csv"]);
    }
}

/// A table of three inputs, a value and a class; more rows to predict at.
fn folder(rows: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| {
        let [a, b, c] = [0.1, 0.2, 0.3].map(|salt| uniform(i, salt));
        let y = (6.0 * a).sin() + b + 0.2 * uniform(i, 0.4);
        format!("{a},{b},{c},{y},{}\n", ["red", "green", "blue"][(3.0 * (0.9 * a + 0.1 * c)) as usize])
    };
    for (name, range) in [("t.csv", 0..rows), ("new.csv", 10_000..10_040)] {
        let text = "a,b,c,y,colour\n".to_string() + &range.map(row).collect::<String>();
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Rows above every size from which threads share exact work: 192 of a factor, 256 of a tile of a kernel, 2¹⁷ entries of a matrix that is multiplied with a vector.
const SHARED_ROWS: usize = 400;

#[test]
fn exact_processes_do_not_depend_on_the_number_of_threads() {
    let folder = folder(SHARED_ROWS);
    fits(folder.path(), TABLE, &["exact --set steps=2 --set restarts=1 --set objective=leave-one-out"]);
    // Rows that are added, how predictions depend on each other, rows predicted from the others.
    let fit = format!("{TABLE} exact --set steps=2 --set restarts=1 -o m.posterior");
    let lines = [
        &fit,
        "predict m.posterior new.csv -o n.csv",
        "fit new.csv --continue m.posterior -o more.posterior",
        "predict more.posterior new.csv --joint k.npy -o p.csv",
        "predict m.posterior t.csv --leave-one-out -o l.csv",
    ];
    same(folder.path(), &lines, &["m.posterior", "n.csv", "more.posterior", "k.npy", "p.csv", "l.csv"]);
}

#[test]
fn iterative_processes_do_not_depend_on_the_number_of_threads() {
    // More rows than the 512 of a block of gradients.
    let folder = folder(700);
    let iterative = format!("{TABLE} cg");
    for preconditioner in ["none", "pivoted-cholesky", "nystrom"] {
        fits(folder.path(), &iterative, &[&format!("{QUICK} --set preconditioner={preconditioner}")]);
    }
    for method in ["sdd", "sgd", "inducing-sgd --set inducing=200"] {
        fits(folder.path(), TABLE, &[&format!("{method} {QUICK}")]);
    }
    let fit = format!("{TABLE} sap --set block-rows=150 {QUICK} -o m.posterior");
    let lines = [
        &fit,
        "predict m.posterior new.csv -o m.csv",
        "compress m.posterior --inducing 60 -o small.posterior",
        "predict small.posterior new.csv -o p.csv",
    ];
    same(folder.path(), &lines, &["m.posterior", "m.csv", "small.posterior", "p.csv"]);
}

#[test]
fn bounds_do_not_depend_on_the_number_of_threads() {
    let folder = folder(700);
    let bounds = [
        "sgpr --set iterations=2 --set inducing=200",
        "svgp --set iterations=6 --set inducing=200",
        "sgpr --from-disk --set iterations=2 --set inducing=200",
        "svgp --from-disk --set iterations=6 --set inducing=200",
        "svgp --set iterations=6 --set inducing=200 --set variational=adam",
    ];
    fits(folder.path(), TABLE, &bounds);
}

#[test]
fn deep_kernels_do_not_depend_on_the_number_of_threads() {
    let folder = folder(300);
    // One of them chooses on rows held back.
    let deep = [
        "dbk --set iterations=6 --set rank=40",
        "svdbk --from-disk --set iterations=4 --set rank=40 --held-back 0",
        "dbk --set iterations=4 --set rank=40 --set objective=evidence --set correction=full --held-back 0",
        "dkl --set iterations=4 --set rank=40 --set objective=evidence --held-back 0",
        "dkl --set iterations=4 --set dense --held-back 0",
        "svdkl --set iterations=6 --set rank=40 --set objective=predictive --held-back 0",
    ];
    fits(folder.path(), TABLE, &deep);
    // Events, whose columns lie between 0 and 1.
    let table = "fit t.csv --window a=0:1,b=0:1 --method";
    fits(folder.path(), table, &["svdbk --set iterations=6 --set rank=40"]);
}

#[test]
fn processes_of_classes_do_not_depend_on_the_number_of_threads() {
    let folder = folder(260);
    let table = "fit t.csv --features a,b,c --target colour --method";
    let labels = [
        "svdbk --set iterations=2 --set rank=40 --held-back 0 --calibrate none",
        "dkl --set iterations=2 --set rank=40 --set objective=evidence --held-back 0 --calibrate none",
        // Rows held back choose a temperature.
        "sgpr --set steps=2 --set inducing=100 --pseudo-count 0.1 --held-back 60 --calibrate conformal",
    ];
    fits(folder.path(), table, &labels);
}

#[test]
fn several_targets_do_not_depend_on_the_number_of_threads() {
    let folder = folder(200);
    let table = "fit t.csv --features a,b --target y,colour --method";
    fits(folder.path(), table, &["exact --set steps=2 --set restarts=1"]);
    let table = "fit t.csv --features a,b --target y,c --share-kernel --method";
    fits(folder.path(), table, &["svgp --set iterations=6 --set inducing=100"]);
}

#[test]
fn training_does_not_depend_on_the_number_of_threads() {
    let folder = folder(400);
    let at = folder.path();
    std::fs::write(
        at.join("perceptron.toml"),
        "kind = \"perceptron\"\ninputs = 3\nhidden = [80, 80]\noutputs = 1\nactivation = \"tanh\"\n",
    )
    .unwrap();
    std::fs::write(
        at.join("convolution.toml"),
        "kind = \"layers\"\ninput = [3]\n[[layer]]\nname = \"in\"\noperation = \"linear\"\noutputs = 64\n[[layer]]\nname = \"image\"\noperation = \"reshape\"\nshape = [1, 8, 8]\n\
         [[layer]]\nname = \"conv\"\noperation = \"convolution\"\noutputs = 4\nkernel = 3\npadding = 1\n[[layer]]\nname = \"r\"\noperation = \"relu\"\n\
         [[layer]]\nname = \"flat\"\noperation = \"flatten\"\n[[layer]]\nname = \"out\"\noperation = \"linear\"\noutputs = 1\n",
    )
    .unwrap();
    for name in ["perceptron", "convolution"] {
        let line = format!(
            "train {name}.toml t.csv --features a,b,c --target y --loss mse --epochs 2 --batch 64 -o n.safetensors"
        );
        same(at, &[&line], &["n.safetensors"]);
    }
}

/// Three batches of 2048, so that the order in which their sums are added matters.
const ROWS_OF_BATCHES: usize = 4200;

const CURVATURES: [&str; 7] = [
    "full",
    "block",
    "kronecker",
    "diagonal",
    "low-rank --set rank=10",
    "low-rank --set rank=1",
    "last-layer",
];

/// What keeps a matrix of rows x rows has fewer rows.
const SEARCHES: [&str; 9] = [
    "function-space",
    "ella --set landmarks=100 --set rank=10",
    "sampled --set samples=4 --set em-samples=2 --set em-steps=1",
    "fixed-mean --set inducing-points=20 --set steps=30",
    "gwi --set inducing-points=20 --set steps=30",
    "gwi --set inducing-points=20 --set steps=10 --set variational-kernel=cholesky --set kernel-inputs=features",
    "valla --set inducing-points=20 --set steps=5",
    "valla --set inducing-points=20 --set closed-form",
    "mean-field --set epochs=1 --set samples=3",
];

#[test]
fn laplace_of_values_does_not_depend_on_the_number_of_threads() {
    laplace(ROWS_OF_BATCHES, &CURVATURES, 1);
}

#[test]
fn laplace_of_classes_does_not_depend_on_the_number_of_threads() {
    laplace(ROWS_OF_BATCHES, &CURVATURES, 3);
}

#[test]
fn searches_of_values_do_not_depend_on_the_number_of_threads() {
    laplace(300, &SEARCHES, 1);
}

#[test]
fn searches_of_classes_do_not_depend_on_the_number_of_threads() {
    laplace(300, &SEARCHES, 3);
}

/// Fits and predictions of a network with so many outputs: one is a value, more are classes.
fn laplace(rows: usize, curvatures: &[&str], outputs: usize) {
    let folder = folder(rows);
    let at = folder.path();
    network(at, "net.toml", 3, outputs);
    let (target, loss, likelihood) = match outputs {
        1 => ("y", "mse", "gaussian"),
        _ => ("colour", "cross-entropy", "categorical"),
    };
    let line = format!(
        "train net.toml t.csv --features a,b,c --target {target} --loss {loss} --epochs 3 -o net.safetensors"
    );
    posterior(at).args(line.split_whitespace()).assert().success();
    let fit = format!("fit t.csv --network net.safetensors --likelihood {likelihood} --method");
    fits(at, &fit, curvatures);
}
