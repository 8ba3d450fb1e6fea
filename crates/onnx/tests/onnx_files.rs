//! Small models of both exporters of PyTorch and of single operators, against outputs computed by PyTorch and onnxruntime
//! (`tests/data/onnx/make.py`), and trained networks against logits computed elsewhere.

use posterior_data::{CifarLabels, ReadOptions, read_array, read_cifar, read_idx};
use posterior_networks::{Architecture, Array, Network, Operation};
use posterior_onnx::{Imported, read_onnx};
use posterior_testing::shared;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(serde::Deserialize)]
struct Reference {
    input: Vec<f64>,
    output: Vec<f64>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx")
}

fn references() -> BTreeMap<String, Reference> {
    serde_json::from_slice(&std::fs::read(folder().join("references.json")).unwrap()).unwrap()
}

fn read(name: &str) -> Imported {
    read_onnx(folder().join(format!("{name}.onnx"))).unwrap_or_else(|e| panic!("{e}"))
}

/// Error of a network's outputs for flat examples, relative to the largest reference.
fn error(imported: &Imported, x: &[f64], reference: &[f64]) -> f64 {
    let each: usize = imported.graph.input_shape().iter().product();
    let shape: Vec<usize> =
        std::iter::once(x.len() / each).chain(imported.graph.input_shape().iter().copied()).collect();
    let y = imported.network::<f64>().unwrap().forward(&Array::new(shape, x.to_vec())).unwrap();
    assert_eq!(y.len(), reference.len());
    let scale = reference.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    y.values().iter().zip(reference).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / scale
}

#[test]
fn outputs_are_those_of_the_exported_networks() {
    let references = references();
    assert_eq!(references.len(), 16);
    for (name, reference) in references {
        let imported = read(&name);
        let error = error(&imported, &reference.input, &reference.output);
        println!("{name}: {} nodes, error {error:.1e}, {:?}", imported.graph.nodes().len(), imported.notes);
        // Constants of the files and, for single operators, the reference are in single precision.
        assert!(error < 1e-6, "{name}: {error:e}");
    }
}

fn names(imported: &Imported, trainable: bool) -> Vec<&str> {
    imported.graph.parameters().iter().filter(|p| p.trainable == trainable).map(|p| p.name.as_str()).collect()
}

/// Names of weights are those of the model, statistics and constants are not trained, and layers are put together.
#[test]
fn graphs_have_the_layers_of_the_model() {
    let count = |imported: &Imported, wanted: fn(&Operation) -> bool| {
        imported.graph.nodes().iter().filter(|n| wanted(&n.operation)).count()
    };
    let lenet = read("lenet_unfolded");
    assert_eq!(count(&lenet, |o| matches!(o, Operation::BatchNorm(_))), 2);
    assert_eq!(
        names(&lenet, true),
        [
            "0.weight", "0.bias", "1.weight", "1.bias", "5.weight", "5.bias", "6.weight", "6.bias",
            "8.weight", "8.bias"
        ]
    );
    assert_eq!(names(&lenet, false), ["1.running_mean", "1.running_var", "6.running_mean", "6.running_var"]);
    assert!(lenet.producer.starts_with("pytorch"), "{}", lenet.producer);
    assert_eq!(lenet.opset, 13);

    let fixup = read("fixup");
    assert_eq!(
        names(&fixup, true),
        ["bias1a", "conv.weight", "bias1b", "scale", "bias2", "fc.weight", "fc.bias"]
    );
    assert_eq!(names(&fixup, false).len(), 1, "the zeros that are joined: {:?}", names(&fixup, false));

    let transformer = read("transformer_script");
    assert_eq!(count(&transformer, |o| matches!(o, Operation::Normalise(_))), 3);
    assert_eq!(count(&transformer, |o| matches!(o, Operation::MatrixProduct(_))), 2);
    assert_eq!(count(&transformer, |o| o.name() == "gelu"), 1, "put together from its parts");
    let linear = |o: &Operation| matches!(o, Operation::Linear(l) if l.bias);
    assert_eq!(count(&transformer, linear), 5, "biases added by nodes of their own belong to the layers");
    assert!(names(&transformer, true).contains(&"cls") && names(&transformer, true).contains(&"pos"));
    assert!(names(&transformer, false).is_empty(), "{:?}", names(&transformer, false));

    let tokens = read("tokens");
    assert_eq!(count(&tokens, |o| matches!(o, Operation::Embedding(_))), 1);
    let odds = read("odds");
    assert_eq!(count(&odds, |o| o.name() == "gelu_tanh"), 1);
    assert_eq!(count(&odds, |o| o.name() == "silu"), 1);
    let residual = read("residual");
    assert_eq!(count(&residual, |o| matches!(o, Operation::Pad(_))), 1);
    assert_eq!(residual.graph.trainable(), 2 * 9 + 2 + 4 * 2 * 9 + 4 + 4 * 2 + 2, "batch norm is folded");
}

