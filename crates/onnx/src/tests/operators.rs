//! Single operators against formulas.

use super::models::*;
use crate::definitions::{AttributeProto, TensorProto};
use posterior_networks::operation::Operation;
use posterior_networks::{Array, Network};

const X: [f64; 6] = [1.0, -2.0, 3.5, -0.25, 0.5, -7.0];

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: Some(name.into()), f: Some(value), ..Default::default() }
}

fn text(name: &str, value: &'static str) -> AttributeProto {
    AttributeProto { name: Some(name.into()), s: Some(value.as_bytes().into()), ..Default::default() }
}

/// One node of `x` (two rows of three numbers) and constants.
#[track_caller]
fn of_two_rows(
    operator: &str,
    attributes: Vec<AttributeProto>,
    constants: Vec<TensorProto>,
    expected: &[f64],
    x: &[f64],
) {
    let names: Vec<String> = constants.iter().map(|c| c.name.clone().unwrap()).collect();
    let inputs: Vec<&str> = std::iter::once("x").chain(names.iter().map(String::as_str)).collect();
    let model = model(&[ANY, 2, 3], vec![node(operator, &inputs, "y", attributes)], constants);
    near(&outputs(&model, 1, x), expected);
}

#[test]
fn functions_of_one_number() {
    let each = |operator: &str, attributes: Vec<AttributeProto>, f: &dyn Fn(f64) -> f64| {
        of_two_rows(operator, attributes, vec![], &X.map(f), &X);
    };
    each("Abs", vec![], &f64::abs);
    each("Ceil", vec![], &f64::ceil);
    each("Floor", vec![], &f64::floor);
    each("Round", vec![], &f64::round_ties_even);
    each("Sign", vec![], &f64::signum);
    each("Sin", vec![], &f64::sin);
    each("Cos", vec![], &f64::cos);
    each("Tan", vec![], &f64::tan);
    each("Exp", vec![], &f64::exp);
    each("Reciprocal", vec![], &f64::recip);
    each("Softsign", vec![], &|v| v / (1.0 + v.abs()));
    each("Mish", vec![], &|v| v * v.exp().ln_1p().tanh());
    each("HardSwish", vec![], &|v| v * (v / 6.0 + 0.5).clamp(0.0, 1.0));
    each("HardSigmoid", vec![], &|v| (0.2 * v + 0.5).clamp(0.0, 1.0));
    each("HardSigmoid", vec![float("alpha", 0.5), float("beta", 0.25)], &|v| {
        (0.5 * v + 0.25).clamp(0.0, 1.0)
    });
    each("Celu", vec![float("alpha", 2.0)], &|v| v.max(0.0) + (2.0 * (v / 2.0).exp_m1()).min(0.0));
    each("ThresholdedRelu", vec![], &|v| if v > 1.0 { v } else { 0.0 });
    each("Shrink", vec![float("lambd", 1.5), float("bias", 0.5)], &|v| {
        if v < -1.5 {
            v + 0.5
        } else if v > 1.5 {
            v - 0.5
        } else {
            0.0
        }
    });
    let positive = X.map(|v: f64| v.abs() + 0.5);
    of_two_rows("Log", vec![], vec![], &positive.map(f64::ln), &positive);
    of_two_rows("Sqrt", vec![], vec![], &positive.map(f64::sqrt), &positive);
    for exponent in [0.5f32, -1.0, 3.0, 2.0, 1.0, 1.75, -0.5] {
        let expected = positive.map(|v| v.powf(exponent.into()));
        of_two_rows("Pow", vec![], vec![floats("p", &[], &[exponent])], &expected, &positive);
    }
    let power = model(&[ANY, 2], vec![node("Pow", &["b", "x"], "y", vec![])], vec![floats("b", &[], &[3.0])]);
    near(&outputs(&power, 1, &[2.0, -1.5]), &[9.0, 3f64.powf(-1.5)]);
}

