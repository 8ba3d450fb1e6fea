//! Small networks that contain every operation between them.

use crate::graph::{Recurrent, RecurrentCell};
use crate::operation::{
    BatchNorm, Bias, Broadcast, Convolution, Embedding, Extreme, Gain, Interpolation, Learned, Linear,
    MatrixProduct, Mean, Pad, PadMode, Pool, Resize, Slice, Transpose,
};
use crate::{Activation, Array, GraphBuilder, Network, Operation};
use posterior_linalg::random::Streams;
use rand::RngExt;

pub(super) fn numbers(shape: &[usize], seed: u64) -> Array<f64> {
    let mut rng = Streams::new(seed).stream("networks/tests");
    Array::new(shape.to_vec(), (0..shape.iter().product()).map(|_| 2.0 * rng.random::<f64>() - 1.0).collect())
}

/// A name, a network in a generic position (all parameters random, statistics positive) and inputs.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) network: Network<f64>,
    pub(super) x: Array<f64>,
    pub(super) z: Array<f64>,
    /// Whether the input can be differentiated.
    pub(super) smooth_input: bool,
}

fn case(name: &'static str, builder: GraphBuilder, output: crate::Value, smooth_input: bool) -> Case {
    let graph = builder.finish(output).unwrap();
    let mut network = Network::initialised(graph, Streams::new(3)).unwrap();
    let slots = network.graph().parameters().to_vec();
    for (i, (values, slot)) in network.parameters_mut().iter_mut().zip(&slots).enumerate() {
        let random = numbers(values.shape(), 100 + i as u64);
        for (v, r) in values.values_mut().iter_mut().zip(random.values()) {
            *v = if slot.name.ends_with("running_var") { 1.0 + 0.5 * r } else { 0.6 * r + 0.1 };
        }
    }
    let shape = |rows: usize| [&[rows], network.graph().input_shape()].concat();
    let (mut x, mut z) = (numbers(&shape(3), 1), numbers(&shape(2), 2));
    if !smooth_input {
        for values in [x.values_mut(), z.values_mut()] {
            values.iter_mut().for_each(|v| *v = ((*v + 1.0) * 2.5).floor());
        }
    }
    Case { name, network, x, z, smooth_input }
}

fn perceptron() -> Case {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let x = b.linear("0", 6, b.input()).unwrap();
    let x = b.activation("1", Activation::Tanh, x).unwrap();
    let x = b.linear("2", 5, x).unwrap();
    let x = b.activation("3", Activation::Gelu, x).unwrap();
    let x = b.add("4", Operation::Linear(Linear { outputs: 3, bias: false }), &[x]).unwrap();
    case("perceptron", b, x, true)
}

/// One weight used twice, and a scalar gain and bias.
fn shared() -> Case {
    let mut b = GraphBuilder::new(&[4]).unwrap();
    let layer = || Operation::Linear(Linear { outputs: 4, bias: true });
    let x = b.add_named("a", layer(), &[b.input()], &["w", "b"]).unwrap();
    let x = b.activation("t", Activation::Silu, x).unwrap();
    let y = b.add_named("c", layer(), &[x], &["w", "b2"]).unwrap();
    let y = b.add("g", Operation::Gain(Gain { shape: vec![1] }), &[y]).unwrap();
    let y = b.add("s", Operation::Add, &[x, y]).unwrap();
    let y = b.activation("e", Activation::Erf, y).unwrap();
    let y = b.add("o", Operation::Bias(Bias { shape: vec![1] }), &[y]).unwrap();
    let y = b.activation("p", Activation::Softplus, y).unwrap();
    let y = b.linear("last", 2, y).unwrap();
    case("shared", b, y, true)
}

