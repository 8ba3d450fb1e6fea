//! Features that are learned for classes, counts and outliers: against the distributions that the targets were drawn from, files, interruptions, refusals.

use crate::labelled::{fit, observed, question, scores};
use crate::options::set;
use posterior::data::synthetic::{smooth_classes, two_moons};
use posterior::data::{Column, Selection, Table, Values};
use posterior::likelihoods::{Likelihood, Poisson};
use posterior::linalg::random::Streams;
use posterior::models::{ModelData, Predicted, Question, Target};
use posterior::optim::Signal;
use posterior::options::{InferenceName, LikelihoodName, Start};
use posterior::{FitRequest, Model, ModelError, Saved};
use rand_distr::Distribution;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A small network of so many inputs and outputs: the one that is taken by itself is made for tables of thousands of rows.
fn network(inputs: usize, outputs: usize) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let path =
        FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().join(format!("{inputs}-{outputs}.toml"));
    let text = format!(
        "kind = 'residual_perceptron'\ninputs = {inputs}\nwidth = 24\nblocks = 2\noutputs = {outputs}\nactivation = 'tanh'\n"
    );
    // Tests that write the same at the same time leave a whole file each.
    let own = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    std::fs::write(own.path(), text).unwrap();
    own.persist(&path).unwrap();
    path
}

/// A request for a target, with options of the method by their flags.
fn request(target: &str, method: Value) -> FitRequest {
    let mut options =
        json!({"iterations": 300, "rank": 16, "batch": 128, "step-size": 0.005, "held-back": 100});
    options.as_object_mut().unwrap().extend(method.as_object().unwrap().clone());
    FitRequest {
        columns: Selection { target: target.into(), ..Selection::default() },
        method: serde_json::from_value(options).unwrap(),
        ..FitRequest::default()
    }
}

/// The same predictions from the file, and draws of each function that have its mean.
fn survives(model: &Model, table: &Table, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    model.save(&path).unwrap();
    let back = Saved::load(&path).unwrap().into_only().unwrap();
    let data = ModelData::of_table(table.clone()).unwrap();
    let own = model.predictive(&data, &question(false)).unwrap();
    assert_eq!(own, back.predictive(&data, &question(false)).unwrap(), "{what}");
    assert_eq!(model.described(), back.described(), "{what}");
    let few = data.selected(&[0, 3]).unwrap();
    let drawn = Question { samples: 400, draws_apart: true, ..question(false) };
    let draws = back.sample(&few, &drawn).unwrap();
    let functions = model.process().unwrap().output().likelihood().unwrap().likelihood.outputs();
    assert_eq!(draws.shape(), [400, 2, functions], "{what}");
    let posterior = model.process().unwrap().predictor().low_rank().unwrap();
    let level = model.process().unwrap().record().fit.likelihood().unwrap().features.as_ref().unwrap().level;
    let standard = &model.process().unwrap().inputs().standardisation;
    let extracted = model.process().unwrap().inputs().schema.extract(table, &[0, 3], false).unwrap();
    let latent = posterior.latent(standard.features(extracted.x.as_ref()).as_ref()).unwrap();
    let values = draws.to_f64();
    for i in 0..2 {
        for c in 0..functions {
            let mean = (0..400).map(|s| values[(s * 2 + i) * functions + c]).sum::<f64>() / 400.0;
            // Numbers are in their own units, counts for each unit of exposure.
            let (shift, scale) = match model.process().unwrap().output().likelihood().unwrap().target {
                Target::Numbers { mean, scale } => (mean, scale),
                Target::Counts { rate } => (rate.ln(), 1.0),
                _ => (0.0, 1.0),
            };
            let expected = shift + scale * (latent.mean[(i, c)] + level);
            let deviation = scale * latent.variance[(i, c)].sqrt();
            assert!((mean - expected).abs() < 5.0 * deviation / 20.0 + 1e-6, "{what}: {mean} {expected}");
        }
    }
}

