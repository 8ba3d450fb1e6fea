//! Processes under other likelihoods than Gaussian noise, against closed forms, the truth of generators, and themselves.

use crate::labelled::{fit, question, scores};
use faer::prelude::Solve;
use faer::{Mat, MatRef};
use posterior::data::synthetic::{SmoothTargets, smooth_classes, smooth_counts};
use posterior::data::{Selection, Split, Table};
use posterior::likelihoods::gaussianised::{Gaussianised, Matching};
use posterior::linalg::random::Streams;
use posterior::models::{IndependentFunctions, ModelData, Predicted, Question, Target};
use posterior::options::{
    ClassWeights, InferenceName, LikelihoodName, OutputRequest, PriorSettings, PseudoCount, Start,
};
use posterior::{FitRequest, Model, Saved};
use serde_json::json;

fn request(target: &str, labels: OutputRequest, method: serde_json::Value) -> FitRequest {
    FitRequest {
        columns: Selection { target: target.into(), ..Selection::default() },
        method: serde_json::from_value(method).unwrap(),
        output: labels,
        prior: PriorSettings { kernel: "se".parse().unwrap(), ..PriorSettings::default() },
        ..FitRequest::default()
    }
}

fn named(inference: InferenceName, likelihood: LikelihoodName) -> OutputRequest {
    OutputRequest { inference, likelihood, ..OutputRequest::default() }
}

fn split(made: &SmoothTargets, train: usize) -> (Table, Split) {
    let table = made.table();
    let rows = table.rows();
    (table, Split { train: (0..train).collect(), test: (train..rows).collect() })
}

#[test]
fn gaussianised_processes_are_those_of_the_textbook() {
    // Three classes, hyperparameters and pseudo-count given: everything can be written down.
    let made = smooth_classes(40, 2, 3, (1.0, 2.0), Streams::new(3)).unwrap();
    let (table, split) = split(&made, 30);
    let labels = OutputRequest {
        inference: InferenceName::Gaussianised,
        matching: Some(Matching::Moment),
        pseudo_count: Some(PseudoCount::Given(0.2)),
        class_weights: "b=2".parse().unwrap(),
        ..OutputRequest::default()
    };
    let mut request = request("class", labels, json!({"method": "exact"}));
    let given = [("se.variance", 0.8), ("se.lengthscale", 1.3)];
    request.start = Start::given(
        given
            .map(|(name, v)| posterior::models::Hyperparameter { name: name.into(), values: vec![v] })
            .to_vec(),
    );
    let model = fit(&table, &split.train, &request).unwrap();

    let own = model.process().unwrap().record().fit.likelihood().unwrap();
    let gaussian_labels = own.gaussian_labels.as_ref().unwrap();
    let x = |rows: &[usize]| {
        let standard = &model.process().unwrap().inputs().standardisation;
        Mat::from_fn(rows.len(), 2, |i, j| {
            (made.inputs[rows[i] * 2 + j] - standard.feature_means[j]) / standard.feature_scales[j]
        })
    };
    let (train, test) = (x(&split.train), x(&split.test));
    let kernel = |a: MatRef<'_, f64>, b: MatRef<'_, f64>| {
        Mat::from_fn(a.nrows(), b.nrows(), |i, j| {
            let square: f64 = (0..2).map(|d| (a[(i, d)] - b[(j, d)]).powi(2)).sum();
            0.8 * (-0.5 * square / 1.3f64.powi(2)).exp()
        })
    };
    let gaussianised = Gaussianised::new(Matching::Moment, 0.2).unwrap();
    let IndependentFunctions { members, offsets, scale } =
        model.process().unwrap().predictor().posterior::<IndependentFunctions>().unwrap();
    assert_eq!((offsets, *scale), (&gaussian_labels.offsets, gaussian_labels.scale));
    for (k, member) in members.iter().enumerate() {
        let pseudo = |i: usize| gaussianised.class(made.targets[i] == k as f64);
        // Label `b` is class 1, whose rows count twice.
        let weight = |i: usize| if made.targets[i] == 1.0 { 2.0 } else { 1.0 };
        let noisy = kernel(train.as_ref(), train.as_ref())
            + Mat::from_fn(30, 30, |i, j| {
                if i == j { pseudo(i).variance / (scale * scale * weight(i)) } else { 0.0 }
            });
        let y = Mat::from_fn(30, 1, |i, _| (pseudo(i).target - offsets[k]) / scale);
        let cross = kernel(train.as_ref(), test.as_ref());
        let (weights, solved) = (noisy.partial_piv_lu().solve(&y), noisy.partial_piv_lu().solve(&cross));
        let found = member.process().unwrap().predict(test.as_ref()).unwrap();
        for j in 0..10 {
            let mean: f64 = (0..30).map(|i| cross[(i, j)] * weights[(i, 0)]).sum();
            let explained: f64 = (0..30).map(|i| cross[(i, j)] * solved[(i, j)]).sum();
            assert!((found.mean[(j, 0)] - mean).abs() < 1e-7, "{k}, {j}: {mean}");
            assert!((found.latent_variance[j] - (0.8 - explained)).abs() < 1e-7, "{k}, {j}");
        }
    }
    // Shares of the weighted classes, moved to where the pseudo-targets lie on average.
    let share = |k: usize| {
        let weight = |c: f64| if c == 1.0 { 2.0 } else { 1.0 };
        let of = |k: f64| (0..30).filter(|&i| made.targets[i] == k).map(|_| weight(k)).sum::<f64>();
        (of(k as f64) / (0..3).map(|c| of(c as f64)).sum::<f64>()).ln()
    };
    for k in 1..3 {
        assert!((offsets[k] - offsets[0] - (share(k) - share(0))).abs() < 1e-12);
    }
}

