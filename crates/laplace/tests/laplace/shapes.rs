//! A transformer that sees no later token, and a U-Net that makes images, against Jacobians and factors by brute force.

use crate::common::*;
use faer::Mat;
use posterior_laplace::{Approximation, FisherEstimate, FitOptions, PriorKind, Tune, Weights};
use posterior_likelihoods::{Gaussian, OutputLikelihood};
use posterior_linalg::random::Streams;
use posterior_linear::structure::BlockMatrix;
use posterior_networks::operation::{
    Bias, Convolution, Interpolation, MatrixProduct, Mean, Pool, Resize, Transpose,
};
use posterior_networks::train::Examples;
use posterior_networks::{Activation, Array, GraphBuilder, Network, Operation, Selection};

fn options(approximation: Approximation, weights: Weights) -> FitOptions {
    FitOptions {
        approximation,
        weights,
        tune: Tune::None,
        mode: posterior_laplace::Mode::Trained,
        prior: PriorKind::Scalar,
        ..FitOptions::default()
    }
}

const KRONECKER: Approximation = Approximation::Kronecker(FisherEstimate::Exact);

/// One layer of attention over four tokens of which each sees those before it, as exporters write it: the mask is a constant that is added.
fn causal(seed: u64) -> Network<f64> {
    let mut b = GraphBuilder::new(&[4, 2]).unwrap();
    let x = b.linear("embed", 4, b.input()).unwrap();
    let parts = ["q", "k", "v"].map(|part| {
        let y = b.linear(part, 4, x).unwrap();
        let y = b.add(&format!("{part}.heads"), Operation::Reshape(vec![4, 2, 2]), &[y]).unwrap();
        b.add(&format!("{part}.t"), Operation::Transpose(Transpose { axes: vec![1, 0, 2] }), &[y]).unwrap()
    });
    let product =
        |right| Operation::MatrixProduct(MatrixProduct { transpose_left: false, transpose_right: right });
    let s = b.add("scores", product(true), &parts[..2]).unwrap();
    let s = b.add("mask", Operation::Bias(Bias { shape: vec![4, 4] }), &[s]).unwrap();
    b.describe("mask.bias", false, None).unwrap();
    let s = b.add("softmax", Operation::Softmax, &[s]).unwrap();
    let y = b.add("mixed", product(false), &[s, parts[2]]).unwrap();
    let y = b.add("back", Operation::Transpose(Transpose { axes: vec![1, 0, 2] }), &[y]).unwrap();
    let y = b.add("joined", Operation::Reshape(vec![4, 4]), &[y]).unwrap();
    let y = b.linear("out", 4, y).unwrap();
    let x = b.add("residual", Operation::Add, &[x, y]).unwrap();
    let x = b.layer_norm("norm", 1, 1e-5, x).unwrap();
    let x = b.add("mean", Operation::Mean(Mean { axes: vec![0], keep: false }), &[x]).unwrap();
    let x = b.linear("fc", 3, x).unwrap();
    let mut network = Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(seed)).unwrap();
    let mask = network.graph().parameters().iter().position(|p| p.name == "mask.bias").unwrap();
    let later = |i: usize| if i % 4 > i / 4 { -1e9 } else { 0.0 };
    network.parameters_mut()[mask] = Array::new(vec![4, 4], (0..16).map(later).collect());
    network
}

