//! Einsum and attention against sums that are written out, and padding against its definition.

use super::models::*;
use crate::definitions::{AttributeProto, ModelProto};
use posterior_linalg::random::Streams;
use rand::RngExt;
use std::collections::BTreeMap;

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        s: Some(value.to_string().into_bytes().into()),
        ..Default::default()
    }
}

fn random(count: usize, name: &str) -> Vec<f64> {
    let mut rng = Streams::new(3).stream(name);
    // Exact in single precision.
    (0..count).map(|_| f64::from(rng.random_range(-64..64)) / 32.0).collect()
}

fn as_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

/// The sum over all letters that the result lacks, entry by entry.
fn sum_of_products(equation: &str, shapes: &[Vec<usize>], values: &[Vec<f64>]) -> Vec<f64> {
    let (operands, result) = equation.split_once("->").unwrap();
    let operands: Vec<Vec<char>> = operands.split(',').map(|o| o.chars().collect()).collect();
    let mut length = BTreeMap::new();
    for (letters, shape) in operands.iter().zip(shapes) {
        length.extend(letters.iter().copied().zip(shape.iter().copied()));
    }
    let letters: Vec<char> = length.keys().copied().collect();
    let at = |letters: &[char], index: &BTreeMap<char, usize>| {
        letters.iter().fold(0, |position, c| position * length[c] + index[c])
    };
    let result: Vec<char> = result.chars().collect();
    let mut out = vec![0.0; result.iter().map(|c| length[c]).product()];
    for mut number in 0..letters.iter().map(|c| length[c]).product::<usize>() {
        let mut index = BTreeMap::new();
        for c in &letters {
            index.insert(*c, number % length[c]);
            number /= length[c];
        }
        let term: f64 = operands.iter().zip(values).map(|(o, v)| v[at(o, &index)]).product();
        out[at(&result, &index)] += term;
    }
    out
}

#[track_caller]
fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= 1e-12 * (1.0 + e.abs()), "{what}: {f} instead of {e}");
    }
}