#[test]
fn extremes_means_and_quotients() {
    let limit = || floats("c", &[], &[0.75]);
    of_two_rows("Max", vec![], vec![limit()], &X.map(|v| v.max(0.75)), &X);
    of_two_rows("Min", vec![], vec![limit()], &X.map(|v| v.min(0.75)), &X);
    let row = [0.0f64, 1.0, -8.0];
    let tensor = || floats("c", &[3], &row.map(|v| v as f32));
    let pairs = |f: fn(f64, f64) -> f64| (0..6).map(|i| f(X[i], row[i % 3])).collect::<Vec<_>>();
    of_two_rows("Max", vec![], vec![tensor()], &pairs(f64::max), &X);
    of_two_rows("Min", vec![], vec![tensor()], &pairs(f64::min), &X);
    of_two_rows("Mean", vec![], vec![tensor()], &pairs(|a, b| (a + b) / 2.0), &X);
    let two = |operator: &str, f: fn(f64, f64) -> f64| {
        let nodes = vec![
            node("Exp", &["x"], "e", vec![]),
            node("ReduceMean", &["x"], "m", vec![ints("axes", &[-1])]),
            node(operator, &["m", "e"], "y", vec![]),
        ];
        let expected: Vec<f64> =
            (0..6).map(|i| f(X[i / 3 * 3..][..3].iter().sum::<f64>() / 3.0, X[i].exp())).collect();
        near(&outputs(&model(&[ANY, 2, 3], nodes, vec![]), 1, &X), &expected);
    };
    two("Div", |a, b| a / b);
    two("Max", f64::max);
    two("Min", f64::min);
    two("Mean", |a, b| (a + b) / 2.0);
    let inverse =
        model(&[ANY, 2], vec![node("Div", &["c", "x"], "y", vec![])], vec![floats("c", &[2], &[3.0, 1.0])]);
    near(&outputs(&inverse, 1, &[2.0, -4.0]), &[1.5, -0.25]);
}