#[test]
fn every_inference_of_two_classes_comes_near_the_truth_and_is_the_same_from_its_file() {
    check_every_inference(2);
}

#[test]
fn every_inference_of_three_classes_comes_near_the_truth_and_is_the_same_from_its_file() {
    check_every_inference(3);
}

/// Scores near those of the generator, the same predictions from the file, and draws that have the means of the functions.
fn check_every_inference(classes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    let made = smooth_classes(700, 2, classes, (1.2, 2.5), Streams::new(7)).unwrap();
    let (table, split) = split(&made, 300);
    let least = made.least_nll();
    let natural = json!({"method": "svgp", "iterations": 400, "inducing": 40, "held-back": 40});
    for (inference, method) in [
        (InferenceName::Gaussianised, json!({"method": "exact", "steps": 20})),
        (InferenceName::Gaussianised, json!({"method": "sgpr", "steps": 20, "inducing": 60})),
        (InferenceName::Variational, natural),
        (InferenceName::Laplace, json!({"method": "exact", "steps": 20})),
    ] {
        let what = format!("{inference:?}, {classes}");
        let request = request("class", named(inference, LikelihoodName::Auto), method);
        let model = fit(&table, &split.train, &request).unwrap();
        let (nll, baseline) = scores(&model, &table, &split.test);
        // Of 300 rows; the generator's own NLL is the least that there is.
        assert!(nll < least + 0.15 && nll < baseline - 0.1, "{what}: {nll} {least} {baseline}");
        let check = model.process().unwrap().record().fit.likelihood().unwrap().check.clone().unwrap();
        assert!((check.scores.nll - nll).abs() < 0.2, "{what}: {check:?} {nll}");
        assert!(check.warnings.is_empty() && check.scores.accuracy.unwrap() > 0.5, "{what}: {check:?}");

        model.save(&path).unwrap();
        let back = Saved::load(&path).unwrap().into_only().unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        let predict = |m: &Model| m.predictive(&data, &question(false)).unwrap();
        let (own, again) = (predict(&model), predict(&back));
        assert_eq!(own, again, "{what}");
        let Predicted::Classes(p) = &own.predicted else { panic!("{what}") };
        assert_eq!((p.len(), own.width), (700 * classes, classes));
        let removable = own.removable_entropy.unwrap();
        let entropies = again.entropies();
        assert!(removable.iter().zip(&entropies).all(|(r, e)| *r >= 0.0 && *r <= e + 0.02), "{what}");
        let seen = back.trained_on(&data).unwrap().unwrap();
        assert_eq!(seen.seen.len(), 300, "{what}");
        // Draws of the latent functions have their means.
        let drawn = Question { samples: 400, draws_apart: true, ..question(false) };
        let few = data.selected(&[0, 350]).unwrap();
        let draws = back.sample(&few, &drawn).unwrap();
        let outputs = draws.shape()[2];
        // Two classes are one function, or two where that predicted better.
        let functions = posterior::likelihoods::Likelihood::outputs(
            &*model.process().unwrap().output().likelihood().unwrap().likelihood,
        );
        assert_eq!(draws.shape(), [400, 2, functions], "{what}");
        assert!(functions == classes || (classes, functions) == (2, 1), "{what}");
        let values = draws.to_f64();
        let own = back.predictive(&few, &question(false)).unwrap();
        for i in 0..2 {
            let c = outputs - 1;
            let mean = (0..400).map(|s| values[(s * 2 + i) * outputs + c]).sum::<f64>() / 400.0;
            // Two classes of one function: half of it for each.
            let (expected, deviation) = match outputs {
                1 => (2.0 * own.latent_mean[i * 2 + 1], 2.0 * own.latent_deviation[i * 2 + 1]),
                _ => (own.latent_mean[i * outputs + c], own.latent_deviation[i * outputs + c]),
            };
            assert!((mean - expected).abs() < 5.0 * deviation / 20.0, "{what}: {mean} {expected}");
        }
    }
}