/// Classes that were drawn from a known distribution, and how near a model comes to it.
fn check_classes(classes: usize, method: Value) {
    let what = format!("{classes} {method}");
    let made = smooth_classes(1500, 2, classes, (1.5, 2.5), Streams::new(7)).unwrap();
    let table = made.table();
    let (train, test): (Vec<usize>, Vec<usize>) = (0..1500).partition(|i| *i < 1000);
    let tried = if method.get("objective").is_some() { 1 } else { 6 };
    let model = fit(&table, &train, &request("class", method)).unwrap();
    let (nll, baseline) = scores(&model, &table, &test);
    // Of 500 rows; the generator's own NLL is the least that there is, and a half of what inputs can tell is little to ask.
    let least = made.least_nll();
    assert!(
        nll < least + 0.15 && nll < baseline - 0.5 * (baseline - least),
        "{what}: {nll} {least} {baseline}"
    );
    let fit = model.process().unwrap().record().fit.likelihood().unwrap();
    let features = fit.features.as_ref().unwrap();
    let outputs = if classes == 2 { 1 } else { classes };
    let point = features.learned.chosen == "the network alone";
    assert_eq!(features.learned.roots, if point { 1 } else { outputs }, "{what}");
    assert_eq!((features.learned.rank, features.learned.tried.len()), (16, tried), "{what}");
    // Ways that were left after the first round, whose passes they used up, have the weights of training.
    for tried in &features.learned.tried {
        let left = features.learned.tried.len() > 1 && tried.ended == "steps" && tried.steps[0] == 280;
        assert!(tried.noise.is_none() && (left || tried.refitted_nll.is_some()), "{what}: {tried:?}");
    }
    // A tenth of what is left when 100 rows are held back.
    assert_eq!(features.learned.validation_rows, 90, "{what}");
    let check = fit.check.as_ref().unwrap();
    assert!(check.rows == 100 && (check.scores.nll - nll).abs() < 0.3, "{what}: {check:?}");
    assert!(check.scores.ece.unwrap() < 0.2, "{what}: {check:?}");
    let plain = features.plain.as_ref().unwrap();
    assert!(plain.rows >= 500 && plain.scores.nll < baseline, "{what}: {plain:?}");
    survives(&model, &table, &what);
}

/// Fast counterpart of the slow test of three classes.
/// Mutation: `by_batches && ends` to `by_batches && !ends` in models/src/method/deep/candidates.rs.
#[test]
fn two_classes_come_near_the_distribution_that_they_were_drawn_from() {
    check_classes(2, json!({"method": "svdbk", "basis": network(2, 16)}));
}

#[test]
fn three_classes_are_learned_by_methods_with_one_objective() {
    for method in [
        json!({"method": "svdkl", "objective": "evidence", "basis": network(2, 2)}),
        json!({"method": "svdbk", "objective": "point", "basis": network(2, 16)}),
    ] {
        let what = method.to_string();
        let mut request = request("class", method);
        // Nothing is held back for a plain process beside, which takes longer than what is tested.
        set(&mut request, json!({"held-back": 0, "iterations": 120, "step-size": 0.02}));
        let made = smooth_classes(1500, 2, 3, (1.5, 2.5), Streams::new(7)).unwrap();
        let table = made.table();
        let (train, test): (Vec<usize>, Vec<usize>) = (0..1500).partition(|i| *i < 1000);
        let model = fit(&table, &train, &request).unwrap();
        let ((nll, baseline), least) = (scores(&model, &table, &test), made.least_nll());
        assert!(
            nll < least + 0.15 && nll < baseline - 0.5 * (baseline - least),
            "{what}: {nll} {least} {baseline}"
        );
        survives(&model, &table, &what);
    }
}

#[test]
#[ignore = "slow"]
fn three_classes_come_near_the_distribution_that_they_were_drawn_from() {
    for method in [
        json!({"method": "svdbk", "basis": network(2, 16)}),
        json!({"method": "dbk", "objective": "evidence", "correction": "full", "trace-weight": 0.1}),
        json!({"method": "dkl", "objective": "predictive", "divergence-weight": 0.5, "basis": network(2, 2)}),
    ] {
        check_classes(3, method);
    }
}

#[test]
fn two_moons_are_told_apart() {
    let table = two_moons(900, 0.15, Streams::new(4)).unwrap().table();
    let target = table.names().last().unwrap().clone();
    let (train, test): (Vec<usize>, Vec<usize>) = (0..900).partition(|i| i % 3 != 0);
    let moons = json!({"method": "svdbk", "basis": network(2, 16), "held-back": 0});
    let model = fit(&table, &train, &request(&target, moons)).unwrap();
    let (nll, baseline) = scores(&model, &table, &test);
    assert!(nll < 0.15 && baseline > 0.69, "{nll} {baseline}");
}

