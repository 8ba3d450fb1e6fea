//! Against PyTorch: values and gradients that `benches/peers/network_layers.py --largest 3000 --out tests/data/layer_references.npz` wrote (PyTorch 2.15, seed 0). The environment variable
//! `POSTERIOR_LAYER_REFERENCES` may name another such file.

use super::numbers::close;
use super::tape::Tape;
use crate::array::Array;
use crate::operation::*;
use posterior_data::{ReadOptions, read_arrays};
use std::collections::BTreeMap;
use std::path::Path;

/// The arrays of one case by name.
struct Arrays<'a> {
    case: &'a str,
    all: &'a BTreeMap<String, Array<f64>>,
}

impl Arrays<'_> {
    fn find(&self, name: &str) -> Option<&Array<f64>> {
        self.all.get(&format!("{}/{name}", self.case))
    }

    fn get(&self, name: &str) -> Array<f64> {
        self.find(name).unwrap_or_else(|| panic!("{}/{name} is missing", self.case)).clone()
    }

    fn number(&self, name: &str) -> f64 {
        self.get(name).values()[0]
    }

    /// A setting for each of `axes`, repeated where there is one number.
    fn sizes(&self, name: &str, axes: usize) -> Vec<usize> {
        let values = self.find(name).map_or(vec![0], |a| a.values().iter().map(|&v| v as usize).collect());
        if values.len() == axes { values } else { vec![values[0]; axes] }
    }

    fn pair(&self, name: &str, default: usize) -> [usize; 2] {
        if self.find(name).is_none() {
            return [default; 2];
        }
        let sizes = self.sizes(name, 2);
        [sizes[0], sizes[1]]
    }
}

/// Records the case on the tape; None for a case that is not an operation here.
fn record(tape: &mut Tape, a: &Arrays<'_>) -> Option<()> {
    if a.case.starts_with("attention") {
        return attention(tape, a);
    }
    let x = tape.leaf("x", a.get("x"));
    let shape = tape.value(x).shape()[1..].to_vec();
    let parameters: Vec<usize> = ["weight", "bias", "mean", "variance"]
        .iter()
        .filter_map(|name| a.find(name).map(|value| tape.leaf(name, value.clone())))
        .collect();
    let start = |prefix: &str| a.case.starts_with(prefix);
    let simple = |operation: Operation| Some(operation);
    let operation = if start("conv") {
        let transposed = start("conv_transpose");
        let axes = shape.len() - 1;
        let weight = a.get("weight").shape().to_vec();
        let groups = a.number("groups") as usize;
        simple(Operation::Convolution(Convolution {
            outputs: if transposed { weight[1] * groups } else { weight[0] },
            kernel: weight[2..].to_vec(),
            stride: a.sizes("stride", axes),
            padding: a.sizes("padding", axes),
            padding_after: vec![],
            dilation: a.sizes("dilation", axes),
            groups,
            bias: true,
            transposed,
            output_padding: if transposed { a.sizes("output_padding", axes) } else { vec![] },
        }))
    } else if start("batch_norm") {
        let mut parameters = parameters;
        if parameters.len() == 2 {
            let channels = shape[0];
            parameters.push(tape.leaf("unused mean", Array::zeros(vec![channels])));
            parameters.push(tape.leaf("unused variance", Array::zeros(vec![channels])));
        }
        tape.apply(Operation::BatchNorm(BatchNorm { epsilon: a.number("eps") }), &[x], &parameters);
        return Some(());
    } else if start("layer_norm") || start("group_norm") {
        let weight = a.get("weight").shape().to_vec();
        let (over, wide) = if start("layer") {
            (Over::LastAxes(weight.len()), weight)
        } else {
            (Over::Groups(a.number("groups") as usize), vec![shape[0], 1, 1])
        };
        let z = tape.apply(Operation::Normalise(Normalise { over, epsilon: a.number("eps") }), &[x], &[]);
        let y = tape.apply(Operation::Gain(Gain { shape: wide.clone() }), &[z], &parameters[..1]);
        tape.apply(Operation::Bias(Bias { shape: wide }), &[y], &parameters[1..]);
        return Some(());
    } else if start("softplus") {
        let beta = a.number("beta");
        let z = tape.apply(Operation::Scale(beta), &[x], &[]);
        let y = tape.apply(Operation::Activation(Activation::Softplus), &[z], &[]);
        tape.apply(Operation::Scale(1.0 / beta), &[y], &[]);
        return Some(());
    } else if start("softmax_axis") {
        let exchange = || Operation::Transpose(Transpose { axes: vec![1, 0] });
        let z = tape.apply(exchange(), &[x], &[]);
        let y = tape.apply(Operation::Softmax, &[z], &[]);
        tape.apply(exchange(), &[y], &[]);
        return Some(());
    } else if start("max_pool") || start("avg_pool") {
        let kernel = a.pair("kernel_size", 1);
        let pool = Pool {
            kernel: kernel.to_vec(),
            stride: Some(a.pair("stride", 1).to_vec()),
            padding: a.pair("padding", 0).to_vec(),
            padding_after: None,
            dilation: a.pair("dilation", 1).to_vec(),
            ceil: a.find("ceil_mode").is_some_and(|v| v.values()[0] == 1.0),
            count_padding: a.find("count_include_pad").is_none_or(|v| v.values()[0] == 1.0),
        };
        simple(if start("max") { Operation::MaxPool(pool) } else { Operation::AveragePool(pool) })
    } else if start("upsample") {
        let interpolation = match a.find("align_corners").map(|v| v.values()[0] == 1.0) {
            None => Interpolation::Nearest,
            Some(false) => Interpolation::Linear,
            Some(true) => Interpolation::LinearAligned,
        };
        simple(Operation::Resize(Resize { sizes: a.sizes("size", 2), interpolation, scales: None }))
    } else {
        match a.case {
            "gelu_exact" => Some(Operation::Activation(Activation::Gelu)),
            "softmax" => Some(Operation::Softmax),
            "elu" | "elu_alpha" => Some(Operation::Activation(Activation::Elu { alpha: a.number("alpha") })),
            "leaky_relu" | "leaky_relu_slope" => {
                Some(Operation::Activation(Activation::LeakyRelu { slope: a.number("negative_slope") }))
            }
            name => Activation::named(name).map(Operation::Activation),
        }
    }?;
    tape.apply(operation, &[x], &parameters);
    Some(())
}

