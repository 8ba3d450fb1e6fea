//! Means and covariances that are free of each other (`--method gvi`): numbers, classes and counts, files, interruptions, refusals.

use crate::labelled::{self, question};
use crate::options::set;
use posterior::data::synthetic::{self, smooth_classes};
use posterior::data::{Column, Extracted, Selection, Split, Table, Values};
use posterior::gp::Posterior;
use posterior::gp::generalised::{Family, GeneralisedGp, RegulariserRisk, VariationalMean};
use posterior::gp::inducing::collapsed::{CollapsedGp, collapsed_bound};
use posterior::likelihoods::Gaussian;
use posterior::linalg::random::Streams;
use posterior::models::{FitStage, GviSummary, MeanKind, ModelData, Prepared};
use posterior::networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior::networks::{Architecture, Network};
use posterior::optim::{Reason, Signal};
use posterior::options::{MethodName, Start};
use posterior::{FitRequest, Model, Saved};
use serde_json::{Value, json};

const ROWS: usize = 220;

/// Ten columns, of which five matter.
fn table(seed: u64) -> Table {
    synthetic::friedman(ROWS, Streams::new(seed))
}

fn request(change: Value) -> FitRequest {
    let mut request = FitRequest {
        columns: Selection { target: "y".into(), ..Default::default() },
        method: MethodName::Gvi.into(),
        ..Default::default()
    };
    set(
        &mut request,
        json!({"iterations": 120, "batch": 64, "step-size": 0.01, "held-back": 0, "inducing": 20, "objective": "pgvi"}),
    );
    set(&mut request, change);
    request
}

fn fit(request: &FitRequest) -> Result<Model, String> {
    let rows = Split::all(ROWS).train;
    Model::fit(&table(1), &rows, request, &mut |_, _| Signal::Continue).map_err(|e| e.to_string())
}

fn told(model: &Model) -> &GviSummary {
    model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().gvi.as_ref().unwrap()
}

/// Root mean square error and share within two deviations of rows of another table.
fn judged(model: &Model) -> (f64, f64) {
    let table = table(2);
    let inputs = model.process().unwrap().inputs();
    let rows = Split::all(ROWS).train;
    let Extracted { x, y, .. } = inputs.schema.extract(&table, &rows, true).unwrap();
    let y: Vec<f64> = y.unwrap().into_iter().map(|y| inputs.standardisation.target(y)).collect();
    let found = model
        .process()
        .unwrap()
        .predictor()
        .process()
        .unwrap()
        .predict(inputs.standardisation.features(x.as_ref()).as_ref())
        .unwrap();
    let variances = found.observed_variance();
    let (mut square, mut within) = (0.0, 0.0);
    for i in 0..ROWS {
        let residual = y[i] - found.mean[(i, 0)];
        square += residual * residual / ROWS as f64;
        within += f64::from(u8::from(residual.abs() < 2.0 * variances[i].sqrt())) / ROWS as f64;
    }
    (square.sqrt(), within)
}

#[test]
fn every_family_and_mean_learns_and_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    for (place, change) in [
        json!({"variational-mean": "inducing"}),
        json!({"variational-kernel": "diagonal", "variational-mean": "network", "regulariser": "projected-kl"}),
        json!({"variational-kernel": "log", "variational-mean": "inducing", "weight-coordinates": "kernel"}),
        json!({"variational-kernel": "kernelised", "variational-mean": "network", "regulariser-mode": "posterior"}),
        json!({"variational-kernel": "sparse-posterior", "variational-mean": "inducing", "update-rule": "adabelief", "inducing-choice": "k-means"}),
        json!({"variational-kernel": "fixed-sparse-posterior", "variational-mean": "network", "tempering": "gradient"}),
        json!({"objective": "gwi", "variational-mean": "constant", "rows-together": 16, "tempering": "none"}),
        json!({"objective": "elbo", "variational-kernel": "cholesky", "update-rule": "rmsprop"}),
        json!({"objective": "gwi", "regulariser": "wasserstein-two-batches", "variational-mean": "prior", "prior-rows": 0, "inducing-choice": "random"}),
    ]
    .into_iter()
    .enumerate()
    {
        let model = fit(&request(change.clone())).unwrap_or_else(|e| panic!("{change}: {e}"));
        let (error, within) = judged(&model);
        let knows = !matches!(told(&model).mean_form, MeanKind::Constant | MeanKind::Prior);
        assert!(error < if knows { 0.75 } else { 1.4 }, "{change}: {error}");
        assert!(within > if knows { 0.7 } else { 0.5 }, "{change}: {within}");
        assert_eq!(told(&model).tempering.is_none(), change["tempering"] == "none");
        let path = folder.path().join(format!("{place}.posterior"));
        model.save(&path).unwrap();
        let back = Model::load(&path).unwrap();
        assert_eq!(back.process().unwrap().header(), model.process().unwrap().header());
        let x = posterior_matrix(&model, &[0, 5, 9]);
        assert_eq!(back.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap(), model.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap());
        let words = Saved::load(&path).unwrap().into_only().unwrap().described();
        assert!(format!("{words:?}").contains("variational kernel"), "{words:?}");
    }
}