#[test]
fn a_causal_transformer_has_every_curvature() {
    let network = causal(3);
    // The mean over tokens aside, the last token changes what is said of itself alone.
    let x = inputs(&network, 1, 5);
    let mut later = x.clone();
    later.values_mut()[6..].iter_mut().for_each(|v| *v += 1.0);
    let difference_of = |a: &Array<f64>, b: &Array<f64>| {
        a.values().iter().zip(b.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(difference_of(&network.forward(&x).unwrap(), &network.forward(&later).unwrap()) > 1e-3);
    for likelihood in likelihoods() {
        let examples = data(&network, &likelihood, 6, 7);
        let name = likelihood.name();
        for weights in [Weights::All, Weights::LastLayer] {
            let selection = match weights {
                Weights::All => Selection::all(network.graph()),
                _ => Selection::last_layer(network.graph()).unwrap(),
            };
            let exact = brute_curvature(&network, &selection, &likelihood, &examples);
            let of = |approximation| {
                let fitted =
                    quiet(&network, &examples, &likelihood, &options(approximation, weights.clone()));
                dense(fitted.unwrap().structure().unwrap())
            };
            let full = of(Approximation::Full);
            // The mask is no weight.
            assert_eq!(full.nrows(), selection.len());
            assert!(difference(&full, &exact) < 1e-10, "{name} {weights:?}");
            let diagonal = of(Approximation::Diagonal);
            let own =
                Mat::from_fn(exact.nrows(), exact.nrows(), |i, j| if i == j { exact[(i, i)] } else { 0.0 });
            assert!(difference(&diagonal, &own) < 1e-10, "{name} {weights:?}");
        }
        // The last layer sees one vector of an example: its factors are those of a perceptron's last layer.
        let last = options(KRONECKER, Weights::LastLayer);
        let found = dense(quiet(&network, &examples, &likelihood, &last).unwrap().structure().unwrap());
        let (mut g, mut q) = (Mat::<f64>::zeros(3, 3), Mat::<f64>::zeros(4, 4));
        for i in 0..examples.len() {
            let (x, _) = examples.batch(&[i], None);
            let selection = Selection::last_layer(network.graph()).unwrap();
            let j = jacobian(&network, &selection, &x);
            // Row o of the Jacobian in the weight holds the features in the place of output o.
            let a = Mat::from_fn(4, 1, |k, _| j[(0, k)]);
            q += &a * a.transpose() * faer::Scale(1.0 / examples.len() as f64);
            let f = network.forward(&x).unwrap();
            let mut b = vec![0.0; 9];
            likelihood.curvature(&target(&examples, i), f.values(), &mut b);
            g += Mat::from_fn(3, 3, |i, k| b[3 * i + k]);
        }
        let expected = Mat::from_fn(12, 12, |i, k| g[(i / 4, k / 4)] * q[(i % 4, k % 4)]);
        let own = found.submatrix(0, 0, 12, 12).to_owned();
        assert!(difference(&own, &expected) < 1e-10, "{name}");
    }
}

/// Channels that each convolution makes, and the side of its images.
const LAYERS: [(&str, usize, usize); 3] = [("down", 2, 4), ("deep", 3, 2), ("up", 2, 4)];
const OUTPUTS: usize = 2 * 4 * 4;

/// A U-Net from images of one channel to images of two. With `moved`, a bias of its own at each place behind every convolution; with `cut`, what the convolution of that name sees.
fn unet(moved: bool, cut: Option<&str>, parameters: Option<&Network<f64>>) -> Network<f64> {
    let mut b = GraphBuilder::new(&[1, 4, 4]).unwrap();
    let convolution = |b: &mut GraphBuilder, layer: usize, x| {
        let (name, channels, side) = LAYERS[layer];
        let y = b.convolution(name, Convolution::square(channels, 3, 1, 1, true), x).unwrap();
        let shape = vec![channels, side, side];
        if moved {
            b.add(&format!("{name}.moved"), Operation::Bias(Bias { shape }), &[y]).unwrap()
        } else {
            y
        }
    };
    let input = b.input();
    let skip = convolution(&mut b, 0, input);
    let skip = b.activation("tanh", Activation::Tanh, skip).unwrap();
    let half = b.add("half", Operation::AveragePool(Pool::new(vec![2, 2], vec![2, 2])), &[skip]).unwrap();
    let deep = convolution(&mut b, 1, half);
    let deep = b.activation("tanh2", Activation::Tanh, deep).unwrap();
    let resize = Resize { sizes: vec![4, 4], interpolation: Interpolation::Nearest, scales: None };
    let wide = b.add("wide", Operation::Resize(resize), &[deep]).unwrap();
    let both = b.add("both", Operation::Concatenate(0), &[skip, wide]).unwrap();
    let seen = match cut {
        None => convolution(&mut b, 2, both),
        Some("deep") => half,
        Some("up") => both,
        Some(_) => input,
    };
    let graph = b.finish(seen).unwrap();
    let Some(other) = parameters else {
        return Network::initialised(graph, Streams::new(6)).unwrap();
    };
    let value = |name: &str, shape: &[usize]| {
        let at = other.graph().parameters().iter().position(|p| p.name == name);
        at.map_or_else(|| Array::zeros(shape.to_vec()), |at| other.parameters()[at].clone())
    };
    let parameters = graph.parameters().iter().map(|slot| value(&slot.name, &slot.shape)).collect();
    Network::new(graph, parameters).unwrap()
}

/// What a 3 x 3 kernel sees at each place of an image, with a border of zeros: places x (channels, rows, columns).
fn patches(image: &[f64], channels: usize, side: usize) -> Mat<f64> {
    Mat::from_fn(side * side, 9 * channels, |place, entry| {
        let (row, column) = (place / side + (entry % 9) / 3, place % side + entry % 3);
        let inside = (1..=side).contains(&row) && (1..=side).contains(&column);
        if inside { image[(entry / 9 * side + row - 1) * side + column - 1] } else { 0.0 }
    })
}

#[test]
fn a_unet_with_images_as_targets_has_every_curvature() {
    let network = unet(false, None, None);
    let variances: Vec<f64> = (0..OUTPUTS).map(|o| 0.3 + 0.02 * o as f64).collect();
    let likelihood = OutputLikelihood::Gaussian(Gaussian::independent(variances.clone()).unwrap());
    let count = 4;
    let examples = data(&network, &likelihood, count, 8);
    for weights in [Weights::All, Weights::LastLayer] {
        let selection = match weights {
            Weights::All => Selection::all(network.graph()),
            _ => Selection::last_layer(network.graph()).unwrap(),
        };
        let exact = brute_curvature(&network, &selection, &likelihood, &examples);
        let of = |approximation| {
            let fitted = quiet(&network, &examples, &likelihood, &options(approximation, weights.clone()));
            dense(fitted.unwrap().structure().unwrap())
        };
        assert!(difference(&of(Approximation::Full), &exact) < 1e-10, "{weights:?}");
        let own = Mat::from_fn(exact.nrows(), exact.nrows(), |i, j| if i == j { exact[(i, i)] } else { 0.0 });
        assert!(difference(&of(Approximation::Diagonal), &own) < 1e-10, "{weights:?}");
    }
    // Sensitivities at each place, averaged, and what the kernel sees there, summed.
    let fitted = quiet(&network, &examples, &likelihood, &options(KRONECKER, Weights::All)).unwrap();
    let structure = fitted.structure().unwrap();
    let whole = dense(structure);
    let moved = unet(true, None, Some(&network));
    for (name, channels, side) in LAYERS {
        let places = side * side;
        let before = if name == "down" { None } else { Some(unet(false, Some(name), Some(&network))) };
        let seen_channels = before.as_ref().map_or(1, |b| b.graph().output_shape()[0]);
        let selection = Selection::matching(moved.graph(), &[&format!("{name}.moved.bias")]).unwrap();
        let inputs = 9 * seen_channels;
        let (mut g, mut q) = (Mat::<f64>::zeros(channels, channels), Mat::<f64>::zeros(inputs, inputs));
        for i in 0..count {
            let (x, _) = examples.batch(&[i], None);
            let slopes = jacobian(&moved, &selection, &x);
            let seen = before.as_ref().map_or_else(|| x.clone(), |b| b.forward(&x).unwrap());
            let a = patches(seen.values(), seen_channels, side);
            q += a.transpose() * &a * faer::Scale(1.0 / count as f64);
            for place in 0..places {
                let delta = Mat::from_fn(OUTPUTS, channels, |o, c| slopes[(o, c * places + place)]);
                let weighted = Mat::from_fn(OUTPUTS, channels, |o, c| delta[(o, c)] / variances[o]);
                g += delta.transpose() * weighted * faer::Scale(1.0 / places as f64);
            }
        }
        let block = structure.blocks().iter().find(|b| b.name == format!("{name}.weight")).unwrap();
        assert!(matches!(block.matrix, BlockMatrix::Kronecker(_)), "{name} has factors");
        let (start, length) = (block.range.start, channels * inputs);
        let found = whole.submatrix(start, start, length, length).to_owned();
        let expected =
            Mat::from_fn(length, length, |i, k| g[(i / inputs, k / inputs)] * q[(i % inputs, k % inputs)]);
        let error = difference(&found, &expected);
        assert!(error < 1e-10, "{name} {error}");
    }
}