/// `softmax(query key^T / sqrt(width) + mask) value`.
fn attention(tape: &mut Tape, a: &Arrays<'_>) -> Option<()> {
    let [query, key, value] = ["query", "key", "value"].map(|name| tape.leaf(name, a.get(name)));
    let width = *tape.value(query).shape().last()? as f64;
    let product =
        |transpose_right| Operation::MatrixProduct(MatrixProduct { transpose_left: false, transpose_right });
    let scores = tape.apply(product(true), &[query, key], &[]);
    let mut scores = tape.apply(Operation::Scale(1.0 / width.sqrt()), &[scores], &[]);
    if let Some(mask) = a.find("mask") {
        let shape = tape.value(scores).shape().to_vec();
        let copies = shape.iter().product::<usize>() / mask.len();
        let mask = tape.leaf("mask", Array::new(shape, mask.values().repeat(copies)));
        scores = tape.apply(Operation::Add, &[scores, mask], &[]);
    }
    let weights = tape.apply(Operation::Softmax, &[scores], &[]);
    tape.apply(product(false), &[weights, value], &[]);
    Some(())
}

#[test]
fn values_and_gradients_of_pytorch() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layer_references.npz");
    let path = std::env::var_os("POSTERIOR_LAYER_REFERENCES").unwrap_or_else(|| own.into());
    let arrays = read_arrays(Path::new(&path), &ReadOptions::for_arrays()).unwrap();
    let all: BTreeMap<String, Array<f64>> = arrays
        .into_iter()
        .map(|(name, array)| (name, Array::new(array.shape().to_vec(), array.to_f64())))
        .collect();
    let cases: std::collections::BTreeSet<&str> =
        all.keys().map(|name| name.rsplit_once('/').unwrap().0).collect();
    let (mut compared, mut left_out) = (0, vec![]);
    for case in &cases {
        let a = Arrays { case, all: &all };
        let expected = a.get("y");
        let mode = if case.contains("training") { Mode::Training } else { Mode::Evaluation };
        let mut tape = Tape::new(expected.rows(), mode);
        if record(&mut tape, &a).is_none() {
            left_out.push(*case);
            continue;
        }
        let found = tape.last();
        assert_eq!(found.shape(), expected.shape(), "{case}");
        close(&format!("{case}: value"), found.values(), expected.values(), 1e-12);
        let mut gradients = 0;
        for (name, found) in tape.gradients(a.get("cotangent")) {
            if let Some(expected) = a.find(&format!("{name}_gradient")) {
                close(&format!("{case}: gradient in {name}"), &found, expected.values(), 1e-12);
                gradients += 1;
            }
        }
        let all =
            all.keys().filter(|n| n.starts_with(&format!("{case}/")) && n.ends_with("_gradient")).count();
        assert_eq!(gradients, all, "{case}: every gradient is compared");
        compared += 1;
    }
    eprintln!("{compared} cases compared; no operation for {left_out:?}");
    assert!(compared >= 60 && left_out.len() <= 2, "{compared} cases, left out {left_out:?}");
}