fn posterior_matrix(model: &Model, rows: &[usize]) -> faer::Mat<f64> {
    let inputs = model.process().unwrap().inputs();
    let Extracted { x, .. } = inputs.schema.extract(&table(1), rows, true).unwrap();
    inputs.standardisation.features(x.as_ref())
}

/// The published program's risk of hyperparameters: what it led to is told, and priors, which it has no place for, are not.
#[test]
fn hyperparameters_by_the_pointwise_risk_say_so() {
    let of = |risk: &str| {
        fit(&request(
            json!({"prior-rows": 0, "alternations": 1, "regulariser-risk": risk, "regulariser-weight": 0.01}),
        ))
        .unwrap()
    };
    let (evidence, pointwise) = (of("evidence"), of("pointwise-predictive"));
    for (model, risk, believed) in [
        (&evidence, RegulariserRisk::Evidence, true),
        (&pointwise, RegulariserRisk::PointwisePredictive, false),
    ] {
        let prior = &told(model).prior;
        assert_eq!((prior.risk, prior.turns.len(), prior.timed_out), (risk, 1, false));
        assert_eq!(
            !model.process().unwrap().record().fit.gaussian().unwrap().hyperpriors.is_empty(),
            believed,
            "{risk:?}"
        );
        // 0.61 and 0.59; the mean alone has 1.
        assert!(judged(model).0 < 0.75, "{risk:?}: {:?}", judged(model));
    }
}

#[test]
fn the_bound_on_the_evidence_is_the_collapsed_one_of_its_points() {
    // Hyperparameters that are given, so that the bound of the best Gaussian is known.
    let mut asked = request(
        json!({"objective": "elbo", "iterations": 1500, "batch": 1000, "tempering": "none", "patience": 1000}),
    );
    asked.prior.kernel = "se(lengthscale=2)".parse().unwrap();
    asked.prior.mean = posterior::gp::MeanForm::Zero;
    let hyperparameters = json!([
        {"name": "se.lengthscale", "values": [2.0]},
        {"name": "se.variance", "values": [1.0]},
        {"name": "noise_variance", "values": [0.1]},
    ]);
    asked.start = Start::given(serde_json::from_value(hyperparameters).unwrap());
    let model = fit(&asked).unwrap();
    let posterior = model.process().unwrap().predictor().posterior::<GeneralisedGp>().unwrap();
    assert!(matches!(posterior.mean(), VariationalMean::Inducing(_)));
    let noise = posterior.likelihood().values()[0];
    let reference = posterior.reference(0);
    let mut collapsed = CollapsedGp::new(
        reference.kernel().clone_box(),
        posterior::gp::MeanForm::Zero,
        Gaussian::new(noise, 0.0),
        reference.inducing().to_owned(),
        1,
    )
    .unwrap();
    collapsed.jitter = posterior::gp::generalised::JITTER;
    // The rows that it was trained on: all but those that it drew to stop by.
    let prepared = Prepared::from_table(&table(1), &Split::all(ROWS).train, &asked).unwrap();
    let mut rng = Streams::new(asked.seed).stream("model/set-aside");
    let aside: Vec<usize> = rand::seq::index::sample(&mut rng, ROWS, ROWS / 10).into_iter().collect();
    let rest: Vec<usize> = (0..ROWS).filter(|i| !aside.contains(i)).collect();
    let data = prepared.data.select(&rest).unwrap();
    assert_eq!(told(&model).trained_rows, rest.len());
    let best = collapsed_bound(&collapsed, &data).unwrap() / rest.len() as f64;
    let given = posterior::gp::generalised::GeneralisedData { observations: &data, given: None };
    let own = posterior::gp::generalised::generalised_objective(posterior, &told(&model).objective, &given)
        .unwrap();
    assert!(-own.value <= best + 1e-9 && -own.value > best - 0.02, "{} {best}", -own.value);
}

