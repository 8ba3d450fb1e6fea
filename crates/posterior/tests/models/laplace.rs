//! Networks with error bars: every curvature comes back from its file with the same predictions; damaged files are refused.

use posterior::Model;
use posterior::Saved;
use posterior::data::{ArrayValues, NumericArray, synthetic};
use posterior::laplace::{ModelData, NetworkDescription, Predicted, Truth};
use posterior::likelihoods::{Categorical, Gaussian, Integration, OutputLikelihood, Poisson};
use posterior::linalg::random::Streams;
use posterior::linearised::{
    Approximation, Choice, FisherEstimate, FitOptions, Mode, NoiseModel, PriorKind, Tune, Weights,
};
use posterior::models::Question;
use posterior::networks::train::{Loss, Tabular, Targets, TrainOptions, train};
use posterior::networks::{Activation, Array, GraphBuilder, Network, Precision};
use posterior::optim::{Rule, Schedule, Signal};
use std::path::Path;

/// Two moons and a small network trained on them.
fn moons<T: Precision>(layer_norm: bool) -> (Network<T>, Tabular<T>, Vec<f64>, Vec<usize>) {
    let points = synthetic::two_moons(120, 0.2, Streams::new(1)).unwrap();
    let xy = points.features.to_f64();
    let labels = points.labels;
    let classes: Vec<usize> = labels.iter().map(|&c| c as usize).collect();
    let inputs = Array::new(vec![120, 2], xy.iter().map(|v| T::from_f64(*v)).collect());
    let examples = Tabular::new(inputs, Targets::Classes(labels));
    let mut b = GraphBuilder::new(&[2]).unwrap();
    let x = b.linear("a", 8, b.input()).unwrap();
    let x = if layer_norm { b.layer_norm("norm", 1, 1e-5, x).unwrap() } else { x };
    let x = b.activation("t", Activation::Tanh, x).unwrap();
    let x = b.linear("b", 2, x).unwrap();
    let network = Network::initialised(b.finish(x).unwrap(), Streams::new(2)).unwrap();
    let options = train_options(Loss::CrossEntropy, 60);
    let trained = train(network, &examples, None, &options, None, &mut |_, _| Signal::Continue).unwrap();
    (trained.network, examples, xy, classes)
}

fn train_options(loss: Loss, epochs: usize) -> TrainOptions {
    TrainOptions {
        loss,
        epochs,
        batch: 32,
        rule: Rule::adam(),
        learning_rate: 0.02,
        schedule: Schedule::Constant,
        clip: None,
        patience: None,
        seed: 0,
    }
}

fn data(xy: &[f64], width: usize, truth: Option<Truth>) -> ModelData {
    let array = NumericArray::new(vec![xy.len() / width, width], ArrayValues::F64(xy.to_vec())).unwrap();
    ModelData::new("points", array, truth)
}

fn go(_: posterior::linearised::Stage, _: usize, _: usize) -> Signal {
    Signal::Continue
}

/// Saves, loads, and compares predictions and function samples to the last bit.
fn round_trip(model: &Model, data: &ModelData, what: &str) -> Model {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.posterior");
    model.save(&path).unwrap();
    let back = Saved::load(&path).unwrap().into_only().unwrap();
    assert_eq!(back.networks().unwrap().header(), model.networks().unwrap().header(), "{what}");
    assert_eq!(back.networks().unwrap().precision(), model.networks().unwrap().precision());
    let (a, b) = (
        model.networks().unwrap().predict(data, None).unwrap(),
        back.networks().unwrap().predict(data, None).unwrap(),
    );
    assert_eq!(a, b, "{what}");
    let draw = |m: &Model| m.networks().unwrap().function_samples(data, 2, 5, 1 << 30).unwrap();
    assert_eq!(draw(model), draw(&back), "{what}");
    // A second writing gives the same bytes.
    let again = directory.path().join("n.posterior");
    back.save(&again).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&again).unwrap(), "{what}");
    back
}

