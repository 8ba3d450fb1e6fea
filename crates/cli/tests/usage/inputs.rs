//! Small files of every kind that commands read.

use flate2::Compression;
use flate2::write::GzEncoder;
use posterior::data::{ArrayValues, Column, NumericArray, Table, Values, write_npy, write_npz, write_table};
use posterior::onnx::definitions::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto, element_type,
};
use prost::Message;
use std::io::Write;
use std::path::Path;

/// Width and height of images, and their classes.
pub(crate) const SIDE: usize = 8;
pub(crate) const CLASSES: usize = 10;

/// A number in [0, 1) that depends on the arguments alone.
pub(crate) fn noise(i: usize, j: usize) -> f64 {
    ((i as f64 * 12.9898 + j as f64 * 78.233).sin() * 43_758.545_3).rem_euclid(1.0)
}

/// A table with the named features and a target that depends on them smoothly, up to some noise.
pub(crate) fn table(path: &Path, features: &[&str], target: Option<&str>, rows: usize) {
    let mut columns: Vec<Column> = features
        .iter()
        .enumerate()
        .map(|(j, name)| Column::numeric(*name, (0..rows).map(|i| noise(i, j)).collect()))
        .collect();
    if let Some(target) = target {
        let value = |i: usize| {
            let sum: f64 = (0..features.len()).map(|j| ((3 + j) as f64 * noise(i, j)).sin()).sum();
            100.0 + 20.0 * sum + noise(i, 99)
        };
        columns.push(Column::numeric(target, (0..rows).map(value).collect()));
    }
    write_table(&Table::new("made up", columns), path).unwrap();
}

/// A table in long form: a number, which of three targets, and its value.
pub(crate) fn tasks(path: &Path, rows: usize) {
    let task = |i: usize| Some(["left", "middle", "right"][i % 3].to_string());
    let value = |i: usize| (4.0 * noise(i, 0)).sin() + 0.5 * (i % 3) as f64 * noise(i, 0);
    let columns = vec![
        Column::numeric("time", (0..rows).map(|i| noise(i, 0)).collect()),
        Column { name: "task".into(), values: Values::Text((0..rows).map(task).collect()) },
        Column::numeric("y", (0..rows).map(value).collect()),
    ];
    write_table(&Table::new("made up", columns), path).unwrap();
}

/// A table whose target is one of three labels, by the first feature.
pub(crate) fn labelled(path: &Path, features: &[&str], target: &str, rows: usize) {
    let column = |(j, name): (usize, &&str)| Column::numeric(*name, (0..rows).map(|i| noise(i, j)).collect());
    let label = |i: usize| {
        let names = ["setosa", "versicolor", "virginica"];
        Some(names[usize::from(noise(i, 0) > 0.33) + usize::from(noise(i, 0) > 0.66)].to_string())
    };
    let labels = Column { name: target.into(), values: Values::Text((0..rows).map(label).collect()) };
    let columns = features.iter().enumerate().map(column).chain([labels]).collect();
    write_table(&Table::new("made up", columns), path).unwrap();
}

/// The fold of each row, 0 to 9 in turn; text, also gzipped.
pub(crate) fn folds(path: &Path, rows: usize) {
    let lines: String = (0..rows).map(|i| format!("{}\n", i % 10)).collect();
    bytes(path, format!("fold\n{lines}").as_bytes());
}

/// The bytes, gzipped where the name says so.
pub(crate) fn bytes(path: &Path, content: &[u8]) {
    if path.extension().is_some_and(|e| e == "gz") {
        let mut writer = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
        writer.write_all(content).unwrap();
        writer.finish().unwrap();
    } else {
        std::fs::write(path, content).unwrap();
    }
}

/// The class of an image.
fn class(i: usize) -> usize {
    i % CLASSES
}

/// Images whose bright row is their class, as IDX.
pub(crate) fn images(path: &Path, count: usize) {
    let mut content = vec![0, 0, 8, 3];
    for length in [count, SIDE, SIDE] {
        content.extend((length as u32).to_be_bytes());
    }
    content.extend((0..count).flat_map(pixels));
    bytes(path, &content);
}

fn pixels(i: usize) -> impl Iterator<Item = u8> {
    (0..SIDE * SIDE).map(move |p| {
        let bright = (p * CLASSES / (SIDE * SIDE)) == class(i);
        (60.0 * noise(i, p)) as u8 + if bright { 180 } else { 0 }
    })
}

/// Their labels, as IDX.
pub(crate) fn labels(path: &Path, count: usize) {
    let mut content = vec![0, 0, 8, 1];
    content.extend((count as u32).to_be_bytes());
    content.extend((0..count).map(|i| class(i) as u8));
    bytes(path, &content);
}

/// Labelled colour images of 32 x 32, as CIFAR-10 has them.
pub(crate) fn cifar(path: &Path, count: usize) {
    let record =
        |i: usize| std::iter::once(class(i) as u8).chain((0..3072).map(move |p| (255.0 * noise(i, p)) as u8));
    bytes(path, &(0..count).flat_map(record).collect::<Vec<u8>>());
}