#[test]
fn several_ways_are_tried_where_none_is_named_and_the_best_on_rows_set_aside_is_kept() {
    let model = fit(&request(json!({"objective": null}))).unwrap();
    let told = told(&model);
    assert!(told.tried.len() >= 3, "{:?}", told.tried);
    let score = |way: &posterior::models::TriedCandidate| way.tempered_nll.unwrap_or(way.nll);
    let best = told.tried.iter().min_by(|a, b| score(a).total_cmp(&score(b))).unwrap();
    assert_eq!(told.chosen, best.name);
    assert_eq!(told.trained_rows + told.validation_rows, ROWS);
}

#[test]
fn classes_counts_and_outliers() {
    let folder = tempfile::tempdir().unwrap();
    for (classes, change) in [
        (2, json!({"objective": "pgvi", "variational-mean": "network"})),
        (3, json!({"objective": "gwi", "variational-mean": "inducing", "rows-together": 16})),
        (3, json!({"objective": "elbo"})),
        // By the largest function.
        (4, json!({"objective": "pgvi", "variational-mean": "inducing"})),
        (
            3,
            json!({"objective": "pgvi", "regulariser": "multinomial=2", "regulariser-mode": "posterior", "variational-kernel": "diagonal"}),
        ),
    ] {
        let robust = classes == 4;
        let classes = if robust { 3 } else { classes };
        let made = smooth_classes(400, 2, classes, (1.5, 2.5), Streams::new(7)).unwrap();
        let table = made.table();
        let mut asked = request(change.clone());
        asked.columns.target = "class".into();
        if robust {
            asked.output.likelihood = posterior::options::LikelihoodName::RobustMax;
            // The plain process beside it takes thousands of steps under this likelihood.
            asked.limits.time = Some(5.0);
        }
        set(&mut asked, json!({"iterations": 200, "held-back": 50}));
        let rows: Vec<usize> = (0..350).collect();
        let model =
            labelled::fit(&table, &rows, &asked).unwrap_or_else(|e| panic!("{classes} {change}: {e}"));
        let scores =
            model.process().unwrap().record().fit.likelihood().unwrap().check.as_ref().unwrap().scores;
        let baseline =
            model.process().unwrap().record().fit.likelihood().unwrap().check.as_ref().unwrap().baseline_nll;
        assert!(scores.nll < baseline, "{classes} {change}: {} {baseline}", scores.nll);
        assert!(model.process().unwrap().predictor().posterior::<GeneralisedGp>().is_some());
        let path = folder.path().join("m.posterior");
        model.save(&path).unwrap();
        let back = Saved::load(&path).unwrap().into_only().unwrap();
        let data = ModelData::of_table(table.clone()).unwrap();
        assert_eq!(
            model.predictive(&data, &question(false)).unwrap(),
            back.predictive(&data, &question(false)).unwrap(),
            "{change}"
        );
    }
    // Counts whose rate grows along x.
    let x: Vec<f64> = (0..400).map(|i| i as f64 / 100.0).collect();
    let counts: Vec<f64> = x
        .iter()
        .enumerate()
        .map(|(i, x)| ((0.5 * x).exp() + ((i * 7) % 3) as f64 - 1.0).round().max(0.0))
        .collect();
    let column = |name: &str, values| Column { name: name.into(), values: Values::Numeric(values) };
    let table = Table::new("counts", vec![column("x", x), column("y", counts)]);
    for likelihood in ["poisson", "negative-binomial", "student-t"] {
        let mut asked =
            request(json!({"objective": "pgvi", "variational-mean": "inducing", "held-back": 40}));
        asked.output.likelihood = serde_json::from_value(json!(likelihood)).unwrap();
        let rows = Split::all(400).train;
        let model = labelled::fit(&table, &rows, &asked).unwrap_or_else(|e| panic!("{likelihood}: {e}"));
        let check = model.process().unwrap().record().fit.likelihood().unwrap().check.as_ref().unwrap();
        assert!(check.scores.nll < check.baseline_nll, "{likelihood}: {check:?}");
    }
}

