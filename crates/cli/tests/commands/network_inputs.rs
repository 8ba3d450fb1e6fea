//! A network with several inputs, from file to scores: an array for each, or all in one row.

use super::networks_common::{error, json, number, uniform};
use posterior::data::{ArrayValues, NumericArray, write_npy};
use posterior::onnx::definitions::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, element_type,
};
use prost::Message;
use std::path::Path;

fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
    let batch = DimensionProto { dim_param: Some("n".into()), ..Default::default() };
    let fixed = shape.iter().map(|n| DimensionProto { dim_value: Some(*n), ..Default::default() });
    let shape = TensorShapeProto { dim: std::iter::once(batch).chain(fixed).collect() };
    let tensor_type = TensorTypeProto { elem_type: Some(element_type::FLOAT), shape: Some(shape) };
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}

fn node(operator: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(output.into()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    }
}

fn floats(name: &str, dims: &[i64], salt: f64) -> TensorProto {
    let count = dims.iter().product::<i64>() as usize;
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(element_type::FLOAT),
        float_data: (0..count).map(|i| (2.0 * uniform(i, salt) - 1.0) as f32).collect(),
        ..Default::default()
    }
}

/// tanh of linear functions of a picture (2 x 3) and of two numbers, and a linear function of their sum.
fn write_network(path: &Path) {
    let turned = || vec![AttributeProto { name: Some("transB".into()), i: Some(1), ..Default::default() }];
    let graph = GraphProto {
        node: vec![
            node("Flatten", &["picture"], "flat", vec![]),
            node("Gemm", &["flat", "w1", "b1"], "one", turned()),
            node("Gemm", &["pair", "w2", "b2"], "two", turned()),
            node("Add", &["one", "two"], "sum", vec![]),
            node("Tanh", &["sum"], "tanh", vec![]),
            node("Gemm", &["tanh", "w3", "b3"], "y", turned()),
        ],
        initializer: vec![
            floats("w1", &[4, 6], 0.1),
            floats("b1", &[4], 0.2),
            floats("w2", &[4, 2], 0.3),
            floats("b2", &[4], 0.4),
            floats("w3", &[1, 4], 0.5),
            floats("b3", &[1], 0.6),
        ],
        input: vec![value("picture", &[2, 3]), value("pair", &[2])],
        output: vec![value("y", &[1])],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..Default::default()
    };
    std::fs::write(path, model.encode_to_vec()).unwrap();
}

const ROWS: usize = 30;

fn write(at: &Path, name: &str, shape: &[usize], values: Vec<f64>) {
    let values = ArrayValues::F32(values.into_iter().map(|v| v as f32).collect());
    write_npy(&at.join(name), &NumericArray::new(shape.to_vec(), values).unwrap()).unwrap();
}

#[test]
fn each_input_has_a_file_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_network(&at.join("n.onnx"));
    let (picture, pair) = (|i: usize| uniform(i, 3.0), |i: usize| uniform(i, 5.0));
    write(at, "picture.npy", &[ROWS, 2, 3], (0..6 * ROWS).map(picture).collect());
    write(at, "pair.npy", &[ROWS, 2], (0..2 * ROWS).map(pair).collect());
    let row = |i: usize| (0..6).map(move |k| picture(6 * i + k)).chain((0..2).map(move |k| pair(2 * i + k)));
    write(at, "row.npy", &[ROWS, 8], (0..ROWS).flat_map(row).collect());
    write(at, "target.npy", &[ROWS], (0..ROWS).map(|i| picture(6 * i) - pair(2 * i)).collect());

    // In any order, and as one row.
    let named = "--input pair=pair.npy --input picture=picture.npy";
    let done = json(at, &format!("forward n.onnx {named} -o a.npy"));
    assert!(done["notes"].to_string().contains("`picture` [2, 3], `pair` [2]"), "{}", done["notes"]);
    json(at, "forward n.onnx row.npy -o b.npy");
    let bytes = |name: &str| std::fs::read(at.join(name)).unwrap();
    assert_eq!(bytes("a.npy"), bytes("b.npy"));

    let fit = "fit --network n.onnx --labels target.npy --likelihood gaussian --method full --tune none";
    let fitted = json(at, &format!("{fit} {named} -o m.posterior"));
    json(at, &format!("{fit} row.npy -o row.posterior"));
    assert_eq!(fitted["header"]["network"]["inputs"][0]["name"], "picture");
    assert_eq!(fitted["header"]["network"]["inputs"][0]["shape"], serde_json::json!([2, 3]));
    let one = json(at, &format!("predict m.posterior {named}"));
    let other = json(at, "predict row.posterior row.npy");
    assert_eq!(one["predictions"], other["predictions"]);
    assert!(number(&one["predictions"]["y_latent_std"][0]) > 0.0);
    let scores = json(at, &format!("evaluate m.posterior {named} --labels target.npy"));
    let same = json(at, "evaluate row.posterior row.npy --labels target.npy");
    assert_eq!(scores["models"][0]["scores"], same["models"][0]["scores"]);
    // Held-back rows, file by file in the order of the flags.
    let unseen = 60;
    write(at, "p.npy", &[unseen, 2, 3], (0..6 * unseen).map(|i| uniform(i, 8.0)).collect());
    write(at, "q.npy", &[unseen, 2], (0..2 * unseen).map(|i| uniform(i, 9.0)).collect());
    write(at, "t.npy", &[unseen], (0..unseen).map(|i| uniform(i, 7.0)).collect());
    let held_back = "--validation-labels t.npy -o held.posterior --validation-data";
    let held = json(at, &format!("{fit} {named} {held_back} q.npy,p.npy"));
    assert_eq!(held["unseen"]["examples"], unseen);
    let few = error(at, &format!("{fit} {named} {held_back} q.npy"));
    assert!(few.contains("1 files for 2 inputs (pair, picture)"), "{few}");
    // More rows of the same inputs.
    let more = format!("fit --continue m.posterior {named} --labels target.npy -o more.posterior");
    assert_eq!(json(at, &more)["header"]["data"]["examples"], 2 * ROWS);

    let refused = |line: &str| error(at, &format!("forward n.onnx {line} -o c.npy"));
    let lacking = refused("--input pair=pair.npy");
    assert!(lacking.contains("`picture`") && lacking.contains("--input picture=FILE"), "{lacking}");
    assert!(refused(&format!("{named} --input third=pair.npy")).contains("no input `third`"));
    assert!(refused(&format!("{named} --input pair=pair.npy")).contains("`pair` twice"));
    assert!(refused("--input pair=picture.npy --input picture=pair.npy").contains("[2, 3]"));
    assert!(refused("--input pair").contains("NAME=FILE"));
    assert!(refused("--input pair=pair.npy row.npy").contains("cannot be used with"));
    write(at, "few.npy", &[ROWS - 1, 2], (0..2 * ROWS - 2).map(pair).collect());
    assert!(refused("--input pair=few.npy --input picture=picture.npy").contains("29 examples"));
    // What an input was given must not be written over.
    let over = error(at, &format!("forward n.onnx {named} -o pair.npy --force"));
    assert!(over.contains("pair.npy"), "{over}");
}
