//! The batch axis: it may move and merge, but examples never meet.

use super::models::*;
use crate::OnnxError;
use crate::definitions::{ModelProto, NodeProto, TensorProto};

fn refused(nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) -> OnnxError {
    import(&model(&[ANY, 2, 3], nodes, tensors)).unwrap_err()
}

#[track_caller]
fn mixes(nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) {
    let error = refused(nodes, tensors);
    assert!(matches!(error, OnnxError::Batch { .. }), "{error}");
    assert!(error.to_string().contains("every example must be computed on its own"), "{error}");
}

#[test]
fn examples_that_meet_are_refused() {
    mixes(vec![node("ReduceMean", &["x"], "y", vec![ints("axes", &[0])])], vec![]);
    mixes(vec![node("Softmax", &["x"], "y", vec![int("axis", 0)])], vec![]);
    mixes(vec![node("Concat", &["x", "x"], "y", vec![int("axis", 0)])], vec![]);
    mixes(vec![node("Gather", &["x", "i"], "y", vec![int("axis", 0)])], vec![whole("i", &[], &[0])]);
    mixes(
        vec![node("Slice", &["x", "a", "b", "a"], "y", vec![])],
        vec![whole("a", &[1], &[0]), whole("b", &[1], &[2])],
    );
}

#[test]
fn shapes_that_take_examples_apart_are_refused() {
    // All values of all examples in one row.
    let reshape = || vec![node("Reshape", &["x", "s"], "r", vec![]), node("Softmax", &["r"], "y", vec![])];
    mixes(reshape(), vec![whole("s", &[2], &[1, -1])]);
    // The second half of an example next to the first half of the one after it.
    mixes(reshape(), vec![whole("s", &[3], &[3, -1, 2])]);
}

#[test]
fn an_output_without_the_batch_in_front_is_refused() {
    let error = refused(vec![node("Transpose", &["x"], "y", vec![ints("perm", &[1, 0, 2])])], vec![]);
    assert!(error.to_string().contains("does not have the batch as its first axis"), "{error}");
}

#[test]
fn statistics_of_the_batch_are_refused() {
    let tensors: Vec<TensorProto> =
        ["s", "b", "m", "v"].iter().map(|n| floats(n, &[2], &[1.0, 1.0])).collect();
    let normal = |training: i64| {
        vec![node(
            "BatchNormalization",
            &["x", "s", "b", "m", "v"],
            "y",
            vec![int("training_mode", training)],
        )]
    };
    assert!(import(&model(&[ANY, 2, 3], normal(0), tensors.clone())).is_ok());
    let error = refused(normal(1), tensors);
    assert!(
        matches!(&error, OnnxError::Batch { problem, .. } if problem.contains("model.eval()")),
        "{error}"
    );
}

/// A product along the batch, as a matrix: examples meet in its sums.
#[test]
fn products_along_the_batch_are_refused() {
    let swap = || node("Transpose", &["x"], "t", vec![ints("perm", &[1, 0, 2])]);
    let back = || node("Transpose", &["t"], "u", vec![ints("perm", &[0, 2, 1])]);
    mixes(vec![swap(), back(), node("MatMul", &["t", "u"], "y", vec![])], vec![]);
}

/// `[B, 2, 3] -> [2, B, 3] -> [2 * B, 3]`, a linear layer, and back: what encoders with the batch as second axis do.
fn detour(batch: i64) -> ModelProto {
    let shape = |name: &str, from: &str| node("Shape", &[from], name, vec![]);
    model(
        &[batch, 2, 3],
        vec![
            node("Transpose", &["x"], "t", vec![ints("perm", &[1, 0, 2])]),
            node("Reshape", &["t", "flat"], "f", vec![]),
            node("MatMul", &["f", "w"], "m", vec![]),
            shape("s", "t"),
            node("Reshape", &["m", "s"], "u", vec![]),
            node("Transpose", &["u"], "v", vec![ints("perm", &[1, 0, 2])]),
            node("Add", &["v", "x"], "y", vec![]),
        ],
        vec![
            whole("flat", &[2], &[-1, 3]),
            floats("w", &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
        ],
    )
}

#[test]
fn the_batch_may_move_and_merge_as_long_as_it_comes_back() {
    let x: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.5 - 2.0).collect();
    let expected: Vec<f64> = x
        .chunks(3)
        .flat_map(|row| (0..3).map(|j| row[j] + (0..3).map(|i| row[i] * (3 * i + j + 1) as f64).sum::<f64>()))
        .collect();
    for batch in [ANY, 1] {
        assert_eq!(outputs(&detour(batch), 2, &x), expected);
    }
}

