//! Files of experiments: settings that make no sense are refused, results are averaged, written and kept.

// Errors of experiments carry paths and causes; tests do not mind their size.
#![allow(clippy::result_large_err)]

use crate::quick_runs::{changed, number};
use posterior_experiments::{Experiment, ExperimentError, Outcome, RunOptions, run};
use posterior_optim::Signal;
use std::path::Path;

#[test]
fn settings_of_processes_that_make_no_sense_are_refused() {
    let refused = |name: &str, quick: bool, from: &str, to: &str, word: &str| {
        let error = changed(name, &[(from, to)])
            .and_then(|e| run(&e, &RunOptions { quick, ..RunOptions::default() }, &mut |_| Signal::Continue))
            .unwrap_err();
        assert!(error.to_string().contains(word), "{name}, {from} -> {to}: {error}");
    };
    refused("thesis_uci", true, "folds = [0, 1]", "folds = [10]", "folds");
    refused("thesis_uci", true, "rows = 180", "rows = 3", "rows");
    refused("thesis_uci", true, "name = \"SGD\"", "name = \"SDD\"", "SDD");
    refused("thesis_uci", true, "iterations = 40\n", "iterations = 40\ntolerance = 0.1\n", "tolerance");
    refused("thesis_uci", true, "SGD.iterations = 100", "SQP.iterations = 100", "[options]");
    refused("thesis_uci", true, "SGD.iterations = 100", "SGD.iteration = 100", "iteration");
    refused("thesis_uci", false, "../shared/data/uci", "nowhere", "nowhere");
    refused("thesis_low_noise", true, "table = \"pol\"", "table = \"bike\"", "table");
    refused("thesis_inducing_descent", true, "pruning-ratio = 0.5", "pruning-ratio = 0.0", "ratio; it is");
    refused("thesis_inducing_descent", true, "inducing = 1000000", "inducing = 0", "inducing points");
    let from = "beyond = { noise = \"targets\" }";
    refused("thesis_inducing_descent", true, from, "beyond = { batch = 9 }", "batch");
    refused("thesis_inducing_descent", true, from, "beyond = { girth = 9 }", "girth");
    let from = "iterations = 600";
    refused("thesis_inducing_descent", true, from, &format!("{from}\ntolerance = 0.1"), "tolerance");
    refused("thesis_inducing_descent", true, "shares = [0.5]", "shares = [1.5]", "shares");
    refused("gaussianised_streams", true, "points = [50, 150, 400]", "points = [150, 50]", "points");
    refused(
        "gaussianised_streams",
        true,
        "choose_rows = 100\nbatch = 50",
        "choose_rows = 0\nbatch = 50",
        "choose_rows",
    );
    refused("gaussianised_streams", true, "damping = [1.0]", "damping = [1.5]", "damping");
    refused("gaussianised_streams", true, "damping = [1.0]", "damping = []", "filtering");
    refused("gaussianised_streams", true, "indicators = [0.1]", "indicators = [0.0]", "variance");
    refused("gaussianised_streams", true, "momentum = 0.9", "momentum = 1.0", "momentum");
    refused("gaussianised_streams", true, "matching = \"laplace\"\n", "", "laplace");
    refused("gaussianised_streams", true, "rows = 400, test = 100", "rows = 0, test = 100", "rows");
    refused("gaussianised_streams", true, "rows = 400, test = 100", "rows = 40, test = 100", "shorter");
    refused("gaussianised_streams", true, "grid = 10", "grid = 1", "grid");
    refused("thesis_thompson", true, "seconds = 0.15", "seconds = 0.0", "seconds");
    refused("thesis_thompson", true, "rounds = 2", "rounds = 0", "rounds");
    refused("thesis_spectral", true, "rows = 120\n", "rows = 20000\n", "rows");
    refused("thesis_spectral", true, "se(lengthscale=0.5", "sea(lengthscale=0.5", "sea");
    refused("thesis_convergence", true, "rows = 150", "rows = 30000", "30000");
    refused("thesis_convergence", true, "checkpoints = 15", "checkpoints = 1", "checkpoints");
    refused("thesis_convergence", true, "deviation = 1e-3", "deviation = -1e-3", "deviation");
    refused("thesis_convergence", true, "against = [\"seconds\", \"steps\"]", "against = []", "against");
    refused("thesis_convergence", true, "tolerance = 0.01", "tolerance = -0.01", "tolerance");
    let search = |clip: &str| format!("clip = {clip}, restarts = 0 }}\nlargest-step = {{ from = 0.008");
    refused("thesis_descent_ablations", true, &search("inf"), &search("0.1"), "clip");
    refused(
        "thesis_descent_ablations",
        true,
        "largest-step = { from = 0.008",
        "largest-step = { from = 0.0",
        "from",
    );
    let adam = "rule = \"adam\", clip = inf, restarts = 0 }\n";
    let searched = format!("{adam}largest-step = {{ from = 1.0, steps = 10, bisections = 1 }}\n");
    refused("thesis_descent_ablations", true, adam, &searched, "normalise");
    refused("thesis_weight_space", true, "case = \"affine\"", "case = \"affin\"", "`case`");
    refused("thesis_weight_space", true, "prior_precision = 6.0", "prior_precision = 0.0", "precisions");
    refused("thesis_weight_space", true, "case = \"short features\"", "case = \"short\"", "[pathwise]");
    refused("thesis_weight_space", true, "samples = 2\n", "samples = 0\n", "samples");
    refused("thesis_weight_space", true, "labels = [0.0, ", "labels = [0.5, ", "labels");
    refused("thesis_weight_space", true, "deviations = 9.0", "deviations = 1.0", "deviations");
    refused("thesis_weight_space", true, "shown = 4", "shown = 4000000", "`shown`");
    refused("thesis_weight_space", true, "inputs = [-1.6, ", "inputs = [", "as many");
    refused("thesis_weight_space", true, "features = 500", "features = 0", "`features`");
    refused("thesis_toy_processes", true, "rows = 1000\n", "rows = 100000\n", "rows");
    refused("thesis_toy_processes", true, "[20, 50, 100, 500]", "[21]", "random_features");
    refused("thesis_toy_processes", true, "methods = [\"SGD\"", "methods = [\"SQP\"", "methods");
    refused("thesis_toy_processes", true, "noise = 0.5", "noise = 0.0", "noise");
    refused("thesis_toy_processes", true, "deviation = 0.4", "deviation = -0.4", "inputs");
    refused("scaling", true, "rows = [300, 600, 1200]", "rows = [300]", "rows");
    refused("tanimoto", true, "test = 60", "test = 0", "test");
    refused("tanimoto", true, "columns = 128", "columns = 0", "columns");
    let labels = "gaussianised_active_learning";
    refused(labels, true, "pool = 150", "pool = 5", "pool");
    refused(labels, true, "labels = 24", "labels = 400", "labels");
    refused(labels, true, "vocabulary = 80", "vocabulary = 1", "vocabulary");
    refused(labels, true, "looks = [4, 14]\n", "looks = [14, 4]\n", "looks");
    refused(labels, true, "name = \"random, variational\"", "name = \"entropy, moment\"", "twice");
}

