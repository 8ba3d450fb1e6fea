//! Element types, shared and changed weights, constants.

use super::models::*;
use crate::definitions::{TensorProto, element_type as kind};
use half::{bf16, f16};
use posterior_networks::operation::Operation;

/// `x + c` with a constant of some type.
fn adds(tensor: TensorProto) -> Vec<f64> {
    let model = model(&[ANY, 3], vec![node("Add", &["x", "c"], "y", vec![])], vec![tensor]);
    import(&model).unwrap().parameters[0].values().to_vec()
}

#[test]
fn every_floating_point_type_is_widened_exactly() {
    let values = [0.1f64, -1.5, 3.0e-5];
    let raw = |data_type: i32, bytes: Vec<u8>| TensorProto {
        data_type: Some(data_type),
        raw_data: Some(bytes.into()),
        ..floats("c", &[3], &[])
    };
    let all = |f: fn(f64) -> Vec<u8>| values.iter().flat_map(|&v| f(v)).collect();
    let single = values.map(|v| f64::from(v as f32));
    assert_eq!(adds(raw(kind::FLOAT, all(|v| (v as f32).to_le_bytes().to_vec()))), single);
    assert_eq!(adds(floats("c", &[3], &values.map(|v| v as f32))), single);
    assert_eq!(adds(raw(kind::DOUBLE, all(|v| v.to_le_bytes().to_vec()))), values);
    let double =
        TensorProto { data_type: Some(kind::DOUBLE), double_data: values.to_vec(), ..floats("c", &[3], &[]) };
    assert_eq!(adds(double), values);
    let halves = values.map(|v| f16::from_f64(v).to_f64());
    assert_eq!(adds(raw(kind::FLOAT16, all(|v| f16::from_f64(v).to_le_bytes().to_vec()))), halves);
    let brains = values.map(|v| bf16::from_f64(v).to_f64());
    assert_eq!(adds(raw(kind::BFLOAT16, all(|v| bf16::from_f64(v).to_le_bytes().to_vec()))), brains);
    let in_words = |data_type: i32, bits: [u16; 3]| TensorProto {
        data_type: Some(data_type),
        int32_data: bits.map(i32::from).to_vec(),
        ..floats("c", &[3], &[])
    };
    assert_eq!(adds(in_words(kind::FLOAT16, values.map(|v| f16::from_f64(v).to_bits()))), halves);
    assert_eq!(adds(in_words(kind::BFLOAT16, values.map(|v| bf16::from_f64(v).to_bits()))), brains);
}

#[test]
fn whole_number_types_are_read() {
    // The indices of a gather, in every type.
    let gather = |tensor: TensorProto| {
        let model = model(
            &[ANY, 4],
            vec![
                node("Cast", &["i"], "j", vec![int("to", 7)]),
                node("Gather", &["x", "j"], "y", vec![int("axis", 1)]),
            ],
            vec![tensor],
        );
        outputs(&model, 1, &[10.0, 11.0, 12.0, 13.0])
    };
    let raw = |data_type: i32, bytes: Vec<u8>| TensorProto {
        data_type: Some(data_type),
        raw_data: Some(bytes.into()),
        ..whole("i", &[3], &[])
    };
    let expected = [13.0, 10.0, 11.0];
    assert_eq!(gather(whole("i", &[3], &[3, 0, 1])), expected);
    for (data_type, width) in [
        (kind::INT8, 1),
        (kind::UINT8, 1),
        (kind::INT16, 2),
        (kind::UINT16, 2),
        (kind::INT32, 4),
        (kind::UINT32, 4),
        (kind::INT64, 8),
        (kind::UINT64, 8),
    ] {
        let bytes = [3i64, 0, 1].iter().flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect();
        assert_eq!(gather(raw(data_type, bytes)), expected, "type {data_type}");
    }
    assert_eq!(gather(raw(kind::INT8, vec![0xff, 0, 1])), expected, "a negative index counts from the end");
    let small =
        TensorProto { data_type: Some(kind::INT32), int32_data: vec![-1, 0, 1], ..whole("i", &[3], &[]) };
    assert_eq!(gather(small), expected);
}

#[test]
fn declared_sizes_are_held_against_the_numbers() {
    let with = |tensor: TensorProto| {
        refusal(&model(&[ANY, 3], vec![node("Add", &["x", "c"], "y", vec![])], vec![tensor]))
    };
    assert!(
        with(floats("c", &[3], &[1.0, 2.0]))
            .contains("tensor `c`: the shape [3] needs 3 numbers, there are 2")
    );
    assert!(with(floats("c", &[-3], &[1.0])).contains("negative length"));
    assert!(with(floats("c", &[i64::MAX, i64::MAX], &[])).contains("cannot be counted"));
    assert!(with(floats("c", &[1 << 50], &[])).contains("needs 1125899906842624 numbers, there are 0"));
    assert!(with(floats("c", &[1; 20], &[1.0])).contains("20 axes"));
    let raw = TensorProto { raw_data: Some(vec![0; 11].into()), ..floats("c", &[3], &[]) };
    assert!(with(raw).contains("needs 3 numbers of 4 bytes, there are 11 bytes"));
    let strange = TensorProto { data_type: Some(17), ..floats("c", &[3], &[1.0; 3]) };
    assert!(with(strange).contains("element type 17 is not supported"));
}