/// With a batch fixed to 1 the numbers in the file do not say which axis of length 1 is the batch; nothing depends on it.
#[test]
fn a_fixed_batch_may_be_squeezed_and_come_back() {
    let squeezed = model(
        &[1, 1, 3],
        vec![
            node("Squeeze", &["x"], "s", vec![]),
            node("Softmax", &["s"], "p", vec![int("axis", 0)]),
            node("Unsqueeze", &["p", "zero"], "u", vec![]),
            node("Concat", &["u", "u"], "c", vec![int("axis", 0)]),
            node("ReduceSum", &["c", "zero"], "y", vec![int("keepdims", 1)]),
        ],
        vec![whole("zero", &[1], &[0])],
    );
    let found = outputs(&squeezed, 2, &[0.0, 0.0, 2f64.ln(), 1.0, 1.0, 1.0]);
    let expected = [0.5, 0.5, 1.0, 2.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
}

/// Shape arithmetic that multiplies, divides and compares the number of examples.
#[test]
fn arithmetic_with_the_number_of_examples() {
    let scalar = |name: &str, v: i64| whole(name, &[], &[v]);
    let model = model(
        &[ANY, 4, 3],
        vec![
            node("Shape", &["x"], "s", vec![]),
            node("Gather", &["s", "zero"], "n", vec![]),
            node("Mul", &["n", "two"], "n2", vec![]),
            node("Unsqueeze", &["n2", "axis"], "a", vec![]),
            node("Concat", &["a", "minus"], "t", vec![int("axis", 0)]),
            node("Reshape", &["x", "t"], "r", vec![]),
            node("Tanh", &["r"], "h", vec![]),
            node("Div", &["n2", "two"], "m", vec![]),
            node("Equal", &["m", "minus1"], "q", vec![]),
            node("Where", &["q", "two", "m"], "k", vec![]),
            node("Unsqueeze", &["k", "axis"], "b", vec![]),
            node("Concat", &["b", "minus"], "u", vec![int("axis", 0)]),
            node("Reshape", &["h", "u"], "y", vec![]),
        ],
        vec![
            scalar("zero", 0),
            scalar("two", 2),
            scalar("minus1", -1),
            whole("axis", &[1], &[0]),
            whole("minus", &[1], &[-1]),
        ],
    );
    let x: Vec<f64> = (0..24).map(|i| f64::from(i) * 0.1).collect();
    assert_eq!(import(&model).unwrap().graph.output_shape(), [12]);
    let found = outputs(&model, 2, &x);
    assert!(found.iter().zip(&x).all(|(a, b)| (a - b.tanh()).abs() < 1e-15));
}

/// A file for 4 examples at a time, with that number in shapes and in repeated constants, is the one for any number.
#[test]
fn files_for_a_fixed_number_of_examples() {
    let of = |batch: i64, number: i64| {
        let nodes = vec![
            node("Reshape", &["x", "flat"], "a", vec![]),
            node("MatMul", &["a", "w"], "b", vec![]),
            node("Reshape", &["b", "back"], "c", vec![]),
            node("Expand", &["token", "many"], "t", vec![]),
            node("Concat", &["t", "c"], "d", vec![int("axis", 1)]),
            node("Add", &["d", "rows"], "e", vec![]),
            node("Slice", &["e", "from", "to", "from"], "f", vec![]),
            node("Reshape", &["f", "end"], "y", vec![]),
        ];
        let rows: Vec<f32> = (0..number).flat_map(|_| [0.5, 0.25]).collect();
        let tensors = vec![
            whole("flat", &[2], &[2 * number, 3]),
            floats("w", &[3, 2], &[1.0, -1.0, 0.5, 2.0, 3.0, 0.25]),
            whole("back", &[3], &[number, -1, 2]),
            floats("token", &[1, 1, 2], &[7.0, 8.0]),
            whole("many", &[3], &[number, 1, 2]),
            floats("rows", &[number, 1, 2], &rows),
            whole("from", &[1], &[0]),
            whole("to", &[1], &[number]),
            whole("end", &[2], &[number, 6]),
        ];
        model(&[batch, 2, 3], nodes, tensors)
    };
    let x: Vec<f64> = (0..24).map(|i| f64::from(i) / 8.0).collect();
    let single = |at: usize| outputs(&of(1, 1), 1, &x[6 * at..6 * (at + 1)]);
    let expected = [single(0), single(1), single(2), single(3)].concat();
    assert_eq!(outputs(&of(4, 4), 4, &x), expected);
    assert_eq!(outputs(&of(4, 4), 2, &x[..12]), expected[..12]);
    assert!(import(&of(4, 4)).unwrap().notes[0].contains("for 4 examples at a time"));
    // Rows that differ belong to examples of their own.
    let mut differ = of(4, 4);
    graph(&mut differ).initializer[5].float_data[6] = 9.0;
    assert!(matches!(import(&differ), Err(OnnxError::Batch { .. })));
    // A number of features that is that of examples is not taken for it.
    let square = model(
        &[4, 2, 4],
        vec![node("Reshape", &["x", "s"], "r", vec![]), node("Softmax", &["r"], "y", vec![])],
        vec![whole("s", &[2], &[4, 8])],
    );
    let reference = model(
        &[ANY, 2, 4],
        vec![node("Reshape", &["x", "s"], "r", vec![]), node("Softmax", &["r"], "y", vec![])],
        vec![whole("s", &[2], &[-1, 8])],
    );
    let x: Vec<f64> = (0..32).map(|i| f64::from(i % 7) / 4.0).collect();
    assert_eq!(outputs(&square, 4, &x), outputs(&reference, 4, &x));
    let mixed =
        model(&[4, 2, 4], vec![node("Reshape", &["x", "s"], "y", vec![])], vec![whole("s", &[2], &[8, 4])]);
    assert!(import(&mixed).is_err(), "an output with two rows for each example");
}
