//! The files of the project, and sweeps that are small.

use super::Settings;
use crate::kinds::prelude::*;
use crate::{Experiment, Outcome, RunOptions, run};
use posterior_optim::Signal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("files").join(format!("{name}.toml"))
}

fn settings(name: &str) -> Settings {
    crate::kinds::settings(&Experiment::read(&path(name)).unwrap().settings).unwrap()
}

fn quick(name: &str) -> Outcome {
    let options = RunOptions { quick: true, ..RunOptions::default() };
    run(&Experiment::read(&path(name)).unwrap(), &options, &mut |_| Signal::Continue).unwrap()
}

/// The number at a path of keys.
fn number(value: &Value, keys: &[&str]) -> f64 {
    let found = keys.iter().fold(value, |value, key| &value[*key]);
    found.as_f64().unwrap_or_else(|| panic!("no number at {keys:?}: {found}"))
}

/// A sweep of eight fits on two curves, of three that are known.
fn small(more: &str) -> Experiment {
    let text = std::fs::read_to_string(path("generalised_curves")).unwrap();
    let known = &text[text.find("[[curve]]").unwrap()..text.find("[[curve]]\nnumber = 4").unwrap()];
    let text = format!(
        r#"
title = "t"
source = "s"
kind = "generalised-curves"
curves = [1, 3]
points = 30
{more}
data = {{ points = 200, noise = 0.5, train = 0.8, split = "published" }}
[training]
risk = "predictive"
reduction = "mean"
weight = 1.0
least_variance = 1e-4
coordinates = "kernel"
rule = "adabelief"
steps = 30
check_every = 10
patience = 20
[grid]
powers = [2]
priors = ["nngp", "ard"]
kernels = ["diagonal", "sparse-posterior"]
modes = ["posterior"]
regularisers = ["projected-renyi=0.5"]
rates = [1e-3]
[[learning]]
name = "evidence"
risk = "evidence"
turns = 2
steps = 20
noise_in = "never"
{known}
"#
    );
    Experiment::parse(&text, Path::new("folder/small.toml")).unwrap()
}

fn run_small(experiment: &Experiment, journal: Option<PathBuf>) -> Outcome {
    let options = RunOptions { journal, ..RunOptions::default() };
    run(experiment, &options, &mut |_| Signal::Continue).unwrap()
}

/// Numbers without seconds, which no two runs share.
fn lasting(outcome: &Outcome) -> Value {
    fn without(value: &Value) -> Value {
        let Value::Object(map) = value else { return value.clone() };
        let kept = map.iter().filter(|(key, _)| !key.contains("seconds"));
        Value::Object(kept.map(|(key, value)| (key.clone(), without(value))).collect())
    }
    without(&outcome.mean)
}

#[test]
fn the_grid_is_the_published_one_with_the_published_winners_in_it() {
    let settings = settings("generalised_curves");
    let configurations = settings.grid.as_ref().unwrap().configurations();
    let different: BTreeSet<String> = configurations.iter().map(|c| c.values().join(" ")).collect();
    assert_eq!((configurations.len(), different.len(), settings.curves.len()), (1260, 1260, 10));
    for known in &settings.known {
        assert!(configurations.contains(&known.winner), "{}", known.number);
        // One order of blocks by chance, of which a split takes the first five or ten.
        assert!(known.blocks.five.iter().all(|b| known.blocks.ten.contains(b)), "{}", known.number);
    }
    // Three curves of the published figure have ten blocks, and so have their rows.
    let ten: Vec<usize> = settings.known.iter().filter(|k| k.blocks.shown == 10).map(|k| k.number).collect();
    assert_eq!(ten, [6, 7, 9]);
    let streams = posterior_linalg::random::Streams::new(0);
    for known in &settings.known {
        let blocks = known.blocks.of(settings.data.split);
        let problem = settings.data.problem(known.number, blocks, streams).unwrap();
        let rows = problem.rows();
        let expected = if ten.contains(&known.number) { [400, 100, 500] } else { [600, 150, 250] };
        assert_eq!(rows, expected);
        assert_eq!(
            known.winner.points(rows[0]),
            match (known.number, known.winner.power) {
                (6 | 7 | 9, _) => 20,
                (_, 3) => 8,
                _ => 24,
            }
        );
    }
    // The other files know the same of the same curves; ours are settings of the sweep as well.
    for (name, published) in [("generalised_winners", true), ("generalised_own_winners", false)] {
        let winners = super::tests::settings(name);
        assert!(winners.grid.is_none() && winners.data == settings.data, "{name}");
        assert_eq!(winners.known.len(), settings.known.len());
        for (one, other) in settings.known.iter().zip(&winners.known) {
            assert_eq!((one.number, &one.blocks), (other.number, &other.blocks), "{name}");
            assert_eq!(one.winner == other.winner, published, "{name}, {}", one.number);
            assert!(configurations.contains(&other.winner), "{name}, {}", one.number);
        }
    }
}