#[test]
fn what_nobody_chose_is_the_better_of_two_on_rows_left_out() {
    // Classes that overlap, and classes that hardly do.
    for amplitude in [1.5, 12.0] {
        let made = smooth_classes(240, 2, 2, (1.5, amplitude), Streams::new(3)).unwrap();
        let (table, split) = split(&made, 160);
        let auto = json!({"method": "auto", "steps": 20});
        let model = fit(&table, &split.train, &request("class", OutputRequest::default(), auto)).unwrap();
        let fit = model.process().unwrap().record().fit.likelihood().unwrap();
        let scores: Vec<f64> = fit.tried.iter().map(|t| t.scores.unwrap().nll).collect();
        let names: Vec<InferenceName> = fit.tried.iter().map(|t| t.inference).collect();
        assert_eq!(names, [InferenceName::Gaussianised, InferenceName::Laplace]);
        let (kept, least) = (fit.check.as_ref().unwrap().scores.nll, scores[0].min(scores[1]));
        let why = if scores[0] <= scores[1] { "tried as well" } else { "predicted rows better" };
        assert!(kept == least && fit.choice.contains(why), "{kept} {scores:?} {}", fit.choice);
        assert_eq!(
            model.process().unwrap().record().method == "gaussianised",
            scores[0] <= scores[1],
            "{scores:?}"
        );
        let described = model.described();
        assert!(described.contains("tried laplace"), "{described}");
    }
    // What is asked for is not compared with anything.
    let made = smooth_classes(80, 2, 2, (1.5, 3.0), Streams::new(3)).unwrap();
    let (table, split) = split(&made, 60);
    let asked = named(InferenceName::Gaussianised, LikelihoodName::Auto);
    let model = fit(&table, &split.train, &request("class", asked, json!({"method": "exact"}))).unwrap();
    assert!(model.process().unwrap().record().fit.likelihood().unwrap().tried.is_empty());
}

fn learned(likelihood: LikelihoodName) -> OutputRequest {
    let pseudo_count = Some(PseudoCount::Learned);
    OutputRequest { pseudo_count, ..named(InferenceName::Gaussianised, likelihood) }
}