fn convolutional() -> Case {
    let mut b = GraphBuilder::new(&[2, 6, 6]).unwrap();
    let x = b.convolution("c1", Convolution::square(4, 3, 1, 1, true), b.input()).unwrap();
    let x = b.add("bn", Operation::BatchNorm(BatchNorm::default()), &[x]).unwrap();
    let x = b.activation("a1", Activation::GeluTanh, x).unwrap();
    let y = b
        .convolution(
            "c2",
            Convolution { groups: 2, dilation: vec![1, 1], ..Convolution::square(6, 3, 2, 1, false) },
            x,
        )
        .unwrap();
    let y = b.group_norm("gn", 2, 1e-5, y).unwrap();
    let y = b.activation("a2", Activation::Elu { alpha: 0.7 }, y).unwrap();
    // Option A shortcut.
    let s = b.add("s1", Operation::Slice(Slice { axis: 1, start: 0, step: 2, length: 3 }), &[x]).unwrap();
    let s = b.add("s2", Operation::Slice(Slice { axis: 2, start: 0, step: 2, length: 3 }), &[s]).unwrap();
    let s = b.add("pad", Operation::Pad(Pad::zeros(vec![1, 0, 0], vec![1, 0, 0])), &[s]).unwrap();
    let y = b.add("sum", Operation::Add, &[y, s]).unwrap();
    let y = b.activation("a3", Activation::Relu, y).unwrap();
    let up =
        Convolution { transposed: true, output_padding: vec![1, 1], ..Convolution::square(3, 3, 2, 1, true) };
    let u = b.convolution("up", up, y).unwrap();
    let resize = Operation::Resize(Resize {
        sizes: vec![6, 6],
        interpolation: Interpolation::LinearAligned,
        scales: None,
    });
    let r = b.add("resize", resize, &[y]).unwrap();
    let m = b.add("max", Operation::MaxPool(Pool::square(3, 1, 1)), &[x]).unwrap();
    let j = b.add("join", Operation::Concatenate(0), &[u, r, m]).unwrap();
    let j = b.activation("a4", Activation::LeakyRelu { slope: 0.2 }, j).unwrap();
    let j = b.add("average", Operation::AveragePool(Pool::square(2, 2, 0)), &[j]).unwrap();
    let g = b.add("scale", Operation::Scale(0.5), &[j]).unwrap();
    let g = b.activation("gate", Activation::Sigmoid, g).unwrap();
    let j = b.add("gated", Operation::Multiply, &[j, g]).unwrap();
    let j = b.add("global", Operation::Mean(Mean { axes: vec![1, 2], keep: false }), &[j]).unwrap();
    let j = b.linear("fc", 3, j).unwrap();
    case("convolutional", b, j, true)
}

fn volume() -> Case {
    let mut b = GraphBuilder::new(&[1, 3, 4, 4]).unwrap();
    let c = Convolution {
        outputs: 3,
        kernel: vec![2, 3, 3],
        padding: vec![0, 1, 1],
        groups: 1,
        bias: true,
        ..Default::default()
    };
    let x = b.convolution("c", c, b.input()).unwrap();
    let x = b.activation("a", Activation::Tanh, x).unwrap();
    let x = b.add("flat", Operation::Reshape(vec![6, 16]), &[x]).unwrap();
    let c = Convolution {
        outputs: 2,
        kernel: vec![3],
        stride: vec![2],
        groups: 2,
        bias: true,
        ..Default::default()
    };
    let x = b.convolution("d", c, x).unwrap();
    let x = b.activation("i", Activation::Identity, x).unwrap();
    let x = b.add("flatten", Operation::Reshape(vec![14]), &[x]).unwrap();
    let x = b.linear("fc", 2, x).unwrap();
    case("volume", b, x, true)
}

/// Embedding or linear tokens, class token, attention with two heads.
fn attention(embedded: bool) -> Case {
    let mut b = GraphBuilder::new(if embedded { &[3] } else { &[3, 2] }).unwrap();
    let input = b.input();
    let x = if embedded {
        b.add("embed", Operation::Embedding(Embedding { entries: 5, width: 4 }), &[input]).unwrap()
    } else {
        b.linear("embed", 4, input).unwrap()
    };
    let token = b.add("class", Operation::Learned(Learned { shape: vec![1, 4] }), &[]).unwrap();
    let x = b.add("tokens", Operation::Concatenate(0), &[token, x]).unwrap();
    let mut heads = Vec::new();
    for part in ["q", "k", "v"] {
        let y = b.linear(part, 4, x).unwrap();
        let y = b.add(&format!("{part}.split"), Operation::Reshape(vec![4, 2, 2]), &[y]).unwrap();
        heads.push(
            b.add(&format!("{part}.t"), Operation::Transpose(Transpose { axes: vec![1, 0, 2] }), &[y])
                .unwrap(),
        );
    }
    let product = |left, right| {
        Operation::MatrixProduct(MatrixProduct { transpose_left: left, transpose_right: right })
    };
    let s = b.add("scores", product(false, true), &heads[..2]).unwrap();
    let s = b.add("scaled", Operation::Scale(0.7), &[s]).unwrap();
    let s = b.add("softmax", Operation::Softmax, &[s]).unwrap();
    let y = b.add("mixed", product(false, false), &[s, heads[2]]).unwrap();
    let y = b.add("back", Operation::Transpose(Transpose { axes: vec![1, 0, 2] }), &[y]).unwrap();
    let y = b.add("heads", Operation::Reshape(vec![4, 4]), &[y]).unwrap();
    let y = b.linear("out", 4, y).unwrap();
    let x = b.add("residual", Operation::Add, &[x, y]).unwrap();
    let x = b.layer_norm("norm", 1, 1e-5, x).unwrap();
    let pooled = b.add("mean", Operation::Mean(Mean { axes: vec![0], keep: true }), &[x]).unwrap();
    let pooled = b.add("wide", Operation::Broadcast(Broadcast { shape: vec![4, 4] }), &[pooled]).unwrap();
    let x = b.add("times", Operation::Multiply, &[x, pooled]).unwrap();
    let x = b.add("first", Operation::Slice(Slice { axis: 0, start: 0, step: 1, length: 1 }), &[x]).unwrap();
    let x = b.add("flat", Operation::Reshape(vec![4]), &[x]).unwrap();
    let x = b.linear("fc", 3, x).unwrap();
    case(if embedded { "embedded" } else { "attention" }, b, x, !embedded)
}

