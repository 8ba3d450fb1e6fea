//! Batch norm in training mode: derivatives go through the statistics of the batch, and all examples are one function.

use super::case::Case;
use super::numbers::{close, derivative, moved, random};
use crate::array::{Array, Sets};
use crate::operation::{BatchNorm, Mode, Operation};

fn case(shape: &[usize], examples: usize) -> Case {
    Case::new(Operation::BatchNorm(BatchNorm { epsilon: 1e-3 }), &[shape], |x, _| x[0].clone())
        .examples(examples)
}

/// Channel of each value of a batch, by its position in row-major order.
fn channel(shape: &[usize], position: usize) -> usize {
    let inner: usize = shape[1..].iter().product();
    position / inner % shape[0]
}

/// By the definition, with biased variances.
fn definition(shape: &[usize], x: &Array<f64>, weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let values = x.values();
    (0..values.len())
        .map(|i| {
            let c = channel(shape, i);
            let same: Vec<f64> =
                (0..values.len()).filter(|&j| channel(shape, j) == c).map(|j| values[j]).collect();
            let mean = same.iter().sum::<f64>() / same.len() as f64;
            let variance = same.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / same.len() as f64;
            (values[i] - mean) / (variance + 1e-3).sqrt() * weight[c] + bias[c]
        })
        .collect()
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn values_and_derivatives_through_the_statistics() {
    for (shape, examples) in
        [(vec![3], 5), (vec![2, 4], 3), (vec![3, 2, 3], 4), (vec![1], 2), (vec![2, 3, 2], 1)]
    {
        let point = case(&shape, examples).point(Mode::Training);
        let (x, p) = (&point.inputs[0], &point.parameters);
        let at = |x: &Array<f64>, p: &[Array<f64>]| definition(&shape, x, p[0].values(), p[1].values());
        close("value", point.output.values(), &at(x, p), 1e-12);
        let (t, c) = (random(x.shape().to_vec(), 1), random(x.shape().to_vec(), 2));
        let pushed = point.at(|layer, at| layer.jvp_input(at, 0, &t));
        close("jvp", pushed.values(), &derivative(|h| at(&moved(x, h, &t), p)), 1e-8);
        let pulled = point.at(|layer, at| layer.vjp_input(at, 0, &c));
        close("vjp", &[inner(pulled.values(), t.values())], &[inner(pushed.values(), c.values())], 1e-12);
        for slot in 0..2 {
            let t = random(vec![1, shape[0]], 3);
            let pushed = point.at(|layer, at| layer.jvp_parameter(at, slot, &t, Sets::One, examples));
            let expected = derivative(|h| {
                let mut p = p.clone();
                p[slot] = moved(&p[slot], h, &t);
                at(x, &p)
            });
            close("parameter", pushed.values(), &expected, 1e-8);
            let mut gradient = vec![0.0; shape[0]];
            point.at(|layer, at| layer.vjp_parameter(at, slot, &c, Sets::One, shape[0], &mut gradient));
            let expected = inner(pushed.values(), c.values());
            close("gradient", &[inner(&gradient, t.values())], &[expected], 1e-12);
        }
    }
}

/// The stored statistics are not read in training mode.
#[test]
fn stored_statistics_do_not_matter() {
    let point = case(&[3, 2], 4).point(Mode::Training);
    let mut parameters = point.parameters.clone();
    parameters[2].values_mut().fill(1e9);
    parameters[3].values_mut().fill(1e9);
    assert_eq!(point.with(point.inputs.clone(), parameters, 4).output, point.output);
}

/// Far from zero the two-pass variance keeps its digits.
#[test]
fn a_large_offset_does_not_spoil_the_variance() {
    let point = case(&[2, 3], 50).point(Mode::Training);
    let far = moved(&point.inputs[0], 1e6, &Array::new(vec![50, 2, 3], vec![1.0; 300]));
    let there = point.with(vec![far], point.parameters.clone(), 50);
    close("shifted", there.output.values(), point.output.values(), 1e-8);
}