#[test]
fn settings_of_losses_that_make_no_sense_are_refused() {
    for (name, from, to, word) in [
        ("toy_classes", "pseudo_count = 0.1", "pseudo_count = 0.0", "give a positive, finite number"),
        ("toy_classes", "pseudo_count = 0.1", "pseudo_count = 0.1, prior_rate = 1", "prior_rate"),
        ("toy_classes", "loss = \"one-hot\"", "loss = \"mse\"", "the loss is not one of classes"),
        ("toy_classes", "outputs = 4", "outputs = 5", "5 outputs for 4 classes"),
        ("toy_classes", "grid = 81", "grid = 1", "`grid` between 2 and 400"),
        ("toy_classes", "name = \"laplace\"", "name = \"moment\"", "`moment` is no name"),
        ("photographs", "count = 1000", "count = 0", "counts of images"),
        ("photographs", "deviation = [0.229", "deviation = [-0.229", "deviations positive"),
        ("photographs", "name = \"noise\"\ncount = 1000", "name = \"digits\"\ncount = 1000", "`digits`"),
    ] {
        let error = changed(&format!("gaussianised_{name}"), &[(from, to)]).unwrap_err().to_string();
        assert!(error.contains(word), "{from} -> {to}: {error}");
    }
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
        run(&experiment, &RunOptions { seed: Some(1), ..RunOptions::default() }, &mut |_| Signal::Continue)
            .unwrap();
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
        run(&parse(SMALL).unwrap(), &RunOptions { quick: true, ..RunOptions::default() }, &mut |_| {
            Signal::Continue
        });
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

const FOLDS: &str = r#"
title = "t"
source = "s"
kind = "regression"
folder = ""
rows = 60
folds = [0, 1]
truth_features = 50
[methods]
samples = 4
random-features = 50
precision = "double"
held-back = 0
[[method]]
name = "direct"
method = "exact"
[[method]]
name = "SDD"
method = "sdd"
iterations = 30
batch = 16
[[set]]
name = "made up"
noise = 0.1
signal = 1.0
lengthscales = [0.5]
"#;

/// An interrupted run goes on behind the parts that it had finished, and ends with the same numbers.
#[test]
fn finished_parts_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Some(folder.path().join("finished.jsonl"));
    let kept = RunOptions { journal, ..RunOptions::default() };
    let experiment = parse(FOLDS).unwrap();
    let whole = run(&experiment, &RunOptions::default(), &mut |_| Signal::Continue).unwrap();
    let stopped = run(&experiment, &kept, &mut |event| {
        if event.stage == "made up, fold 1, SDD" && event.done > 3 { Signal::Stop } else { Signal::Continue }
    });
    assert!(matches!(stopped, Err(ExperimentError::Interrupted)), "{stopped:?}");
    let again = run(&experiment, &kept, &mut |_| Signal::Continue).unwrap();
    assert_eq!((whole.reused, again.reused), (0, 3));
    for (method, value) in [("direct", "rmse"), ("SDD", "rmse"), ("SDD", "nll")] {
        let path = ["sets", "made up", method, value];
        assert_eq!(number(&whole, &path), number(&again, &path));
    }
    assert!(again.report().to_html().contains("3 parts were finished by an earlier run"));
    // Other settings are another part; nothing is taken over when all is to be fresh.
    let changed = parse(&FOLDS.replace("iterations = 30", "iterations = 31")).unwrap();
    assert_eq!(run(&changed, &kept, &mut |_| Signal::Continue).unwrap().reused, 2);
    let fresh = RunOptions { fresh: true, ..kept };
    assert_eq!(run(&changed, &fresh, &mut |_| Signal::Continue).unwrap().reused, 0);
}