/// One operand is the data (with the batch as its axis `n`), the other a weight; or both are made from the data.
#[test]
fn einsum_is_its_sum() {
    let rows = 3;
    for (equation, written, data, weight) in [
        ("nij,jk->nik", None, vec![2, 4], Some(vec![4, 5])),
        ("jk,nij->nki", None, vec![2, 4], Some(vec![4, 5])),
        ("qd,ntd->nqt", None, vec![4, 2], Some(vec![3, 2])),
        ("ntd,htd->nh", None, vec![4, 2], Some(vec![3, 4, 2])),
        ("hqd,nhtd->nhqt", None, vec![2, 4, 3], Some(vec![2, 5, 3])),
        ("nhtd,hde->nthe", None, vec![2, 4, 3], Some(vec![2, 3, 5])),
        ("ni,i->ni", None, vec![4], Some(vec![4])),
        ("ni,j->nij", None, vec![4], Some(vec![3])),
        ("ni,i->n", None, vec![4], Some(vec![4])),
        ("nij,ij->n", None, vec![2, 3], Some(vec![2, 3])),
        ("nij->nji", None, vec![2, 3], None),
        ("nij->n", None, vec![2, 3], None),
        ("nijk->nk", None, vec![2, 3, 4], None),
        ("nijk,kl->nijl", Some("...k,kl->...l"), vec![2, 3, 4], Some(vec![4, 5])),
        ("nijk->njik", Some("...ijk->...jik"), vec![2, 3, 4], None),
    ] {
        let shape = [vec![rows], data.clone()].concat();
        let x = random(shape.iter().product(), equation);
        let mut tensors = vec![];
        let (operands, _) = equation.split_once("->").unwrap();
        let first = operands.starts_with('n');
        let (mut inputs, mut shapes, mut values) = (vec!["x"], vec![shape], vec![x.clone()]);
        if let Some(weight) = weight {
            let w = random(weight.iter().product(), "w");
            let dims: Vec<i64> = weight.iter().map(|&l| l as i64).collect();
            tensors.push(floats("w", &dims, &as_f32(&w)));
            let at = usize::from(first);
            inputs.insert(at, "w");
            shapes.insert(at, weight);
            values.insert(at, w);
        }
        let axes: Vec<i64> = std::iter::once(ANY).chain(data.iter().map(|&l| l as i64)).collect();
        let einsum = node("Einsum", &inputs, "y", vec![text("equation", written.unwrap_or(equation))]);
        let expected = sum_of_products(equation, &shapes, &values);
        close(&outputs(&model(&axes, vec![einsum], tensors), rows, &x), &expected, equation);
    }
    for (equation, shape) in
        [("nij,nkj->nik", [2i64, 4]), ("nij,nij->n", [2, 4]), ("nij,nkj->nki", [3, 2]), ("nij,nkj", [3, 2])]
    {
        let nodes = vec![
            node("Mul", &["x", "w"], "z", vec![]),
            node("Einsum", &["x", "z"], "y", vec![text("equation", equation)]),
        ];
        let rows_here = if equation.contains("->") { rows } else { 1 };
        let full: Vec<usize> = vec![rows_here, shape[0] as usize, shape[1] as usize];
        let count: usize = full.iter().product();
        let (x, w) = (random(count, equation), random(count / rows_here, "w"));
        let z: Vec<f64> = x.iter().enumerate().map(|(i, v)| v * w[i % w.len()]).collect();
        let whole = if equation.contains("->") { equation.to_string() } else { format!("{equation}->ik") };
        let expected = sum_of_products(&whole, &[full.clone(), full], &[x.clone(), z]);
        let model = model(&[ANY, shape[0], shape[1]], nodes, vec![floats("w", &shape, &as_f32(&w))]);
        match equation.contains("->") {
            true => close(&outputs(&model, rows_here, &x), &expected, equation),
            // Without a result it would sum over the examples.
            false => assert!(import(&model).is_err()),
        }
    }
    let bad = |equation: &str| {
        refusal(&model(
            &[ANY, 2, 2],
            vec![node("Einsum", &["x"], "y", vec![text("equation", equation)])],
            vec![],
        ))
    };
    for equation in ["nii->ni", "ni->n", "nij,k->n", "nij->nk", "n?j->n", "", "->"] {
        assert!(bad(equation).contains("Einsum"), "{equation}");
    }
    assert!(bad("nij->ij").contains("batch"), "a sum over examples");
}

