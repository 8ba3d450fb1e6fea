//! Masks, triangles, comparisons and what they choose.

use super::models::*;
use crate::definitions::TensorProto;

const X: [f64; 6] = [1.0, -2.0, 3.5, -0.25, 0.5, -7.0];

/// A causal mask in each of the forms that exporters write: no weight, and the same probabilities.
#[test]
fn masks_before_a_softmax() {
    let lowest = f32::MIN;
    let infinite = [0.0, f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, 0.0, f32::NEG_INFINITY, 0.0, 0.0, 0.0];
    let expected: Vec<f64> = (0..3)
        .flat_map(|row: usize| {
            let x = |i: usize| X[(row * 3 + i) % 6];
            let total: f64 = (0..=row).map(|i| x(i).exp()).sum();
            (0..3).map(move |i| if i <= row { x(i).exp() / total } else { 0.0 }).collect::<Vec<_>>()
        })
        .collect();
    let x: Vec<f64> = (0..9).map(|i| X[i % 6]).collect();
    let softmax = || node("Softmax", &["s"], "y", vec![]);
    let check = |nodes: Vec<_>, tensors: Vec<TensorProto>| {
        let model = model(&[ANY, 3, 3], nodes, tensors);
        near(&outputs(&model, 1, &x), &expected);
        let imported = import(&model).unwrap();
        assert!(imported.graph.parameters().iter().all(|p| !p.trainable), "{:?}", imported.graph);
        imported.network::<f32>().unwrap();
    };
    for number in [f32::NEG_INFINITY, lowest, -1e9] {
        let mask = infinite.map(|v| if v == 0.0 { 0.0 } else { number });
        check(vec![node("Add", &["x", "m"], "s", vec![]), softmax()], vec![floats("m", &[3, 3], &mask)]);
    }
    // The triangle of ones and a fill, and the same by positions.
    let fill = || floats("f", &[], &[lowest]);
    check(
        vec![
            node("Trilu", &["o"], "t", vec![int("upper", 0)]),
            node("Cast", &["t"], "c", vec![int("to", 9)]),
            node("Where", &["c", "x", "f"], "s", vec![]),
            softmax(),
        ],
        vec![floats("o", &[3, 3], &[1.0; 9]), fill()],
    );
    check(
        vec![
            node("Greater", &["j", "i"], "c", vec![]),
            node("Where", &["c", "f", "x"], "s", vec![]),
            softmax(),
        ],
        vec![whole("j", &[1, 3], &[0, 1, 2]), whole("i", &[3, 1], &[0, 1, 2]), fill()],
    );
}

/// Conditions that depend on the data: what is not chosen may be anything.
#[test]
fn choices_by_the_data() {
    let x = [1.0, -2.0, 3.5, 0.0, 0.5, -7.0];
    let check = |comparison: &str, f: fn(f64) -> bool| {
        let nodes = vec![
            node(comparison, &["x", "z"], "c", vec![]),
            node("Log", &["x"], "l", vec![]),
            node("Where", &["c", "l", "f"], "y", vec![]),
        ];
        let model = model(&[ANY, 2, 3], nodes, vec![floats("z", &[], &[0.5]), floats("f", &[], &[-1.0])]);
        let expected = x.map(|v: f64| if f(v) { v.ln() } else { -1.0 });
        near(&outputs(&model, 1, &x), &expected);
    };
    check("Greater", |v| v > 0.5);
    check("GreaterOrEqual", |v| v >= 0.5);
    check("Equal", |v| v == 0.5);
    // Both ways round, and combined: |x| <= 1, and neither 0 nor above 3.
    let nodes = vec![
        node("Less", &["x", "one"], "a", vec![]),
        node("LessOrEqual", &["minus", "x"], "b", vec![]),
        node("And", &["a", "b"], "inside", vec![]),
        node("Cast", &["x"], "zero", vec![int("to", 9)]),
        node("Not", &["zero"], "no", vec![]),
        node("Xor", &["inside", "no"], "other", vec![]),
        node("Greater", &["x", "three"], "d", vec![]),
        node("Or", &["other", "d"], "c", vec![]),
        node("Exp", &["x"], "e", vec![]),
        node("Where", &["c", "e", "row"], "y", vec![]),
    ];
    let number = |name: &str, value: f32| floats(name, &[], &[value]);
    let tensors = vec![
        number("one", 1.0),
        number("minus", -1.0),
        number("three", 3.0),
        floats("row", &[3], &[7.0, 8.0, 9.0]),
    ];
    let expected: Vec<f64> = (0..6)
        .map(|i| {
            let v: f64 = x[i];
            let inside = (-1.0..1.0).contains(&v);
            if (inside != (v == 0.0)) || v > 3.0 { v.exp() } else { 7.0 + (i % 3) as f64 }
        })
        .collect();
    near(&outputs(&model(&[ANY, 2, 3], nodes, tensors), 1, &x), &expected);
}

#[test]
fn choices_of_two_values_and_triangles() {
    let nodes = vec![node("Exp", &["x"], "e", vec![]), node("Where", &["c", "x", "e"], "y", vec![])];
    let condition = TensorProto { data_type: Some(9), int32_data: vec![1, 0, 1], ..whole("c", &[3], &[]) };
    let choice = model(&[ANY, 2, 3], nodes, vec![condition]);
    let expected: Vec<f64> = (0..6).map(|i| if i % 3 == 1 { X[i].exp() } else { X[i] }).collect();
    near(&outputs(&choice, 1, &X), &expected);
    let triangle =
        model(&[ANY, 2, 3], vec![node("Trilu", &["x", "k"], "y", vec![])], vec![whole("k", &[], &[1])]);
    near(&outputs(&triangle, 1, &X), &[0.0, X[1], X[2], 0.0, 0.0, X[5]]);
}