/// Counts whose rate jumps from 2 to 10 at 0 for each unit of exposure, where there are exposures.
fn steps(n: usize, exposures: bool) -> (Table, Vec<f64>) {
    let mut rng = Streams::new(11).stream("steps");
    let uniform = rand_distr::Uniform::new(-1.0, 1.0).unwrap();
    let (mut x, mut y, mut e, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        let own: f64 = uniform.sample(&mut rng);
        let exposure = if exposures { uniform.sample(&mut rng).exp() } else { 1.0 };
        let rate = exposure * if own < 0.0 { 2.0 } else { 10.0 };
        x.push(own);
        e.push(exposure);
        rates.push(rate);
        y.push(rand_distr::Poisson::new(rate).unwrap().sample(&mut rng));
    }
    let columns = [("x", x), ("hours", e), ("y", y)].map(|(name, v)| Column::numeric(name, v));
    (Table::new("steps.csv", columns.into()), rates)
}

#[test]
fn counts_whose_rate_jumps_are_learned_in_their_exposures() {
    let poisson = Poisson::new(1).unwrap();
    for (exposures, likelihood, method) in [
        (false, LikelihoodName::Poisson, json!({"method": "svdbk", "basis": network(1, 16)})),
        (
            true,
            LikelihoodName::Poisson,
            json!({"method": "svdbk", "objective": "evidence", "basis": network(1, 16)}),
        ),
        (
            true,
            LikelihoodName::NegativeBinomial,
            json!({"method": "svdkl", "objective": "evidence", "basis": network(1, 2), "rank": 8}),
        ),
    ] {
        let what = format!("{exposures} {likelihood:?} {method}");
        let (table, rates) = steps(1300, exposures);
        let mut request = request("y", method);
        set(&mut request, json!({"held-back": 0, "iterations": 500, "step-size": 0.02}));
        request.output.likelihood = likelihood;
        request.columns.features = Some(vec!["x".into()]);
        request.columns.exposure = exposures.then(|| "hours".into());
        let (train, test): (Vec<usize>, Vec<usize>) = (0..1300).partition(|i| *i < 900);
        let model = fit(&table, &train, &request).unwrap();
        let (nll, baseline) = scores(&model, &table, &test);
        let y = |i: usize| table.column("y").unwrap().cell(i).parse::<f64>().unwrap();
        let least =
            test.iter().map(|&i| -poisson.log_density(&[y(i)], &[rates[i].ln()])).sum::<f64>() / 400.0;
        assert!(nll < least + 0.1 && nll < baseline - 0.1, "{what}: {nll} {least} {baseline}");
        let data = ModelData::of_table(table.clone()).unwrap().selected(&test).unwrap();
        let found = model.predictive(&data, &question(false)).unwrap();
        let Predicted::Moments { mean, .. } = &found.predicted else { panic!("{what}") };
        // Away from the jump the rate of each row is within a quarter of what it was drawn with, in its own exposure.
        let x = |i: usize| table.column("x").unwrap().cell(i).parse::<f64>().unwrap();
        let away = test.iter().enumerate().filter(|(_, i)| (0.2..0.8).contains(&x(**i).abs()));
        let far = away.clone().filter(|(k, i)| (mean[*k] / rates[**i]).ln().abs() > 0.25).count();
        assert!((far as f64) < 0.05 * away.count() as f64, "{what}: {far}");
        survives(&model, &table, &what);
    }
}

#[test]
fn outliers_do_not_pull_the_function() {
    let mut rng = Streams::new(2).stream("outliers");
    let normal = rand_distr::Normal::new(0.0, 0.1).unwrap();
    let x: Vec<f64> = (0..600).map(|i| -1.0 + i as f64 / 300.0).collect();
    let truth = |x: f64| if x < 0.2 { 0.0 } else { 2.0 };
    let y = (0..600).map(|i| truth(x[i]) + normal.sample(&mut rng) + if i % 10 == 3 { 8.0 } else { 0.0 });
    let y: Vec<f64> = y.collect();
    let table = Table::new("t.csv", vec![Column::numeric("x", x.clone()), Column::numeric("y", y)]);
    let mut request = request(
        "y",
        json!({"method": "svdbk", "objective": "evidence", "iterations": 600, "basis": network(1, 16), "held-back": 0}),
    );
    request.output.likelihood = LikelihoodName::StudentT;
    let rows: Vec<usize> = (0..600).collect();
    let model = fit(&table, &rows, &request).unwrap();
    let data = ModelData::of_table(table.clone()).unwrap();
    let Predicted::Moments { mean, .. } = model.predictive(&data, &question(false)).unwrap().predicted else {
        panic!("moments")
    };
    let wrong = (0..600).filter(|&i| (x[i] - 0.2).abs() > 0.1 && (mean[i] - truth(x[i])).abs() > 0.4).count();
    assert!(wrong < 30, "{wrong}");
    survives(&model, &table, "student-t");
}