/// Softmax attention, head by head.
fn attention(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    sizes: [usize; 4],
    mask: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let [heads, queries, keys, size] = sizes;
    let mut out = vec![];
    for h in 0..heads {
        for i in 0..queries {
            let score = |j: usize| {
                let product: f64 =
                    (0..size).map(|d| q[(h * queries + i) * size + d] * k[(h * keys + j) * size + d]).sum();
                (product / (size as f64).sqrt() + mask(i, j)).exp()
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let total: f64 = scores.iter().sum();
            out.extend(
                (0..size).map(|d| {
                    (0..keys).map(|j| scores[j] * v[(h * keys + j) * size + d]).sum::<f64>() / total
                }),
            );
        }
    }
    out
}

#[test]
fn attention_is_its_definition() {
    let of = |nodes, tensors, shape: &[i64]| -> ModelProto {
        let mut model = model(shape, nodes, tensors);
        model.opset_import[0].version = Some(23);
        model
    };
    let (heads, places, size) = (2, 4, 3);
    let each = heads * places * size;
    let (x, w) = (random(2 * each, "x"), random(each, "w"));
    let shape = [heads as i64, places as i64, size as i64];
    let product = |at: usize| -> Vec<f64> { (0..each).map(|i| x[at * each + i] * w[i]).collect() };
    for (attributes, mask_at) in [
        (vec![], Box::new(|_: usize, _: usize| 0.0) as Box<dyn Fn(usize, usize) -> f64>),
        (vec![int("is_causal", 1)], Box::new(|i, j| if j <= i { 0.0 } else { f64::NEG_INFINITY })),
        (vec![], Box::new(|i, j| if (i + j) % 2 == 0 { 0.5 } else { f64::NEG_INFINITY })),
    ] {
        let masked = mask_at(0, 0) != 0.0;
        let inputs: &[&str] = if masked { &["x", "z", "x", "m"] } else { &["x", "z", "x"] };
        let mask: Vec<f32> = (0..places * places).map(|p| mask_at(p / places, p % places) as f32).collect();
        let nodes = vec![node("Mul", &["x", "w"], "z", vec![]), node("Attention", inputs, "y", attributes)];
        let tensors =
            vec![floats("w", &shape, &as_f32(&w)), floats("m", &[places as i64, places as i64], &mask)];
        let model = of(nodes, tensors, &[&[ANY][..], &shape].concat());
        let expected: Vec<f64> = (0..2)
            .flat_map(|at| {
                let q = &x[at * each..(at + 1) * each];
                attention(q, &product(at), q, [heads, places, places, size], &mask_at)
            })
            .collect();
        close(&outputs(&model, 2, &x), &expected, "attention");
    }
    // Heads side by side, two of queries for one of keys.
    let nodes = vec![
        node("Slice", &["x", "from", "to", "axis"], "k", vec![]),
        node("Attention", &["x", "k", "k"], "y", vec![int("q_num_heads", 2), int("kv_num_heads", 1)]),
    ];
    let bounds = vec![whole("from", &[1], &[1]), whole("to", &[1], &[4]), whole("axis", &[1], &[2])];
    let model = of(nodes, bounds, &[ANY, places as i64, (heads * size) as i64]);
    let flat = &x[..each];
    let at = |h: usize, i: usize, d: usize| flat[i * heads * size + h * size + d];
    let q: Vec<f64> = (0..each).map(|p| at(p / (places * size), p / size % places, p % size)).collect();
    let key = |p: usize| flat[(p / size % places) * heads * size + 1 + p % size];
    let k: Vec<f64> = (0..each).map(key).collect();
    let expected = attention(&q, &k, &k, [heads, places, places, size], |_, _| 0.0);
    let turned: Vec<f64> = (0..each)
        .map(|p| {
            let (i, h, d) = (p / (heads * size), p / size % heads, p % size);
            expected[(h * places + i) * size + d]
        })
        .collect();
    close(&outputs(&model, 1, flat), &turned, "heads side by side");
}

#[test]
fn padding_with_other_entries_and_numbers() {
    let x = [1.0, 2.0, 3.0, 4.0];
    for (mode, pads, value, expected) in [
        ("reflect", [2, 1], 0.0, vec![3.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0]),
        ("reflect", [0, 3], 0.0, vec![1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0]),
        ("edge", [1, 2], 0.0, vec![1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 4.0]),
        ("wrap", [2, 1], 0.0, vec![3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0]),
        ("constant", [1, 2], 7.5, vec![7.5, 1.0, 2.0, 3.0, 4.0, 7.5, 7.5]),
        ("constant", [-1, 1], 7.5, vec![2.0, 3.0, 4.0, 7.5]),
    ] {
        let pad = node("Pad", &["x", "p", "v"], "y", vec![text("mode", mode)]);
        let tensors = vec![whole("p", &[4], &[0, pads[0], 0, pads[1]]), floats("v", &[], &[value])];
        let padded = model(&[ANY, 4], vec![pad], tensors);
        assert_eq!(outputs(&padded, 1, &x), expected, "{mode}");
    }
    // On two axes the corners come from the corners.
    let pad = node("Pad", &["x", "p"], "y", vec![text("mode", "reflect")]);
    let padded = model(&[ANY, 1, 2, 2], vec![pad], vec![whole("p", &[8], &[0, 0, 1, 1, 0, 0, 0, 0])]);
    assert_eq!(outputs(&padded, 1, &x), [4.0, 3.0, 4.0, 2.0, 1.0, 2.0, 4.0, 3.0, 4.0]);
    let pad = node("Pad", &["x", "p"], "y", vec![text("mode", "reflect")]);
    let long = model(&[ANY, 4], vec![pad], vec![whole("p", &[4], &[0, 4, 0, 0])]);
    assert!(refusal(&long).contains("too short to be reflected so far"));
}
