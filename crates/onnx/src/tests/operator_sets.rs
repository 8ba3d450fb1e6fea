//! What older operator sets say in another way.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto, NodeProto, TensorProto};
use crate::{OnnxError, OnnxOptions};

fn number(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: Some(name.into()), f: Some(value), ..Default::default() }
}

fn of(opset: i64, shape: &[i64], nodes: Vec<NodeProto>, tensors: Vec<TensorProto>) -> ModelProto {
    let mut model = model(shape, nodes, tensors);
    model.opset_import[0].version = Some(opset);
    model
}

#[test]
fn slices_and_limits_as_attributes() {
    let slice = vec![ints("starts", &[1]), ints("ends", &[-1]), ints("axes", &[1])];
    let old = of(9, &[ANY, 5], vec![node("Slice", &["x"], "y", slice)], vec![]);
    assert_eq!(outputs(&old, 1, &[1.0, 2.0, 3.0, 4.0, 5.0]), [2.0, 3.0, 4.0]);
    // Without axes: the first ones, of which that of the batch is taken as a whole.
    let slice = vec![ints("starts", &[0, 2]), ints("ends", &[i64::MAX, i64::MAX])];
    let old = of(9, &[ANY, 5], vec![node("Slice", &["x"], "y", slice)], vec![]);
    assert_eq!(
        outputs(&old, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]),
        [3.0, 4.0, 5.0, 8.0, 9.0, 10.0]
    );
    let x = [-3.0, -0.5, 0.25, 9.0];
    for (attributes, expected) in [
        (vec![number("min", -1.0), number("max", 2.0)], [-1.0, -0.5, 0.25, 2.0]),
        (vec![number("min", 0.0)], [0.0, 0.0, 0.25, 9.0]),
        (vec![number("max", 0.125)], [-3.0, -0.5, 0.125, 0.125]),
        (vec![number("min", f32::MIN), number("max", f32::MAX)], x),
    ] {
        let old = of(10, &[ANY, 4], vec![node("Clip", &["x"], "y", attributes)], vec![]);
        assert_eq!(outputs(&old, 1, &x), expected);
    }
}

#[test]
fn axes_as_attributes_and_as_inputs() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for opset in [9, 13, 18, 25] {
        let axes = |list: &[i64]| if opset < 13 { vec![ints("axes", list)] } else { vec![] };
        let inputs = |x: &'static str| if opset < 13 { vec![x] } else { vec![x, "a"] };
        let mean = if opset < 18 {
            ("ReduceMean", vec!["s"], vec![ints("axes", &[1])])
        } else {
            ("ReduceMean", vec!["s", "a"], vec![])
        };
        let nodes = vec![
            node("Unsqueeze", &inputs("x"), "u", axes(&[1])),
            node("Squeeze", &inputs("u"), "v", axes(&[1])),
            node("ReduceSum", &inputs("v"), "s", [axes(&[1]), vec![int("keepdims", 1)]].concat()),
            node(mean.0, &mean.1, "m", [mean.2, vec![int("keepdims", 1)]].concat()),
            node("Sub", &["v", "m"], "y", vec![]),
        ];
        let model = of(opset, &[ANY, 3], nodes, vec![whole("a", &[1], &[1])]);
        assert_eq!(outputs(&model, 2, &x), [-5.0, -4.0, -3.0, -11.0, -10.0, -9.0], "{opset}");
    }
}

/// The first `Resize` has scales as its second input, and takes pixels as `Upsample` does.
#[test]
fn the_first_resize() {
    let scales = floats("s", &[4], &[1.0, 1.0, 1.0, 2.0]);
    for (operator, opset) in [("Resize", 10), ("Upsample", 9)] {
        let old =
            of(opset, &[ANY, 1, 1, 3], vec![node(operator, &["x", "s"], "y", vec![])], vec![scales.clone()]);
        assert_eq!(outputs(&old, 1, &[1.0, 2.0, 3.0]), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0], "{operator}");
    }
}

/// Before operator set 13, a softmax is over all axes from its own on.
#[test]
fn softmax_over_flattened_axes() {
    let old = of(11, &[ANY, 2, 2], vec![node("Softmax", &["x"], "y", vec![])], vec![]);
    let y = outputs(&old, 1, &[0.0, 1.0, 2.0, 3.0]);
    let sum: f64 = [0.0f64, 1.0, 2.0, 3.0].iter().map(|v| v.exp()).sum();
    for (found, x) in y.iter().zip([0.0f64, 1.0, 2.0, 3.0]) {
        assert!((found - x.exp() / sum).abs() < 1e-15);
    }
}

#[test]
fn further_outputs_of_an_old_batch_norm_are_training() {
    let ones = |name: &str| floats(name, &[2], &[1.0, 1.0]);
    let norm = |outputs: usize| {
        let mut node = node("BatchNormalization", &["x", "g", "b", "m", "v"], "y", vec![]);
        node.output.extend((1..outputs).map(|i| format!("more{i}")));
        of(9, &[ANY, 2, 3, 3], vec![node], vec![ones("g"), ones("b"), ones("m"), ones("v")])
    };
    assert!(import(&norm(1)).is_ok());
    assert!(matches!(import(&norm(5)), Err(OnnxError::Batch { .. })));
}

/// Scale and bias of a group norm are numbers of groups in operator set 18, of channels from 21 on.
#[test]
fn group_norms_of_both_kinds() {
    let norm = |opset: i64, weight: &[f32]| {
        let length = weight.len() as i64;
        let bias = vec![0.5; weight.len()];
        of(
            opset,
            &[ANY, 4, 2],
            vec![node("GroupNormalization", &["x", "g", "b"], "y", vec![int("num_groups", 2)])],
            vec![floats("g", &[length], weight), floats("b", &[length], &bias)],
        )
    };
    let x = [1.0, 2.0, 3.0, 5.0, -1.0, 0.0, 0.5, 2.0];
    assert_eq!(outputs(&norm(18, &[2.0, 3.0]), 1, &x), outputs(&norm(21, &[2.0, 2.0, 3.0, 3.0]), 1, &x));
}

/// However long names are, the message stays short and says how to choose.
#[test]
fn many_outputs_make_a_short_message() {
    let mut model = perceptron();
    for i in 0..50 {
        graph(&mut model).output.push(value(&format!("{}{i}", "a long name of an output ".repeat(4)), &[]));
    }
    let text = refusal(&model);
    assert!(
        text.contains("`y`, `a long") && text.contains("more): choose one, --onnx-output NAME"),
        "{text}"
    );
    assert!(text.chars().count() < 300, "{text}");
    let wrong = OnnxOptions { output: Some("z".repeat(500)), ..Default::default() };
    assert!(import_with(&model, &wrong).unwrap_err().to_string().chars().count() < 300);
}
