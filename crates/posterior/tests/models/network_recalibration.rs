//! Predictions of networks that are made to hold what they say, on rows that the network has not seen.

use posterior::data::{ArrayValues, NumericArray};
use posterior::laplace::{Arrays, InMemory, LaplaceRequest, LikelihoodKind, NetworkRecalibration};
use posterior::linalg::random::Streams;
use posterior::linearised::{Approximation, MeanFieldOptions, Tune, Weights};
use posterior::metrics::{Classes, Temperature};
use posterior::models::{Guarantee, ModelData, Predicted, Predictive, Question, Scores, Truth};
use posterior::networks::{Activation, Array, GraphBuilder, Network};
use posterior::optim::Signal;
use posterior::options::CalibrateName;
use posterior::{Model, ModelError};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

/// A network with weights by chance, and its outputs at `rows` points of two columns.
fn network(outputs: usize) -> Network<f64> {
    let mut b = GraphBuilder::new(&[2]).unwrap();
    let x = b.linear("a", 8, b.input()).unwrap();
    let x = b.activation("t", Activation::Tanh, x).unwrap();
    let x = b.linear("b", outputs, x).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(2)).unwrap()
}

fn inputs(rows: usize, seed: u64) -> Vec<f64> {
    let mut random = Streams::new(seed).stream("test/inputs");
    (0..2 * rows).map(|_| 4.0 * random.random::<f64>() - 2.0).collect()
}

fn outputs(network: &Network<f64>, x: &[f64]) -> Vec<f64> {
    let x = Array::new(vec![x.len() / 2, 2], x.to_vec());
    network.forward(&x).unwrap().values().to_vec()
}

fn array(values: Vec<f64>, width: usize) -> NumericArray {
    NumericArray::new(vec![values.len() / width, width], ArrayValues::F64(values)).unwrap()
}

/// Classes by the softmax of `sharper` times the network's outputs.
fn classes(network: &Network<f64>, rows: usize, sharper: f64, seed: u64) -> (Vec<f64>, Vec<usize>) {
    let x = inputs(rows, seed);
    let mut random = Streams::new(seed).stream("test/labels");
    let logits = outputs(network, &x);
    let labels = logits.chunks(3).map(|logits| {
        let own: Vec<f64> = logits.iter().map(|l| (sharper * l).exp()).collect();
        let mut left = random.random::<f64>() * own.iter().sum::<f64>();
        let found = own.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        found.unwrap_or(2)
    });
    let labels = labels.collect();
    (x, labels)
}

fn labelled((x, labels): &(Vec<f64>, Vec<usize>)) -> Arrays {
    let targets = labels.iter().map(|l| *l as i64).collect();
    let targets = NumericArray::new(vec![labels.len()], ArrayValues::I64(targets)).unwrap();
    Arrays { inputs: array(x.clone(), 2), targets }
}

/// Two numbers by the network's outputs with normal noise of these deviations.
fn numbers(network: &Network<f64>, rows: usize, noise: [f64; 2], seed: u64) -> (Vec<f64>, Vec<f64>) {
    let x = inputs(rows, seed);
    let mut random = Streams::new(seed).stream("test/noise");
    let y = outputs(network, &x);
    let y = y.iter().enumerate().map(|(i, f)| {
        let e: f64 = StandardNormal.sample(&mut random);
        f + noise[i % 2] * e
    });
    let y = y.collect();
    (x, y)
}

fn request(likelihood: LikelihoodKind, calibrate: CalibrateName) -> LaplaceRequest {
    let none: [&str; 0] = [];
    let mut request = LaplaceRequest::new("", none, none, likelihood);
    request.validation.calibrate = calibrate;
    request.options.approximation = Approximation::Full;
    request.options.weights = Weights::LastLayer;
    request
}

fn fit(
    network: &Network<f64>,
    request: &LaplaceRequest,
    data: Arrays,
    unseen: Option<Arrays>,
) -> Result<Model, ModelError> {
    let memory = InMemory { network: Some(network.clone()), data: Some(data), unseen };
    Model::fit_laplace_with(request, &memory, &mut |_| {}, &mut |_, _, _| Signal::Continue)
}