/// Quotients, extremes, RMS norms, other pads, windows on one axis, and functions that have a domain or a kink.
fn mixed() -> Case {
    let mut b = GraphBuilder::new(&[2, 6]).unwrap();
    let pad = Pad { mode: PadMode::Reflect, ..Pad::zeros(vec![0, 1], vec![0, 1]) };
    let x = b.add("pad", Operation::Pad(pad), &[b.input()]).unwrap();
    let c = Convolution { outputs: 4, kernel: vec![3], groups: 1, bias: true, ..Default::default() };
    let x = b.convolution("c", c, x).unwrap();
    let y = b.activation("mish", Activation::Mish, x).unwrap();
    let z = b.rms_norm("rms", 1, 1e-3, x).unwrap();
    let top = b.add("top", Operation::Maximum, &[y, z]).unwrap();
    let bottom = b.add("bottom", Operation::Minimum, &[y, z]).unwrap();
    let soft = b.activation("softplus", Activation::Softplus, bottom).unwrap();
    let root = b.activation("root", Activation::Sqrt, soft).unwrap();
    let q = b.add("quotient", Operation::Divide, &[top, root]).unwrap();
    let q = b.add("choice", Operation::Choose, &[x, q, z]).unwrap();
    let m = b.add("max", Operation::MaxPool(Pool::new(vec![2], vec![2])), &[q]).unwrap();
    let a = b.add("mean", Operation::AveragePool(Pool::new(vec![2], vec![2])), &[q]).unwrap();
    let j = b.add("join", Operation::Concatenate(0), &[m, a]).unwrap();
    let j = b.activation("swish", Activation::HardSwish, j).unwrap();
    let large = b.add("large", Operation::Largest(Extreme { axes: vec![1], keep: true }), &[j]).unwrap();
    let large = b.add("wide", Operation::Broadcast(Broadcast { shape: vec![8, 3] }), &[large]).unwrap();
    let s = b.add("sum", Operation::Add, &[j, large]).unwrap();
    let s = b.activation("sine", Activation::Sin, s).unwrap();
    let s = b.add("small", Operation::Smallest(Extreme { axes: vec![1], keep: false }), &[s]).unwrap();
    let s = b.linear("fc", 3, s).unwrap();
    case("mixed", b, s, true)
}

/// Both directions of an LSTM, all states read.
fn lstm() -> Case {
    let mut b = GraphBuilder::new(&[3, 2]).unwrap();
    let layer = recurrent(RecurrentCell::Lstm, 2);
    let x = b.recurrent("lstm", &Recurrent { bidirectional: true, ..layer }, b.input()).unwrap();
    let x = b.add("flat", Operation::Reshape(vec![12]), &[x]).unwrap();
    let x = b.linear("fc", 2, x).unwrap();
    case("lstm", b, x, true)
}

/// GRUs that reset after and before, on top of each other; the last state is read.
fn gru() -> Case {
    let mut b = GraphBuilder::new(&[4, 2]).unwrap();
    let x = b.recurrent("after", &recurrent(RecurrentCell::Gru { reset_after: true }, 2), b.input()).unwrap();
    let before = Recurrent { last: true, ..recurrent(RecurrentCell::Gru { reset_after: false }, 3) };
    let x = b.recurrent("before", &before, x).unwrap();
    let x = b.linear("fc", 2, x).unwrap();
    case("gru", b, x, true)
}

/// Two layers without biases, and a convolution whose weight is used twice.
fn rnn() -> Case {
    let mut b = GraphBuilder::new(&[2, 4]).unwrap();
    let twice =
        || Convolution { outputs: 2, kernel: vec![3], padding: vec![1], groups: 1, ..Default::default() };
    let x = b.add_named("c1", Operation::Convolution(twice()), &[b.input()], &["c.weight"]).unwrap();
    let x = b.activation("a", Activation::Tanh, x).unwrap();
    let x = b.add_named("c2", Operation::Convolution(twice()), &[x], &["c.weight"]).unwrap();
    let x = b.add("turn", Operation::Transpose(Transpose { axes: vec![1, 0] }), &[x]).unwrap();
    let layer = recurrent(RecurrentCell::Rnn { activation: Activation::Tanh }, 3);
    let x = b.recurrent("rnn", &Recurrent { layers: 2, bias: false, last: true, ..layer }, x).unwrap();
    let x = b.linear("fc", 2, x).unwrap();
    case("rnn", b, x, true)
}

fn recurrent(cell: RecurrentCell, hidden: usize) -> Recurrent {
    Recurrent { cell, hidden, layers: 1, bidirectional: false, bias: true, last: false }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        perceptron(),
        shared(),
        convolutional(),
        volume(),
        mixed(),
        attention(false),
        attention(true),
        lstm(),
        gru(),
        rnn(),
    ]
}