#[test]
fn perceptron_for_mnist() {
    let files = [
        "networks/mlp_mnist.onnx",
        "networks/mlp_mnist_reference.npz",
        "data/mnist/t10k-images-idx3-ubyte.gz",
    ];
    let [Some(model), Some(reference), Some(images)] = files.map(shared) else { return };
    let imported = read_onnx(model).unwrap();
    assert_eq!(imported.graph.trainable(), 199_210);
    let reference = read_array(&reference, &ReadOptions::for_arrays()).unwrap();
    let images = read_idx(&images, &ReadOptions::for_arrays()).unwrap().to_f64();
    // The reference divided in single precision.
    let x: Vec<f64> =
        images[..reference.examples() * 784].iter().map(|&v| f64::from(v as f32 / 255.0)).collect();
    let error = error(&imported, &x, &reference.to_f64());
    assert!(error < 1e-12, "{error:e}");
}

#[test]
fn resnet20_for_cifar10() {
    let files = [
        "networks/resnet20_cifar10.onnx",
        "networks/resnet20_cifar10_reference.npz",
        "data/cifar10_jpeg/test_batch.bin.gz",
    ];
    let [Some(model), Some(reference), Some(images)] = files.map(shared) else { return };
    let imported = read_onnx(model).unwrap();
    let reference = read_array(&reference, &ReadOptions::for_arrays()).unwrap();
    let images = read_cifar(&images, CifarLabels::Ten, &ReadOptions::for_arrays()).unwrap().images.to_f64();
    // The reference normalised with constants of single precision; batch norm was folded in single precision.
    let (mean, deviation) = ([0.485f32, 0.456, 0.406], [0.229f32, 0.224, 0.225]);
    let normalised = |(i, v): (usize, &f64)| {
        let channel = i / 1024 % 3;
        (v / 255.0 - f64::from(mean[channel])) / f64::from(deviation[channel])
    };
    let x: Vec<f64> = images[..reference.examples() * 3072].iter().enumerate().map(normalised).collect();
    let error = error(&imported, &x, &reference.to_f64());
    println!("relative error {error:.1e}");
    assert!(error < 1e-5, "{error:e}");
}

/// Masks that hide every key from a query: a constant, one that is computed, and one beside which nothing is hidden.
#[test]
fn attention_of_queries_that_see_nothing() {
    for name in [
        "attention_hidden_row",
        "hidden_static23",
        "attention_computed_mask",
        "attention_causal_self",
        "attention_causal_short",
    ] {
        let files = ["_x.npy", "_y.npy", ".onnx"].map(|end| shared(&format!("cases/networks/{name}{end}")));
        let [Some(x), Some(y), Some(model)] = files else { return };
        let [x, y] = [x, y].map(|path| read_array(&path, &ReadOptions::for_arrays()).unwrap().to_f64());
        let error = error(&read_onnx(model).unwrap(), &x, &y);
        println!("{name}: {error:.1e}");
        // The references are in single precision.
        assert!(error < 1e-6, "{name}: {error:e}");
    }
}

/// Every imported graph can be written layer by layer and comes back as it was, with the same outputs.
#[test]
fn imported_networks_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/networks");
    let mut files: Vec<PathBuf> = [&folder, &shared]
        .into_iter()
        .flat_map(|f| std::fs::read_dir(f).into_iter().flatten().flatten().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "onnx"))
        .collect();
    files.sort();
    assert!(files.len() >= 15, "{files:?}");
    for file in files {
        let imported = read_onnx(&file).unwrap();
        let text = Architecture::from_graph(&imported.graph).unwrap().to_toml().unwrap();
        let back = Architecture::from_toml(&text).unwrap().graph().unwrap();
        assert_eq!(back, imported.graph, "{}", file.display());
        let network: Network<f64> = imported.network().unwrap();
        let width: usize = imported.graph.input_shape().iter().product();
        // Whole numbers, for networks that begin with a table.
        let values = (0..2 * width).map(|i| (i % 3) as f64).collect();
        let x = Array::new([&[2], imported.graph.input_shape()].concat(), values);
        let rebuilt = Network::new(back, imported.parameters.clone()).unwrap();
        assert_eq!(network.forward(&x).unwrap(), rebuilt.forward(&x).unwrap(), "{}", file.display());
    }
}