#[test]
fn interrupted_fits_go_on_to_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = request(json!({"objective": null, "iterations": 40}));
    let straight = fit(&asked).unwrap();
    let path = folder.path().join("gvi.checkpoint");
    set(&mut asked, json!({"checkpoint": path, "checkpoint-every": 1e-9}));
    let rows = Split::all(ROWS).train;
    for stop in [5, 60] {
        let mut seen = 0;
        let stopped = Model::fit(&table(1), &rows, &asked, &mut |_, stage| {
            seen += usize::from(*stage == FitStage::Variation);
            if seen == stop { Signal::Stop } else { Signal::Continue }
        });
        assert_eq!(
            stopped.unwrap().process().unwrap().record().fit.gaussian().unwrap().reason,
            Reason::Interrupted,
            "{stop}"
        );
        assert!(path.exists());
    }
    let model = fit(&asked).unwrap();
    let x = posterior_matrix(&straight, &[1, 7]);
    assert_eq!(
        model.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap(),
        straight.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap()
    );
    assert!(
        model.process().unwrap().record().fit.gaussian().unwrap().scalable.as_ref().unwrap().resumed_from > 0
    );
    assert!(!path.exists());
}

#[test]
fn a_trained_network_keeps_its_means() {
    let folder = tempfile::tempdir().unwrap();
    let text = "kind = 'perceptron'\ninputs = 10\nhidden = [6]\noutputs = 1\nactivation = 'tanh'";
    let architecture = Architecture::from_toml(text).unwrap();
    let network: Network<f32> = Network::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap();
    let path = folder.path().join("n.safetensors");
    save_safetensors(&path, &network, &[(ARCHITECTURE_KEY.to_string(), text.to_string())].into()).unwrap();
    let model = fit(&request(json!({"mean-network": path, "freeze-mean": true}))).unwrap();
    let posterior = model.process().unwrap().predictor().posterior::<GeneralisedGp>().unwrap();
    let x = posterior_matrix(&model, &[0, 3, 8]);
    let own = posterior::networks::Array::new(
        vec![3, 10],
        (0..3).flat_map(|i| (0..10).map(move |j| (i, j))).map(|(i, j)| x[(i, j)] as f32).collect(),
    );
    let outputs = network.forward(&own).unwrap();
    let found = posterior.predict(x.as_ref()).unwrap();
    for (i, output) in outputs.values().iter().enumerate() {
        assert_eq!(found.mean[(i, 0)], f64::from(*output));
    }
    assert_eq!(posterior.kernels()[0].family(), Family::Diagonal);
    // Networks of other rows or functions, and one whose last weight is no number.
    let refused = |change: Value, words: &str| {
        let error = fit(&request(change.clone())).err().unwrap_or_else(|| panic!("{change} was accepted"));
        assert!(error.contains(words), "{change}: {error}");
    };
    for (name, from, to, words) in [
        ("narrow", "inputs = 10", "inputs = 3", "takes 3 inputs, the table has 10 columns"),
        ("wide", "outputs = 1", "outputs = 2", "one output for each"),
    ] {
        let other = folder.path().join(format!("{name}.toml"));
        std::fs::write(&other, text.replace(from, to)).unwrap();
        refused(json!({"mean-network": other}), words);
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    let broken = folder.path().join("broken.safetensors");
    std::fs::write(&broken, bytes).unwrap();
    for flag in ["mean-network", "basis"] {
        refused(json!({flag: broken}), "holds NaN at position");
    }
}

/// Infinitely wide networks as priors, of columns and of what stands in them as pictures.
#[test]
fn infinite_networks_are_priors_of_tables_and_survive_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let of = |text: &str, change: Value| {
        let mut asked = request(json!({"objective": "elbo", "prior-rows": 60}));
        set(&mut asked, change);
        asked.prior.kernel = text.parse().unwrap();
        asked
    };
    for (place, text) in
        ["nngp(depth=2, relu) + constant", "nngp-conv(shape=2x5, conv=1x2, relu, dense, erf)"]
            .into_iter()
            .enumerate()
    {
        let model = fit(&of(text, json!({}))).unwrap_or_else(|e| panic!("{text}: {e}"));
        let (error, within) = judged(&model);
        // 0.58 and 0.52 of the targets' deviation, 98 % within two.
        assert!(error < 0.7 && within > 0.9, "{text}: {error} {within}");
        let path = folder.path().join(format!("{place}.posterior"));
        model.save(&path).unwrap();
        let x = posterior_matrix(&model, &[0, 5, 9]);
        let back = Model::load(&path).unwrap();
        assert_eq!(
            back.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap(),
            model.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap()
        );
    }
    let error = fit(&of("nngp-conv(shape=28x28, conv=3, relu)", json!({}))).err().unwrap();
    assert!(error.contains("784") && error.contains("10"), "{error}");
}

