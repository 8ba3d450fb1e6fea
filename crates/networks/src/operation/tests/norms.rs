//! Normalisation over segments, softmax, and batch norm with stored statistics.

use super::case::Case;
use super::check::check;
use super::numbers::{build, get};
use crate::array::Array;
use crate::operation::{BatchNorm, Mode, Normalise, Operation, Over, RmsNormalise};

/// `(x - mean) / sqrt(variance + epsilon)` where the coordinates with equal `key` share mean and variance.
fn standardised(x: &Array<f64>, epsilon: f64, key: impl Fn(&[usize]) -> Vec<usize>) -> Array<f64> {
    let all = super::numbers::coordinates(x.shape());
    build(x.shape(), |at| {
        let same: Vec<f64> =
            all.iter().filter(|other| key(other) == key(at)).map(|other| get(x, other)).collect();
        let mean = same.iter().sum::<f64>() / same.len() as f64;
        let variance = same.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / same.len() as f64;
        (get(x, at) - mean) / (variance + epsilon).sqrt()
    })
}

#[test]
fn layer_norms() {
    for (shape, axes, epsilon) in [
        (vec![6], 1, 1e-5),
        (vec![3, 5], 1, 1e-5),
        (vec![3, 5], 2, 0.1),
        (vec![2, 3, 4], 1, 1e-5),
        (vec![2, 3, 4], 2, 1e-3),
        (vec![2, 3, 19], 1, 1e-5),
    ] {
        let operation = Operation::Normalise(Normalise { over: Over::LastAxes(axes), epsilon });
        let leading = shape.len() - axes;
        check(&Case::new(operation, &[&shape], move |x, _| {
            standardised(&x[0], epsilon, |at| at[..leading].to_vec())
        }));
    }
}

#[test]
fn group_norms() {
    for (shape, groups) in
        [(vec![4, 3], 2), (vec![6, 2, 3], 1), (vec![6, 2, 3], 3), (vec![4, 2, 3], 4), (vec![6], 2)]
    {
        let operation = Operation::Normalise(Normalise { over: Over::Groups(groups), epsilon: 1e-3 });
        let each = shape[0] / groups;
        check(&Case::new(operation, &[&shape], move |x, _| {
            standardised(&x[0], 1e-3, |at| vec![at[0] / each])
        }));
    }
}

#[test]
fn rms_norms() {
    for (shape, over, epsilon) in [
        (vec![6], Over::LastAxes(1), 1e-5),
        (vec![3, 5], Over::LastAxes(1), 1e-2),
        (vec![2, 3, 4], Over::LastAxes(2), 1e-5),
        (vec![4, 2, 3], Over::Groups(2), 0.1),
    ] {
        let key = {
            let shape = shape.clone();
            move |at: &[usize]| match over {
                Over::LastAxes(axes) => at[..shape.len() - axes].to_vec(),
                Over::Groups(groups) => vec![at[0] / (shape[0] / groups)],
            }
        };
        let operation = Operation::RmsNormalise(RmsNormalise { over, epsilon });
        check(&Case::new(operation, &[&shape], move |x, _| {
            let all = super::numbers::coordinates(x[0].shape());
            build(x[0].shape(), |at| {
                let same = all.iter().filter(|other| key(other) == key(at));
                let squares: Vec<f64> = same.map(|other| get(&x[0], other).powi(2)).collect();
                get(&x[0], at) / (squares.iter().sum::<f64>() / squares.len() as f64 + epsilon).sqrt()
            })
        }));
    }
}

/// A segment of equal values has no direction to normalise: zeros and finite derivatives.
#[test]
fn constant_segments_stay_finite() {
    let case = Case::new(
        Operation::Normalise(Normalise { over: Over::LastAxes(1), epsilon: 1e-5 }),
        &[&[2, 4]],
        |x, _| x[0].clone(),
    );
    let point = case.point(Mode::Evaluation);
    let flat = Array::new(vec![1, 2, 4], vec![3.0; 8]);
    let there = point.with(vec![flat.clone()], vec![], 1);
    assert!(there.output.values().iter().all(|&v| v == 0.0));
    let t = super::numbers::random(vec![1, 2, 4], 1);
    let pushed = there.at(|layer, at| layer.jvp_input(at, 0, &t));
    for (i, v) in pushed.values().iter().enumerate() {
        let mean = t.values()[i / 4 * 4..][..4].iter().sum::<f64>() / 4.0;
        let expected = (t.values()[i] - mean) / 1e-5f64.sqrt();
        assert!((v - expected).abs() < 1e-9, "{v} {expected}");
    }
}

#[test]
fn softmax() {
    for shape in [vec![4], vec![1], vec![3, 5], vec![2, 2, 21]] {
        check(&Case::new(Operation::Softmax, &[&shape], |x, _| {
            let last = *x[0].shape().last().unwrap();
            build(x[0].shape(), |at| {
                let leading = &at[..at.len() - 1];
                let total: f64 = (0..last).map(|i| get(&x[0], &[leading, &[i]].concat()).exp()).sum();
                get(&x[0], at).exp() / total
            })
        }));
    }
}

/// Values whose exponentials overflow or vanish; sums of one and the ratios of the definition.
#[test]
fn softmax_of_large_values() {
    let case = Case::new(Operation::Softmax, &[&[3]], |x, _| x[0].clone());
    let point = case.point(Mode::Evaluation);
    for (x, expected) in [
        ([1e3, 1e3, -1e3], [0.5, 0.5, 0.0]),
        ([1e300, -1e300, 0.0], [1.0, 0.0, 0.0]),
        ([-1e4, -1e4, -1e4 + 2f64.ln()], [0.25, 0.25, 0.5]),
        ([5000.0, 5000.0 - 3f64.ln(), -5000.0], [0.75, 0.25, 0.0]),
    ] {
        let there = point.with(vec![Array::new(vec![1, 3], x.to_vec())], vec![], 1);
        for (a, b) in there.output.values().iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{x:?}: {a} {b}");
        }
        let t = Array::new(vec![1, 3], vec![1.0, -2.0, 0.5]);
        let pushed = there.at(|layer, at| layer.jvp_input(at, 0, &t));
        let second = there.at(|layer, at| layer.second_input(at, 0, &[Some(t.clone())], &t)).unwrap();
        assert!(pushed.values().iter().chain(second.values()).all(|v| v.is_finite()), "{x:?}");
    }
}

#[test]
fn batch_norm_with_stored_statistics() {
    for (shape, epsilon) in [(vec![4], 1e-5), (vec![3, 5], 1e-3), (vec![2, 3, 4], 1e-5), (vec![3, 1, 1], 0.5)]
    {
        let operation = Operation::BatchNorm(BatchNorm { epsilon });
        let case = Case::new(operation, &[&shape], move |x, p| {
            build(x[0].shape(), |at| {
                let of = |i: usize| get(&p[i], &at[..1]);
                (get(&x[0], at) - of(2)) / (of(3) + epsilon).sqrt() * of(0) + of(1)
            })
        });
        check(&case.examples(3));
    }
}
