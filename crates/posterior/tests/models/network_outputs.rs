//! Networks that predict several numbers: columns of one table, and images.

use posterior::Model;
use posterior::data::{ArrayValues, NumericArray, ReadOptions, write_npy};
use posterior::laplace::{
    Arrays, InMemory, LaplaceRequest, LikelihoodKind, NumberFormat, Predicted, Preprocess,
};
use posterior::linalg::random::Streams;
use posterior::linearised::{Approximation, NoiseModel, Tune};
use posterior::models::{PredictedInto, Question};
use posterior::networks::operation::Convolution;
use posterior::networks::safetensors::{ARCHITECTURE_KEY, save_safetensors};
use posterior::networks::{Activation, Architecture, Array, GraphBuilder, Network};
use posterior::optim::Signal;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const NOISE: f64 = 0.3;
const PRECISION: f64 = 2.0;

fn array(shape: &[usize], values: Vec<f64>) -> NumericArray {
    NumericArray::new(shape.to_vec(), ArrayValues::F64(values)).unwrap()
}

/// A request that leaves nothing to be chosen.
fn request(network: impl AsRef<Path>, data: &Path, labels: &[&Path]) -> LaplaceRequest {
    let labels = labels.iter().map(|path| path.to_path_buf());
    let mut request = LaplaceRequest::new(
        network.as_ref().to_path_buf(),
        [data.to_path_buf()],
        labels,
        LikelihoodKind::Gaussian,
    );
    request.numbers = NumberFormat::Double;
    request.initial_noise = Some(NOISE);
    request.options.noise = NoiseModel::Fixed;
    request.options.tune = Tune::None;
    request.options.initial_precision = PRECISION;
    request.options.approximation = Approximation::Full;
    request
}

fn fit(request: &LaplaceRequest, memory: &InMemory) -> Result<Model, String> {
    Model::fit_laplace_with(request, memory, &mut |_| {}, &mut |_, _, _| Signal::Continue)
        .map_err(|e| e.to_string())
}

/// A perceptron of two inputs and two outputs.
fn pair(folder: &Path) -> Network<f64> {
    let text = "kind = \"perceptron\"\ninputs = 2\nhidden = [4]\noutputs = 2\nactivation = \"tanh\"\n";
    let graph = Architecture::from_toml(text).unwrap().graph().unwrap();
    let network = Network::<f64>::initialised(graph, Streams::new(3)).unwrap();
    let metadata = BTreeMap::from([(ARCHITECTURE_KEY.to_string(), text.to_string())]);
    save_safetensors(&folder.join("net.safetensors"), &network, &metadata).unwrap();
    network
}

