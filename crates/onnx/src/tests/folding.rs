//! Constants that are computed while a file is read: each is added to (or multiplies) what passes through.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto, NodeProto, TensorProto};

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        s: Some(value.to_string().into_bytes().into()),
        ..Default::default()
    }
}

/// A model that adds the constant `c`, of this many values, which a node makes from other constants.
fn adds(length: usize, made: NodeProto, tensors: Vec<TensorProto>) -> ModelProto {
    let nodes = vec![
        made,
        node("Cast", &["c"], "f", vec![int("to", 1)]),
        node("Reshape", &["f", "row"], "r", vec![]),
        node("Add", &["x", "r"], "y", vec![]),
    ];
    let row = whole("row", &[2], &[1, -1]);
    model(&[ANY, length as i64], nodes, [tensors, vec![row]].concat())
}

#[track_caller]
fn makes(made: NodeProto, tensors: Vec<TensorProto>, expected: &[f64]) {
    let model = adds(expected.len(), made, tensors);
    for (found, expected) in outputs(&model, 1, &vec![0.0; expected.len()]).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15 * (1.0 + expected.abs()), "{found} instead of {expected}");
    }
}

#[test]
fn sums_along_an_axis() {
    let x = || whole("a", &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let over = |axis: i64| vec![x(), whole("axis", &[], &[axis])];
    let sum = |attributes| node("CumSum", &["a", "axis"], "c", attributes);
    makes(sum(vec![]), over(1), &[1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    makes(sum(vec![]), over(0), &[1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
    makes(sum(vec![int("exclusive", 1)]), over(-1), &[0.0, 1.0, 3.0, 0.0, 4.0, 9.0]);
    makes(sum(vec![int("reverse", 1)]), over(1), &[6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
    let floats = vec![floats("a", &[3], &[0.5, 0.25, 4.0]), whole("axis", &[1], &[0])];
    makes(sum(vec![int("reverse", 1), int("exclusive", 1)]), floats, &[4.25, 4.0, 0.0]);
}

#[test]
fn entries_by_position() {
    let bits = whole("a", &[2, 3], &[0, 7, 0, 1, 0, -2]);
    makes(node("NonZero", &["a"], "c", vec![]), vec![bits], &[0.0, 1.0, 1.0, 1.0, 0.0, 2.0]);
    let hot = |axis: i64| node("OneHot", &["a", "depth", "values"], "c", vec![int("axis", axis)]);
    let tensors =
        || vec![whole("a", &[2], &[2, -3]), whole("depth", &[], &[3]), floats("values", &[2], &[0.5, 4.0])];
    makes(hot(-1), tensors(), &[0.5, 0.5, 4.0, 4.0, 0.5, 0.5]);
    makes(hot(0), tensors(), &[0.5, 4.0, 0.5, 0.5, 4.0, 0.5]);
    let like = || vec![floats("a", &[2, 3], &[9.0; 6])];
    makes(node("EyeLike", &["a"], "c", vec![]), like(), &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    makes(node("EyeLike", &["a"], "c", vec![int("k", 1)]), like(), &[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let data = || floats("a", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let scatter = |attributes| node("ScatterND", &["a", "at", "u"], "c", attributes);
    let rows =
        || vec![data(), whole("at", &[2, 1], &[2, 0]), floats("u", &[2, 2], &[-1.0, -2.0, -3.0, -4.0])];
    makes(scatter(vec![]), rows(), &[-3.0, -4.0, 3.0, 4.0, -1.0, -2.0]);
    let single = vec![data(), whole("at", &[1, 2], &[1, -1]), floats("u", &[1], &[9.0])];
    makes(scatter(vec![]), single, &[1.0, 2.0, 3.0, 9.0, 5.0, 6.0]);
    assert!(refusal(&adds(6, scatter(vec![text("reduction", "add")]), rows())).contains("reduction = `add`"));
    let at =
        || vec![data(), whole("at", &[2, 2], &[2, 0, 0, 1]), floats("u", &[2, 2], &[-1.0, -2.0, -3.0, -4.0])];
    makes(node("ScatterElements", &["a", "at", "u"], "c", vec![]), at(), &[-3.0, -2.0, 3.0, -4.0, -1.0, 6.0]);
    makes(node("GatherElements", &["a", "at"], "c", vec![]), at(), &[5.0, 2.0, 1.0, 4.0]);
    makes(
        node("GatherND", &["a", "at"], "c", vec![]),
        vec![data(), whole("at", &[2, 2], &[2, 0, 0, 1])],
        &[5.0, 2.0],
    );
    makes(node("GatherND", &["a", "at"], "c", vec![]), vec![data(), whole("at", &[1, 1], &[1])], &[3.0, 4.0]);
    for bad in [
        (node("GatherND", &["a", "at"], "c", vec![]), vec![data(), whole("at", &[1, 1], &[3])]),
        (scatter(vec![]), vec![data(), whole("at", &[1, 3], &[0, 0, 0]), floats("u", &[1], &[9.0])]),
        (scatter(vec![]), vec![data(), whole("at", &[1, 1], &[0]), floats("u", &[1], &[9.0])]),
        (hot(5), tensors()),
    ] {
        import(&adds(6, bad.0, bad.1)).unwrap_err();
    }
}

#[test]
fn lengths_and_functions_of_constants() {
    let a = || vec![floats("a", &[2, 2], &[3.0, -4.0, 0.0, 2.0])];
    let over = |operator: &str| node(operator, &["a"], "c", vec![ints("axes", &[1]), int("keepdims", 0)]);
    makes(over("ReduceL2"), a(), &[5.0, 2.0]);
    makes(over("ReduceL1"), a(), &[7.0, 2.0]);
    makes(over("ReduceSumSquare"), a(), &[25.0, 4.0]);
    makes(over("ReduceMean"), a(), &[-0.5, 1.0]);
    makes(node("Sign", &["a"], "c", vec![]), a(), &[1.0, -1.0, 0.0, 1.0]);
    makes(node("Relu", &["a"], "c", vec![]), a(), &[3.0, 0.0, 0.0, 2.0]);
    let logistic = |v: f64| 1.0 / (1.0 + (-v).exp());
    makes(node("Sigmoid", &["a"], "c", vec![]), a(), &[logistic(3.0), logistic(-4.0), 0.5, logistic(2.0)]);
    let limits = || [a(), vec![floats("low", &[], &[-1.5]), floats("high", &[], &[2.5])]].concat();
    makes(node("Clip", &["a", "low", "high"], "c", vec![]), limits(), &[2.5, -1.5, 0.0, 2.0]);
    makes(node("Clip", &["a", "low"], "c", vec![]), limits(), &[3.0, -1.5, 0.0, 2.0]);
    makes(node("Sum", &["a", "a", "a"], "c", vec![]), a(), &[9.0, -12.0, 0.0, 6.0]);
}

/// A weight and a low-rank change of it.
#[test]
fn products_of_weights() {
    let nodes = vec![
        node("MatMul", &["b", "a"], "ba", vec![]),
        node("Add", &["w", "ba"], "v", vec![]),
        node("MatMul", &["x", "v"], "y", vec![]),
    ];
    let tensors = vec![
        floats("w", &[2, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
        floats("b", &[2, 1], &[2.0, -1.0]),
        floats("a", &[1, 3], &[0.5, 1.0, 4.0]),
    ];
    let adapted = model(&[ANY, 2], nodes, tensors);
    let imported = import(&adapted).unwrap();
    assert_eq!(imported.graph.parameters().iter().filter(|p| p.trainable).count(), 1);
    assert!(
        imported.notes.iter().any(|n| n.contains("`ba` was computed from weights")),
        "{:?}",
        imported.notes
    );
    // [1, 2] (W + b a), by hand.
    assert_eq!(outputs(&adapted, 1, &[1.0, 2.0]), [1.0 + 1.0 - 1.0, 2.0 + 2.0 - 2.0, 8.0 - 8.0]);
    // Stacks, repeated where one has a single matrix.
    let product = node("MatMul", &["a", "b"], "c", vec![]);
    let stacks = vec![whole("a", &[2, 1, 2], &[1, 2, 3, 4]), whole("b", &[2, 1], &[10, 1])];
    makes(product, stacks, &[12.0, 34.0]);
}