/// A matrix that is used twice is one parameter; used in two forms, it becomes two, and that is said.
#[test]
fn shared_weights() {
    let square = [1.0, 2.0, 3.0, 4.0];
    let twice = |transposed: i64| {
        model(
            &[ANY, 2],
            vec![
                node("Gemm", &["x", "w"], "h", vec![int("transB", 1)]),
                node("Gemm", &["h", "w"], "y", vec![int("transB", transposed)]),
            ],
            vec![floats("w", &[2, 2], &square)],
        )
    };
    let shared = import(&twice(1)).unwrap();
    assert_eq!(shared.parameters.len(), 1);
    assert_eq!(outputs(&twice(1), 1, &[1.0, 0.0]), [7.0, 15.0]);
    let apart = import(&twice(0)).unwrap();
    let names: Vec<&str> = apart.graph.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["w", "w#2"]);
    assert!(apart.notes.iter().any(|n| n.contains("`w` is used in several forms")), "{:?}", apart.notes);
    assert_eq!(outputs(&twice(0), 1, &[1.0, 0.0]), [10.0, 14.0]);
}

/// Numbers without axes are constants, weights with an axis are parameters; what is changed on the way is said.
#[test]
fn constants_and_parameters() {
    let model = model(
        &[ANY, 2],
        vec![
            node("Mul", &["x", "two"], "a", vec![]),
            node("Sub", &["a", "shift"], "b", vec![]),
            node("Div", &["b", "width"], "c", vec![]),
            node("Add", &["c", "one"], "y", vec![]),
        ],
        vec![
            floats("two", &[], &[2.0]),
            floats("shift", &[2], &[1.0, -1.0]),
            floats("width", &[1], &[4.0]),
            floats("one", &[], &[1.0]),
        ],
    );
    let imported = import(&model).unwrap();
    let operations: Vec<&Operation> = imported.graph.nodes().iter().map(|n| &n.operation).collect();
    assert!(matches!(
        operations[..],
        [Operation::Scale(2.0), Operation::Bias(_), Operation::Gain(_), Operation::Bias(_)]
    ));
    let trainable: Vec<(&str, bool)> =
        imported.graph.parameters().iter().map(|p| (p.name.as_str(), p.trainable)).collect();
    assert_eq!(trainable, [("shift", true), ("width", true), ("one", false)]);
    assert!(imported.notes.contains(&"`shift` is kept as its negative".to_string()), "{:?}", imported.notes);
    assert!(
        imported.notes.contains(&"`width` is kept as its reciprocal".to_string()),
        "{:?}",
        imported.notes
    );
    assert_eq!(outputs(&model, 1, &[3.0, 5.0]), [(6.0 - 1.0) / 4.0 + 1.0, (10.0 + 1.0) / 4.0 + 1.0]);
}

/// The parts of a normalisation over the last axis, with a Mul by the reciprocal and another epsilon; and of another value, which stays a quotient.
#[test]
fn normalisation_from_parts() {
    let parts = |last: &str| {
        let mut nodes = vec![
            node("ReduceMean", &["x"], "m", vec![ints("axes", &[-1])]),
            node("Sub", &["x", "m"], "d", vec![]),
            node("Mul", &["d", "d"], "s", vec![]),
            node("ReduceMean", &["s"], "v", vec![ints("axes", &[-1])]),
            node("Add", &["e", "v"], "w", vec![]),
            node("Sqrt", &["w"], "r", vec![]),
        ];
        match last {
            "Mul" => {
                nodes.push(node("Reciprocal", &["r"], "i", vec![]));
                nodes.push(node("Mul", &["i", "d"], "y", vec![]));
            }
            "Div" => nodes.push(node("Div", &["d", "r"], "y", vec![])),
            _ => nodes.push(node("Div", &["x", "r"], "y", vec![])),
        }
        model(&[ANY, 2, 3], nodes, vec![floats("e", &[], &[0.25])])
    };
    let x = [1.0, 2.0, 6.0, -1.0, 0.0, 0.5];
    let expected: Vec<f64> = x
        .chunks(3)
        .flat_map(|row| {
            let mean = row.iter().sum::<f64>() / 3.0;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0;
            row.iter().map(move |v| (v - mean) / (variance + 0.25).sqrt()).collect::<Vec<_>>()
        })
        .collect();
    for last in ["Mul", "Div"] {
        let found = outputs(&parts(last), 1, &x);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?} {expected:?}");
    }
    let found = outputs(&parts("of another value"), 1, &x);
    for (i, (v, row)) in x.iter().zip(x.chunks(3).flat_map(|row| [row; 3])).enumerate() {
        let mean = row.iter().sum::<f64>() / 3.0;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0;
        assert!((found[i] - v / (variance + 0.25).sqrt()).abs() < 1e-15, "{found:?}");
    }
}