#[test]
fn a_pseudo_count_that_is_learned_comes_near_the_truth_and_stands_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    for classes in [2, 3] {
        let made = smooth_classes(500, 2, classes, (1.2, 2.5), Streams::new(7)).unwrap();
        let (table, split) = split(&made, 200);
        let mut request =
            request("class", learned(LikelihoodName::Auto), json!({"method": "exact", "steps": 15}));
        request.prior.mean = posterior::gp::MeanForm::Constant;
        let model = fit(&table, &split.train, &request).unwrap();
        let (nll, baseline) = scores(&model, &table, &split.test);
        assert!(nll < made.least_nll() + 0.25 && nll < baseline - 0.1, "{classes}: {nll} {baseline}");
        let summary = model.process().unwrap().record().fit.likelihood().unwrap();
        let check = summary.check.clone().unwrap();
        assert!((check.scores.nll - nll).abs() < 0.2 && check.rows == 200, "{classes}: {check:?} {nll}");
        // Events have one matching that is taken unasked, classes two, of which the higher bound is kept.
        let gaussian_labels = summary.gaussian_labels.as_ref().unwrap();
        assert_eq!((gaussian_labels.bounds.len(), gaussian_labels.tried.len()), (classes - 1, 0));
        let best = gaussian_labels.bounds.iter().max_by(|a, b| a.bound.total_cmp(&b.bound)).unwrap();
        let own = gaussian_labels.gaussianised;
        assert_eq!((best.matching, best.pseudo_count), (own.matching(), own.pseudo_count()));
        // A bound on the evidence of 200 labels: above what knows nothing, below certainty.
        assert!(best.bound < 0.0 && best.bound > -200.0 * (classes as f64).ln(), "{best:?}");
        let described = model.described();
        assert!(described.contains("learned with the hyperparameters by the highest bound"), "{described}");
        model.save(&path).unwrap();
        let back = Saved::load(&path).unwrap().into_only().unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        let predict = |m: &Model| m.predictive(&data, &question(false)).unwrap();
        assert_eq!(predict(&model), predict(&back), "{classes}");
        assert_eq!(back.described(), described);
    }
}

#[test]
fn a_learned_pseudo_count_goes_with_counts_weights_and_given_kernels() {
    let made = smooth_counts(300, 1, 4.0, (1.0, 0.8), None, Streams::new(2)).unwrap();
    let (table, split) = split(&made, 120);
    let exact = || json!({"method": "exact", "steps": 15});
    let mut request = request("count", learned(LikelihoodName::Poisson), exact());
    let model = fit(&table, &split.train, &request).unwrap();
    let (nll, baseline) = scores(&model, &table, &split.test);
    assert!(nll < baseline - 0.2, "{nll} {baseline}");
    // A kernel that is given stays to the last bit; pseudo-count and mean are learned all the same.
    let kept: Vec<posterior::models::Hyperparameter> = [("se.variance", 0.7), ("se.lengthscale", 0.9)]
        .map(|(name, v)| posterior::models::Hyperparameter { name: name.into(), values: vec![v] })
        .to_vec();
    request.start = Start::given(kept.clone());
    let held = fit(&table, &split.train, &request).unwrap();
    for own in kept {
        let found =
            held.process().unwrap().record().hyperparameters.iter().find(|h| h.name == own.name).unwrap();
        assert!((found.values[0] - own.values[0]).abs() < 1e-15, "{found:?}");
    }
    let count = |m: &Model| {
        m.process()
            .unwrap()
            .record()
            .fit
            .likelihood()
            .unwrap()
            .gaussian_labels
            .as_ref()
            .unwrap()
            .gaussianised
            .pseudo_count()
    };
    assert!(count(&held) != 0.1 && count(&held) != count(&model));
    // Weights are counted: a class that counts five times is predicted more often.
    let classes = smooth_classes(200, 1, 2, (1.5, 1.0), Streams::new(5)).unwrap();
    let table = classes.table();
    let rows: Vec<usize> = (0..120).collect();
    let sum = |weights: &str| {
        let labels =
            OutputRequest { class_weights: weights.parse().unwrap(), ..learned(LikelihoodName::Auto) };
        let model = fit(&table, &rows, &self::request("class", labels, exact())).unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        let found = model.predictive(&data, &question(false)).unwrap();
        let Predicted::Classes(p) = found.predicted else { panic!("classes") };
        p.iter().skip(1).step_by(2).sum::<f64>() / 200.0
    };
    let (equal, weighted) = (sum("equal"), sum("b=5"));
    assert!(weighted > equal + 0.1, "{equal} {weighted}");
}