#[test]
fn results_are_the_same_for_any_number_of_workers() {
    let [one, two] = [1, 2].map(|workers| run_small(&small(&format!("workers = {workers}")), None));
    assert_eq!(lasting(&one), lasting(&two));
    assert_eq!(one.by_seed[0].series, two.by_seed[0].series);
    let all = &one.mean["ways"]["evidence"]["all"];
    assert_eq!((number(all, &["fits"]), number(all, &["failed"])), (8.0, 0.0));
    // What is best is no worse than any other, and what was published has its rank.
    for curve in ["1", "3"] {
        let of = |keys: &[&str]| number(&one.mean, &[&["ways", "evidence", "curves", curve], keys].concat());
        assert_eq!(of(&["fits"]), 4.0);
        assert!(of(&["ours", "validation"]) < 10.0);
    }
    let options = &one.mean["ways"]["evidence"]["options"];
    let wins = |option: &str| -> f64 {
        options[option].as_object().unwrap().values().map(|value| value["wins"].as_f64().unwrap()).sum()
    };
    assert!(["power", "prior", "kernel", "mode", "regulariser", "rate"].iter().all(|o| wins(o) == 2.0));
    let html = one.report().to_html();
    for heading in ["Winners beside the published ones", "Curve 3 (evidence)", "the objective on its way"] {
        assert!(html.contains(heading), "{heading}");
    }
}

#[test]
fn finished_fits_are_not_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("finished.jsonl");
    let experiment = small("workers = 1");
    let whole = run_small(&experiment, None);
    // Four priors (two kernels on two curves) and some of the fits.
    let options = RunOptions { journal: Some(journal.clone()), ..RunOptions::default() };
    let stopped = run(&experiment, &options, &mut |event| {
        if event.stage.ends_with("fits") && event.done >= 3 { Signal::Stop } else { Signal::Continue }
    });
    assert!(matches!(stopped, Err(ExperimentError::Interrupted)), "{stopped:?}");
    let kept = std::fs::read_to_string(&journal).unwrap().lines().count();
    assert!((7..12).contains(&kept), "{kept}");
    let again = run_small(&experiment, Some(journal.clone()));
    assert_eq!((again.reused, lasting(&again)), (kept, lasting(&whole)));
    // Priors, fits and pictures: now there is nothing left to do, whoever does it.
    let all = std::fs::read_to_string(&journal).unwrap().lines().count();
    let mut told = Vec::new();
    let last = run(&small("workers = 2"), &options, &mut |event| {
        told.push((event.stage.to_string(), event.done == event.total));
        Signal::Continue
    })
    .unwrap();
    assert_eq!((last.reused, &last.mean), (all, &again.mean));
    assert!(told.len() == 3 && told.iter().all(|(_, done)| *done), "{told:?}");
}

#[test]
fn a_journal_of_another_sweep_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Some(folder.path().join("finished.jsonl"));
    let first = small("");
    run_small(&first, journal.clone());
    let mut longer = first.clone();
    longer.settings["training"]["steps"] = 31.into();
    let outcome = run_small(&longer, journal.clone());
    // Priors are the same.
    assert_eq!(outcome.reused, 4);
    assert!(outcome.report().to_html().contains("8 fits with other settings"));
    let mut noisier = first;
    noisier.settings["data"]["noise"] = 0.4.into();
    assert_eq!(run_small(&noisier, journal).reused, 0);
}