#[test]
fn weighted_classes_are_predicted_as_those_of_a_weighted_population() {
    let table = smooth_classes(900, 2, 2, (1.5, 1.0), Streams::new(5)).unwrap().table();
    let rows: Vec<usize> = (0..600).collect();
    let mean = |weights: &str| {
        let mut request = request(
            "class",
            json!({"method": "svdbk", "objective": "predictive", "basis": network(2, 16), "held-back": 0}),
        );
        request.output.class_weights = weights.parse().unwrap();
        let model = fit(&table, &rows, &request).unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        let Predicted::Classes(p) = model.predictive(&data, &question(false)).unwrap().predicted else {
            panic!("classes")
        };
        p.iter().skip(1).step_by(2).sum::<f64>() / 900.0
    };
    let (equal, weighted) = (mean("equal"), mean("b=5"));
    assert!(weighted > equal + 0.15, "{equal} {weighted}");
}

#[test]
fn an_interrupted_training_on_labels_goes_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.checkpoint");
    let table = smooth_classes(130, 2, 3, (1.5, 2.5), Streams::new(7)).unwrap().table();
    let rows: Vec<usize> = (0..130).collect();
    let data = ModelData::of_table(table.clone()).unwrap();
    let predicted = |model: &Model| model.predictive(&data, &question(false)).unwrap();
    // The likelihood of three classes takes most of the time.
    let method =
        json!({"method": "svdbk", "iterations": 60, "held-back": 0, "basis": network(2, 4), "rank": 4});
    let mut request = request("class", method);
    let whole = predicted(&fit(&table, &rows, &request).unwrap());
    let large = request.method.large_mut().unwrap();
    (large.checkpoint, large.checkpoint_every) = (Some(path.clone()), 1e9);
    // In the second of six ways, all of which take 40 steps (passes) in the first round, and in the last round.
    for stop in [60, 250] {
        let mut seen = 0;
        let stopped =
            Model::fit_observed(observed(&table, &rows, &request).unwrap(), &request, &mut |_, _| {
                seen += 1;
                if seen == stop { Signal::Stop } else { Signal::Continue }
            });
        assert!(matches!(stopped, Err(ModelError::Interrupted)), "{stop}");
        assert!(path.exists(), "{stop}");
        let resumed = fit(&table, &rows, &request).unwrap();
        assert!(
            resumed
                .process()
                .unwrap()
                .record()
                .fit
                .likelihood()
                .unwrap()
                .features
                .as_ref()
                .unwrap()
                .resumed_from
                >= stop - 5,
            "{stop}"
        );
        assert_eq!(predicted(&resumed), whole, "{stop}");
        assert!(!path.exists(), "{stop}");
    }
}

