//! Searches for networks whose outputs are counts, events and classes, and for those whose outputs do not fit; joint scores and draws of processes.

use super::laplace_search_flags::process;
use super::laplace_searches::RINGS;
use super::networks_common::*;
use posterior::data::{ArrayValues, NumericArray, ReadOptions, read_array, write_npy};
use serde_json::Value;
use std::path::Path;

/// 120 examples of two inputs, and numbers, counts, events and pairs as targets.
fn arrays(at: &Path) {
    let write = |name: &str, shape: Vec<usize>, values: Vec<f64>| {
        write_npy(&at.join(name), &NumericArray::new(shape, ArrayValues::F64(values)).unwrap()).unwrap();
    };
    let x: Vec<f64> = (0..240).map(|i| normal(i, 0.3)).collect();
    let rate = |i: usize| (0.5 + 0.5 * x[2 * i]).exp();
    let counts = (0..120).map(|i| (rate(i) + uniform(i, 0.7)).floor()).collect();
    let events = (0..120).map(|i| f64::from(x[2 * i] + normal(i, 0.9) > 0.0)).collect();
    write("x.npy", vec![120, 2], x.clone());
    write("counts.npy", vec![120], counts);
    let whole = ArrayValues::I64((0..120).map(|i| i % 2).collect());
    write_npy(&at.join("whole.npy"), &NumericArray::new(vec![120], whole).unwrap()).unwrap();
    write("events.npy", vec![120], events);
    write("pairs.npy", vec![120, 2], x);
    network(at, "net.toml", 2, 1);
    let row = |i: usize| format!("{},{},{}\n", normal(2 * i, 0.3), normal(2 * i + 1, 0.3), uniform(i, 0.1));
    std::fs::write(at.join("t.csv"), "a,b,y\n".to_string() + &(0..120).map(row).collect::<String>()).unwrap();
    json(at, "train net.toml t.csv --target y --loss mse --epochs 5 -o table.safetensors");
    // Without what the file says about the table it is a network for arrays.
    let bytes = std::fs::read(at.join("table.safetensors")).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    header.as_object_mut().unwrap().remove("__metadata__");
    let head = serde_json::to_vec(&header).unwrap();
    let mut bare = (head.len() as u64).to_le_bytes().to_vec();
    bare.extend(head);
    bare.extend(&bytes[8 + length..]);
    std::fs::write(at.join("net.safetensors"), bare).unwrap();
}

#[test]
fn outputs_that_do_not_fit_the_likelihood_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    arrays(at);
    let start = "fit x.npy --network net.safetensors --architecture net.toml -o never.posterior --labels";
    for (flags, expected) in [
        (
            "events.npy --likelihood heteroscedastic",
            "the network has 1 outputs; heteroscedastic noise needs a mean and a log variance for each target",
        ),
        (
            "whole.npy --likelihood categorical",
            "the network has one output: two classes by one logit are `bernoulli` events",
        ),
        ("pairs.npy --likelihood gaussian", "each example has 2 target values, the network 1 outputs"),
        (
            "pairs.npy --likelihood poisson",
            "each example has 2 target values, but the likelihood describes 1",
        ),
        (
            "pairs.npy --likelihood bernoulli",
            "each example has 2 target values, but the likelihood describes 1",
        ),
    ] {
        for curvature in ["fixed-mean --set kernel-inputs=inputs", "valla", "last-layer"] {
            let text = error(at, &format!("{start} {flags} --method {curvature}"));
            assert!(text.contains(expected), "{flags} {curvature}: {text}");
        }
    }
}

#[test]
fn counts_and_events_have_searches_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    arrays(at);
    for (likelihood, labels) in [("poisson", "counts.npy"), ("bernoulli", "events.npy")] {
        for flags in ["fixed-mean --set kernel-inputs=inputs", "fixed-mean", "gwi", "valla"] {
            let line = format!(
                "fit x.npy --network net.safetensors --architecture net.toml --labels {labels} --likelihood {likelihood} --method {flags} --set inducing-points=6 --set steps=30 --set batch=30 -o m.posterior"
            );
            let fit = json(at, &line);
            let around = &fit["header"]["summary"]["learned"]["gwi"]["prior"];
            let found = if flags == "gwi" { around } else { process(&fit) };
            assert!(number(&found["amplitude"]) > 0.0, "{line}");
            let scores = json(at, &format!("evaluate m.posterior x.npy --labels {labels}"));
            let scores = &scores["models"][0]["scores"];
            let nll = if likelihood == "poisson" { &scores["nll_of_the_likelihood"] } else { &scores["nll"] };
            assert!(number(nll).is_finite(), "{line}: {scores}");
        }
    }
}

#[test]
fn processes_have_joint_scores_and_draws() {
    let folder = classifier();
    let at = folder.path();
    for flags in [
        "fixed-mean --set steps=40 --set batch=30",
        "fixed-mean --set kernel-inputs=features --set steps=10 --set batch=30",
        "gwi --set steps=20 --set batch=30",
        "gwi --set kernel-inputs=features --set variational-kernel=cholesky --set steps=20 --set batch=30",
        "valla --set steps=10 --set batch=30",
        "valla --set closed-form",
    ] {
        json(at, &format!("{RINGS} --method {flags} --set inducing-points=9 -o m.posterior"));
        let scores = json(at, "evaluate m.posterior test.csv --limit 60 --joint-kappa 1,3 --samples 16");
        let joint = scores["joint"].as_array().unwrap();
        assert_eq!(joint.len(), 2, "{scores}");
        json(
            at,
            "predict m.posterior test.csv --limit 10 --samples 400 --samples-out d.npy -o p.csv --force",
        );
        let draws = read(at, "d.npy");
        assert_eq!(draws.shape(), [400, 10, 3]);
        let draws = draws.to_f64();
        for k in 0..30 {
            let own: Vec<f64> = (0..400).map(|s| draws[s * 30 + k]).collect();
            let mean = own.iter().sum::<f64>() / 400.0;
            let variance = own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 399.0;
            assert!(variance > 0.0 && variance.is_finite(), "{flags}: output {k}");
        }
    }
}

/// The array of a file.
fn read(at: &Path, name: &str) -> NumericArray {
    read_array(&at.join(name), &ReadOptions::for_arrays()).unwrap()
}