#[test]
fn columns_of_a_table_are_outputs_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let network = pair(at);
    let (mut text, mut x, mut y) = ("p,late,q,early\n".to_string(), Vec::new(), Vec::new());
    for i in 0..40 {
        let (p, q) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        let (early, late) = (p + 0.1 * q, q - p);
        // A row that lacks one of its targets teaches nothing.
        let shown = if i == 11 { String::new() } else { late.to_string() };
        writeln!(text, "{p},{shown},{q},{early}").unwrap();
        if i != 11 {
            x.extend([p, q]);
            y.extend([early, late]);
        }
    }
    let table = at.join("t.csv");
    std::fs::write(&table, text).unwrap();
    let mut of_table = request(at.join("net.safetensors"), &table, &[]);
    of_table.data.columns.target = "early,late".into();
    let model = fit(&of_table, &InMemory::default()).unwrap();
    assert_eq!(model.networks().unwrap().header().data.examples, 39);
    assert!(
        model
            .networks()
            .unwrap()
            .header()
            .data
            .notes
            .iter()
            .any(|note| note.contains("1 row without a target"))
    );
    assert_eq!(model.output_names(), ["early", "late"]);

    // The same as of arrays.
    let memory = InMemory {
        network: Some(network),
        data: Some(Arrays { inputs: array(&[39, 2], x), targets: array(&[39, 2], y) }),
        unseen: None,
    };
    let apart = fit(&request("memory", &table, &[]), &memory).unwrap();
    let evidence =
        |model: &Model| model.networks().unwrap().header().summary.evidence.as_ref().unwrap().log_evidence;
    assert!((evidence(&model) - evidence(&apart)).abs() < 1e-9);
    let read = |truth| {
        model
            .networks()
            .unwrap()
            .read(std::slice::from_ref(&table), &[], truth, &ReadOptions::for_arrays())
            .unwrap()
    };
    let scored = model.networks().unwrap().predict(&read(true), None).unwrap();
    assert_eq!(scored.log_density.as_ref().unwrap().len(), 39);
    // Without truths, the row is predicted as well, in columns by name.
    let answer = Model::predict(&model, &read(false), &Question::default()).unwrap();
    assert_eq!(answer.count, 40);
    let names: Vec<&str> = answer.columns.iter().map(|column| column.name.as_str()).collect();
    let expected =
        ["early_mean", "early_std", "early_latent_std", "late_mean", "late_std", "late_latent_std"];
    assert_eq!(names, expected);
    // Out of its file it is the same.
    let path = at.join("m.posterior");
    model.save(&path).unwrap();
    let back = posterior::Saved::load(&path).unwrap();
    assert_eq!(back.only().unwrap().output_names(), ["early", "late"]);

    let refused = |change: &dyn Fn(&mut LaplaceRequest)| {
        let mut other = of_table.clone();
        change(&mut other);
        fit(&other, &InMemory::default()).err().unwrap()
    };
    let one = refused(&|r| r.data.columns.target = "early".into());
    assert!(one.contains('1') && one.contains('2'), "{one}");
    let classes = refused(&|r| {
        r.likelihood = LikelihoodKind::Categorical;
        r.initial_noise = None;
    });
    assert!(classes.contains("a classifier has one target"), "{classes}");
    let twice = refused(&|r| r.data.columns.target = "early,early".into());
    assert!(twice.contains("twice"), "{twice}");
    let feature = refused(&|r| {
        r.data.columns.features = Some(vec!["p".into(), "late".into()]);
    });
    assert!(feature.contains("`late`"), "{feature}");
    let scaled = refused(&|r| r.data.preprocess = Preprocess::Standardise);
    assert!(scaled.contains("several"), "{scaled}");
}

const IMAGE: [usize; 3] = [1, 4, 4];
const OUTPUTS: usize = 2 * 4 * 4;
const EXAMPLES: usize = 6;

/// Two convolutions from an image of one channel to one of two.
fn painter() -> Network<f64> {
    let mut b = GraphBuilder::new(&IMAGE).unwrap();
    let x = b.convolution("first", Convolution::square(2, 3, 1, 1, true), b.input()).unwrap();
    let x = b.activation("tanh", Activation::Tanh, x).unwrap();
    let x = b.convolution("second", Convolution::square(2, 3, 1, 1, true), x).unwrap();
    Network::initialised(b.finish(x).unwrap(), Streams::new(8)).unwrap()
}

fn pixels(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 1.7 + (i * i) as f64 * 0.13).sin()).collect()
}

/// The Jacobian of one example in all weights by central differences, outputs x weights.
fn jacobian(network: &Network<f64>, x: &[f64]) -> faer::Mat<f64> {
    let x = Array::new([&[1], &IMAGE[..]].concat(), x.to_vec());
    let sizes: Vec<usize> = network.parameters().iter().map(Array::len).collect();
    let step = 1e-5;
    let mut out = faer::Mat::zeros(OUTPUTS, sizes.iter().sum());
    let mut column = 0;
    for (p, &size) in sizes.iter().enumerate() {
        for k in 0..size {
            let at = |by: f64| {
                let mut parameters = network.parameters().to_vec();
                parameters[p].values_mut()[k] += by;
                Network::new(network.graph().clone(), parameters).unwrap().forward(&x).unwrap()
            };
            let (up, down) = (at(step), at(-step));
            for (o, (u, d)) in up.values().iter().zip(down.values()).enumerate() {
                out[(o, column)] = (u - d) / (2.0 * step);
            }
            column += 1;
        }
    }
    out
}

