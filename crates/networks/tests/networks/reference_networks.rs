//! Trained networks of other tools: names, shapes and outputs, against logits computed elsewhere in double precision.

use posterior_data::{CifarLabels, ReadOptions, read_array, read_cifar, read_idx};
use posterior_networks::architecture::{Perceptron, Resnet};
use posterior_networks::safetensors::{load_safetensors, read_network};
use posterior_networks::{Activation, Architecture, Array};
use posterior_testing::shared;

/// Largest error of `found`, relative to the largest reference.
fn error(found: &Array<f64>, reference: &[f64]) -> f64 {
    assert_eq!(found.len(), reference.len());
    let scale = reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    found.values().iter().zip(reference).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / scale
}

#[test]
fn perceptron_for_mnist() {
    let files = [
        "networks/mlp_mnist.safetensors",
        "networks/mlp_mnist_reference.npz",
        "data/mnist/t10k-images-idx3-ubyte.gz",
    ];
    let [Some(weights), Some(reference), Some(images)] = files.map(shared) else { return };
    let architecture = Architecture::Perceptron(Perceptron::new(784, &[200, 200], 10, Activation::Tanh));
    let read = read_network::<f64>(&weights, Some(&architecture)).unwrap();
    assert_eq!(read.network.graph().trainable(), 199_210);
    let reference = read_array(&reference, &ReadOptions::for_arrays()).unwrap();
    let rows = reference.examples();
    let images = read_idx(&images, &ReadOptions::for_arrays()).unwrap().to_f64();
    // The reference divided in single precision.
    let x = images[..rows * 784].iter().map(|&v| f64::from(v as f32 / 255.0)).collect();
    let y = read.network.forward(&Array::new([rows, 784], x)).unwrap();
    let error = error(&y, &reference.to_f64());
    assert!(error < 1e-12, "{error:e}");
}

#[test]
fn resnet20_for_cifar10() {
    let files = [
        "networks/resnet20_cifar10.safetensors",
        "networks/resnet20_cifar10_reference.npz",
        "data/cifar10_jpeg/test_batch.bin.gz",
    ];
    let [Some(weights), Some(reference), Some(images)] = files.map(shared) else { return };
    let architecture = Architecture::Resnet(Resnet::cifar10(20));
    let read = read_network::<f64>(&weights, Some(&architecture)).unwrap();
    let reference = read_array(&reference, &ReadOptions::for_arrays()).unwrap();
    let rows = reference.examples();
    let images = read_cifar(&images, CifarLabels::Ten, &ReadOptions::for_arrays()).unwrap().images.to_f64();
    // The reference normalised with constants of single precision.
    let (mean, deviation) = ([0.485f32, 0.456, 0.406], [0.229f32, 0.224, 0.225]);
    let plane = 32 * 32;
    let normalised = |i: usize, v: f64| {
        let channel = i / plane % 3;
        (v / 255.0 - f64::from(mean[channel])) / f64::from(deviation[channel])
    };
    let x = images[..rows * 3 * plane].iter().enumerate().map(|(i, &v)| normalised(i, v)).collect();
    let y = read.network.forward(&Array::new([rows, 3, 32, 32], x)).unwrap();
    let error = error(&y, &reference.to_f64());
    assert!(error < 1e-12, "{error:e}");
}

/// Another network's file is refused with every name that does not fit.
#[test]
fn another_networks_file_is_refused() {
    let Some(weights) = shared("networks/resnet20_cifar10.safetensors") else { return };
    let graph = Architecture::Resnet(Resnet { classes: 100, ..Resnet::cifar10(32) }).graph().unwrap();
    let error = load_safetensors::<f32>(&weights, &graph).unwrap_err().to_string();
    for part in [
        "`layer1.3.conv1.weight` of shape [16, 16, 3, 3] is missing",
        "`linear.bias` has shape [10], expected [100]",
    ] {
        assert!(error.contains(part), "{error}");
    }
}
