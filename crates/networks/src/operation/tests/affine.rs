//! Biases, gains and learned constants; tables.

use super::case::{Case, Fill};
use super::check::check;
use super::numbers::{build, get};
use crate::array::Array;
use crate::operation::{Bias, Embedding, Gain, Learned, Mode, Operation};

/// The entry of a parameter that broadcasts against coordinate `at`, aligned at the last axis.
fn broadcast(p: &Array<f64>, at: &[usize]) -> f64 {
    let offset = at.len() - p.shape().len();
    let at: Vec<usize> =
        at[offset..].iter().zip(p.shape()).map(|(&i, &s)| if s == 1 { 0 } else { i }).collect();
    get(p, &at)
}

#[test]
fn biases_and_gains_broadcast() {
    for (example, shape) in [
        (vec![4], vec![4]),
        (vec![4], vec![1]),
        (vec![4], vec![]),
        (vec![3, 4], vec![4]),
        (vec![3, 4], vec![3, 1]),
        (vec![3, 4], vec![3, 4]),
        (vec![3, 4], vec![1, 1]),
        (vec![2, 3, 4], vec![2, 1, 1]),
        (vec![2, 3, 4], vec![3, 1]),
        (vec![2, 3, 4], vec![1, 3, 4]),
        (vec![2, 3, 4], vec![2, 3, 1]),
        (vec![2, 1, 4], vec![2, 1, 4]),
        (vec![2, 1, 4], vec![1, 4]),
        (vec![2, 3, 1], vec![3, 1]),
        (vec![], vec![]),
    ] {
        let bias = Operation::Bias(Bias { shape: shape.clone() });
        check(&Case::new(bias, &[&example], |x, p| {
            build(x[0].shape(), |at| get(&x[0], at) + broadcast(&p[0], at))
        }));
        let gain = Operation::Gain(Gain { shape });
        check(&Case::new(gain, &[&example], |x, p| {
            build(x[0].shape(), |at| get(&x[0], at) * broadcast(&p[0], at))
        }));
    }
}

#[test]
fn learned_constants() {
    for shape in [vec![3], vec![1, 4], vec![2, 3, 2], vec![]] {
        check(&Case::new(Operation::Learned(Learned { shape }), &[], |_, p| p[0].clone()).examples(3));
    }
}

#[test]
fn tables() {
    for (shape, entries, width) in [(vec![5], 4, 3), (vec![2, 3], 7, 1), (vec![1], 1, 2), (vec![], 3, 4)] {
        let case = Case::new(Operation::Embedding(Embedding { entries, width }), &[&shape], move |x, p| {
            build(&[x[0].shape(), &[width]].concat(), |at| {
                let (column, at) = at.split_last().unwrap();
                get(&p[0], &[get(&x[0], at) as usize, *column])
            })
        });
        let case = case.filled(Fill::Whole(entries)).examples(3);
        check(&case);
        let point = case.point(Mode::Evaluation);
        let zero = point.at(|layer, at| layer.vjp_input(at, 0, &point.output));
        assert!(zero.shape() == point.inputs[0].shape() && zero.values().iter().all(|&v| v == 0.0));
        let zero = point.at(|layer, at| layer.jvp_input(at, 0, &point.inputs[0]));
        assert!(zero.shape() == point.output.shape() && zero.values().iter().all(|&v| v == 0.0));
    }
}
