//! Experiments: every file of the project is valid and shows what was published when run quickly; files and settings that make no sense are refused.

use posterior::experiment::{Experiment, ExperimentError, Outcome, RunOptions, kinds, list, run};
use posterior::optim::Signal;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn quick(name: &str) -> Outcome {
    let experiment = Experiment::read(&folder().join(format!("{name}.toml"))).unwrap();
    let options = RunOptions { seed: None, quick: true };
    run(&experiment, &options, &mut |_| Signal::Continue).unwrap()
}

#[test]
fn digits_by_made_up_images() {
    let outcome = quick("thesis_mnist");
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
}

/// Runs quickly; everything that the file expects must hold, and there must be something.
fn holds(name: &str) -> Outcome {
    let outcome = quick(name);
    assert!(!outcome.expectations.is_empty());
    for e in &outcome.expectations {
        assert_eq!(e.holds, Some(true), "{}: {:?} against {:?}", e.expectation.claim, e.found, e.compared);
    }
    assert!(outcome.published.iter().all(|p| p.found.is_some()), "{:?}", outcome.published);
    outcome
}

fn number(outcome: &Outcome, path: &[&str]) -> f64 {
    path.iter().fold(&outcome.mean, |value, key| &value[*key]).as_f64().unwrap()
}

#[test]
fn every_file_is_an_experiment() {
    let listed = list(&folder()).unwrap();
    assert!(listed.len() >= 5);
    for one in &listed {
        assert!(kinds().any(|k| k.0 == one.kind), "{}: {}", one.name, one.title);
        assert!(one.quick && !one.source.is_empty(), "{}", one.name);
    }
}

#[test]
fn approximations_on_three_clusters() {
    let outcome = holds("toy_regression");
    // The two exact forms agree in everything, hyperparameters included.
    let of = |method: &str, key: &str| number(&outcome, &["methods", method, key]);
    for key in ["prior_precision", "noise_variance", "effective_dimension"] {
        let (a, b) = (of("full", key), of("function space", key));
        assert!((a / b - 1.0).abs() < 1e-3, "{key}: {a} {b}");
    }
}

#[test]
fn the_norm_of_trained_weights_widens_error_bars() {
    holds("thesis_error_bars");
}

#[test]
fn learned_precisions_are_those_of_brute_force() {
    let outcome = holds("thesis_evidence");
    // All updates of a conjugate model rest at the optimum, wherever they start.
    for update in ["MacKay from 500", "MacKay from 5", "max bound from 500", "max bound from 5"] {
        let found = number(&outcome, &["updates", update, "precision"]);
        let best = number(&outcome, &["brute_force", "precision"]);
        assert!((found / best - 1.0).abs() < 1e-3, "{update}: {found} {best}");
        let evidence = number(&outcome, &["updates", update, "log_evidence"]);
        assert!((evidence - number(&outcome, &["brute_force", "log_evidence"])).abs() < 1e-4);
    }
    // Bounds stay below what they bound.
    let series = &outcome.by_seed[0].series;
    let curve = |name: &str| -> Vec<f64> {
        series[name].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
    };
    for ((exact, bound), elbo) in curve("mode").iter().zip(curve("bound")).zip(curve("elbo")) {
        assert!(*exact > bound - 1e-6 && bound > elbo - 1e-6, "{exact} {bound} {elbo}");
    }
}

#[test]
fn estimators_have_the_variances_of_their_closed_forms() {
    let outcome = holds("thesis_effective_dimension");
    for estimator in ["prediction space", "weight space"] {
        let off = number(&outcome, &["estimators", estimator, "bias_in_standard_errors"]);
        assert!(off.abs() < 4.0, "{estimator}: {off} standard errors");
    }
}

#[test]
fn scale_of_normalised_weights() {
    let outcome = holds("thesis_scale");
    assert!(number(&outcome, &["output_change"]) < 1e-2);
}

#[test]
fn plain_laplace_leaves_the_data() {
    holds("thesis_plain_laplace");
}