fn asked(model: &Model, data: &ModelData, sets: &[f64]) -> Predictive {
    let question = Question { truth: true, memory: 1 << 30, sets: sets.to_vec(), ..Question::default() };
    model.predictive(data, &question).unwrap()
}

fn back(model: &Model) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.posterior");
    model.save(&path).unwrap();
    let loaded = Model::load(&path).unwrap();
    assert_eq!(loaded.networks().unwrap().header(), model.networks().unwrap().header());
    loaded
}

#[test]
fn probabilities_and_sets_of_networks_hold_what_they_say() {
    let network = network(3);
    // What rows are like is sharper than the network says.
    let sharper = 4.0;
    let (train, unseen) = (classes(&network, 300, sharper, 1), classes(&network, 300, sharper, 2));
    let fresh = classes(&network, 1500, sharper, 3);
    let of = |calibrate| {
        let request = request(LikelihoodKind::Categorical, calibrate);
        fit(&network, &request, labelled(&train), Some(labelled(&unseen))).unwrap()
    };
    let (plain, model) = (of(CalibrateName::None), of(CalibrateName::Auto));
    assert!(plain.networks().unwrap().header().recalibration.is_none() && Model::sets(&plain).is_none());
    let Some(NetworkRecalibration::Classes(own)) = model.networks().unwrap().header().recalibration.clone()
    else {
        panic!()
    };
    assert_eq!((own.guarantee, own.rows, own.tempering.applied), (Guarantee::Holds, 300, true));
    assert!(own.tempering.temperature < 0.7, "{own:?}");
    // What the rows say is what predictions of them say.
    let told = plain
        .networks()
        .unwrap()
        .predict(&ModelData::new("unseen", array(unseen.0.clone(), 2), None), None)
        .unwrap();
    let told = Classes::new(told.probabilities().unwrap(), 3, &unseen.1)
        .map(|c| Temperature::of(&c).unwrap())
        .unwrap();
    assert!((told.value() / own.tempering.temperature - 1.0).abs() < 1e-9);
    let data = ModelData::new("fresh", array(fresh.0.clone(), 2), Some(Truth::Classes(fresh.1.clone())));
    let (before, after) = (asked(&plain, &data, &[]), asked(&model, &data, &[0.8, 0.9, 0.999]));
    let nll = |p: &Predictive| {
        let all = Classes::new(p.probabilities().unwrap(), 3, &fresh.1).unwrap().log_likelihoods();
        // Densities are told of the same probabilities.
        for (own, density) in all.iter().zip(p.log_density.as_ref().unwrap()) {
            assert!((own - density).abs() < 1e-9);
        }
        -all.iter().sum::<f64>() / all.len() as f64
    };
    let gain = own.tempering.nll_after - own.tempering.nll_before;
    let error = own.tempering.difference_error.unwrap() * (1.0f64 + 300.0 / 1500.0).sqrt();
    assert!((nll(&after) - nll(&before) - gain).abs() < 4.0 * error, "{own:?}");
    for sets in &after.sets {
        let spread = Model::sets(&model).unwrap().spread(sets.level).unwrap_or(0.0);
        let error = (spread * spread + sets.level * (1.0 - sets.level) / 1500.0).sqrt();
        let coverage = sets.scored(&fresh.1).coverage;
        assert!(coverage > sets.level - 3.3 * error, "{}: {coverage}", sets.level);
    }
    assert!(after.sets[2].each().all(|set| set.len() == 3));
    assert_eq!(
        (&after.latent_mean, &after.latent_deviation),
        (&before.latent_mean, &before.latent_deviation)
    );
    // Predictions in another way are as they were, and the file keeps everything.
    let other = Some(posterior::likelihoods::Integration::PlugIn);
    assert_eq!(
        model.networks().unwrap().predict(&data, other).unwrap(),
        plain.networks().unwrap().predict(&data, other).unwrap()
    );
    assert_eq!(
        model.networks().unwrap().predict_as_fitted(&data, None).unwrap(),
        plain.networks().unwrap().predict(&data, None).unwrap()
    );
    assert_eq!(asked(&back(&model), &data, &[0.8, 0.9, 0.999]), after);
    assert!(Model::notes(&model).iter().any(|note| note.text().contains("--calibrate none")));
    assert!(model.facts().rows().iter().any(|row| row.label.contains("--sets")));
    let question = Question { truth: true, memory: 1 << 30, ..Question::default() };
    assert_eq!(model.evaluate(&data, &question).unwrap().sets.len(), 3);
    // Rows that choose a precision as well are said to.
    let mut chosen = request(LikelihoodKind::Categorical, CalibrateName::Auto);
    chosen.options.tune = Tune::Validation;
    let model = fit(&network, &chosen, labelled(&train), Some(labelled(&unseen))).unwrap();
    let Some(NetworkRecalibration::Classes(own)) = &model.networks().unwrap().header().recalibration else {
        panic!()
    };
    assert_eq!(own.guarantee, Guarantee::Chosen);
    // Rows that stand in training too.
    let mut twice = unseen.clone();
    twice.0[..20].copy_from_slice(&train.0[..20]);
    twice.1[..10].copy_from_slice(&train.1[..10]);
    let request = request(LikelihoodKind::Categorical, CalibrateName::Auto);
    let model = fit(&network, &request, labelled(&train), Some(labelled(&twice))).unwrap();
    let Some(NetworkRecalibration::Classes(own)) = &model.networks().unwrap().header().recalibration else {
        panic!()
    };
    assert_eq!(own.guarantee, Guarantee::Repeated);
}

