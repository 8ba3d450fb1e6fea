//! From files to models: preparation, interruption, checkpoints, the prior beside the weight decay.

use posterior::Model;
use posterior::data::{ArrayValues, NumericArray, ReadOptions, write_npy};
use posterior::laplace::{
    InputKind, LaplaceRequest, LikelihoodKind, NumberFormat, Preprocess, ValidationSource,
};
use posterior::linalg::random::Streams;
use posterior::linearised::{Approximation, Stage, Tune};
use posterior::network::Preparation;
use posterior::networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior::networks::{Architecture, Network};
use posterior::optim::Signal;
use std::collections::BTreeMap;
use std::path::Path;

/// A random network for 4 inputs and 3 classes, and 5,000 examples as bytes.
fn files(folder: &Path) -> LaplaceRequest {
    let text = "kind = \"perceptron\"\ninputs = 4\nhidden = [6]\noutputs = 3\nactivation = \"tanh\"\n";
    let architecture = Architecture::from_toml(text).unwrap();
    let network = Network::<f32>::initialised(architecture.graph().unwrap(), Streams::new(1)).unwrap();
    let training = r#"{"loss":"cross-entropy","weight_decay":0.001,"decoupled":false,"examples":5000,"noise_variance":[]}"#;
    let metadata = BTreeMap::from([
        (ARCHITECTURE_KEY.to_string(), text.to_string()),
        ("posterior.training".to_string(), training.to_string()),
    ]);
    save_safetensors(&folder.join("net.safetensors"), &network, &metadata).unwrap();
    let n = 5000;
    let bytes = (0..n * 4).map(|i| ((i * 7919) % 251) as u8).collect();
    let labels = (0..n).map(|i| ((i * 31) % 3) as i64).collect();
    write_npy(&folder.join("x.npy"), &NumericArray::new(vec![n, 4], ArrayValues::U8(bytes)).unwrap())
        .unwrap();
    write_npy(&folder.join("y.npy"), &NumericArray::new(vec![n], ArrayValues::I64(labels)).unwrap()).unwrap();
    let mut request = LaplaceRequest::new(
        folder.join("net.safetensors"),
        [folder.join("x.npy")],
        [folder.join("y.npy")],
        LikelihoodKind::Categorical,
    );
    request.options.approximation = Approximation::Full;
    request
}

fn fit(request: &LaplaceRequest) -> Model {
    Model::fit_laplace(request, &mut |_| {}, &mut |_, _, _| Signal::Continue).unwrap()
}

#[test]
fn bytes_are_prepared_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = files(folder.path());
    let kind = |request: &LaplaceRequest| match fit(request).networks().unwrap().header().data.inputs.clone()
    {
        InputKind::Prepared { preparation } => preparation,
        InputKind::Features { .. } => panic!("no features"),
    };
    let pixels = |m: f64, d: f64| Preparation::Pixels { mean: vec![m], deviation: vec![d] };
    assert_eq!(kind(&request), pixels(0.0, 1.0));
    request.data.mean = vec![0.5];
    request.data.deviation = vec![0.25];
    assert_eq!(kind(&request), pixels(0.5, 0.25));
    (request.data.mean, request.data.deviation) = (Vec::new(), Vec::new());
    request.data.preprocess = Preprocess::Raw;
    assert_eq!(kind(&request), Preparation::None);
    // The model asks the network what it would be asked by hand.
    let model = fit(&request);
    let data = model
        .networks()
        .unwrap()
        .read(&[folder.path().join("x.npy")], &[], false, &ReadOptions::for_arrays())
        .unwrap();
    let few = data.selected(&[0, 7]).unwrap();
    let fitted = model.networks().unwrap().fitted::<f32>().unwrap();
    let byte = |i: usize| ((i * 7919) % 251) as f32;
    let x = posterior::networks::Array::new(vec![2, 4], [0, 1, 2, 3, 28, 29, 30, 31].map(byte).to_vec());
    let by_hand: Vec<f64> =
        fitted.network.forward(&x).unwrap().values().iter().map(|v| f64::from(*v)).collect();
    assert_eq!(model.networks().unwrap().predict(&few, None).unwrap().latent_mean, by_hand);
    request.data.preprocess = Preprocess::Standardise;
    let error = Model::fit_laplace(&request, &mut |_| {}, &mut |_, _, _| Signal::Continue).err().unwrap();
    assert!(error.to_string().contains("only the columns of a table"), "{error}");
}

