//! The files of the project: quick runs of them, what they refuse, and what an interruption leaves.

use super::Settings;
use super::baselines::fit_isotropic;
use crate::kinds::prelude::*;
use crate::{Experiment, Outcome, RunOptions, run};
use posterior_linalg::cholesky::JitterPolicy;
use posterior_optim::Signal;
use posterior_tomography::measured::ObservedPrior;
use posterior_tomography::phantom::walnut_slice;
use posterior_tomography::priors::Isotropic;
use posterior_tomography::{ParallelBeam, Projector, simulate};
use std::path::{Path, PathBuf};

const FILES: [&str; 3] = ["tomography_digits", "tomography_uncertainty", "tomography_roughness"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("files").join(format!("{name}.toml"))
}

/// A file with a part replaced where it first stands.
fn changed(name: &str, from: &str, to: &str) -> Result<Experiment, ExperimentError> {
    let text = std::fs::read_to_string(path(name)).unwrap();
    assert!(text.contains(from), "{name}: {from}");
    Experiment::parse(&text.replacen(from, to, 1), &path(name))
}

fn quick(name: &str) -> Outcome {
    let options = RunOptions { quick: true, ..RunOptions::default() };
    run(&Experiment::read(&path(name)).unwrap(), &options, &mut |_| Signal::Continue).unwrap()
}

/// Refuses numbers that became null, which is how JSON writes what is not finite. Standard errors of one image are null.
fn finite(value: &Value, place: &str) {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !key.ends_with("_error") || place.ends_with("estimates"))
            .for_each(|(key, value)| finite(value, &format!("{place}.{key}"))),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| finite(value, &format!("{place}.{i}")))
        }
        Value::Null => panic!("{place} is no number"),
        _ => {}
    }
}

fn judged(outcome: &Outcome) {
    assert!(outcome.expectations.iter().all(|e| e.found.is_some() && e.compared.is_some()));
    assert!(outcome.published.iter().all(|p| p.found.is_some()));
    finite(&outcome.mean, "mean");
    finite(&outcome.by_seed[0].series, "series");
}

#[test]
fn the_digits_run_quickly() {
    let outcome = quick("tomography_digits");
    judged(&outcome);
    let cells = &outcome.mean["evidence"];
    for optimum in ["optimum", "network"] {
        // More variances explain the same measurements at least as well, as far as few steps go.
        let value = |kind: &str| cells[format!("{optimum}, {kind}")]["evidence"].as_f64().unwrap();
        assert!(value("layerwise") > value("single") - 1.0, "{optimum}");
    }
}

#[test]
fn the_error_bars_run_quickly() {
    let outcome = quick("tomography_uncertainty");
    judged(&outcome);
    let methods = outcome.mean["uncertainty"]["methods"].as_object().unwrap();
    assert_eq!(methods.len(), 6);
    for (name, own) in methods {
        assert!((0.0..=1.0).contains(&own["covered"].as_f64().unwrap()), "{name}");
        assert!(own["deviation"].as_f64().unwrap() > 0.0, "{name}");
    }
    let html = outcome.report().to_html();
    assert_eq!(html.matches("class=\"pixels\"").count(), 2);
}