const SMALL: &str = r#"
title = "t"
source = "s"
kind = "bands"
seeds = [0, 1]
[data]
problem = "sine"
margin = 1.0
grid = 20
[network]
kind = "perceptron"
inputs = 1
hidden = [4]
outputs = 1
[training]
learning_rate = 1e-2
steps = 50
batch = 38
[[method]]
name = "full"
[[published]]
what = "a number that we have"
value = 1.0
ours = "methods.full.noise_variance"
[[published]]
what = "a number that we do not have"
value = 1.0
ours = "methods.full.nothing"
[[expect]]
claim = "variances are positive"
value = "methods.full.noise_variance"
above = 0.0
"#;

fn parse(text: &str) -> Result<Experiment, ExperimentError> {
    Experiment::parse(text, Path::new("folder/small.toml"))
}

#[test]
fn numbers_are_averaged_over_seeds_and_written() {
    let experiment = parse(SMALL).unwrap();
    let outcome = run(&experiment, &RunOptions::default(), &mut |_| Signal::Continue).unwrap();
    let own = |i: usize| outcome.by_seed[i].numbers["methods"]["full"]["noise_variance"].as_f64().unwrap();
    let mean = number(&outcome, &["methods", "full", "noise_variance"]);
    assert!(own(0) != own(1) && (mean - 0.5 * (own(0) + own(1))).abs() < 1e-15);
    assert!(
        outcome.holds() && outcome.published[0].found == Some(mean) && outcome.published[1].found.is_none()
    );
    // The same seed gives the same numbers, and one seed can be chosen.
    let second =
        run(&experiment, &RunOptions { seed: Some(1), quick: false }, &mut |_| Signal::Continue).unwrap();
    assert_eq!(second.by_seed[0].series, outcome.by_seed[1].series);
    let out = tempfile::tempdir().unwrap();
    let files = outcome.write(&out.path().join("new/folder")).unwrap();
    let results: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&files.results).unwrap()).unwrap();
    assert_eq!(results["mean"]["methods"]["full"]["noise_variance"].as_f64(), Some(mean));
    assert_eq!(results["by_seed"][1]["series"]["grid"].as_array().unwrap().len(), 20);
    let html = std::fs::read_to_string(&files.report).unwrap();
    assert!(html.contains("variances are positive") && html.contains("not found"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |from: &str, to: &str, word: &str| {
        assert!(SMALL.contains(from), "{from}");
        let text = SMALL.replacen(from, to, 1);
        let error = match parse(&text) {
            Err(error) => error,
            Ok(experiment) => {
                run(&experiment, &RunOptions::default(), &mut |_| Signal::Continue).map(|_| ()).unwrap_err()
            }
        };
        assert!(error.to_string().contains(word), "{from} -> {to}: {error}");
    };
    refused("kind = \"bands\"", "kind = \"nothing\"", "plain-laplace");
    refused("grid = 20", "grid = 20\nunknown = 1", "unknown");
    refused("title = \"t\"", "title = \"t\"\nunknown = 1", "unknown");
    refused("name = \"full\"", "name = \"full\"\ncurvature = \"round\"", "round");
    refused("title = \"t\"", "title = \"t\"\nreference = \"other\"", "other");
    refused("seeds = [0, 1]", "seeds = []", "seeds");
    refused("above = 0.0", "above = 0.0\nbelow = 1.0", "exactly one");
    refused("steps = 50", "steps = 50\nepochs = 3", "either");
    refused("steps = 50", "steps = 50\nmomentum = 0.5", "momentum");
    refused("grid = 20", "grid = 1", "grid");
    refused("grid = 20", "grid = 20\nevery = 0", "every");
    refused("margin = 1.0", "margin = -1.0", "margin");
    refused("inputs = 1", "inputs = 2", "shape");
    refused("hidden = [4]", "hidden = [0]", "0");
    refused("batch = 38", "batch = 0", "batch");
    refused("above = 0.0", "above = 0.0\n[quick]\ndata.girth = 3", "girth");
    let error =
        run(&parse(SMALL).unwrap(), &RunOptions { seed: None, quick: true }, &mut |_| Signal::Continue);
    assert!(error.unwrap_err().to_string().contains("--quick"));
}

#[test]
fn interruption_stops_between_steps() {
    let experiment = parse(SMALL).unwrap();
    let mut events = 0;
    let stopped = run(&experiment, &RunOptions::default(), &mut |event| {
        events += 1;
        if event.stage == "training" { Signal::Continue } else { Signal::Stop }
    });
    assert!(matches!(stopped, Err(ExperimentError::Interrupted)), "{stopped:?}");
    assert!(events > 1);
}