#[test]
fn what_means_nothing_is_refused_with_a_way_out() {
    let made = smooth_classes(120, 2, 3, (1.5, 2.5), Streams::new(7)).unwrap();
    let table = made.table();
    let rows: Vec<usize> = (0..120).collect();
    let request = |target: &str, method: Value| {
        let mut own = json!({"held-back": 30});
        own.as_object_mut().unwrap().extend(method.as_object().unwrap().clone());
        request(target, own)
    };
    let refused = |method: Value, change: &dyn Fn(&mut FitRequest)| {
        let mut request = request("class", method);
        change(&mut request);
        let found = fit(&table, &rows, &request);
        found.map(|model| model.described()).expect_err("it should have been refused").to_string()
    };
    let none = |_: &mut FitRequest| {};
    for (method, change, message) in [
        (
            json!({"method": "svdbk"}),
            &(|r: &mut FitRequest| r.output.inference = InferenceName::Gaussianised)
                as &dyn Fn(&mut FitRequest),
            "leave --inference out",
        ),
        (
            json!({"method": "svdbk"}),
            &|r: &mut FitRequest| r.output.inference = InferenceName::Laplace,
            "leave --inference out",
        ),
        (
            json!({"method": "svdbk"}),
            &|r: &mut FitRequest| r.prior.initial_noise = Some(0.5),
            "--set prior.initial-noise",
        ),
        (
            json!({"method": "svdbk"}),
            &|r: &mut FitRequest| r.prior.kernel = "se".parse().unwrap(),
            "--kernel says nothing to svdbk",
        ),
        (
            json!({"method": "svdbk"}),
            &|r: &mut FitRequest| r.start = Start::given(Vec::new()),
            "learns its features",
        ),
        (json!({"method": "svdbk"}), &|r: &mut FitRequest| r.limits.memory = 1 << 20, "memory"),
        (
            json!({"method": "dbk", "objective": "evidence", "correction": "noise"}),
            &none,
            "--set correction=noise is noise of rows",
        ),
        (json!({"method": "svdbk", "objective": "leave-one-out"}), &none, "belongs to exact processes"),
        (json!({"method": "svdbk", "step-size": -1.0}), &none, "the step size"),
        (json!({"method": "svdbk", "iterations": 0}), &none, "the number of steps"),
        (json!({"method": "svdkl", "rank": 5000}), &none, "5000 inducing points"),
        (json!({"method": "svdbk", "rank": 0}), &none, "the rank"),
    ] {
        let found = refused(method.clone(), change);
        assert!(found.contains(message), "{method}: {found}");
    }
    // Too few rows; one class only; counts below zero; a label that training did not have.
    let few = json!({"method": "svdbk", "held-back": 0});
    let few = fit(&table, &[0, 1, 2, 3, 4, 5], &request("class", few));
    assert!(few.unwrap_err().to_string().contains("are too few"));
    let one = Column { name: "class".into(), values: Values::Text(vec![Some("a".into()); 120]) };
    let one = Table::new("t.csv", vec![table.column("x1").unwrap().clone(), one]);
    let error = fit(&one, &rows, &request("class", json!({"method": "svdbk"}))).unwrap_err().to_string();
    assert!(error.contains("only one class"), "{error}");
    let below = |y: f64| {
        let y = Column::numeric("y", (0..120).map(|i| if i == 7 { y } else { f64::from(i % 3) }).collect());
        Table::new("t.csv", vec![table.column("x1").unwrap().clone(), y])
    };
    let mut counts = request("y", json!({"method": "svdbk"}));
    counts.output.likelihood = LikelihoodName::Poisson;
    let error = fit(&below(-2.0), &rows, &counts).unwrap_err().to_string();
    assert!(error.contains("row 8") && error.contains("-2"), "{error}");
    let model = fit(&table, &rows, &request("class", json!({"method": "svdbk", "iterations": 20}))).unwrap();
    let mut strange = vec![Some("a".to_string()); 120];
    strange[3] = Some("other".into());
    let strange = Table::new(
        "t.csv",
        vec![
            table.column("x1").unwrap().clone(),
            table.column("x2").unwrap().clone(),
            Column { name: "class".into(), values: Values::Text(strange) },
        ],
    );
    let data = ModelData::of_table(strange).unwrap();
    let error = model.evaluate(&data, &question(true)).unwrap_err().to_string();
    assert!(error.contains("row 4") && error.contains("other"), "{error}");
}

#[test]
fn functions_share_a_covariance_where_there_are_many() {
    let table = smooth_classes(120, 2, 40, (1.5, 0.5), Streams::new(7)).unwrap().table();
    let rows: Vec<usize> = (0..120).collect();
    let method = json!({"method": "svdbk", "objective": "evidence", "iterations": 6, "rank": 128, "held-back": 0, "basis": network(2, 128)});
    let request = request("class", method);
    let model = fit(&table, &rows, &request).unwrap();
    let classes = model.class_names().len();
    assert!(classes > 31);
    assert_eq!(
        model.process().unwrap().record().fit.likelihood().unwrap().features.as_ref().unwrap().learned.roots,
        1
    );
    assert!(model.described().contains("one covariance of their weights for all"));
    survives(&model, &table, "40 classes");
}