#[test]
fn counts_are_predicted_with_the_scatter_that_they_have() {
    for (dispersion, likelihood, inference) in [
        (None, LikelihoodName::Poisson, InferenceName::Gaussianised),
        (None, LikelihoodName::Poisson, InferenceName::Laplace),
        (Some(1.5), LikelihoodName::NegativeBinomial, InferenceName::Laplace),
        (Some(1.5), LikelihoodName::NegativeBinomial, InferenceName::Variational),
    ] {
        let what = format!("{likelihood:?} {inference:?}");
        let made = smooth_counts(900, 1, 4.0, (1.0, 0.8), dispersion, Streams::new(2)).unwrap();
        let (table, split) = split(&made, 400);
        let method = match inference {
            InferenceName::Variational => json!({"method": "svgp", "iterations": 600, "inducing": 30}),
            _ => json!({"method": "exact", "steps": 25}),
        };
        let model =
            fit(&table, &split.train, &request("count", named(inference, likelihood), method)).unwrap();
        let data = ModelData::of_table(table.clone()).unwrap().selected(&split.test).unwrap();
        let found = model.predictive(&data, &question(true)).unwrap();
        let Predicted::Moments { mean, variance, .. } = &found.predicted else { panic!("{what}") };
        // Pearson's statistic on rows that it has not seen: scatter as predicted.
        let terms: Vec<f64> = split
            .test
            .iter()
            .enumerate()
            .map(|(k, &i)| (made.targets[i] - mean[k]).powi(2) / variance[k])
            .collect();
        let n = terms.len() as f64;
        let pearson = terms.iter().sum::<f64>() / n;
        let spread = (terms.iter().map(|t| (t - pearson).powi(2)).sum::<f64>() / n / n).sqrt();
        assert!((pearson - 1.0).abs() < 5.0 * spread, "{what}: {pearson} +- {spread}");
        // Better than the distribution of all counts, by three standard errors of the difference.
        let gain = model.evaluate(&data, &question(true)).unwrap().nll_difference.unwrap();
        assert!(gain.mean + 3.0 * gain.standard_error.unwrap() < 0.0, "{what}: {gain:?}");
        // Rates follow the truth: most of its variation is explained.
        let logs = |v: f64| v.ln();
        let error: f64 =
            split.test.iter().enumerate().map(|(k, &i)| (logs(mean[k]) - logs(made.truth[i])).powi(2)).sum();
        let all: f64 = split.test.iter().map(|&i| (logs(made.truth[i]) - 4f64.ln()).powi(2)).sum();
        assert!(error < 0.2 * all, "{what}: {error} of {all}");
    }
    // A Poisson model of counts that scatter more says so.
    let made = smooth_counts(500, 1, 6.0, (1.0, 0.3), Some(0.7), Streams::new(4)).unwrap();
    let (table, split) = split(&made, 500);
    let labels = named(InferenceName::Gaussianised, LikelihoodName::Poisson);
    let model = fit(&table, &split.train, &request("count", labels, json!({"method": "exact", "steps": 15})))
        .unwrap();
    let notes: Vec<String> = model.notes().into_iter().map(|n| n.text()).collect();
    assert!(notes.iter().any(|n| n.contains("negative-binomial")), "{notes:?}");
}

#[test]
fn outliers_do_not_move_a_students_t() {
    let made = smooth_counts(220, 1, 1.0, (1.0, 0.5), None, Streams::new(9)).unwrap();
    let mut table = made.table();
    let values: Vec<f64> = made
        .truth
        .iter()
        .enumerate()
        .map(|(i, m)| m.ln() + 0.05 * ((i * 37) as f64).sin() + if i % 11 == 0 { 8.0 } else { 0.0 })
        .collect();
    table.columns[1] = posterior::data::Column::numeric("y", values);
    let rows: Vec<usize> = (0..160).collect();
    let labels = named(InferenceName::Laplace, LikelihoodName::StudentT);
    let model = fit(&table, &rows, &request("y", labels, json!({"method": "exact", "steps": 30}))).unwrap();
    let test: Vec<usize> = (160..220).collect();
    let data = ModelData::of_table(table).unwrap().selected(&test).unwrap();
    let found = model.predictive(&data, &question(true)).unwrap();
    let error: f64 =
        test.iter().enumerate().map(|(k, &i)| (found.latent_mean[k] - made.truth[i].ln()).abs()).sum::<f64>()
            / 60.0;
    // One row in eleven lies 8 above: a mean would be moved by 0.7.
    assert!(error < 0.2, "{error}");
    // And so are intervals that none of them is in, whatever the variance of so heavy tails is: halves of the rows choose other degrees of freedom.
    let [low, high] = [0.1, 0.8].map(|level| found.quantiles(level, true).unwrap());
    let width = low.iter().zip(&high).map(|(low, high)| high - low).sum::<f64>() / 60.0;
    assert!(width < 0.6, "{width}");
}