#[test]
fn the_roughness_runs_quickly() {
    let outcome = quick("tomography_roughness");
    judged(&outcome);
    // Values and slopes are by the same samples, 200 of them, and unbiased.
    let estimates = &outcome.mean["roughness"]["estimates"];
    assert!(estimates["value_error"].as_f64().unwrap() < 0.2);
    assert!(estimates["differences"]["error"].as_f64() < estimates["published"]["error"].as_f64());
    assert!(estimates["published"]["bias"].as_f64().unwrap() < 0.0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (name, from, to, word) in [
        ("tomography_digits", "angles = 20", "angles = 20\ngirth = 1", "scan.girth"),
        ("tomography_digits", "weight = 1e-4", "weight = 1e-4\ngirth = 1", "prior.girth"),
        ("tomography_digits", "eigenvectors = 100", "eigenvectors = 100\ngirth = 1", "evidence.girth"),
        ("tomography_digits", "epochs = 3", "epochs = 3\ngirth = 1", "girth"),
        ("tomography_digits", "count = 10", "count = 10\ngirth = 1", "image.girth"),
        ("tomography_digits", "count = 10", "count = 0", "count"),
        ("tomography_digits", "noise = 0.05", "noise = 0.0", "noise"),
        ("tomography_digits", "side = 28", "side = 0", "side"),
        ("tomography_digits", "[evidence]\nsteps = 60\neigenvectors = 100", "", "evidence"),
        ("tomography_digits", "iterations = 3000", "iterations = 3000\ndropout = 0.1", "dropout"),
        ("tomography_uncertainty", "bins = 40", "bins = 40\ngirth = 1", "uncertainty.girth"),
        ("tomography_uncertainty", "rate = 0.05", "rate = 0.05, girth = 1", "girth"),
        ("tomography_uncertainty", "rate = 0.05", "rate = 1.0", "rate"),
        ("tomography_uncertainty", "turns = 8", "turns = 8, girth = 1", "girth"),
        ("tomography_uncertainty", "total-variation = {}", "total-variation = { weight = 1.0 }", "weight"),
        ("tomography_uncertainty", "pictures = [\"g-prior\"", "pictures = [\"h-prior\"", "h-prior"),
        ("tomography_uncertainty", "largest_patch = 10", "largest_patch = 65", "largest_patch"),
        ("tomography_uncertainty", "name = \"walnut\"", "name = \"ellipses\"", "ellipses"),
        ("tomography_roughness", "step = 0.1", "step = 0.1\ngirth = 1", "roughness.girth"),
        ("tomography_roughness", "from = 0.01", "from = 1000.0", "from"),
        ("tomography_roughness", "steps = 150", "steps = 0", "steps"),
    ] {
        let error = changed(name, from, to).err().map(|e| e.to_string());
        assert!(error.as_ref().is_some_and(|e| e.contains(word)), "{from} -> {to}: {error:?}");
    }
}

#[test]
fn files_that_are_not_there_are_named() {
    let experiment = changed("tomography_digits", "../shared/data/mnist", "nowhere").unwrap();
    let error = run(&experiment, &RunOptions::default(), &mut |_| Signal::Continue).unwrap_err();
    assert!(matches!(error, ExperimentError::MissingData { .. }), "{error}");
}

#[test]
fn settings_are_as_the_source_has_them() {
    for name in FILES {
        let experiment = Experiment::read(&path(name)).unwrap();
        let settings: Settings = crate::kinds::settings(&experiment.settings).unwrap();
        assert!(settings.prior.training.iterations <= 3000 && settings.prior.pretraining.is_some());
        assert_eq!((settings.scan.angles, settings.scan.noise), (20, 0.05));
    }
}

#[test]
fn finished_parts_are_not_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("finished.jsonl");
    let experiment = Experiment::read(&path("tomography_uncertainty")).unwrap();
    let options = RunOptions { quick: true, journal: Some(journal.clone()), ..RunOptions::default() };
    // The pretraining, the network, the network with dropped channels and its scores; told to stop in the next.
    let stopped = run(&experiment, &options, &mut |event| {
        if event.stage.contains("type-II MAP") { Signal::Stop } else { Signal::Continue }
    });
    assert!(matches!(stopped.unwrap_err(), ExperimentError::Interrupted));
    let lines = std::fs::read_to_string(&journal).unwrap().lines().count();
    assert_eq!(lines, 4);
    let whole = run(&experiment, &options, &mut |_| Signal::Continue).unwrap();
    // That of the dropped channels' network is behind its scores.
    assert_eq!(whole.reused, 3);
    let plain = quick("tomography_uncertainty");
    for key in ["psnr", "marginal", "joint", "covered"] {
        for method in ["dropped channels", "g-prior", "filters, type-II MAP"] {
            let of =
                |outcome: &Outcome| outcome.mean["uncertainty"]["methods"][method][key].as_f64().unwrap();
            assert!((of(&whole) - of(&plain)).abs() < 1e-9, "{method}: {key}");
        }
    }
}

/// Against the evidence by a Cholesky factor: no neighbour is better.
#[test]
fn the_variance_of_pixels_maximises_the_evidence() {
    let projector = Projector::new(ParallelBeam::usual(12, 12, 6).unwrap()).unwrap();
    let truth = walnut_slice(12, 12, Streams::new(3));
    let sinogram = simulate(&projector, &truth, 0.05, Streams::new(4)).unwrap().sinogram;
    let [variance, noise] = fit_isotropic(&projector, &sinogram, 200).unwrap();
    let evidence = |variance: f64, noise: f64| {
        let root = Isotropic::new(144, variance).unwrap();
        let observed = ObservedPrior::new(&root, &projector, noise).unwrap();
        let factor = observed.factor(JitterPolicy::NONE).unwrap();
        observed.log_evidence(&factor, &sinogram).unwrap()
    };
    let best = evidence(variance, noise);
    for factor in [0.9, 1.0 / 0.9] {
        assert!(evidence(variance * factor, noise) < best);
        assert!(evidence(variance, noise * factor) < best);
    }
}