/// Numbers of the given shape.
pub(crate) fn array(shape: &[usize]) -> NumericArray {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| noise(i, 7) as f32).collect();
    NumericArray::new(shape.to_vec(), ArrayValues::F32(values)).unwrap()
}

pub(crate) fn npy(path: &Path, shape: &[usize]) {
    write_npy(path, &array(shape)).unwrap();
}

pub(crate) fn npz(path: &Path, arrays: &[(&str, &[usize])]) {
    let made: Vec<NumericArray> = arrays.iter().map(|(_, shape)| array(shape)).collect();
    let named: Vec<(&str, &NumericArray)> = arrays.iter().map(|a| a.0).zip(&made).collect();
    write_npz(path, &named).unwrap();
}

/// Images as an array of bytes.
pub(crate) fn byte_images(path: &Path, count: usize) {
    let values = (0..count).flat_map(pixels).collect();
    write_npy(path, &NumericArray::new(vec![count, SIDE, SIDE], ArrayValues::U8(values)).unwrap()).unwrap();
}

/// Classes 0, 1, 2, ... in turn.
pub(crate) fn classes(path: &Path, count: usize, classes: usize) {
    let values = (0..count).map(|i| (i % classes) as i64).collect();
    write_npy(path, &NumericArray::new(vec![count], ArrayValues::I64(values)).unwrap()).unwrap();
}

/// A perceptron's architecture.
pub(crate) fn perceptron(path: &Path, inputs: usize, outputs: usize) {
    let text = format!(
        "kind = \"perceptron\"\ninputs = {inputs}\nhidden = [6]\noutputs = {outputs}\nactivation = \"tanh\"\n"
    );
    std::fs::write(path, text).unwrap();
}

/// A small convolutional network for images of CIFAR.
pub(crate) fn convolutional(path: &Path) {
    let text = "kind = \"layers\"\ninput = [3, 32, 32]\n\n[[layer]]\nname = \"conv\"\noperation = \"convolution\"\noutputs = 2\nkernel = 3\npadding = 1\n\n\
                [[layer]]\nname = \"pool\"\noperation = \"mean\"\naxes = [1, 2]\n\n[[layer]]\nname = \"head\"\noperation = \"linear\"\noutputs = 10\n";
    std::fs::write(path, text).unwrap();
}

/// Images to logits by one matrix, as ONNX.
pub(crate) fn onnx(path: &Path) {
    let pixels = SIDE * SIDE;
    let axis = |length: usize| DimensionProto { dim_value: Some(length as i64), ..Default::default() };
    let batch = DimensionProto { dim_param: Some("n".into()), ..Default::default() };
    let value = |name: &str, dim: Vec<DimensionProto>| {
        let shape = Some(TensorShapeProto { dim });
        let tensor_type = Some(TensorTypeProto { elem_type: Some(element_type::FLOAT), shape });
        ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type }) }
    };
    let node = |operator: &str, inputs: &[&str], output: &str, attribute: Vec<AttributeProto>| NodeProto {
        op_type: Some(operator.into()),
        name: Some(operator.to_lowercase()),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    };
    let tensor = |name: &str, dims: &[usize], values: Vec<f32>| TensorProto {
        name: Some(name.into()),
        dims: dims.iter().map(|&d| d as i64).collect(),
        data_type: Some(element_type::FLOAT),
        float_data: values,
        ..Default::default()
    };
    // The logit of a class is the brightness of its part of the image.
    let weight = |p: usize, c: usize| if p * CLASSES / pixels == c { 1.0 } else { -0.1 };
    let weights = (0..pixels).flat_map(|p| (0..CLASSES).map(move |c| weight(p, c))).collect();
    let graph = GraphProto {
        node: vec![
            node("Flatten", &["x"], "flat", Vec::new()),
            node("Gemm", &["flat", "weight", "bias"], "y", Vec::new()),
        ],
        name: Some("brightness".into()),
        initializer: vec![
            tensor("weight", &[pixels, CLASSES], weights),
            tensor("bias", &[CLASSES], vec![0.0; CLASSES]),
        ],
        input: vec![value("x", vec![batch.clone(), axis(SIDE), axis(SIDE)])],
        output: vec![value("y", vec![batch, axis(CLASSES)])],
        ..Default::default()
    };
    let model = ModelProto {
        ir_version: Some(8),
        producer_name: Some("test".into()),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..Default::default()
    };
    std::fs::write(path, model.encode_to_vec()).unwrap();
}

/// A program that prints the sum of its arguments.
pub(crate) fn script(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(
        path,
        "#!/bin/sh\nfor a in \"$@\"; do echo \"$a\"; done | awk '{ s += $1 } END { print s }'\n",
    )
    .unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A scan of 16 x 16 pixels at some angles.
pub(crate) fn scan(path: &Path, angles: &str) {
    let text = format!("kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = {angles}\n");
    std::fs::write(path, text).unwrap();
}