/// The prior's kernel on what a network makes of the columns: learned along with it, or kept.
#[test]
fn kernels_act_behind_networks_and_survive_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let text = "kind = 'perceptron'\ninputs = 10\nhidden = [6]\noutputs = 4\nactivation = 'tanh'";
    let architecture = Architecture::from_toml(text).unwrap();
    let network: Network<f32> = Network::initialised(architecture.graph().unwrap(), Streams::new(5)).unwrap();
    let (trained, drawn) = (folder.path().join("n.safetensors"), folder.path().join("n.toml"));
    save_safetensors(&trained, &network, &[(ARCHITECTURE_KEY.to_string(), text.to_string())].into()).unwrap();
    std::fs::write(&drawn, text).unwrap();
    let weights_of = |model: &Model| {
        let posterior = model.process().unwrap().predictor().posterior::<GeneralisedGp>().unwrap();
        let mut values = posterior.reference(0).posterior().model().kernel().values();
        values.split_off(values.len() - (10 * 6 + 6 + 6 * 4 + 4))
    };
    let mut found = Vec::new();
    for (place, (change, outputs)) in [
        (json!({"basis": trained, "freeze-basis": true, "variational-mean": "inducing"}), 4),
        (json!({"basis": trained, "basis-layer": "last-hidden", "freeze-basis": true, "variational-mean": "network"}), 6),
        (json!({"basis": trained, "variational-mean": "inducing"}), 4),
        (json!({"basis": drawn, "prior-rows": 0, "alternations": 2, "variational-kernel": "sparse-posterior", "variational-mean": "inducing"}), 4),
    ]
    .into_iter()
    .enumerate()
    {
        let mut asked = request(change.clone());
        set(&mut asked, json!({"regulariser-weight": 0.01, "iterations": 400}));
        asked.prior.kernel = "linear + constant".parse().unwrap();
        let model = fit(&asked).unwrap_or_else(|e| panic!("{change}: {e}"));
        let network = told(&model).prior.network.clone().unwrap();
        assert_eq!((network.outputs, network.kept), (outputs, change["freeze-basis"] == true), "{change}");
        // What is learned knows the rows; four bends by chance, kept or learned from twenty points, may know nothing, and say so.
        let (error, within) = judged(&model);
        let learned = !network.kept && change["prior-rows"] != 0;
        assert!(error < if learned { 0.8 } else { 1.4 }, "{change}: {error}");
        assert!(within > 0.8, "{change}: {within}");
        // Weights are arrays, and no list to read.
        assert!(model.process().unwrap().record().hyperparameters.iter().all(|own| own.values.len() <= 10), "{change}");
        let path = folder.path().join(format!("{place}.posterior"));
        model.save(&path).unwrap();
        let back = Model::load(&path).unwrap();
        let x = posterior_matrix(&model, &[0, 5, 9]);
        assert_eq!(back.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap(), model.process().unwrap().predictor().process().unwrap().predict(x.as_ref()).unwrap());
        let words = format!("{:?}", Saved::load(&path).unwrap().into_only().unwrap().described());
        assert!(words.contains("kernel behind"), "{words}");
        found.push(if outputs == 4 { weights_of(&model) } else { Vec::new() });
    }
    let own: Vec<f64> =
        network.parameters().iter().flat_map(|array| array.values().iter().map(|v| f64::from(*v))).collect();
    let sorted = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    assert_eq!(sorted(found[0].clone()), sorted(own));
    assert_ne!(found[2], found[0]);
    let refused = |change: Value, words: &str| {
        let error = fit(&request(change.clone())).err().unwrap_or_else(|| panic!("{change} was accepted"));
        assert!(error.contains(words), "{change}: {error}");
    };
    refused(json!({"freeze-basis": true}), "name it with --set basis");
    refused(json!({"basis-layer": "last-hidden"}), "name it with --set basis");
    refused(json!({"basis": "none"}), "leave --set basis=none out");
    refused(json!({"basis": folder.path().join("nowhere.onnx")}), "nowhere.onnx");
    let narrow = folder.path().join("narrow.toml");
    std::fs::write(&narrow, text.replace("inputs = 10", "inputs = 3")).unwrap();
    refused(json!({"basis": narrow}), "takes 3 inputs, the table has 10 columns");
    let mut named = request(json!({"basis": trained}));
    named.prior.kernel = "se(x1)".parse().unwrap();
    assert!(fit(&named).err().unwrap().contains("embedding1"));
}

