//! Forward passes: whole, in pieces, traced; what is refused; how networks begin.

use crate::operation::{
    Activation, BatchNorm, Convolution, Embedding, Initial, Linear, Mean, Operation, Pool,
};
use crate::{Array, Graph, GraphBuilder, Mode, Network, NetworkError, Value};
use posterior_linalg::random::Streams;
use rand::RngExt;

fn random(shape: &[usize], seed: u64) -> Array<f64> {
    let mut rng = Streams::new(seed).stream("networks/graphs");
    Array::new(shape.to_vec(), (0..shape.iter().product()).map(|_| rng.random::<f64>() - 0.5).collect())
}

/// A small residual network with batch norm; the two linear layers share their weight.
fn graph() -> Graph {
    let mut b = GraphBuilder::new(&[2, 6, 6]).unwrap();
    let x = b.convolution("conv", Convolution::square(4, 3, 1, 1, true), Value::INPUT).unwrap();
    let n = b.add("norm", Operation::BatchNorm(BatchNorm::default()), &[x]).unwrap();
    let n = b.activation("act", Activation::Gelu, n).unwrap();
    let x = b.add("sum", Operation::Add, &[n, x]).unwrap();
    let x = b.add("pool", Operation::MaxPool(Pool::square(2, 2, 0)), &[x]).unwrap();
    let x = b.add("mean", Operation::Mean(Mean { axes: vec![1, 2], keep: false }), &[x]).unwrap();
    let shared = || Operation::Linear(Linear { outputs: 4, bias: false });
    let x = b.add_named("first", shared(), &[x], &["shared"]).unwrap();
    let x = b.activation("tanh", Activation::Tanh, x).unwrap();
    let x = b.add_named("second", shared(), &[x], &["shared"]).unwrap();
    b.finish(x).unwrap()
}

fn network() -> Network<f64> {
    let mut network = Network::initialised(graph(), Streams::new(5)).unwrap();
    let position = network.graph().parameters().iter().position(|p| p.name == "norm.running_var").unwrap();
    network.parameters_mut()[position].values_mut().copy_from_slice(&[0.2, 1.0, 3.0, 0.7]);
    network
}

#[test]
fn whole_traced_and_in_pieces_bit_for_bit() {
    let network = network();
    let x = random(&[9, 2, 6, 6], 1);
    let whole = network.forward(&x).unwrap();
    assert_eq!(whole.shape(), [9, 4]);
    assert_eq!(network.forward(&x).unwrap(), whole);
    let trace = network.trace(x.clone()).unwrap();
    assert_eq!(trace.output(), &whole);
    assert_eq!((trace.rows(), trace.first_not_finite()), (9, None));
    assert_eq!(trace.value(4).shape(), [9, 4, 3, 3]);
    for node in 0..network.graph().nodes().len() {
        let (output, kept) = network.forward_with(&x, node).unwrap();
        assert_eq!((&output, &kept), (&whole, trace.value(node)));
    }
    for r in 0..9 {
        let alone = network.forward(&x.slice_rows(r..r + 1)).unwrap();
        for (a, b) in alone.values().iter().zip(whole.row(r)) {
            assert!((a - b).abs() < 1e-14, "example {r} alone");
        }
    }
}