#[test]
fn reductions() {
    type Formula = fn(&[f64]) -> f64;
    let formulas: [(&str, Formula); 8] = [
        ("ReduceMax", |v| v.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ("ReduceMin", |v| v.iter().copied().fold(f64::INFINITY, f64::min)),
        ("ReduceL1", |v| v.iter().map(|v| v.abs()).sum()),
        ("ReduceL2", |v| v.iter().map(|v| v * v).sum::<f64>().sqrt()),
        ("ReduceSumSquare", |v| v.iter().map(|v| v * v).sum()),
        ("ReduceLogSumExp", |v| v.iter().map(|v| v.exp()).sum::<f64>().ln()),
        ("ReduceProd", |v| v.iter().product()),
        ("ReduceSum", |v| v.iter().sum()),
    ];
    for (operator, formula) in formulas {
        for keep in [0, 1] {
            let rows: Vec<f64> = X.chunks(3).map(formula).collect();
            of_two_rows(operator, vec![ints("axes", &[2]), int("keepdims", keep)], vec![], &rows, &X);
            let columns: Vec<f64> = (0..3).map(|i| formula(&[X[i], X[i + 3]])).collect();
            of_two_rows(operator, vec![ints("axes", &[-2]), int("keepdims", keep)], vec![], &columns, &X);
            let all = [formula(&X)];
            of_two_rows(operator, vec![ints("axes", &[1, 2]), int("keepdims", keep)], vec![], &all, &X);
        }
    }
    // No overflow on the way.
    of_two_rows(
        "ReduceLogSumExp",
        vec![ints("axes", &[2])],
        vec![],
        &[2000.0 + 3f64.ln(), -2000.0 + 3f64.ln()],
        &[2000.0, 2000.0, 2000.0, -2000.0, -2000.0, -2000.0],
    );
}

#[test]
fn norms() {
    let rms = |row: &[f64], epsilon: f64| {
        let scale = (row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64 + epsilon).sqrt();
        row.iter().map(|v| v / scale).collect::<Vec<_>>()
    };
    let weight = [2.0, 0.5, -1.0];
    let expected: Vec<f64> = X
        .chunks(3)
        .flat_map(|row| rms(row, 0.5).iter().zip(weight).map(|(a, b)| a * b).collect::<Vec<_>>())
        .collect();
    let tensor = || floats("w", &[3], &weight.map(|v| v as f32));
    let attributes = || vec![float("epsilon", 0.5)];
    of_two_rows("SimplifiedLayerNormalization", attributes(), vec![tensor()], &expected, &X);
    let refused =
        model(&[ANY, 2, 3], vec![node("RMSNormalization", &["x", "w"], "y", attributes())], vec![tensor()]);
    assert!(refusal(&refused).contains("before operator set 23"), "{}", refusal(&refused));
    let swish = model(&[ANY, 2], vec![node("Swish", &["x"], "y", vec![])], vec![]);
    assert!(refusal(&swish).contains("before operator set 24"));

    let unit = |row: &[f64], p: i32| {
        let length = row.iter().map(|v| v.abs().powi(p)).sum::<f64>().powf(1.0 / f64::from(p));
        row.iter().map(|v| v / length).collect::<Vec<_>>()
    };
    for p in [1, 2] {
        let expected: Vec<f64> = X.chunks(3).flat_map(|row| unit(row, p)).collect();
        of_two_rows("LpNormalization", vec![int("p", p.into())], vec![], &expected, &X);
    }
    // Over the first of two axes, which is put behind the other one.
    let expected: Vec<f64> = (0..6)
        .map(|i| {
            let (a, b) = (X[i % 3], X[i % 3 + 3]);
            let (mean, half) = ((a + b) / 2.0, (a - b) / 2.0);
            (X[i] - mean) / half.abs()
        })
        .collect();
    of_two_rows("MeanVarianceNormalization", vec![ints("axes", &[1])], vec![], &expected, &X);
    let refused =
        model(&[ANY, 2, 3, 1], vec![node("MeanVarianceNormalization", &["x"], "y", vec![])], vec![]);
    assert!(refusal(&refused).contains("holds the batch"));
}

/// Three channels of two pixels; windows of two channels reach one channel further behind than in front.
#[test]
fn local_response_norm() {
    let attributes = || vec![int("size", 2), float("alpha", 0.5), float("beta", 0.5), float("bias", 2.0)];
    let lrn = model(&[ANY, 3, 2], vec![node("LRN", &["x"], "y", attributes())], vec![]);
    let expected: Vec<f64> = (0..6)
        .map(|i| {
            let next = if i < 4 { X[i + 2] * X[i + 2] } else { 0.0 };
            X[i] / (2.0 + 0.25 * (X[i] * X[i] + next)).sqrt()
        })
        .collect();
    near(&outputs(&lrn, 1, &X), &expected);
}

#[test]
fn paddings() {
    for (mode, expected) in [
        ("reflect", [3.5, -2.0, 1.0, -2.0, 3.5, -2.0]),
        ("edge", [1.0, 1.0, 1.0, -2.0, 3.5, 3.5]),
        ("wrap", [-2.0, 3.5, 1.0, -2.0, 3.5, 1.0]),
        ("constant", [9.0, 9.0, 1.0, -2.0, 3.5, 9.0]),
    ] {
        let nodes = vec![node("Pad", &["x", "p", "v"], "y", vec![text("mode", mode)])];
        let tensors = vec![whole("p", &[4], &[0, 2, 0, 1]), floats("v", &[], &[9.0])];
        near(&outputs(&model(&[ANY, 3], nodes, tensors), 1, &X[..3]), &expected);
    }
}

#[test]
fn windows_in_one_and_three_dimensions() {
    let pool = |operator: &str, shape: &[i64], attributes: Vec<AttributeProto>| {
        model(shape, vec![node(operator, &["x"], "y", attributes)], vec![])
    };
    let kernel = |k: &[i64]| ints("kernel_shape", k);
    let one = pool("MaxPool", &[ANY, 1, 6], vec![kernel(&[2]), ints("dilations", &[3])]);
    near(&outputs(&one, 1, &X), &[1.0, 0.5, 3.5]);
    let root = |a: f64, b: f64| (a * a + b * b).sqrt();
    let lp = pool("LpPool", &[ANY, 1, 6], vec![kernel(&[2]), ints("strides", &[4])]);
    near(&outputs(&lp, 1, &X), &[root(1.0, -2.0), root(0.5, -7.0)]);
    let three = pool("AveragePool", &[ANY, 1, 2, 1, 3], vec![kernel(&[2, 1, 2])]);
    let mean = |list: [f64; 4]| list.iter().sum::<f64>() / 4.0;
    near(&outputs(&three, 1, &X), &[mean([1.0, -2.0, -0.25, 0.5]), mean([-2.0, 3.5, 0.5, -7.0])]);
    let auto =
        AttributeProto { name: Some("auto_pad".into()), s: Some("SAME_UPPER".into()), ..Default::default() };
    let open = pool("MaxPool", &[ANY, 1, 6], vec![kernel(&[2]), ints("dilations", &[2]), auto]);
    assert!(refusal(&open).contains("programs differ"));
    let global = pool("GlobalMaxPool", &[ANY, 2, 1, 3, 1], vec![]);
    near(&outputs(&global, 1, &X), &[3.5, 0.5]);
    let global = pool("GlobalLpPool", &[ANY, 2, 3], vec![int("p", 1)]);
    near(&outputs(&global, 1, &X), &[6.5, 7.75]);
}

#[test]
fn logarithm_of_softmax_inside() {
    let nodes = vec![node("LogSoftmax", &["x"], "l", vec![]), node("Exp", &["l"], "y", vec![])];
    let expected: Vec<f64> = X
        .chunks(3)
        .flat_map(|row| {
            let total: f64 = row.iter().map(|v| v.exp()).sum();
            row.iter().map(|v| v.exp() / total).collect::<Vec<_>>()
        })
        .collect();
    near(&outputs(&model(&[ANY, 2, 3], nodes, vec![]), 1, &X), &expected);
}

#[test]
fn limits_are_one_operation() {
    let tensors = || vec![floats("a", &[], &[0.0]), floats("b", &[], &[6.0])];
    let relu6 = model(&[ANY, 2, 3], vec![node("Clip", &["x", "a", "b"], "y", vec![])], tensors());
    let imported = import(&relu6).unwrap();
    assert!(matches!(imported.graph.nodes()[..], [ref n] if matches!(n.operation, Operation::Activation(_))));
    near(&outputs(&relu6, 1, &X), &X.map(|v| v.clamp(0.0, 6.0)));
}

/// A norm of zeros has the derivative 0, as in PyTorch, and what divides by it stays finite.
#[test]
fn norms_of_zeros_have_derivatives() {
    let nodes = vec![
        node("ReduceL2", &["x"], "n", vec![ints("axes", &[1]), int("keepdims", 1)]),
        node("Clip", &["n", "least"], "c", vec![]),
        node("Div", &["x", "c"], "y", vec![]),
    ];
    let model = model(&[ANY, 3], nodes, vec![floats("least", &[], &[1e-12])]);
    let network: Network<f64> = import(&model).unwrap().network().unwrap();
    let x = Array::new(vec![2, 3], vec![0.0, 0.0, 0.0, 3.0, 0.0, 4.0]);
    let y = network.forward(&x).unwrap();
    assert_eq!(&y.values()[..3], [0.0; 3]);
    assert!(y.values()[3..].iter().zip([0.6, 0.0, 0.8]).all(|(a, b)| (a - b).abs() < 1e-15));
    let trace = network.trace(x).unwrap();
    let back = trace.vjp_input(&Array::new(vec![2, 3], vec![1.0; 6])).unwrap();
    assert!(back.values().iter().all(|v| v.is_finite()), "{back:?}");
    // (1 - u u^T) 1 / 5 at u = (0.6, 0, 0.8).
    let expected = [0.032, 0.2, -0.024];
    assert!(back.values()[3..].iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{back:?}");
}

/// A quotient of whole numbers would drop its rest; sums of them stay whole.
#[test]
fn whole_numbers_are_not_divided_as_others() {
    let quotient = vec![
        node("Add", &["x", "one"], "s", vec![]),
        node("Div", &["s", "two"], "d", vec![]),
        node("Cast", &["d"], "y", vec![int("to", 1)]),
    ];
    let numbers = || vec![whole("one", &[1], &[1]), whole("two", &[1], &[2])];
    let mut of_whole = model(&[ANY, 3], quotient.clone(), numbers());
    let input = &mut graph(&mut of_whole).input[0];
    let tensor = input.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
    tensor.elem_type = Some(crate::definitions::element_type::INT64);
    let refused = refusal(&of_whole);
    assert!(refused.contains("whole numbers") && refused.contains("`Floor`"), "{refused}");
    // Of floats it is read.
    let tensors = vec![floats("one", &[1], &[1.0]), floats("two", &[1], &[2.0])];
    assert_eq!(outputs(&model(&[ANY, 3], quotient, tensors), 1, &[1.0, 2.0, 3.0]), [1.0, 1.5, 2.0]);
}

/// What values are compared with is no weight: nothing moves with it.
#[test]
fn thresholds_are_not_trained() {
    let nodes = vec![
        node("Greater", &["x", "t"], "g", vec![]),
        node("Cast", &["g"], "f", vec![int("to", 1)]),
        node("Mul", &["f", "w"], "y", vec![]),
    ];
    let tensors = vec![floats("t", &[3], &[0.0, 1.0, 2.0]), floats("w", &[3], &[1.0, 2.0, 3.0])];
    let imported = import(&model(&[ANY, 3], nodes, tensors)).unwrap();
    let trained: Vec<&str> =
        imported.graph.parameters().iter().filter(|p| p.trainable).map(|p| &p.name[..]).collect();
    assert_eq!(trained, ["w"]);
}
