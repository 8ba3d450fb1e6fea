//! Attention whose mask hides every key from a query, against sums that are written out: values, and derivatives of both orders.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto, NodeProto, TensorProto};
use posterior_networks::derivatives::KernelAdjoints;
use posterior_networks::graph::Selection;
use posterior_networks::{Array, Network, Outputs};
use std::borrow::Cow;

/// Heads, queries, keys and numbers of each.
type Sizes = [usize; 4];

const HIDDEN: f64 = f64::NEG_INFINITY;

fn truths(shape: &[i64], values: impl Fn(usize) -> bool) -> TensorProto {
    let count: i64 = shape.iter().product();
    let int32_data = (0..count as usize).map(|at| i32::from(values(at))).collect();
    TensorProto { data_type: Some(9), int32_data, ..whole("m", shape, &[]) }
}

fn numbers(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|i| ((i as f64 * 0.7 + seed).sin() * 8.0).round() / 4.0).collect()
}

/// Queries times `w`, keys and values side by side in `x`; attention by `attend`, which reads q, k and v and makes z.
fn model_of(
    [heads, queries, keys, size]: Sizes,
    attend: Vec<NodeProto>,
    tensors: Vec<TensorProto>,
) -> ModelProto {
    let ends = [0, queries, queries + keys, queries + 2 * keys].map(|end| end as i64);
    let bound = |i: usize| whole(&format!("b{i}"), &[1], &[ends[i]]);
    let slice = |i: usize, name: &str| {
        node("Slice", &["x", &format!("b{i}"), &format!("b{}", i + 1), "axis"], name, vec![])
    };
    let w: Vec<f32> = (0..size).map(|i| 0.5 + i as f32 / 4.0).collect();
    let before = vec![slice(0, "a"), slice(1, "k"), slice(2, "v"), node("Mul", &["a", "w"], "q", vec![])];
    let nodes = [before, attend, vec![node("Flatten", &["z"], "y", vec![])]].concat();
    let own = vec![
        bound(0),
        bound(1),
        bound(2),
        bound(3),
        whole("axis", &[1], &[2]),
        floats("w", &[size as i64], &w),
    ];
    let mut model = model(&[ANY, heads as i64, ends[3], size as i64], nodes, [own, tensors].concat());
    model.opset_import[0].version = Some(23);
    model
}

/// One example, by the definition.
fn by_hand(x: &[f64], w: &[f64], sizes: Sizes, mask: &dyn Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    let [heads, queries, keys, size] = sizes;
    let at = |h: usize, place: usize, d: usize| x[(h * (queries + 2 * keys) + place) * size + d];
    let mut out = vec![];
    for h in 0..heads {
        for i in 0..queries {
            let score = |j: usize| {
                let product: f64 = (0..size).map(|d| at(h, i, d) * w[d] * at(h, queries + j, d)).sum();
                product / (size as f64).sqrt() + mask(h, i, j)
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let top = scores.iter().copied().fold(HIDDEN, f64::max);
            let weights: Vec<f64> =
                scores.iter().map(|s| if top == HIDDEN { 0.0 } else { (s - top).exp() }).collect();
            let total = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            let value =
                |d: usize| (0..keys).map(|j| weights[j] * at(h, queries + keys + j, d)).sum::<f64>() / total;
            out.extend((0..size).map(value));
        }
    }
    out
}

#[track_caller]
fn near_by(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * (1.0 + e.abs()), "{what} at {i}: {f} instead of {e}");
    }
}

/// The slope of a function of a step, by differences of fourth order.
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let h = 1e-3;
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