/// Values of one example above a quarter of what a piece may hold, so that three examples take three passes.
#[test]
fn batches_beyond_one_piece() {
    let mut b = GraphBuilder::new(&[3]).unwrap();
    let x =
        b.add("wide", Operation::Linear(Linear { outputs: 1 << 21, bias: true }), &[Value::INPUT]).unwrap();
    let x = b.add("mean", Operation::Mean(Mean { axes: vec![0], keep: true }), &[x]).unwrap();
    let network = Network::<f32>::initialised(b.finish(x).unwrap(), Streams::new(1)).unwrap();
    let each = network.examples_at_once();
    assert_eq!(each, 15);
    let x: Array<f32> = random(&[each + 2, 3], 2).cast();
    let whole = network.forward(&x).unwrap();
    assert_eq!(whole.shape(), [each + 2, 1]);
    assert_eq!(network.forward_with(&x, 1).unwrap(), (whole.clone(), whole.clone()));
    let trace = network.trace(x.slice_rows(each..each + 2)).unwrap();
    for (a, b) in trace.output().values().iter().zip(&whole.values()[each..]) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn shared_parameters_are_one() {
    let mut network = network();
    let names: Vec<String> = network.graph().parameters().iter().map(|p| p.name.clone()).collect();
    assert_eq!(names.iter().filter(|n| *n == "shared").count(), 1);
    let x = random(&[2, 2, 6, 6], 3);
    // Both layers see the change: with a weight of zero the output is zero, with twice the weight it is not twice the output.
    let before = network.forward(&x).unwrap();
    let position = names.iter().position(|n| n == "shared").unwrap();
    network.parameters_mut()[position].values_mut().iter_mut().for_each(|v| *v *= 2.0);
    let pooled = network.trace(x.clone()).unwrap().value(5).clone();
    let w = network.parameters()[position].clone();
    let layer = |h: &[f64]| -> Vec<f64> {
        (0..4).map(|o| (0..4).map(|i| w.values()[o * 4 + i] * h[i]).sum()).collect()
    };
    let after = network.forward(&x).unwrap();
    for r in 0..2 {
        let hidden: Vec<f64> = layer(pooled.row(r)).iter().map(|v| v.tanh()).collect();
        for (a, b) in layer(&hidden).iter().zip(after.row(r)) {
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
    }
    assert!(after.values()[0] != before.values()[0]);
}

#[test]
fn examples_that_do_not_fit() {
    let network = network();
    for shape in [vec![2, 6, 6], vec![1, 2, 6, 5], vec![1, 2, 36], vec![]] {
        let x = Array::zeros(shape.clone());
        for error in [network.forward(&x).unwrap_err(), network.trace(x.clone()).unwrap_err()] {
            assert!(matches!(error, NetworkError::InputShape { .. }), "{shape:?}: {error}");
        }
    }
    for bad in [f64::NAN, f64::INFINITY] {
        let mut x = random(&[2, 2, 6, 6], 1);
        x.values_mut()[75] = bad;
        let expected = NetworkError::NotFinite { what: "the input".into(), position: 75 };
        assert_eq!(network.forward(&x), Err(expected.clone()));
        assert_eq!(network.trace(x).unwrap_err(), expected);
    }
    assert_eq!(network.forward(&Array::zeros(vec![0, 2, 6, 6])).unwrap().shape(), [0, 4]);
}

#[test]
fn parameters_that_do_not_fit() {
    let graph = graph();
    let network = network();
    let mut parameters = network.parameters().to_vec();
    parameters[0] = Array::zeros(vec![4, 2, 3, 2]);
    let Err(NetworkError::Tensors { problems }) = Network::new(graph.clone(), parameters) else {
        panic!("a wrong shape was taken");
    };
    assert!(problems.len() == 1 && problems[0].contains("conv.weight"), "{problems:?}");
    let Err(NetworkError::Tensors { problems }) = Network::<f64>::new(graph.clone(), vec![]) else {
        panic!("no parameters were taken");
    };
    assert!(problems.len() == 1 && problems[0].contains("0 tensors for 7 parameters"), "{problems:?}");
    let mut parameters = network.parameters().to_vec();
    parameters[1].values_mut()[2] = f64::NAN;
    let error = Network::new(graph, parameters).unwrap_err();
    assert_eq!(error, NetworkError::NotFinite { what: "parameter `conv.bias`".into(), position: 2 });
}

#[test]
fn entries_that_a_table_does_not_hold() {
    let mut b = GraphBuilder::new(&[3]).unwrap();
    let x =
        b.add("table", Operation::Embedding(Embedding { entries: 5, width: 2 }), &[Value::INPUT]).unwrap();
    let network = Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(1)).unwrap();
    assert!(network.forward(&Array::new(vec![1, 3], vec![0.0, 4.0, -0.0])).is_ok());
    for value in [5.0, -1.0, 0.5, 1e18] {
        let x = Array::new(vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, value, 0.0]);
        let expected = NetworkError::NoSuchEntry { layer: "table".into(), value, position: 4, entries: 5 };
        assert_eq!(network.forward(&x), Err(expected.clone()));
        assert_eq!(network.trace(x).unwrap_err(), expected);
    }
}