fn every_curvature<T: Precision>() {
    let (network, examples, xy, classes) = moons::<T>(false);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2).unwrap());
    let grid = data(&[-2.0, 1.0, 0.5, 0.2, 3.0, -1.0, 9.0, 9.0], 2, Some(Truth::Classes(vec![0, 1, 1, 0])));
    let subnetwork = Weights::Subnetwork { size: 9, choice: Choice::Variance };
    let kronecker = Approximation::Kronecker(FisherEstimate::Exact);
    let sampled = Approximation::Kronecker(FisherEstimate::MonteCarlo { samples: 2, seed: 3 });
    let cases = [
        (Weights::All, Approximation::Full, PriorKind::Scalar),
        (Weights::All, Approximation::Block, PriorKind::Layerwise),
        (Weights::All, Approximation::Diagonal, PriorKind::Diagonal),
        (Weights::All, kronecker.clone(), PriorKind::Parameter),
        (Weights::All, sampled, PriorKind::GPrior),
        (Weights::LastLayer, kronecker, PriorKind::Scalar),
        (Weights::LastLayer, Approximation::Full, PriorKind::GPrior),
        (Weights::Matching(vec!["a.*".into()]), Approximation::Full, PriorKind::Scalar),
        (subnetwork, Approximation::Full, PriorKind::Scalar),
        (Weights::All, Approximation::LowRank { rank: 4, iterations: 2 }, PriorKind::Scalar),
        (Weights::All, Approximation::LowRank { rank: 4, iterations: 2 }, PriorKind::Layerwise),
        (Weights::All, Approximation::FunctionSpace { points: Some(30) }, PriorKind::Scalar),
    ];
    for (weights, approximation, prior) in cases {
        let what = format!("{weights:?} {approximation:?} {prior:?}");
        let options = FitOptions { weights, approximation, prior, ..FitOptions::default() };
        let about = NetworkDescription {
            class_names: vec!["up".into(), "down".into()],
            ..NetworkDescription::default()
        };
        let model =
            Model::fit_network(network.clone(), &examples, None, &likelihood, &options, about, &mut go);
        let model = model.unwrap_or_else(|e| panic!("{what}: {e}"));
        let back = round_trip(&model, &grid, &what);
        let predictions = back.networks().unwrap().predict(&grid, None).unwrap();
        let Predicted::Classes(p) = &predictions.predicted else { panic!("classes") };
        // Truths were given: their densities are those of the probabilities.
        for (row, (density, class)) in
            predictions.log_density.as_ref().unwrap().iter().zip([0, 1, 1, 0]).enumerate()
        {
            assert!((density - p[2 * row + class].ln()).abs() < 1e-12, "{what}");
        }
        // Far from the data the model is less sure than its network.
        let plain = back.networks().unwrap().predict_plain(&grid).unwrap();
        assert!(predictions.entropies()[3] > plain.entropies()[3], "{what}");
        let own = back
            .networks()
            .unwrap()
            .predict(&data(&xy, 2, Some(Truth::Classes(classes.clone()))), None)
            .unwrap();
        assert!(own.log_density.unwrap().iter().sum::<f64>() / 120.0 > -0.5, "{what}");
    }
}

#[test]
fn every_curvature_comes_back_in_double_precision() {
    every_curvature::<f64>();
}

#[test]
fn every_curvature_comes_back_in_single_precision() {
    every_curvature::<f32>();
}

#[test]
fn a_g_prior_on_low_rank_and_a_linearised_mode_come_back() {
    let (network, examples, xy, _) = moons::<f64>(true);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2).unwrap());
    let some = data(&xy[..40], 2, None);
    let options = FitOptions { approximation: Approximation::Full, ..FitOptions::default() };
    let model = Model::fit_network(
        network.clone(),
        &examples,
        None,
        &likelihood,
        &options,
        NetworkDescription::default(),
        &mut go,
    )
    .unwrap();
    // Layer norm: the evidence is taken at the optimum of the linearised model, with a precision for each layer.
    assert!(
        model.networks().unwrap().header().summary.mode.is_some()
            && model.networks().unwrap().header().group_count > 1
    );
    let back = round_trip(&model, &some, "linearised");
    assert!(
        back.networks().unwrap().header().notes.iter().any(|n| n.contains("scale of `a`")),
        "{:?}",
        back.networks().unwrap().header().notes
    );
    // Scaling the features back and again rounds, so that only almost the same comes back.
    let options = FitOptions {
        approximation: Approximation::LowRank { rank: 4, iterations: 2 },
        prior: PriorKind::GPrior,
        mode: Mode::Trained,
        ..FitOptions::default()
    };
    let model = Model::fit_network(
        network,
        &examples,
        None,
        &likelihood,
        &options,
        NetworkDescription::default(),
        &mut go,
    )
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.posterior");
    model.save(&path).unwrap();
    let back = Model::load(&path).unwrap();
    let (a, b) = (
        model.networks().unwrap().predict(&some, None).unwrap(),
        back.networks().unwrap().predict(&some, None).unwrap(),
    );
    for (a, b) in a.latent_deviation.iter().zip(&b.latent_deviation) {
        assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    }
}

