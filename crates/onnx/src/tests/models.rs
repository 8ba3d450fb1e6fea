//! Small models written by hand.

use crate::definitions::*;
use crate::{Imported, OnnxError, OnnxOptions, parse_onnx_with};
use posterior_networks::{Array, Network};
use prost::Message;

/// The length of a batch axis.
pub(super) const ANY: i64 = 0;

pub(super) fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
    let dim = |&length: &i64| match length {
        ANY => DimensionProto { dim_param: Some("n".into()), ..Default::default() },
        _ => DimensionProto { dim_value: Some(length), ..Default::default() },
    };
    let shape = TensorShapeProto { dim: shape.iter().map(dim).collect() };
    let tensor_type = TensorTypeProto { elem_type: Some(element_type::FLOAT), shape: Some(shape) };
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type: Some(tensor_type) }) }
}

pub(super) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(element_type::FLOAT),
        float_data: values.to_vec(),
        ..Default::default()
    }
}

pub(super) fn whole(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(element_type::INT64),
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), i: Some(value), ..Default::default() }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), ints: values.to_vec(), ..Default::default() }
}

pub(super) fn node(
    operator: &str,
    inputs: &[&str],
    output: &str,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(format!("{operator} of {output}")),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        attribute,
        ..Default::default()
    }
}

/// A model from `x` to `y` with opset 17.
pub(super) fn model(shape: &[i64], node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> ModelProto {
    let graph = GraphProto {
        node,
        initializer,
        input: vec![value("x", shape)],
        output: vec![value("y", &[])],
        ..Default::default()
    };
    ModelProto {
        ir_version: Some(8),
        producer_name: Some("hand".into()),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(17) }],
        ..Default::default()
    }
}

pub(super) fn graph(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

pub(super) fn import_with(model: &ModelProto, options: &OnnxOptions) -> Result<Imported, OnnxError> {
    parse_onnx_with(model.encode_to_vec(), "m.onnx", options)
}

pub(super) fn import(model: &ModelProto) -> Result<Imported, OnnxError> {
    import_with(model, &OnnxOptions::default())
}

/// The message that a model is refused with.
#[track_caller]
pub(super) fn refusal(model: &ModelProto) -> String {
    import(model).map(|i| format!("imported: {:?}", i.graph)).unwrap_err().to_string()
}

/// Outputs for a few examples.
#[track_caller]
pub(super) fn outputs(model: &ModelProto, rows: usize, x: &[f64]) -> Vec<f64> {
    let imported = import(model).unwrap();
    let network: Network<f64> = imported.network().unwrap();
    let shape: Vec<usize> =
        std::iter::once(rows).chain(imported.graph.input_shape().iter().copied()).collect();
    network.forward(&Array::new(shape, x.to_vec())).unwrap().into_values()
}

/// Equal up to rounding in double precision.
#[track_caller]
pub(super) fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?} {expected:?}");
    let fits = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * b.abs().max(1.0);
    assert!(found.iter().zip(expected).all(fits), "{found:?} instead of {expected:?}");
}

/// A perceptron with two layers, weights transposed in one of them.
pub(super) fn perceptron() -> ModelProto {
    model(
        &[ANY, 2],
        vec![
            node("Gemm", &["x", "w", "b"], "h", vec![int("transB", 1)]),
            node("Tanh", &["h"], "t", vec![]),
            node("MatMul", &["t", "v"], "m", vec![]),
            node("Add", &["c", "m"], "y", vec![]),
        ],
        vec![
            floats("w", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            floats("b", &[3], &[0.5, 0.0, -0.5]),
            floats("v", &[3, 2], &[1.0, -1.0, 0.5, 0.25, 2.0, 3.0]),
            floats("c", &[2], &[0.125, 0.25]),
        ],
    )
}