/// A value that overflows inside is found by name; the forward pass itself reports nothing.
#[test]
fn the_first_layer_that_is_not_finite() {
    let mut b = GraphBuilder::new(&[1]).unwrap();
    let x = b.add("fine", Operation::Scale(1e200), &[Value::INPUT]).unwrap();
    let x = b.add("square", Operation::Multiply, &[x, x]).unwrap();
    let x = b.activation("tanh", Activation::Tanh, x).unwrap();
    let network = Network::<f64>::new(b.finish(x).unwrap(), vec![]).unwrap();
    let trace = network.trace(Array::new(vec![1, 1], vec![1e10])).unwrap();
    assert_eq!(trace.first_not_finite(), Some("square"));
}

#[test]
fn modes() {
    let mut network = network();
    let x = random(&[6, 2, 6, 6], 4);
    let evaluated = network.forward(&x).unwrap();
    assert_eq!(network.mode(), Mode::Evaluation);
    network.set_mode(Mode::Training);
    let trained = network.forward(&x).unwrap();
    assert_eq!(network.trace(x.clone()).unwrap().output(), &trained);
    assert!(trained != evaluated);
    assert!(network.require_evaluation("testing").unwrap_err().to_string().contains("before testing"));
    assert_eq!(network.cast::<f32>().unwrap().mode(), Mode::Training);
    network.set_mode(Mode::Evaluation);
    assert_eq!(network.forward(&x).unwrap(), evaluated);
}

#[test]
fn the_other_precision() {
    let network = network();
    let x = random(&[3, 2, 6, 6], 6);
    let single = network.cast::<f32>().unwrap();
    let (a, b) = (network.forward(&x).unwrap(), single.forward(&x.cast()).unwrap());
    for (a, b) in a.values().iter().zip(b.values()) {
        assert!((a - f64::from(*b)).abs() < 1e-5);
    }
    let mut large = network.clone();
    large.parameters_mut()[0].values_mut()[3] = 1e300;
    let error = large.cast::<f32>().unwrap_err();
    assert_eq!(error, NetworkError::NotFinite { what: "parameter `conv.weight`".into(), position: 3 });
}

/// Each parameter has its own stream: another layer changes no other's numbers. Distributions are as described.
#[test]
fn beginnings() {
    let start = |wider: bool| {
        let mut b = GraphBuilder::new(&[400]).unwrap();
        let mut x = Value::INPUT;
        if wider {
            x = b.linear("extra", 400, x).unwrap();
        }
        let x = b.linear("layer", 100, x).unwrap();
        b.describe("layer.bias", true, Some(Initial::Normal(3.0))).unwrap();
        Network::<f64>::initialised(b.finish(x).unwrap(), Streams::new(7)).unwrap()
    };
    let (small, large) = (start(false), start(true));
    assert_eq!(small.parameters()[..], large.parameters()[2..]);
    let weights = small.parameters()[0].values();
    assert!(weights.iter().all(|w| w.abs() < 0.05));
    let variance = weights.iter().map(|w| w * w).sum::<f64>() / weights.len() as f64;
    assert!((variance / (0.05f64.powi(2) / 3.0) - 1.0).abs() < 0.03, "uniform on (-1/20, 1/20): {variance}");
    let biases = small.parameters()[1].values();
    let variance = biases.iter().map(|w| w * w).sum::<f64>() / biases.len() as f64;
    assert!((4.0..16.0).contains(&variance), "normal with deviation 3: {variance}");
}