#[test]
fn interrupted_sums_are_gone_on_from() {
    // One thread: several would be done with these examples in one round, before anyone is asked.
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(interrupted_and_resumed);
}

fn interrupted_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = files(folder.path());
    let whole = fit(&request);
    let checkpoint = folder.path().join("c.checkpoint");
    request.checkpoint = Some(checkpoint.clone());
    request.resume = true;
    let mut stop = |stage, done, total| {
        if stage == Stage::Curvature && done < total { Signal::Stop } else { Signal::Continue }
    };
    let error = Model::fit_laplace(&request, &mut |_| {}, &mut stop).err().unwrap();
    assert!(error.is_interruption() && checkpoint.exists());
    let mut said = Vec::new();
    let resumed = Model::fit_laplace(&request, &mut |line| said.push(line.to_string()), &mut |_, _, _| {
        Signal::Continue
    })
    .unwrap();
    assert!(said.iter().any(|line| line.contains("going on after example")), "{said:?}");
    assert!(!checkpoint.exists());
    let evidence = |m: &Model| m.networks().unwrap().header().summary.evidence.clone().unwrap().log_evidence;
    assert!((evidence(&whole) / evidence(&resumed) - 1.0).abs() < 1e-9);
    // Another fit does not go on from it.
    Model::fit_laplace(&request, &mut |_| {}, &mut stop).err().unwrap();
    let refused = |request: &LaplaceRequest| {
        Model::fit_laplace(request, &mut |_| {}, &mut |_, _, _| Signal::Continue).err().unwrap().to_string()
    };
    let mut other = request.clone();
    other.options.approximation = Approximation::Diagonal;
    assert!(refused(&other).contains("another curvature"), "{}", refused(&other));
    let mut other = request.clone();
    other.data.data = vec![folder.path().join("x.npy"), folder.path().join("x.npy")];
    other.data.labels = vec![folder.path().join("y.npy"), folder.path().join("y.npy")];
    assert!(refused(&other).contains("differs in the data"), "{}", refused(&other));
    std::fs::write(&checkpoint, b"something else").unwrap();
    assert!(refused(&request).contains("does not begin like"));
}

#[test]
fn the_prior_is_compared_with_the_weight_decay() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = files(folder.path());
    request.options.tune = Tune::None;
    let sentence = |request: &LaplaceRequest| {
        fit(request)
            .networks()
            .unwrap()
            .header()
            .notes
            .iter()
            .find(|n| n.contains("weight decay"))
            .cloned()
            .unwrap()
    };
    // 5 / 5,000 = 1e-3: what the network was trained with.
    request.options.initial_precision = 5.0;
    let text = sentence(&request);
    assert!(
        text.contains("a weight decay of 1.00e-3 (a / n); the network was trained with 1.00e-3"),
        "{text}"
    );
    assert!(!text.contains("far"));
    request.options.initial_precision = 500.0;
    assert!(sentence(&request).contains("which is far from it"));
    // The caller knows better than the file.
    request.weight_decay = Some(0.1);
    assert!(sentence(&request).ends_with("the network was trained with 1.00e-1"), "{}", sentence(&request));
}

#[test]
fn validation_examples_are_not_learned_from_and_precision_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = files(folder.path());
    assert_eq!(fit(&request).networks().unwrap().precision(), "f32");
    request.numbers = NumberFormat::Double;
    request.options.tune = Tune::Validation;
    request.validation = ValidationSource { fraction: 0.2, ..ValidationSource::default() };
    let refused = |request: &LaplaceRequest| {
        Model::fit_laplace(request, &mut |_| {}, &mut |_, _, _| Signal::Continue).err().unwrap().to_string()
    };
    assert!(refused(&request).contains("their score is worthless"), "{}", refused(&request));
    request.validation.allow_seen = true;
    let model = fit(&request);
    assert_eq!(
        (model.networks().unwrap().precision(), model.networks().unwrap().header().data.examples),
        ("f64", 4000)
    );
    assert_eq!(model.networks().unwrap().header().summary.held_out.as_ref().unwrap().examples, 1000);
    // A share that nothing uses is refused.
    request.options.tune = Tune::Evidence;
    assert!(refused(&request).contains("--tune validation --allow-seen-rows"), "{}", refused(&request));
}