/// The density of `m + f (y - m)` is that of the model as it was at y, less the logarithms of the factors.
fn densities_are_those_of_moved_targets(plain: &Model, model: &Model, (x, y): &(Vec<f64>, Vec<f64>)) {
    let Some(NetworkRecalibration::Numbers(all)) = &model.networks().unwrap().header().recalibration else {
        panic!("numbers")
    };
    let factors: Vec<f64> = all.iter().map(|own| own.as_ref().map_or(1.0, |own| own.factor)).collect();
    assert!(factors.iter().any(|f| (f - 1.0).abs() > 0.05), "{factors:?}");
    let at = |y: Vec<f64>| {
        ModelData::new("points", array(x.clone(), 2), Some(Truth::Values { values: y, width: 2 }))
    };
    let own = asked(model, &at(y.clone()), &[]);
    let Predicted::Moments { mean, .. } = &own.predicted else { panic!("numbers") };
    let moved = y.iter().zip(mean).zip(factors.iter().cycle()).map(|((y, m), f)| m + (y - m) / f);
    let before = asked(plain, &at(moved.collect()), &[]);
    let logarithms: f64 = factors.iter().map(|f| f.ln()).sum();
    for (own, before) in own.log_density.unwrap().iter().zip(before.log_density.unwrap()) {
        assert!((own - (before - logarithms)).abs() < 1e-9 * own.abs().max(1.0), "{own} {before}");
    }
}

