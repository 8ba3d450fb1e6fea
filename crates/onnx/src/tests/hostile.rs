//! Files that mean harm: each is refused (or read) at once, in little memory.

use super::models::*;
use crate::definitions::{ModelProto, NodeProto};
use crate::{OnnxError, parse_onnx};
use prost::Message;
use std::time::{Duration, Instant};

/// The result, which must come within a second.
#[track_caller]
fn quick(model: &ModelProto) -> Result<(), OnnxError> {
    let bytes = model.encode_to_vec();
    let started = Instant::now();
    let result = parse_onnx(bytes, "m.onnx").map(|_| ());
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    result
}

#[test]
fn every_truncation_is_refused_or_read() {
    let bytes = perceptron().encode_to_vec();
    let mut read = 0;
    for length in 0..bytes.len() {
        match parse_onnx(bytes[..length].to_vec(), "m.onnx") {
            Ok(_) => read += 1,
            Err(OnnxError::Malformed { .. } | OnnxError::Opset { .. }) => {}
            Err(other) => panic!("{length}: {other}"),
        }
    }
    assert_eq!(read, 0, "the operator set comes last, and every file needs it");
}

#[test]
fn cycles_and_doubles() {
    let mut model = perceptron();
    graph(&mut model).node[0].input[0] = "t".into();
    assert!(refusal(&model).contains("reads `t`, which nothing before it makes: the graph has a cycle"));
    graph(&mut model).node[1].input[0] = "t".into();
    assert!(refusal(&model).contains("the graph has a cycle"));
    let mut model = perceptron();
    graph(&mut model).node[1].output[0] = "h".into();
    assert!(refusal(&model).contains("the value `h` is made twice"));
    let mut model = perceptron();
    graph(&mut model).node[1].output[0] = "w".into();
    assert!(refusal(&model).contains("the value `w` is made twice"));
    let mut model = perceptron();
    let again = graph(&mut model).initializer[0].clone();
    graph(&mut model).initializer.push(again);
    assert!(refusal(&model).contains("two initialisers are called `w`"));
}

/// Nodes with the same name are told apart, however many there are.
#[test]
fn many_nodes_of_one_name() {
    let same = |i: usize| NodeProto {
        name: Some("a".into()),
        ..node("Tanh", &[&format!("v{i}")], &format!("v{}", i + 1), vec![])
    };
    let mut nodes: Vec<NodeProto> = (0..20_000).map(same).collect();
    nodes[0].input[0] = "x".into();
    nodes.push(node("Identity", &["v20000"], "y", vec![]));
    let model = model(&[ANY, 2], nodes, vec![]);
    quick(&model).unwrap();
    let imported = import(&model).unwrap();
    assert_eq!(imported.graph.nodes().len(), 20_000);
    assert_eq!(imported.graph.nodes()[2].name, "a#3");
}