#[test]
fn what_means_nothing_is_refused_with_what_does() {
    let refused = |change: Value, words: &str| {
        let error = fit(&request(change.clone())).err().unwrap_or_else(|| panic!("{change} was accepted"));
        assert!(error.contains(words), "{change}: {error}");
    };
    refused(json!({"objective": "elbo", "variational-mean": "network"}), "mean of inducing points");
    refused(json!({"objective": "elbo", "variational-kernel": "kernelised"}), "cholesky, diagonal or log");
    refused(json!({"objective": "elbo", "regulariser": "projected-kl"}), "whose regulariser is kl");
    refused(json!({"objective": "gwi", "regulariser": "projected-kl"}), "whose regulariser is wasserstein");
    refused(
        json!({"objective": "gwi", "variational-kernel": "fixed-sparse-posterior"}),
        "wasserstein-symmetric-roots",
    );
    refused(json!({"objective": "evidence"}), "elbo, gwi or pgvi");
    refused(json!({"inducing": 500}), "500 inducing points");
    refused(json!({"inducing-choice": "cover"}), "greedy, random or k-means");
    refused(json!({"mean-network": "n.toml", "variational-mean": "inducing"}), "--set mean-network");
    refused(json!({"freeze-mean": true}), "--set mean-network");
    refused(
        json!({"weight-coordinates": "kernel", "variational-kernel": "kernelised"}),
        "--set weight-coordinates is about weights",
    );
    refused(json!({"regulariser-weight": 0.0}), "positive");
    refused(json!({"regulariser": "multinomial=2"}), "no classes");
    refused(json!({"regulariser-risk": "pointwise-predictive"}), "--set prior-rows=0");
    let mut believed = request(json!({"regulariser-risk": "pointwise-predictive", "prior-rows": 0}));
    believed.prior.hyperpriors = vec![posterior::gp::Hyperprior::weak_lengthscale("rbf.lengthscale", 10)];
    assert!(fit(&believed).err().unwrap().contains("no place for priors"));
    // Names that nobody has.
    let wrong =
        serde_json::from_value::<posterior::Method>(json!({"method": "gvi", "regulariser": "nothing"}));
    assert!(wrong.unwrap_err().to_string().contains("projected-renyi=0.5"));
    let wrong = serde_json::from_value::<posterior::Method>(json!({"method": "gvi", "lambda": 2.0}));
    assert!(wrong.unwrap_err().to_string().contains("regulariser-weight"));
}