#[test]
fn intervals_of_each_number_hold_what_they_say() {
    let network = network(2);
    // The noise of the rows learned from is not that of the others.
    let (train, unseen) = (numbers(&network, 300, [0.1, 0.1], 1), numbers(&network, 300, [0.1, 0.3], 2));
    let fresh = numbers(&network, 1500, [0.1, 0.3], 3);
    let arrays =
        |(x, y): &(Vec<f64>, Vec<f64>)| Arrays { inputs: array(x.clone(), 2), targets: array(y.clone(), 2) };
    let of = |calibrate| {
        let request = request(LikelihoodKind::Gaussian, calibrate);
        fit(&network, &request, arrays(&train), Some(arrays(&unseen))).unwrap()
    };
    let (plain, model) = (of(CalibrateName::None), of(CalibrateName::Auto));
    let Some(NetworkRecalibration::Numbers(all)) = model.networks().unwrap().header().recalibration.clone()
    else {
        panic!()
    };
    let own = all[1].clone().unwrap();
    assert!(all[0].is_none() && own.factor > 2.2 && own.guarantee == Guarantee::Holds, "{all:?}");
    let truth = Truth::Values { values: fresh.1.clone(), width: 2 };
    let data = ModelData::new("fresh", array(fresh.0.clone(), 2), Some(truth));
    let (before, after) = (asked(&plain, &data, &[]), asked(&model, &data, &[]));
    let moments = |p: &Predictive| match &p.predicted {
        Predicted::Moments { mean, variance, latent_variance } => {
            (mean.clone(), variance.clone(), latent_variance.clone())
        }
        _ => panic!("numbers"),
    };
    let (own_moments, plain_moments) = (moments(&after), moments(&before));
    assert_eq!((&own_moments.0, &own_moments.2), (&plain_moments.0, &plain_moments.2));
    for (k, (v, plain)) in own_moments.1.iter().zip(&plain_moments.1).enumerate() {
        let factor = if k % 2 == 0 { 1.0 } else { own.factor };
        assert!((v / plain - factor * factor).abs() < 1e-9);
    }
    // Coverage of the second number at several levels, within 3.3 standard errors of the rows that tell it and of the fresh ones; the first number's quantiles are as they were.
    for level in [0.5, 0.8, 0.95f64] {
        let ends = [0.5 - level / 2.0, 0.5 + level / 2.0].map(|at| after.quantiles(at, true).unwrap());
        let plain = before.quantiles(0.5 + level / 2.0, true).unwrap();
        assert!(ends[1].iter().zip(&plain).step_by(2).all(|(a, b)| a == b));
        let inside = (0..1500).filter(|i| {
            let k = 2 * i + 1;
            (ends[0][k]..=ends[1][k]).contains(&fresh.1[k])
        });
        let share = inside.count() as f64 / 1500.0;
        let error = (level * (1.0 - level) * (1.0 / 300.0 + 1.0 / 1500.0)).sqrt();
        assert!((share - level).abs() < 3.3 * error, "{level}: {share}");
    }
    densities_are_those_of_moved_targets(&plain, &model, &fresh);
    // Densities are those of the wider Gaussians: independent noise, and latent values that are known almost.
    let (mean, variance, _) = &own_moments;
    let scores = model
        .evaluate(&data, &Question { truth: true, memory: 1 << 30, ..Question::default() })
        .unwrap()
        .scores;
    let Scores::Values { nll, .. } = scores else { panic!("numbers") };
    let direct = mean
        .iter()
        .zip(variance)
        .zip(&fresh.1)
        .map(|((m, v), y)| 0.5 * ((2.0 * std::f64::consts::PI * v).ln() + (y - m).powi(2) / v));
    let direct = direct.sum::<f64>() / 1500.0;
    assert!((nll - direct).abs() < 0.02, "{nll} {direct}");
    let total = |p: &Predictive| p.log_density.as_ref().unwrap().iter().sum::<f64>();
    assert!(total(&after) > total(&before) + 1500.0);
    assert_eq!(asked(&back(&model), &data, &[]), after);
    // Mixtures over draws, whose densities are their own, as well.
    let of = |calibrate| {
        let mut request = request(LikelihoodKind::Gaussian, calibrate);
        request.options.weights = Weights::All;
        let few = MeanFieldOptions { epochs: 1, samples: 4, ..MeanFieldOptions::default() };
        request.options.approximation = Approximation::MeanField(few);
        fit(&network, &request, arrays(&train), Some(arrays(&unseen))).unwrap()
    };
    densities_are_those_of_moved_targets(&of(CalibrateName::None), &of(CalibrateName::Conformal), &fresh);
    let said: Vec<String> = Model::notes(&model).into_iter().map(|note| note.text()).collect();
    assert!(said.iter().any(|note| note.contains("y_2: intervals are recalibrated")), "{said:?}");
}

#[test]
fn without_rows_that_the_network_has_not_seen_there_is_nothing_to_go_by() {
    let network = network(2);
    let (x, y) = numbers(&network, 100, [0.1, 0.1], 1);
    let data = || Arrays { inputs: array(x.clone(), 2), targets: array(y.clone(), 2) };
    let of = |calibrate| fit(&network, &request(LikelihoodKind::Gaussian, calibrate), data(), None);
    let error = of(CalibrateName::Conformal).err().unwrap().to_string();
    assert!(error.contains("--validation-data") && error.len() < 300, "{error}");
    assert!(of(CalibrateName::Auto).unwrap().networks().unwrap().header().recalibration.is_none());
}
