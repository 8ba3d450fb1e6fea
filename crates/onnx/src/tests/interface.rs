//! Inputs, outputs, operator sets, operators and options.

use super::models::*;
use crate::definitions::element_type;
use crate::{OnnxError, OnnxOptions, SUPPORTED};
use posterior_networks::graph::NetworkError;

#[test]
fn a_perceptron_by_hand() {
    let imported = import(&perceptron()).unwrap();
    let names: Vec<&str> = imported.graph.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["w", "b", "v", "c"]);
    assert_eq!(imported.graph.nodes().len(), 3, "the added bias is part of the layer");
    assert_eq!(
        imported.parameters[2].values(),
        [1.0, 0.5, 2.0, -1.0, 0.25, 3.0],
        "stored as [outputs, inputs]"
    );
    assert!(imported.notes.iter().any(|n| n.contains("`v` is kept transposed")), "{:?}", imported.notes);
    assert_eq!((imported.opset, imported.producer.as_str()), (17, "hand"));
    let x = [0.1, -0.2];
    let h = [0.1f64 - 0.4 + 0.5, 0.3 - 0.8, 0.5 - 1.2 - 0.5].map(f64::tanh);
    let y = [h[0] + 0.5 * h[1] + 2.0 * h[2] + 0.125, -h[0] + 0.25 * h[1] + 3.0 * h[2] + 0.25];
    for (found, expected) in outputs(&perceptron(), 1, &x).iter().zip(y) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
}

#[test]
fn operator_sets_from_9_to_25() {
    let mut model = perceptron();
    for (version, fits) in [(8, false), (9, true), (25, true), (26, false)] {
        model.opset_import[0].version = Some(version);
        assert_eq!(import(&model).is_ok(), fits, "{version}");
    }
    assert!(
        refusal(&model).contains("it uses operator set 26; export it with an opset_version from 9 to 25")
    );
    model.opset_import.clear();
    assert!(matches!(import(&model), Err(OnnxError::Opset { .. })));
}

#[test]
fn unknown_operators_are_named() {
    let mut model = perceptron();
    graph(&mut model).node[1].op_type = Some("Loop".into());
    let message = refusal(&model);
    for part in ["m.onnx, node `Tanh of t`", "`Loop` is not supported", "architecture file"] {
        assert!(message.contains(part), "{message}");
    }
    graph(&mut model).node[1].name = Some("/model/encoder/layers/layers.11/self_attn/Einsum".into());
    let message = refusal(&model);
    assert!(message.len() < 300, "{} characters: {message}", message.len());
    graph(&mut model).node[1].op_type = Some("Relu".into());
    graph(&mut model).node[1].domain = Some("com.example".into());
    assert!(refusal(&model).contains("it is of the domain `com.example`"));
    // What the output does not need is not looked at.
    graph(&mut model).node[1].output = vec!["unused".into()];
    graph(&mut model).node[2].input[0] = "h".into();
    assert!(import(&model).is_ok());
}

#[test]
fn every_operator_of_the_list_is_known() {
    assert!(SUPPORTED.is_sorted());
    for operator in SUPPORTED {
        let mut model = perceptron();
        graph(&mut model).node[1].op_type = Some((*operator).into());
        if let Err(OnnxError::Unsupported { detail, .. }) = import(&model) {
            assert!(!detail.is_empty(), "{operator} is in the list, but not read at all");
        }
    }
}

/// The list in the book is the list in the code.
#[test]
fn operators_in_the_book() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/networks.md");
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let section = page.split("## ONNX operators").nth(1).unwrap().split("\n## ").next().unwrap();
    let start = section.find("`Abs`").unwrap();
    let list = &section[start..start + section[start..].find('.').unwrap()];
    let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, SUPPORTED);
}