fn moved(values: &[f64], i: usize, by: f64) -> Vec<f64> {
    let mut values = values.to_vec();
    values[i] += by;
    values
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Holds values and derivatives against the definition; how many operations there are.
#[track_caller]
fn check(what: &str, model: &ModelProto, sizes: Sizes, mask: impl Fn(usize, usize, usize) -> f64) -> usize {
    let imported = import(model).unwrap_or_else(|e| panic!("{what}: {e}"));
    let network: Network<f64> = imported.network().unwrap();
    let [heads, queries, keys, size] = sizes;
    let (each, width) = (heads * (queries + 2 * keys) * size, heads * queries * size);
    let shape = |rows: usize| vec![rows, heads, queries + 2 * keys, size];
    let w: Vec<f64> = (0..size).map(|i| 0.5 + i as f64 / 4.0).collect();
    let values = |x: &[f64], w: &[f64]| -> Vec<f64> {
        x.chunks(each).flat_map(|example| by_hand(example, w, sizes, &mask)).collect()
    };
    let x = numbers(2 * each, 0.25);
    let (batch, expected) = (Array::new(shape(2), x.clone()), values(&x, &w));
    near_by(network.forward(&batch).unwrap().values(), &expected, 1e-13, what);
    let single: Network<f32> = imported.network().unwrap();
    let narrow = Array::new(shape(2), x.iter().map(|&v| v as f32).collect());
    let narrow: Vec<f64> = single.forward(&narrow).unwrap().values().iter().map(|&v| v.into()).collect();
    near_by(&narrow, &expected, 5e-6, what);
    // Scores vanish beside the lowest number: differences are zero there, whatever the derivative of the softmax is.
    let at = |i: usize| mask(i / (queries * keys), i / keys % queries, i % keys);
    if (0..heads * queries * keys).any(|i| at(i).is_finite() && at(i) < -1e30) {
        return imported.graph.nodes().len();
    }
    // First order, in the parameter and in the input.
    let selection = Selection::all(network.graph());
    assert_eq!(selection.len(), size, "{what}: only `w` is a weight");
    let jacobian = network.jacobian(&batch, &selection, &Outputs::All, 1 << 30).unwrap();
    let one = Array::new(shape(1), x[..each].to_vec());
    let trace = network.trace(one.clone()).unwrap();
    let (c, t) = (numbers(width, 1.5), numbers(each, 2.5));
    for p in 0..size {
        let columns: Vec<f64> = jacobian.values().iter().skip(p).step_by(size).copied().collect();
        let slopes: Vec<f64> = (0..2 * width).map(|o| slope(|h| values(&x, &moved(&w, p, h))[o])).collect();
        near_by(&columns, &slopes, 1e-8, what);
    }
    let back = trace.vjp_input(&Array::new(vec![1, width], c.clone())).unwrap();
    let of = |x: &[f64]| dot(&by_hand(x, &w, sizes, &mask), &c);
    let slopes: Vec<f64> = (0..each).map(|i| slope(|h| of(&moved(&x[..each], i, h)))).collect();
    near_by(back.values(), &slopes, 1e-8, what);
    let forth = trace.jvp_input(&Array::new(shape(1), t.clone())).unwrap();
    assert!(
        (dot(forth.values(), &c) - dot(back.values(), &t)).abs() < 1e-12 * (1.0 + width as f64),
        "{what}"
    );
    // Second order: how the tangent kernel changes with a point.
    let adjoint = Array::new(vec![2 * width, width], numbers(2 * width * width, 3.5));
    let features = network.tangent_features(&batch, &selection, &Outputs::All).unwrap();
    let mut adjoints = KernelAdjoints::new(&selection, width);
    adjoints.add(Cow::Borrowed(&features), &adjoint).unwrap();
    let second = network.tangent_kernel_pullback((&one, &Outputs::All), &adjoints).unwrap();
    let of = |z: Vec<f64>| {
        let z = Array::new(shape(1), z);
        let sets = ((&batch, &Outputs::All), (&z, &Outputs::All));
        dot(network.tangent_kernel(&selection, sets.0, sets.1, 1 << 30).unwrap().values(), adjoint.values())
    };
    let slopes: Vec<f64> = (0..each).map(|i| slope(|h| of(moved(&x[..each], i, h)))).collect();
    let scale = slopes.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    near_by(second.values(), &slopes, 1e-8 * scale, what);
    imported.graph.nodes().len()
}

fn attention(sizes: Sizes, mask: Option<TensorProto>, causal: bool) -> ModelProto {
    let inputs: &[&str] = if mask.is_some() { &["q", "k", "v", "m"] } else { &["q", "k", "v"] };
    let attend = node("Attention", inputs, "z", vec![int("is_causal", causal.into())]);
    model_of(sizes, vec![attend], mask.into_iter().collect())
}

#[test]
fn a_query_that_sees_no_key_gives_zero() {
    let sizes = [3, 4, 5, 2];
    let plain = check("no mask", &attention(sizes, None, false), sizes, |_, _, _| 0.0);
    let shown = |s: bool| if s { 0.0 } else { HIDDEN };
    // A row of truths; a head or all heads; every query alike.
    let row = |at: usize| at / 5 != 2 && at % 5 != 1;
    let nodes = check("a row", &attention(sizes, Some(truths(&[4, 5], row)), false), sizes, |_, i, j| {
        shown(row(i * 5 + j))
    });
    assert_eq!(nodes, plain + 2, "the mask, and zeros for the row");
    let heads = |at: usize| !(at / 20 == 1 && (at / 5).is_multiple_of(4) || at / 20 == 2);
    check("by head", &attention(sizes, Some(truths(&[3, 4, 5], heads)), false), sizes, |h, i, j| {
        shown(heads(h * 20 + i * 5 + j))
    });
    let head = |at: usize| at != 1;
    check("a head", &attention(sizes, Some(truths(&[3, 1, 1], head)), false), sizes, |h, _, _| {
        shown(head(h))
    });
    let none = truths(&[1, 1, 1, 5], |_| false);
    check("nothing", &attention(sizes, Some(none), false), sizes, |_, _, _| HIDDEN);
    // The same by numbers. A row of the lowest number is not hidden: it gives the mean, and hidden keys have no part in it.
    for low in [-0.5, f64::from(f32::MIN)] {
        let by_number = |i: usize, j: usize| match (i, j) {
            (0, _) | (1, 0 | 3) | (3, 1 | 3 | 4) => HIDDEN,
            (1, _) => 0.75,
            _ => low,
        };
        let values: Vec<f32> = (0..20).map(|at| by_number(at / 5, at % 5) as f32).collect();
        let mask = floats("m", &[4, 5], &values);
        check("numbers", &attention(sizes, Some(mask), false), sizes, |_, i, j| by_number(i, j));
    }
    // What is fully shown costs what it did.
    let most = truths(&[4, 5], |at| at % 5 != 1);
    let nodes = check("no row", &attention(sizes, Some(most), false), sizes, |_, _, j| shown(j != 1));
    assert_eq!(nodes, plain + 1, "the mask alone");
}

#[test]
fn causal_masks_hide_more() {
    // More queries than keys: the first key is shown to all.
    let sizes = [2, 5, 3, 2];
    let below = |i: usize, j: usize| if j <= i { 0.0 } else { HIDDEN };
    let alone = check("causal", &attention(sizes, None, true), sizes, |_, i, j| below(i, j));
    // Without the first key the first query sees nothing; without the first two of a head two queries of it.
    let key = |at: usize| at != 0;
    let nodes = check("a key", &attention(sizes, Some(truths(&[3], key)), true), sizes, |_, i, j| {
        if key(j) { below(i, j) } else { HIDDEN }
    });
    assert_eq!(nodes, alone + 2);
    let keys = |at: usize| at / 3 == 0 || at % 3 == 2;
    check("keys of a head", &attention(sizes, Some(truths(&[2, 1, 3], keys)), true), sizes, |h, i, j| {
        if keys(h * 3 + j) { below(i, j) } else { HIDDEN }
    });
    // Finite numbers below the diagonal stay above what the triangle hides.
    let low = floats("m", &[1, 3], &[f32::MIN; 3]);
    check("finite", &attention(sizes, Some(low), true), sizes, |_, i, j| below(i, j) + f64::from(f32::MIN));
}

/// A mask that is computed from the data: a key is shown where the first number of its value is below a limit.
#[test]
fn masks_by_the_data() {
    let sizes = [2, 3, 4, 2];
    for causal in [false, true] {
        let attend = vec![
            node("Slice", &["v", "zero", "one", "last"], "f", vec![]),
            node("Transpose", &["f"], "t", vec![ints("perm", &[0, 1, 3, 2])]),
            node("Less", &["t", "limit"], "m", vec![]),
            node("Attention", &["q", "k", "v", "m"], "z", vec![int("is_causal", causal.into())]),
        ];
        let limit = floats("limit", &[2, 3, 1], &[-9.0, 0.1, 9.0, 0.1, 9.0, -9.0]);
        let tensors =
            vec![whole("zero", &[1], &[0]), whole("one", &[1], &[1]), whole("last", &[1], &[3]), limit];
        let model = model_of(sizes, attend, tensors);
        let imported = import(&model).unwrap();
        let each = 2 * 11 * 2;
        let x = numbers(3 * each, 0.75);
        let by = |example: &[f64]| {
            let limits = [-9.0, f64::from(0.1f32), 9.0, f64::from(0.1f32), 9.0, -9.0];
            by_hand(example, &[0.5, 0.75], sizes, &|h, i, j| {
                let first = example[(h * 11 + 7 + j) * 2];
                if first < limits[h * 3 + i] && (!causal || j <= i) { 0.0 } else { HIDDEN }
            })
        };
        let expected: Vec<f64> = x.chunks(each).flat_map(by).collect();
        assert!(expected.chunks(2).any(|row| row == [0.0, 0.0]), "some query sees nothing");
        near_by(&outputs(&model, 3, &x), &expected, 1e-13, "by the data");
        let single: Network<f32> = imported.network().unwrap();
        let narrow = Array::new(vec![3, 2, 11, 2], x.iter().map(|&v| v as f32).collect());
        let narrow: Vec<f64> = single.forward(&narrow).unwrap().values().iter().map(|&v| v.into()).collect();
        near_by(&narrow, &expected, 2e-6, "by the data, in single precision");
        // The limit is no weight, and away from it the mask does not move.
        let network: Network<f64> = imported.network().unwrap();
        let trace = network.trace(Array::new(vec![1, 2, 11, 2], x[..each].to_vec())).unwrap();
        let c = numbers(12, 1.5);
        let back = trace.vjp_input(&Array::new(vec![1, 12], c.clone())).unwrap();
        let slopes: Vec<f64> = (0..each).map(|i| slope(|h| dot(&by(&moved(&x[..each], i, h)), &c))).collect();
        near_by(back.values(), &slopes, 1e-8, "the slope");
    }
}

/// What PyTorch writes before operator set 23: the softmax of a sum with a mask, whose NaN become zeros.
#[test]
fn a_guarded_softmax_gives_zero() {
    let sizes = [2, 3, 4, 2];
    let attend = |sum: [&str; 2]| {
        vec![
            node("Transpose", &["k"], "t", vec![ints("perm", &[0, 1, 3, 2])]),
            node("MatMul", &["q", "t"], "p", vec![]),
            node("Mul", &["p", "scale"], "s", vec![]),
            node("Add", &sum, "masked", vec![]),
            node("Softmax", &["masked"], "r", vec![int("axis", -1)]),
            node("IsNaN", &["r"], "n", vec![]),
            node("Where", &["n", "zero", "r"], "g", vec![]),
            node("MatMul", &["g", "v"], "z", vec![]),
        ]
    };
    let mask = |i: usize, j: usize| match (i, j) {
        (1, _) | (0, 2) => HIDDEN,
        _ => 0.0,
    };
    let values: Vec<f32> = (0..12).map(|at| mask(at / 4, at % 4) as f32).collect();
    let tensors = || {
        let scale = f64::from(2.0f32).sqrt().recip() as f32;
        vec![floats("m", &[3, 4], &values), floats("scale", &[], &[scale]), floats("zero", &[], &[0.0])]
    };
    for sum in [["s", "m"], ["m", "s"]] {
        // The scale is in single precision: the parameter `w` is compared through it.
        let model = model_of(sizes, attend(sum), tensors());
        let found = outputs(&model, 1, &numbers(44, 0.5));
        let expected = by_hand(&numbers(44, 0.5), &[0.5, 0.75], sizes, &|_, i, j| mask(i, j));
        near_by(&found, &expected, 1e-6, "guarded");
        assert!(found.chunks(2).skip(1).step_by(3).all(|row| row == [0.0, 0.0]), "{found:?}");
    }
    // Where no constant says which rows those are, the import does.
    let notes = import(&model_of(sizes, attend(["s", "s"]), tensors())).unwrap().notes;
    assert!(notes.iter().any(|n| n.contains("where the model has zeros")), "{notes:?}");
}

#[test]
fn keys_and_values_that_no_example_changes() {
    let sizes = [2, 4, 3, 2];
    let places = 2 * (4 + 2 * 3);
    let x = numbers(2 * 2 * places, 0.25);
    // Those of the first example, for all.
    let of =
        |from: usize| -> Vec<f32> { (0..12).map(|i| x[(i / 6 * 10 + from) * 2 + i % 6] as f32).collect() };
    let attend = node("Attention", &["q", "a_k", "a_v"], "z", vec![int("is_causal", 1)]);
    let model = model_of(
        sizes,
        vec![attend],
        vec![floats("a_k", &[1, 2, 3, 2], &of(4)), floats("a_v", &[1, 2, 3, 2], &of(7))],
    );
    let expected: Vec<f64> = (0..2)
        .flat_map(|example| {
            let mut own = x[..2 * places].to_vec();
            for at in (0..2).flat_map(|h| (h * 20)..(h * 20 + 8)) {
                own[at] = x[example * 2 * places + at];
            }
            by_hand(&own, &[0.5, 0.75], sizes, &|_, i, j| if j <= i { 0.0 } else { HIDDEN })
        })
        .collect();
    near_by(&outputs(&model, 2, &x), &expected, 1e-13, "keys and values of the model");
}

#[test]
fn bounded_scores_and_shorter_masks() {
    let sizes = [1, 2, 3, 2];
    let capped = |mut model: ModelProto, opset: i64| {
        model.opset_import[0].version = Some(opset);
        model
    };
    let softcap = AttributeProto { name: Some("softcap".into()), f: Some(0.5), ..Default::default() };
    let attend = node("Attention", &["q", "k", "v"], "z", vec![softcap]);
    let x = numbers(16, 0.25);
    let expected: Vec<f64> = (0..2)
        .flat_map(|i| {
            let score = |j: usize| {
                let product: f64 =
                    (0..2).map(|d| x[i * 2 + d] * [0.5, 0.75][d] * x[(2 + j) * 2 + d]).sum::<f64>();
                (0.5 * (product / 2f64.sqrt() / 0.5).tanh()).exp()
            };
            let total: f64 = (0..3).map(score).sum();
            (0..2)
                .map(|d| (0..3).map(|j| score(j) * x[(5 + j) * 2 + d]).sum::<f64>() / total)
                .collect::<Vec<_>>()
        })
        .collect();
    near_by(&outputs(&model_of(sizes, vec![attend], vec![]), 1, &x), &expected, 1e-13, "softcap");
    // From operator set 24 on, keys that the mask is too short for are hidden.
    let short = || attention(sizes, Some(truths(&[2, 2], |at| at < 2)), false);
    let expected = by_hand(&x, &[0.5, 0.75], sizes, &|_, i, j| if i == 0 && j < 2 { 0.0 } else { HIDDEN });
    near_by(&outputs(&capped(short(), 24), 1, &x), &expected, 1e-13, "a short mask");
    assert!(refusal(&capped(short(), 23)).contains("do not broadcast"));
    let window = node("Attention", &["q", "k", "v"], "z", vec![int("left_window_size", 1)]);
    assert!(refusal(&model_of(sizes, vec![window], vec![])).contains("with a sliding window"));
}