#[test]
fn images_are_targets_shaped_as_the_outputs_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let network = painter();
    let x = pixels(EXAMPLES * 16);
    let y: Vec<f64> = pixels(EXAMPLES * OUTPUTS).iter().map(|v| 0.5 * v).collect();
    write_npy(&at("x.npy"), &array(&[EXAMPLES, 1, 4, 4], x.clone())).unwrap();
    write_npy(&at("y.npy"), &array(&[EXAMPLES, 2, 4, 4], y.clone())).unwrap();
    write_npy(&at("last.npy"), &array(&[EXAMPLES, 4, 4, 2], y)).unwrap();
    let memory = InMemory { network: Some(network.clone()), ..InMemory::default() };
    let model = fit(&request("memory", &at("x.npy"), &[&at("y.npy")]), &memory).unwrap();

    // Other axes hold as many numbers, and mean others.
    let error = fit(&request("memory", &at("x.npy"), &[&at("last.npy")]), &memory).err().unwrap();
    assert!(error.contains("[examples, 2, 4, 4]"), "{error}");

    let data = model
        .networks()
        .unwrap()
        .read(&[at("x.npy")], &[at("y.npy")], true, &ReadOptions::for_arrays())
        .unwrap();
    let found = model.networks().unwrap().predict(&data, None).unwrap();
    let Predicted::Moments { mean, variance, latent_variance } = &found.predicted else { panic!() };
    let each: Vec<faer::Mat<f64>> = x.chunks(16).map(|own| jacobian(&network, own)).collect();
    let weights = each[0].ncols();
    let mut precision = faer::Mat::from_fn(weights, weights, |i, j| if i == j { PRECISION } else { 0.0 });
    each.iter().for_each(|own| precision += own.transpose() * own * (1.0 / NOISE));
    for (example, own) in each.iter().enumerate() {
        let half = faer::prelude::Solve::solve(&precision.partial_piv_lu(), own.transpose());
        for o in 0..OUTPUTS {
            let expected: f64 = (0..weights).map(|w| own[(o, w)] * half[(w, o)]).sum();
            let k = example * OUTPUTS + o;
            assert!((latent_variance[k] / expected - 1.0).abs() < 1e-6, "{example} {o}");
            assert!((variance[k] - latent_variance[k] - NOISE).abs() < 1e-12);
        }
    }
    let forward = network.forward(&Array::new(vec![EXAMPLES, 1, 4, 4], x)).unwrap();
    assert!(forward.values().iter().zip(mean).all(|(a, b)| (a - b).abs() < 1e-12));

    // Arrays of predictions and of draws have the images' shape.
    let asked = Question {
        into: PredictedInto::Array,
        samples: 3,
        draws_apart: true,
        memory: 1 << 30,
        ..Question::default()
    };
    let answer = Model::predict(&model, &data, &asked).unwrap();
    assert_eq!(answer.array.unwrap().shape(), [EXAMPLES, 3, 2, 4, 4]);
    assert_eq!(answer.draws.unwrap().shape(), [3, EXAMPLES, 2, 4, 4]);
    // A mean and a logarithm of a variance for each pixel: targets have half the channels.
    let mut noisy = request("memory", &at("x.npy"), &[&at("half.npy")]);
    (noisy.likelihood, noisy.initial_noise) = (LikelihoodKind::Heteroscedastic, None);
    write_npy(&at("half.npy"), &array(&[EXAMPLES, 4, 4], pixels(EXAMPLES * 16))).unwrap();
    assert_eq!(fit(&noisy, &memory).unwrap().output_shape(), [1, 4, 4]);
}
