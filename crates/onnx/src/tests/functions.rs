//! Functions of a model.

use super::models::*;
use crate::definitions::{AttributeProto, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto};
use crate::{OnnxError, parse_onnx};
use prost::Message;

fn number(name: &str, value: Option<f32>, reference: Option<&str>) -> AttributeProto {
    let ref_attr_name = reference.map(String::from);
    AttributeProto { name: Some(name.into()), f: value, ref_attr_name, ..Default::default() }
}

fn call(name: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto { domain: Some("mine".into()), ..node(name, inputs, output, attribute) }
}

fn function(name: &str, input: &[&str], output: &[&str], node: Vec<NodeProto>) -> FunctionProto {
    FunctionProto {
        name: Some(name.into()),
        domain: Some("mine".into()),
        input: input.iter().map(ToString::to_string).collect(),
        output: output.iter().map(ToString::to_string).collect(),
        node,
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..Default::default()
    }
}

/// `y = leaky(leaky(x w, 0.5) v, 0.25)` by a function that calls another.
fn calls() -> ModelProto {
    let leaky = FunctionProto {
        attribute_proto: vec![number("slope", Some(0.25), None)],
        ..function(
            "Leaky",
            &["a"],
            &["b"],
            vec![node("LeakyRelu", &["a"], "b", vec![number("alpha", None, Some("slope"))])],
        )
    };
    let inner = number("slope", None, Some("slope"));
    let layer = function(
        "Layer",
        &["a", "w"],
        &["y"],
        vec![node("MatMul", &["a", "w"], "h", vec![]), call("Leaky", &["h"], "y", vec![inner])],
    );
    let nodes = vec![
        call("Layer", &["x", "w"], "t", vec![number("slope", Some(0.5), None)]),
        call("Layer", &["t", "v"], "y", vec![]),
    ];
    let tensors = vec![floats("w", &[2, 2], &[1.0, -1.0, 2.0, 0.5]), floats("v", &[2, 1], &[1.0, -3.0])];
    let mut model = model(&[ANY, 2], nodes, tensors);
    model.functions = vec![layer, leaky];
    model
}

#[test]
fn calls_are_the_nodes_that_they_stand_for() {
    let leaky = |v: f64, slope: f64| if v > 0.0 { v } else { slope * v };
    for x in [[1.0, 2.0], [-1.0, 0.5], [0.25, -4.0]] {
        let h = [leaky(x[0] + 2.0 * x[1], 0.5), leaky(-x[0] + 0.5 * x[1], 0.5)];
        assert_eq!(outputs(&calls(), 1, &x), [leaky(h[0] - 3.0 * h[1], 0.25)]);
    }
    let imported = import(&calls()).unwrap();
    assert_eq!(imported.graph.parameters()[0].name, "w");
}

#[test]
fn functions_that_mean_harm() {
    // Two that call each other.
    let mut model = calls();
    model.functions[1].node = vec![call("Layer", &["a", "a"], "b", vec![])];
    assert!(refusal(&model).contains("more than 16 deep"));
    // Each calls the next one ten times: 10^12 nodes.
    let mut model = calls();
    model.functions = (0..12)
        .map(|i| {
            let inner = |_| call(&format!("F{}", i + 1), &["a"], "b", vec![]);
            function(&format!("F{i}"), &["a"], &["b"], (0..10).map(inner).collect())
        })
        .collect();
    model.functions.push(function("F12", &["a"], &["b"], vec![node("Tanh", &["a"], "b", vec![])]));
    graph(&mut model).node = vec![call("F0", &["x"], "y", vec![])];
    let started = std::time::Instant::now();
    let error = parse_onnx(model.encode_to_vec(), "m.onnx").unwrap_err();
    assert!(matches!(error, OnnxError::Malformed { .. }), "{error}");
    assert!(started.elapsed() < std::time::Duration::from_secs(1), "{:?}", started.elapsed());
    let mut model = calls();
    model.functions[0].opset_import[0].version = Some(11);
    assert!(refusal(&model).contains("`Layer` uses another operator set"));
    let mut model = calls();
    model.functions.push(function("Layer", &[], &[], vec![]));
    assert!(refusal(&model).contains("two functions are called `Layer`"));
}