/// A line with noise, by a small network.
fn line() -> (Network<f64>, Tabular<f64>) {
    let n = 60;
    let x: Vec<f64> = (0..n).map(|i| -1.0 + 2.0 * i as f64 / (n - 1) as f64).collect();
    let y: Vec<f64> =
        x.iter().enumerate().map(|(i, x)| (2.0 * x).sin() + 0.1 * ((i * 7919) as f64).sin()).collect();
    let examples = Tabular::new(Array::new(vec![n, 1], x), Targets::Values(Array::new(vec![n, 1], y)));
    let mut b = GraphBuilder::new(&[1]).unwrap();
    let h = b.linear("a", 10, b.input()).unwrap();
    let h = b.activation("t", Activation::Tanh, h).unwrap();
    let h = b.linear("b", 1, h).unwrap();
    let network = Network::initialised(b.finish(h).unwrap(), Streams::new(2)).unwrap();
    let trained =
        train(network, &examples, None, &train_options(Loss::Mse, 200), None, &mut |_, _| Signal::Continue)
            .unwrap();
    (trained.network, examples)
}

#[test]
fn regression_predicts_with_and_without_noise() {
    let (network, examples) = line();
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(vec![0.01]).unwrap());
    let truth = Truth::Values { values: vec![0.0, 0.5], width: 1 };
    let points = data(&[0.0, 4.0], 1, Some(truth));
    for noise in [NoiseModel::Fixed, NoiseModel::Scale, NoiseModel::PerOutput, NoiseModel::Full] {
        let options = FitOptions { approximation: Approximation::Full, noise, ..FitOptions::default() };
        let model = Model::fit_network(
            network.clone(),
            &examples,
            None,
            &likelihood,
            &options,
            NetworkDescription::default(),
            &mut go,
        )
        .unwrap();
        let back = round_trip(&model, &points, &format!("{noise:?}"));
        let p = back.networks().unwrap().predict(&points, None).unwrap();
        let Predicted::Moments { mean, variance, latent_variance } = &p.predicted else { panic!("moments") };
        assert!(latent_variance[1] > 10.0 * latent_variance[0], "the line ends at 1");
        for i in 0..2 {
            let noise = variance[i] - latent_variance[i];
            assert!(noise > 1e-3 && noise < 0.05, "{noise}");
            let z = [0.0, 0.5][i] - mean[i];
            let expected = -0.5 * ((2.0 * std::f64::consts::PI * variance[i]).ln() + z * z / variance[i]);
            assert!((p.log_density.as_ref().unwrap()[i] - expected).abs() < 1e-12);
        }
        let (low, high) = (p.quantiles(0.025, true).unwrap(), p.quantiles(0.975, true).unwrap());
        assert!((0.5 * (low[1] + high[1]) - mean[1]).abs() < 1e-12);
        assert!(((high[1] - low[1]) / (2.0 * 1.959963984540054) - variance[1].sqrt()).abs() < 1e-9);
        // Functions scatter as the joint covariance says: 4,000 draws estimate a variance to 3 / sqrt(2000), 7 %.
        let draws = back.networks().unwrap().function_samples(&points, 4000, 1, 1 << 30).unwrap();
        let joint = back.networks().unwrap().joint_covariance(&points, 1 << 30).unwrap();
        let product: f64 =
            draws.chunks_exact(2).map(|f| (f[0] - mean[0]) * (f[1] - mean[1])).sum::<f64>() / 4000.0;
        let square: f64 = draws.chunks_exact(2).map(|f| (f[1] - mean[1]).powi(2)).sum::<f64>() / 4000.0;
        assert!((joint[(1, 1)] - latent_variance[1]).abs() < 1e-9 * latent_variance[1]);
        assert!((square / joint[(1, 1)] - 1.0).abs() < 0.1, "{square} {}", joint[(1, 1)]);
        // Standard error of a product moment: sqrt((v0 v1 + c^2) / n).
        let error = ((joint[(0, 0)] * joint[(1, 1)] + joint[(0, 1)].powi(2)) / 4000.0).sqrt();
        assert!((product - joint[(0, 1)]).abs() < 5.0 * error);
        assert!(
            back.networks()
                .unwrap()
                .joint_covariance(&points, 10)
                .unwrap_err()
                .to_string()
                .contains("above the limit")
        );
        assert!(
            back.networks()
                .unwrap()
                .function_samples(&points, 1000, 0, 10)
                .unwrap_err()
                .to_string()
                .contains("above the limit")
        );
    }
}

