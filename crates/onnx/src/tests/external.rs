//! Numbers in files beside the model: what is refused, and what is said.

use super::models::*;
use crate::definitions::{ModelProto, StringStringEntryProto};
use crate::external::DataFiles;
use crate::{OnnxError, OnnxOptions, parse, read_onnx};
use prost::Message;
use std::path::Path;

/// The perceptron with the numbers of `w` at a place that is said in these words.
fn outside(entries: &[(&str, &str)]) -> ModelProto {
    let mut model = perceptron();
    let weight = &mut graph(&mut model).initializer[0];
    weight.float_data.clear();
    weight.data_location = Some(1);
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto {
        key: Some((*key).into()),
        value: Some((*value).into()),
    };
    weight.external_data = entries.iter().map(entry).collect();
    model
}

/// Six numbers, behind 8 bytes.
fn write_data(folder: &Path, name: &str) {
    let mut bytes = vec![0xff; 8];
    bytes.extend([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// What is read from a folder, and the data files that were looked at.
fn read(folder: &Path, model: &ModelProto) -> (Result<crate::Imported, OnnxError>, usize) {
    let path = folder.join("m.onnx");
    let files = DataFiles::beside(&path);
    let read = parse(model.encode_to_vec(), &path.display().to_string(), &OnnxOptions::default(), &files);
    assert!(files.found().iter().all(|f| f.parent() == Some(&*folder.canonicalize().unwrap())));
    (read, files.found().len())
}

#[test]
fn numbers_are_found_at_their_offset() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), "m.onnx.data");
    for entries in [
        &[("location", "m.onnx.data"), ("offset", "8"), ("length", "24")][..],
        &[("location", "m.onnx.data"), ("offset", "8")],
        &[("offset", "8"), ("checksum", "abc"), ("location", "m.onnx.data")],
    ] {
        let (found, files) = read(folder.path(), &outside(entries));
        assert_eq!(found.unwrap().parameters, import(&perceptron()).unwrap().parameters);
        assert_eq!(files, 1);
    }
}

#[test]
fn refusals_name_the_file_that_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path(), "m.onnx.data");
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    let located = |location: &str| outside(&[("location", location), ("offset", "8")]);
    for (model, message) in [
        (located("gone.data"), "there is no file `gone.data` in the folder `"),
        (located("../m.onnx.data"), "`../m.onnx.data` is not a plain file name"),
        (located("/etc/passwd"), "`/etc/passwd` is not a plain file name"),
        (located(".."), "`..` is not a plain file name"),
        (located("."), "`.` is not a plain file name"),
        (located(""), "`` is not a plain file name"),
        (located("a\\b"), "is not a plain file name"),
        (located("inner"), "`inner` in the folder"),
        (located(&"y".repeat(5000)), "yyy"),
        (outside(&[("offset", "8")]), "it does not say in which"),
        (outside(&[("location", "m.onnx.data"), ("location", "m.onnx.data")]), "`location` is given twice"),
        (outside(&[("location", "m.onnx.data"), ("offset", "-8")]), "`offset` is no number"),
        (
            outside(&[("location", "m.onnx.data"), ("offset", "9")]),
            "it needs 24 bytes from 9 on, `m.onnx.data` has 32",
        ),
        (
            outside(&[("location", "m.onnx.data"), ("offset", "18446744073709551615")]),
            "it needs 24 bytes from 18446744073709551615 on",
        ),
        (
            outside(&[("location", "m.onnx.data"), ("offset", "8"), ("length", "20")]),
            "its shape needs 24 bytes, `length` says 20",
        ),
    ] {
        let (found, _) = read(folder.path(), &model);
        let error = found.unwrap_err();
        assert!(matches!(error, OnnxError::ExternalData { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(message), "{text}\nlacks: {message}");
        assert!(text.contains("tensor `w`") && text.chars().count() < 300, "{text}");
    }
    // A shape that no file holds costs nothing.
    let mut model = located("m.onnx.data");
    graph(&mut model).initializer[0].dims = vec![1 << 31, 1 << 31];
    assert!(read(folder.path(), &model).0.is_err());
}

/// Tensors that lie on each other cannot make more memory than the files hold bytes, several times over.
#[test]
fn overlapping_tensors_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d"), vec![0; 4 << 20]).unwrap();
    let (mut nodes, mut tensors) = (vec![], vec![]);
    for i in 0..100 {
        let mut tensor = outside(&[("location", "d")]).graph.unwrap().initializer.remove(0);
        tensor.name = Some(format!("w{i}"));
        tensor.dims = vec![1024, 1024];
        tensors.push(tensor);
        nodes.push(node("MatMul", &[&format!("v{i}"), &format!("w{i}")], &format!("v{}", i + 1), vec![]));
    }
    nodes[0].input[0] = "x".into();
    nodes[99].output[0] = "y".into();
    let large = model(&[ANY, 1024], nodes, tensors);
    let error = read(folder.path(), &large).0.unwrap_err();
    assert!(matches!(error, OnnxError::Limit { .. }), "{error}");
}

#[test]
fn bytes_alone_are_not_enough() {
    let text = refusal(&outside(&[("location", "m.onnx.data")]));
    assert!(text.contains("external_data=False"), "{text}");
    assert!(matches!(read_onnx("/nowhere/m.onnx"), Err(OnnxError::Io { .. })));
}
