//! Operations that exporters take apart are one operation again.

use super::models::*;
use crate::definitions::{NodeProto, TensorProto};

const X: [f64; 4] = [0.5, -1.25, 2.0, -4.0];

/// The names of the operations, and the outputs for four numbers.
#[track_caller]
fn imported(nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) -> (Vec<&'static str>, Vec<f64>) {
    let model = model(&[ANY, 4], nodes, tensors);
    let names = import(&model).unwrap().graph.nodes().iter().map(|n| n.operation.name()).collect();
    (names, outputs(&model, 1, &X))
}

#[track_caller]
fn one(nodes: Vec<NodeProto>, tensors: Vec<TensorProto>, name: &str, formula: impl Fn(f64) -> f64) {
    let (names, found) = imported(nodes, tensors);
    assert_eq!(names, [name]);
    for (y, x) in found.iter().zip(X) {
        assert!((y - formula(x)).abs() < 1e-14, "{name}: {y} instead of {}", formula(x));
    }
}

#[test]
fn activations() {
    let mish = |v: f64| v * v.exp().ln_1p().tanh();
    let parts = |softplus: Vec<NodeProto>| {
        [softplus, vec![node("Tanh", &["s"], "t", vec![]), node("Mul", &["x", "t"], "y", vec![])]].concat()
    };
    one(parts(vec![node("Softplus", &["x"], "s", vec![])]), vec![], "mish", mish);
    let logarithm = |output: &str| {
        vec![
            node("Exp", &["x"], "e", vec![]),
            node("Add", &["e", "one"], "p", vec![]),
            node("Log", &["p"], output, vec![]),
        ]
    };
    let number = |name: &str, value: f32| floats(name, &[], &[value]);
    one(logarithm("y"), vec![number("one", 1.0)], "softplus", |v| v.exp().ln_1p());
    let swish = |v: f64| v * (v / 6.0 + 0.5).clamp(0.0, 1.0);
    let clip =
        vec![node("Add", &["x", "three"], "a", vec![]), node("Clip", &["a", "zero", "six"], "c", vec![])];
    let numbers = || vec![number("three", 3.0), number("zero", 0.0), number("six", 6.0)];
    let divided = vec![node("Div", &["c", "six"], "d", vec![]), node("Mul", &["x", "d"], "y", vec![])];
    one([clip.clone(), divided].concat(), numbers(), "hard_swish", swish);
    let multiplied = vec![node("Mul", &["x", "c"], "m", vec![]), node("Div", &["m", "six"], "y", vec![])];
    one([clip, multiplied].concat(), numbers(), "hard_swish", swish);
    // Another slope is no hard swish.
    let other = vec![node("HardSigmoid", &["x"], "h", vec![]), node("Mul", &["h", "x"], "y", vec![])];
    assert_eq!(imported(other, vec![]).0, ["hard_sigmoid", "multiply"]);
}

/// The mean of squares, its root in each of the ways that there are, and a weight.
#[test]
fn rms_norms() {
    let number = |name: &str, value: f32| floats(name, &[], &[value]);
    let endings: [Vec<NodeProto>; 4] = [
        vec![node("Sqrt", &["v"], "r", vec![]), node("Div", &["x", "r"], "z", vec![])],
        vec![
            node("Sqrt", &["v"], "r", vec![]),
            node("Reciprocal", &["r"], "i", vec![]),
            node("Mul", &["i", "x"], "z", vec![]),
        ],
        vec![
            node("Sqrt", &["v"], "r", vec![]),
            node("Div", &["one", "r"], "i", vec![]),
            node("Mul", &["x", "i"], "z", vec![]),
        ],
        vec![node("Pow", &["v", "half"], "i", vec![]), node("Mul", &["x", "i"], "z", vec![])],
    ];
    let weight = [1.0, 2.0, -1.0, 0.5];
    let scale = (X.iter().map(|v| v * v).sum::<f64>() / 4.0 + 0.25).sqrt();
    for ending in endings {
        let start = vec![
            node("Pow", &["x", "two"], "s", vec![]),
            node("ReduceMean", &["s"], "m", vec![ints("axes", &[-1])]),
            node("Add", &["m", "e"], "v", vec![]),
        ];
        let last = vec![node("Mul", &["w", "z"], "y", vec![])];
        let tensors = vec![
            number("two", 2.0),
            number("e", 0.25),
            number("one", 1.0),
            number("half", -0.5),
            floats("w", &[4], &weight.map(|v| v as f32)),
        ];
        let (names, found) = imported([start, ending, last].concat(), tensors);
        assert_eq!(names, ["rms normalise", "gain"]);
        for ((y, x), w) in found.iter().zip(X).zip(weight) {
            assert!((y - w * x / scale).abs() < 1e-14, "{found:?}");
        }
    }
}