#[test]
fn counts_and_other_integrations() {
    let (network, _) = line();
    let x: Vec<f64> = (0..40).map(|i| -1.0 + i as f64 / 20.0).collect();
    let y: Vec<f64> = x.iter().map(|x| ((2.0 * x).sin().exp() * 2.0).round()).collect();
    let examples =
        Tabular::new(Array::new(vec![40, 1], x.clone()), Targets::Values(Array::new(vec![40, 1], y)));
    let likelihood = OutputLikelihood::Poisson(Poisson::new(1).unwrap());
    let options =
        FitOptions { approximation: Approximation::Full, tune: Tune::None, ..FitOptions::default() };
    let model = Model::fit_network(
        network,
        &examples,
        None,
        &likelihood,
        &options,
        NetworkDescription::default(),
        &mut go,
    )
    .unwrap();
    let back = round_trip(&model, &data(&x, 1, None), "counts");
    let p = back.networks().unwrap().predict(&data(&x, 1, None), None).unwrap();
    assert!(p.quantiles(0.5, true).is_none() && p.probabilities().is_none() && p.log_density.is_none());
    let error =
        back.networks().unwrap().predict(&data(&x, 1, None), Some(Integration::LaplaceBridge)).unwrap_err();
    assert!(error.to_string().contains("laplace_bridge"), "{error}");
}

#[test]
fn damaged_files_are_refused() {
    let (network, examples, xy, _) = moons::<f32>(false);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2).unwrap());
    let options = FitOptions {
        weights: Weights::Subnetwork { size: 5, choice: Choice::Magnitude },
        approximation: Approximation::Full,
        ..FitOptions::default()
    };
    let model = Model::fit_network(
        network,
        &examples,
        None,
        &likelihood,
        &options,
        NetworkDescription::default(),
        &mut go,
    )
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.posterior");
    model.save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let damaged = directory.path().join("d.posterior");
    let error = |bytes: &[u8]| {
        std::fs::write(&damaged, bytes).unwrap();
        Saved::load(&damaged).map(|_| ()).map_err(|e| e.to_string())
    };
    for length in (0..bytes.len()).step_by(97) {
        assert!(error(&bytes[..length]).is_err(), "{length}");
    }
    // Every changed byte of the header is refused or changes no size; none may panic.
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    for position in (8..8 + header).step_by(7) {
        let mut changed = bytes.clone();
        changed[position] ^= 1;
        if error(&changed).is_ok() {
            let model = Model::load(&damaged).unwrap();
            let _ = model.networks().unwrap().predict(&data(&xy[..4], 2, None), None);
        }
    }
    // A number that is not finite.
    let mut changed = bytes.clone();
    let end = changed.len();
    changed[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(error(&changed).unwrap_err().contains("NaN"));
    assert!(Model::load(Path::new("/nowhere/m.posterior")).is_err());
}

#[test]
fn one_label_at_a_time_joint_scores_are_the_monte_carlo_scores() {
    let (network, examples, xy, classes) = moons::<f64>(false);
    let likelihood = OutputLikelihood::Categorical(Categorical::new(2).unwrap());
    let options = FitOptions { approximation: Approximation::Full, ..FitOptions::default() };
    let model = Model::fit_network(
        network,
        &examples,
        None,
        &likelihood,
        &options,
        NetworkDescription::default(),
        &mut go,
    )
    .unwrap();
    let points = data(&xy, 2, Some(Truth::Classes(classes)));
    let question =
        Question { joint_points: vec![1, 2], samples: 4000, seed: 3, memory: 1 << 30, ..Question::default() };
    let rows = model.joint_scores(&points, &question).unwrap();
    let sampled = model
        .networks()
        .unwrap()
        .predict(&points, Some(Integration::MonteCarlo { samples: 4000, seed: 1 }))
        .unwrap();
    let mean = |p: Vec<f64>| p.iter().sum::<f64>() / p.len() as f64;
    // A probability of 4,000 draws is known to 0.5 / sqrt(4000) = 0.008; labels here have mean probabilities above one half.
    assert!((rows[0].model.mean - mean(sampled.log_density.unwrap())).abs() < 0.01);
    let plain = mean(model.networks().unwrap().predict_plain(&points).unwrap().log_density.unwrap());
    assert!((rows[0].plain.mean - plain).abs() < 1e-12);
    assert_eq!((rows[1].points, rows[1].model.labels), (2, 10));
    let refused = model.joint_scores(&points, &Question { memory: 1000, ..question }).unwrap_err();
    assert!(refused.to_string().contains("above the limit"));
}