#[test]
fn sizes_without_end() {
    let constant = |shape: &[i64]| {
        model(
            &[ANY, 2],
            vec![
                node("ConstantOfShape", &["s"], "c", vec![]),
                node("ReduceSum", &["c"], "d", vec![]),
                node("Add", &["x", "d"], "y", vec![]),
            ],
            vec![whole("s", &[shape.len() as i64], shape)],
        )
    };
    assert!(quick(&constant(&[10, 10])).is_ok());
    assert!(matches!(quick(&constant(&[1 << 40])), Err(OnnxError::Limit { .. })));
    assert!(matches!(quick(&constant(&[i64::MAX, i64::MAX])), Err(OnnxError::Limit { .. })));
    assert!(quick(&constant(&[-1])).is_err());
    // A little at a time: every node repeats what the one before made.
    let mut nodes = vec![node("ConstantOfShape", &["s"], "v0", vec![])];
    nodes.extend((0..2000).map(|i| {
        node("Concat", &[&format!("v{i}"), &format!("v{i}")], &format!("v{}", i + 1), vec![int("axis", 0)])
    }));
    nodes.push(node("Add", &["x", "v2000"], "y", vec![]));
    let doubling = model(&[ANY, 2], nodes, vec![whole("s", &[1], &[1000])]);
    assert!(matches!(quick(&doubling), Err(OnnxError::Limit { .. })));
    // The same for values of the graph.
    for (operator, inputs, attribute) in [
        ("Expand", &["x", "huge"][..], vec![]),
        ("Pad", &["x", "pads"], vec![]),
        ("Resize", &["x", "", "", "sizes"], vec![]),
        ("Resize", &["x", "", "scales"], vec![]),
        ("Conv", &["x", "w"], vec![ints("pads", &[1 << 40, 1 << 40, 1 << 40, 1 << 40])]),
        ("Conv", &["x", "v"], vec![ints("dilations", &[i64::MAX, i64::MAX])]),
        ("Conv", &["x", "w"], vec![ints("strides", &[0, 0])]),
        ("Conv", &["x", "w"], vec![int("group", i64::MAX)]),
        ("ConvTranspose", &["x", "w"], vec![ints("strides", &[i64::MAX, i64::MAX])]),
        ("ConvTranspose", &["x", "w"], vec![ints("output_shape", &[i64::MAX, i64::MAX])]),
        ("MaxPool", &["x"], vec![ints("kernel_shape", &[i64::MAX, i64::MAX])]),
        ("AveragePool", &["x"], vec![ints("kernel_shape", &[1, 1]), ints("strides", &[0, 0])]),
        ("AveragePool", &["x"], vec![ints("kernel_shape", &[-1, 2])]),
        ("DepthToSpace", &["x"], vec![int("blocksize", i64::MAX)]),
        ("Transpose", &["x"], vec![ints("perm", &[0, 1, 1, 2])]),
        ("Flatten", &["x"], vec![int("axis", i64::MIN)]),
        ("Split", &["x"], vec![ints("split", &[i64::MAX, i64::MAX])]),
        ("Slice", &["x", "low", "high", "low", "low"], vec![]),
        ("Unsqueeze", &["x", "many"], vec![]),
        ("Reshape", &["x", "many"], vec![]),
        ("Gather", &["x", "many"], vec![int("axis", 3)]),
    ] {
        let tensors = vec![
            whole("huge", &[4], &[1, 1, 1 << 40, 1 << 40]),
            whole("pads", &[8], &[0, 0, i64::MAX, i64::MAX, 0, 0, i64::MAX, i64::MAX]),
            whole("sizes", &[4], &[1, 1, i64::MAX, i64::MAX]),
            floats("scales", &[4], &[1.0, 1.0, f32::MAX, f32::NAN]),
            floats("w", &[1, 1, 1, 1], &[1.0]),
            floats("v", &[1, 1, 2, 2], &[1.0; 4]),
            whole("low", &[1], &[i64::MIN]),
            whole("high", &[1], &[i64::MAX]),
            whole("many", &[5000], &(0..5000).map(|i| i * i % 7).collect::<Vec<_>>()),
        ];
        let model = model(&[ANY, 1, 4, 4], vec![node(operator, inputs, "y", attribute)], tensors);
        assert!(quick(&model).is_err(), "{operator}");
    }
}

/// An input that is as large as one may be, and operations on it: nothing is worked out before numbers pass through.
#[test]
fn large_images_cost_nothing_to_read() {
    let model = model(
        &[ANY, 4, 4096, 4096],
        vec![
            node("Transpose", &["x"], "t", vec![ints("perm", &[0, 1, 3, 2])]),
            node("AveragePool", &["t"], "p", vec![ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])]),
            node("GlobalAveragePool", &["p"], "g", vec![]),
            node("Flatten", &["g"], "y", vec![]),
        ],
        vec![],
    );
    quick(&model).unwrap();
}

/// Two bytes of a file can be a whole record in memory.
#[test]
fn empty_records_without_number() {
    let mut bytes = perceptron().encode_to_vec();
    let nodes = [0x0a, 0x00].repeat(2_000_000);
    bytes.push(0x3a);
    prost::encode_length_delimiter(nodes.len(), &mut bytes).unwrap();
    bytes.extend(&nodes);
    let started = Instant::now();
    assert!(matches!(parse_onnx(bytes, "m.onnx"), Err(OnnxError::Limit { .. })));
    assert!(started.elapsed() < Duration::from_secs(1));
}

/// Sub-graphs in attributes, nested thousands of times: the parser does not follow them.
#[test]
fn nested_graphs() {
    let mut inner: Vec<u8> = vec![];
    let wrap = |tag: u8, inner: &[u8]| {
        let mut out = vec![tag];
        prost::encode_length_delimiter(inner.len(), &mut out).unwrap();
        out.extend_from_slice(inner);
        out
    };
    for _ in 0..2_000 {
        // attribute.g (6) in node.attribute (5) in graph.node (1)
        inner = wrap(0x0a, &wrap(0x2a, &wrap(0x32, &inner)));
    }
    let mut bytes = wrap(0x3a, &inner);
    bytes.extend(perceptron().encode_to_vec());
    let started = Instant::now();
    // The two graphs are merged, as protobuf has it, and the nested node is not needed for the output.
    assert!(parse_onnx(bytes, "m.onnx").is_ok());
    assert!(started.elapsed() < Duration::from_secs(1));
}