#[test]
fn one_input_with_fixed_axes() {
    let mut model = perceptron();
    graph(&mut model).input.push(value("z", &[ANY, 1]));
    // Old files list every initialiser as an input.
    graph(&mut model).input[1] = value("w", &[3, 2]);
    assert!(import(&model).is_ok());
    for (shape, message) in [
        (
            &[ANY, ANY][..],
            "axis 1 of the input `x` has no fixed positive length: only the batch axis may be dynamic",
        ),
        (&[ANY, -2], "axis 1 of the input `x` has no fixed positive length"),
        (&[-8, 2], "the batch axis of the input `x` has the length -8"),
        (&[ANY], "there must be one for the batch and at least one more"),
        (&[ANY, 1 << 40], "would hold more than"),
    ] {
        graph(&mut model).input[0] = value("x", shape);
        let found = refusal(&model);
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn several_inputs_are_parts_of_one_row() {
    // y = (x W^T + b) * z, summed with the rows of an image v; u is read by nothing.
    let mut model = model(
        &[ANY, 2],
        vec![
            node("Gemm", &["x", "w", "b"], "h", vec![int("transB", 1)]),
            node("Mul", &["h", "z"], "m", vec![]),
            node("ReduceSum", &["v", "axis"], "s", vec![int("keepdims", 0)]),
            node("Add", &["m", "s"], "y", vec![]),
        ],
        vec![
            floats("w", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            floats("b", &[3], &[0.5, 0.0, -0.5]),
            whole("axis", &[1], &[1]),
        ],
    );
    let more = [value("u", &[ANY, 4]), value("z", &[ANY, 3]), value("v", &[ANY, 2, 3])];
    graph(&mut model).input.extend(more);
    let imported = import(&model).unwrap();
    let named: Vec<(&str, &[usize])> =
        imported.inputs.iter().map(|input| (&input.name[..], &input.shape[..])).collect();
    assert_eq!(named, [("x", &[2][..]), ("u", &[4]), ("z", &[3]), ("v", &[2, 3])]);
    assert_eq!(imported.graph.input_shape(), [15]);
    let rows: Vec<f64> = (0..30).map(|i| f64::from(i) * 0.5 - 4.0).collect();
    let expected: Vec<f64> = rows
        .chunks(15)
        .flat_map(|row| {
            let (x, z, v) = (&row[..2], &row[6..9], &row[9..]);
            let h = [x[0] + 2.0 * x[1] + 0.5, 3.0 * x[0] + 4.0 * x[1], 5.0 * x[0] + 6.0 * x[1] - 0.5];
            (0..3).map(|k| h[k] * z[k] + v[k] + v[3 + k]).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(outputs(&model, 2, &rows), expected);

    graph(&mut model).input[2] = value("z", &[1, 3]);
    assert!(refusal(&model).contains("the batch axes of the inputs `x` and `z` differ"));
    graph(&mut model).input[2] = value("x", &[ANY, 3]);
    assert!(refusal(&model).contains("two inputs are called `x`"));
    graph(&mut model).input[2] = value("z", &[ANY, i64::MAX, 4]);
    assert!(refusal(&model).contains("larger than memory"));
    graph(&mut model).input.clear();
    assert!(refusal(&model).contains("the model has 0 inputs"));
}

#[test]
fn one_output_or_a_chosen_one() {
    let mut model = perceptron();
    graph(&mut model).output.push(value("h", &[]));
    assert!(refusal(&model).contains("the model has 2 outputs (`y`, `h`): choose one, --onnx-output NAME"));
    let choose = |name: &str| OnnxOptions { output: Some(name.into()), ..Default::default() };
    assert_eq!(import_with(&model, &choose("h")).unwrap().graph.output_shape(), [3]);
    assert!(import_with(&model, &choose("q")).unwrap_err().to_string().contains("there is no output `q`"));
    graph(&mut model).output = vec![value("w", &[])];
    assert!(refusal(&model).contains("the output `w` does not depend on the input"));
}

#[test]
fn final_softmax() {
    let with = |operator: &str| {
        let mut model = perceptron();
        graph(&mut model).node[3].output = vec!["logits".into()];
        graph(&mut model).node.push(node(operator, &["logits"], "p", vec![int("axis", 1)]));
        graph(&mut model).node.push(node("Identity", &["p"], "y", vec![]));
        model
    };
    let x = [0.1, -0.2, 1.0, 0.5];
    let logits = outputs(&perceptron(), 2, &x);
    let softmax = import(&with("Softmax")).unwrap();
    let probabilities = outputs(&with("Softmax"), 2, &x);
    for (p, l) in probabilities.chunks(2).zip(logits.chunks(2)) {
        assert!((p[0] - 1.0 / (1.0 + (l[1] - l[0]).exp())).abs() < 1e-15);
    }
    let stripped = softmax.without_final_softmax().unwrap();
    assert_eq!(stripped.graph, import(&perceptron()).unwrap().graph);
    assert_eq!(stripped.parameters, softmax.parameters);
    assert!(stripped.without_final_softmax().is_none());
    // A log-softmax only goes when that is asked for.
    assert!(refusal(&with("LogSoftmax")).contains("strip_final_softmax"));
    let strip = OnnxOptions { strip_final_softmax: true, ..Default::default() };
    for operator in ["Softmax", "LogSoftmax"] {
        let imported = import_with(&with(operator), &strip).unwrap();
        assert_eq!(imported.graph, stripped.graph);
        assert!(imported.notes.iter().any(|n| n.contains("was dropped: the outputs are logits")));
    }
    // In the middle it is no business of that option.
    let mut model = with("LogSoftmax");
    graph(&mut model).node[5] = node("Tanh", &["p"], "y", vec![]);
    assert_eq!(import_with(&model, &strip).unwrap().dropped, None);
}

#[test]
fn weights_that_are_not_finite() {
    let mut model = perceptron();
    graph(&mut model).initializer[0].float_data[3] = f32::NAN;
    assert!(refusal(&model).contains("`w` is not finite at position 3"));
    // Numbers that single precision does not hold are found when a network is made in it.
    let weight = &mut graph(&mut model).initializer[0];
    weight.data_type = Some(element_type::DOUBLE);
    weight.double_data = vec![1e300; 6];
    let imported = import(&model).unwrap();
    assert!(imported.network::<f64>().is_ok());
    assert!(matches!(imported.network::<f32>(), Err(NetworkError::NotFinite { .. })));
}