/// Methods that take long can be held to some of the folds.
#[test]
fn methods_may_have_folds_and_samples_of_their_own() {
    let some = FOLDS
        .replace("[[set]]", "[folds_of]\nSDD = [1]\n[[set]]")
        .replace("iterations = 30", "iterations = 30\nsamples = 2");
    let outcome = run(&parse(&some).unwrap(), &RunOptions::default(), &mut |_| Signal::Continue).unwrap();
    let whole = run(&parse(FOLDS).unwrap(), &RunOptions::default(), &mut |_| Signal::Continue).unwrap();
    let of =
        |outcome: &Outcome, method: &str, name: &str| number(outcome, &["sets", "made up", method, name]);
    assert_eq!((of(&outcome, "direct", "folds_counted"), of(&outcome, "SDD", "folds_counted")), (2.0, 1.0));
    assert_eq!(of(&outcome, "direct", "nll"), of(&whole, "direct", "nll"));
    let second =
        |outcome: &Outcome, name: &str| number(outcome, &["sets", "made up", "SDD", "folds", "fold 1", name]);
    assert_eq!(of(&outcome, "SDD", "rmse"), second(&outcome, "rmse"));
    // Fewer samples: another estimate of the variance.
    assert!(second(&outcome, "nll") != second(&whole, "nll"));
    for wrong in ["SDD = [7]", "other = [0]"] {
        let text = FOLDS.replace("[[set]]", &format!("[folds_of]\n{wrong}\n[[set]]"));
        let error = parse(&text).unwrap_err();
        assert!(error.to_string().contains("folds_of"), "{error}");
    }
}

/// A method can have other options on one of the sets, and then is another method of these options.
#[test]
fn sets_may_have_options_of_their_own() {
    let numbers = |before: &str| {
        let text = FOLDS.replace("[[set]]", &format!("{before}\n[[set]]"));
        parse(&text).and_then(|e| run(&e, &RunOptions::default(), &mut |_| Signal::Continue))
    };
    let nll = |outcome: &Outcome, method: &str| number(outcome, &["sets", "made up", method, "nll"]);
    let plain = numbers("").unwrap();
    let replaced = numbers("[options.\"made up\"]\nSDD.momentum = 0.5").unwrap();
    let text = FOLDS.replace("batch = 16", "batch = 16\nmomentum = 0.5");
    let own = run(&parse(&text).unwrap(), &RunOptions::default(), &mut |_| Signal::Continue).unwrap();
    assert!(nll(&replaced, "SDD") != nll(&plain, "SDD"));
    assert_eq!(nll(&replaced, "SDD"), nll(&own, "SDD"));
    for wrong in ["[options.other]\nSDD.batch = 8", "[options.\"made up\"]\nother.batch = 8"] {
        let error = numbers(wrong).unwrap_err();
        assert!(error.to_string().contains("[options]"), "{error}");
    }
}