#[test]
fn what_does_not_go_together_is_refused_with_the_way_out() {
    let made = smooth_classes(60, 1, 3, (1.0, 2.0), Streams::new(1)).unwrap();
    let table = made.table();
    let rows: Vec<usize> = (0..60).collect();
    let message = |labels: OutputRequest, method: serde_json::Value| {
        fit(&table, &rows, &request("class", labels, method)).unwrap_err().to_string()
    };
    let auto = || json!({"method": "auto"});
    let matched = OutputRequest {
        matching: Some(Matching::Laplace),
        ..named(InferenceName::Laplace, LikelihoodName::Auto)
    };
    assert!(message(matched, auto()).contains("--matching is for gaussianised"));
    let laplace = named(InferenceName::Laplace, LikelihoodName::Auto);
    assert!(message(laplace.clone(), json!({"method": "sdd"})).contains("--inference laplace factors whole"));
    let variational = named(InferenceName::Variational, LikelihoodName::Auto);
    assert!(message(variational, json!({"method": "exact"})).contains("--method svgp"));
    let blocks = message(learned(LikelihoodName::Auto), json!({"method": "sgpr"}));
    assert!(
        blocks.contains("--pseudo-count learned factors") && blocks.contains("--method exact"),
        "{blocks}"
    );
    let other = OutputRequest { inference: InferenceName::Laplace, ..learned(LikelihoodName::Auto) };
    assert!(message(other, auto()).contains("--pseudo-count is for gaussianised"));
    let bernoulli = named(InferenceName::Auto, LikelihoodName::Bernoulli);
    assert!(message(bernoulli, auto()).contains("3 different labels"));
    let unknown = OutputRequest {
        class_weights: ClassWeights::Given(vec![("z".into(), 2.0)]),
        ..OutputRequest::default()
    };
    assert!(message(unknown, auto()).contains("`z`, which is no class; the classes are: a, b, c"));
    let column = OutputRequest { row_weights: Some("x1".into()), ..OutputRequest::default() };
    let error = message(column, auto());
    // The only column weighs rows, and nothing is left to predict from.
    assert!(error.contains("at least one feature"), "{error}");
    // Events have no Gaussian label approximation by moments of the positive variable.
    let two = smooth_classes(60, 1, 2, (1.0, 2.0), Streams::new(1)).unwrap().table();
    let original = OutputRequest { matching: Some(Matching::MomentOriginal), ..OutputRequest::default() };
    let error = fit(&two, &rows, &request("class", original.clone(), auto())).unwrap_err().to_string();
    assert!(error.contains("--likelihood categorical takes two labels"), "{error}");
    let categorical = OutputRequest { likelihood: LikelihoodName::Categorical, ..original };
    assert!(fit(&two, &rows, &request("class", categorical, json!({"method": "exact", "steps": 3}))).is_ok());
    // Memory is refused before anything is done.
    let mut small = request("class", laplace, auto());
    small.limits.memory = 1000;
    let error = fit(&table, &rows, &small).unwrap_err().to_string();
    assert!(error.contains("above the limit"), "{error}");
    // A label that training did not have.
    let model = fit(
        &table,
        &rows,
        &request("class", OutputRequest::default(), json!({"method": "exact", "steps": 2})),
    )
    .unwrap();
    let mut later = table.clone();
    let posterior::data::Values::Text(cells) = &mut later.columns[1].values else { unreachable!() };
    cells[4] = Some("A".into());
    let data = ModelData::of_table(later).unwrap();
    let error = model.evaluate(&data, &question(true)).unwrap_err().to_string();
    assert!(error.contains("row 5") && error.contains("did you mean `a`"), "{error}");
    assert!(model.predictive(&data, &question(false)).is_ok());
    let Target::Classes { names } = &model.process().unwrap().output().likelihood().unwrap().target else {
        panic!("classes")
    };
    assert_eq!(names.names(), ["a", "b", "c"]);
}
