//! The domain `ai.onnx.ml`.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto, NodeProto};
use crate::{OnnxError, OnnxOptions};
use prost::bytes::Bytes;

fn numbers(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), floats: values.to_vec(), ..Default::default() }
}

fn text(name: &str, value: &'static str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        s: Some(Bytes::from_static(value.as_bytes())),
        ..Default::default()
    }
}

fn classical(operator: &str, input: &str, outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    let mut node = node(operator, &[input], outputs[0], attributes);
    node.output = outputs.iter().map(ToString::to_string).collect();
    node.domain = Some("ai.onnx.ml".into());
    node
}

const SCALES: [f32; 2] = [2.0, 0.5];
const OFFSETS: [f32; 2] = [1.0, -1.0];

fn scaler() -> NodeProto {
    classical("Scaler", "x", &["s"], vec![numbers("offset", &OFFSETS), numbers("scale", &SCALES)])
}

fn scaled(x: &[f64]) -> Vec<f64> {
    x.iter().enumerate().map(|(i, v)| (v - f64::from(OFFSETS[i % 2])) * f64::from(SCALES[i % 2])).collect()
}

#[test]
fn scaled_columns_and_a_linear_model() {
    let x = [0.5, 2.0, -1.0, 4.0];
    let s = scaled(&x);
    let linear = |post: &'static str| {
        classical(
            "LinearRegressor",
            "s",
            &["y"],
            vec![
                numbers("coefficients", &[1.0, 2.0, -3.0, 0.25, 0.5, 1.5]),
                numbers("intercepts", &[0.5, 0.0, -1.0]),
                int("targets", 3),
                text("post_transform", post),
            ],
        )
    };
    let whole = model(&[ANY, 2], vec![scaler(), linear("NONE")], vec![]);
    let imported = import(&whole).unwrap();
    let trained: Vec<(&str, bool)> =
        imported.graph.parameters().iter().map(|p| (p.name.as_str(), p.trainable)).collect();
    assert_eq!(
        trained,
        [
            ("Scaler of s.offset", false),
            ("Scaler of s.scale", false),
            ("LinearRegressor of y.coefficients", true),
            ("LinearRegressor of y.intercepts", true)
        ]
    );
    let row = |r: usize| {
        let (a, b) = (s[2 * r], s[2 * r + 1]);
        [a + 2.0 * b + 0.5, -3.0 * a + 0.25 * b, 0.5 * a + 1.5 * b - 1.0]
    };
    assert_eq!(outputs(&whole, 2, &x), [row(0), row(1)].concat());
    assert!(
        refusal(&model(&[ANY, 2], vec![scaler(), linear("PROBIT")], vec![]))
            .contains("post_transform = `PROBIT`")
    );
    assert!(
        refusal(&model(&[ANY, 3], vec![scaler(), linear("NONE")], vec![]))
            .contains("must hold 1 or 3 numbers")
    );
}

/// Classes by a linear model, as pipelines write them: labels, and probabilities that are normalised again.
fn classes(post: &'static str, coefficients: &[f32], intercepts: &[f32], norm: &'static str) -> ModelProto {
    let labels = ints("classlabels_ints", &(0..intercepts.len() as i64).collect::<Vec<_>>());
    let attributes = vec![
        numbers("coefficients", coefficients),
        numbers("intercepts", intercepts),
        labels,
        text("post_transform", post),
    ];
    let nodes = vec![
        scaler(),
        classical("LinearClassifier", "s", &["label", "p"], attributes),
        classical("Normalizer", "p", &["y"], vec![text("norm", norm)]),
    ];
    let mut model = model(&[ANY, 2], nodes, vec![]);
    graph(&mut model).output.push(value("label", &[]));
    model
}

#[test]
fn probabilities_of_classes() {
    let choose =
        |name: &str, strip: bool| OnnxOptions { output: Some(name.into()), strip_final_softmax: strip };
    let x = [0.5, 2.0, -1.0, 4.0];
    let s = scaled(&x);
    let of = |model: &ModelProto, strip: bool| {
        let imported = import_with(model, &choose("y", strip)).unwrap();
        let network = imported.network::<f64>().unwrap();
        network.forward(&posterior_networks::Array::new(vec![2, 2], x.to_vec())).unwrap().into_values()
    };
    let softmax = classes("SOFTMAX", &[1.0, 2.0, -3.0, 0.25, 0.5, 1.5], &[0.5, 0.0, -1.0], "L1");
    let logits: Vec<f64> = (0..2)
        .flat_map(|r| {
            let (a, b) = (s[2 * r], s[2 * r + 1]);
            [a + 2.0 * b + 0.5, -3.0 * a + 0.25 * b, 0.5 * a + 1.5 * b - 1.0]
        })
        .collect();
    for (p, l) in of(&softmax, false).chunks(3).zip(logits.chunks(3)) {
        let total: f64 = l.iter().map(|v| v.exp()).sum();
        for (p, l) in p.iter().zip(l) {
            assert!((p - l.exp() / total).abs() < 1e-14, "{p}");
        }
    }
    assert_eq!(of(&softmax, true), logits);
    let binary = classes("LOGISTIC", &[-1.0, -2.0, 1.0, 2.0], &[-0.5, 0.5], "L1");
    for (p, r) in of(&binary, false).chunks(2).zip(0..) {
        let logit: f64 = s[2 * r] + 2.0 * s[2 * r + 1] + 0.5;
        assert!((p[1] - 1.0 / (1.0 + (-logit).exp())).abs() < 1e-14 && (p[0] + p[1] - 1.0).abs() < 1e-14);
    }
    // Not opposite, or another norm: these would have to be divided.
    let apart = classes("LOGISTIC", &[1.0, 2.0, 1.0, 2.0], &[-0.5, 0.5], "L1");
    for model in [apart, classes("SOFTMAX", &[1.0, 2.0, 1.0, 2.0], &[-0.5, 0.5], "MAX")] {
        assert!(matches!(import_with(&model, &choose("y", false)), Err(OnnxError::Unsupported { .. })));
    }
    let label = import_with(&softmax, &choose("label", false)).unwrap_err().to_string();
    assert!(label.contains("label"), "{label}");
    assert!(import(&softmax).unwrap_err().to_string().contains("--onnx-output NAME"));
}