#[test]
fn all_unknown_keys_are_named_at_once() {
    let text = std::fs::read_to_string(path("generalised_curves")).unwrap();
    let changes = [
        ("points = 400", "pionts = 400"),
        ("noise = 0.5", "noize = 0.5"),
        ("check_every", "check_evry"),
        ("modes = ", "mode = "),
        ("shown = 5", "shwon = 5"),
        ("rate = 1e-2 }", "rate = 1e-2, momentum = 0.9 }"),
        ("turns = 5", "turns = 5\nround = 5"),
    ];
    let wrong = changes.iter().fold(text.clone(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    let error = Experiment::parse(&wrong, Path::new("f.toml")).unwrap_err().to_string();
    for key in [
        "pionts",
        "data.noize",
        "training.check_evry",
        "grid.mode",
        "curve.blocks.shwon",
        "curve.winner.momentum",
        "learning.round",
    ] {
        assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
    }
    let refused = |from: &str, to: &str, word: &str| {
        assert!(text.contains(from), "{from}");
        let error = Experiment::parse(&text.replacen(from, to, 1), Path::new("f.toml")).unwrap_err();
        assert!(error.to_string().contains(word), "{from} -> {to}: {error}");
    };
    refused("curves = [1, 2,", "curves = [1, 1,", "each once");
    refused("curves = [1, 2,", "curves = [11, 2,", "from 1 to 10");
    refused("number = 2", "number = 3", "each once");
    refused("modes = [\"posterior\", \"prior\"]", "modes = []", "[grid]: `modes`");
    refused("rates = [1e-2,", "rates = [-1e-2,", "step sizes");
    refused("projected-kl-pq", "projected-kl-pp", "is no regulariser");
    refused("five = [3, 8,", "five = [1, 8,", "from 2 to 17");
    refused("noise = 0.5", "noise = 0.0", "[data]");
    refused("least_variance = 1e-4", "least_variance = 0.0", "least_variance");
    refused("weight = 1.0", "weight = 0.0", "`weight`");
    refused("name = \"evidence\"", "name = \"evi.dence\"", "name");
}

#[test]
fn the_sweep_runs_quickly() {
    let outcome = quick("generalised_curves");
    let all = &outcome.mean["ways"]["evidence"]["all"];
    assert_eq!(number(all, &["failed"]), 0.0);
    // Published winners are among the fits, and what is called ours is no worse than they are.
    let curves = outcome.mean["ways"]["evidence"]["curves"].as_object().unwrap();
    assert!(!curves.is_empty());
    for (curve, found) in curves {
        let behind = number(found, &["behind"]);
        assert!(behind >= 0.0, "curve {curve}: {behind}");
        assert!((1.0..=number(found, &["fits"])).contains(&number(found, &["rank"])), "curve {curve}");
        let of = |split: &str| number(found, &["ours", split]);
        let parts = [of("train"), of("validation"), of("test")];
        let (least, most) =
            (parts.iter().fold(f64::MAX, |a, b| a.min(*b)), parts.iter().fold(f64::MIN, |a, b| a.max(*b)));
        assert!((least..=most).contains(&of("full")), "curve {curve}: {parts:?}");
    }
    assert!(number(all, &["most_seconds"]) >= number(all, &["mean_seconds"]));
}

#[test]
fn the_published_winners_run_quickly() {
    let own = quick("generalised_own_winners");
    let own = &own.mean["ways"]["evidence"]["all"];
    assert_eq!((number(own, &["failed"]), number(own, &["fits"])), (0.0, 3.0));
    let outcome = quick("generalised_winners");
    for way in ["evidence", "pointwise"] {
        let all = &outcome.mean["ways"][way]["all"];
        assert_eq!((number(all, &["failed"]), number(all, &["same"])), (0.0, number(all, &["fits"])));
    }
}

#[test]
fn learning_in_turns_runs_quickly() {
    let outcome = quick("generalised_learning");
    // What the file expects is of all its rows; of so few the noise is as wide as the gaps.
    assert!(outcome.expectations.iter().all(|e| e.found.is_some()), "{:?}", outcome.expectations);
    assert!(outcome.report().to_html().contains("ard, turn 1"));
}

#[test]
fn tempering_runs_quickly_and_both_ways_agree() {
    let outcome = quick("generalised_tempering");
    assert!(outcome.holds(), "{:?}", outcome.expectations);
    assert_eq!(number(&outcome.mean, &["mean_moved"]), 0.0);
    // Widths go with the root of the factor.
    let width = |when: &str| number(&outcome.mean, &["tempering", when, "half_width"]);
    let ratio = width("after") / width("before");
    assert!((ratio * ratio / number(&outcome.mean, &["alpha"]) - 1.0).abs() < 1e-9);
}
