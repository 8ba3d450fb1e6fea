//! Operations with several inputs: sums, products, quotients, extremes, joins; scaling, and extremes over axes.

use super::case::{Case, Fill};
use super::check::check;
use super::numbers::{build, coordinates, get};
use crate::array::Array;
use crate::operation::{Extreme, MatrixProduct, Mode, Operation};

#[test]
fn sums_products_and_scaling() {
    for shape in [vec![5], vec![2, 3], vec![2, 1, 4], vec![]] {
        check(&Case::new(Operation::Add, &[&shape, &shape], |x, _| {
            build(x[0].shape(), |at| get(&x[0], at) + get(&x[1], at))
        }));
        check(&Case::new(Operation::Multiply, &[&shape, &shape], |x, _| {
            build(x[0].shape(), |at| get(&x[0], at) * get(&x[1], at))
        }));
        for factor in [-1.7, 0.0, 1.0] {
            check(&Case::new(Operation::Scale(factor), &[&shape], move |x, _| {
                build(x[0].shape(), |at| factor * get(&x[0], at))
            }));
        }
    }
}

/// Divisors away from zero; ties and NaN of the extremes.
#[test]
fn quotients_and_extremes_of_two() {
    for shape in [vec![5], vec![2, 3], vec![]] {
        let pair = |operation, f: fn(f64, f64) -> f64| {
            Case::new(operation, &[&shape, &shape], move |x, _| {
                build(x[0].shape(), |at| f(get(&x[0], at), get(&x[1], at)))
            })
        };
        check(&pair(Operation::Divide, |a, b| a / b).filled(Fill::Positive));
        check(&pair(Operation::Divide, |a, b| a / b).filled(Fill::Nonzero));
        check(&pair(Operation::Maximum, f64::max).examples(3));
        check(&pair(Operation::Minimum, f64::min).examples(3));
    }
    let case = Case::new(Operation::Maximum, &[&[3], &[3]], |x, _| x[0].clone());
    let point = case.point(Mode::Evaluation);
    let row = |values: [f64; 3]| Array::new(vec![1, 3], values.to_vec());
    let there = point.with(vec![row([1.0, f64::NAN, 2.0]), row([1.0, 0.0, f64::NAN])], vec![], 1);
    assert!(there.output.values()[0] == 1.0 && there.output.values()[1..].iter().all(|v| v.is_nan()));
    let pushed = |input| there.at(|l, at| l.jvp_input(at, input, &row([1.0; 3]))).values()[0];
    assert_eq!([pushed(0), pushed(1)], [1.0, 0.0], "of equal values the first one counts");
}

/// Values that are not chosen do not matter, whatever they are.
#[test]
fn choices() {
    for shape in [vec![5], vec![2, 3], vec![]] {
        let case = Case::new(Operation::Choose, &[&shape, &shape, &shape], |x, _| {
            build(x[0].shape(), |at| get(&x[if get(&x[0], at) > 0.0 { 1 } else { 2 }], at))
        });
        check(&case.filled(Fill::Nonzero).examples(3));
    }
    let point =
        Case::new(Operation::Choose, &[&[2], &[2], &[2]], |x, _| x[0].clone()).point(Mode::Evaluation);
    let row = |a: f64, b: f64| Array::new(vec![1, 2], vec![a, b]);
    let there = point.with(vec![row(1.0, 0.0), row(2.0, f64::NAN), row(f64::INFINITY, 3.0)], vec![], 1);
    assert_eq!(there.output.values(), [2.0, 3.0]);
}

/// Extremes over axes, kept and dropped; the first of equal values counts, NaN is not lost.
#[test]
fn extremes_over_axes() {
    for (shape, axes) in [
        (vec![5], vec![0]),
        (vec![3, 4], vec![0]),
        (vec![3, 4], vec![1]),
        (vec![2, 3, 4], vec![0, 2]),
        (vec![2, 3, 2], vec![2, 0, 1]),
    ] {
        for keep in [false, true] {
            for largest in [false, true] {
                let extreme = Extreme { axes: axes.clone(), keep };
                let operation =
                    if largest { Operation::Largest(extreme) } else { Operation::Smallest(extreme) };
                let over = axes.clone();
                let case = Case::new(operation, &[&shape], move |x, _| {
                    let shape = x[0].shape();
                    let rest: Vec<usize> = (0..shape.len()).filter(|a| !over.contains(a)).collect();
                    let kept: Vec<usize> =
                        (0..shape.len()).map(|a| if over.contains(&a) { 1 } else { shape[a] }).collect();
                    let dropped: Vec<usize> = rest.iter().map(|&a| shape[a]).collect();
                    let found = build(&dropped, |at| {
                        let all = coordinates(shape);
                        let members =
                            all.iter().filter(|from| rest.iter().zip(at).all(|(&a, &i)| from[a] == i));
                        let values = members.map(|from| get(&x[0], from));
                        match largest {
                            true => values.fold(f64::NEG_INFINITY, f64::max),
                            false => values.fold(f64::INFINITY, f64::min),
                        }
                    });
                    if keep { found.reshaped(kept) } else { found }
                });
                check(&case.filled(Fill::Distinct));
            }
        }
    }
    let operation = Operation::Smallest(Extreme { axes: vec![0], keep: false });
    let point = Case::new(operation, &[&[3]], |x, _| x[0].clone()).point(Mode::Evaluation);
    let there = |values: [f64; 3]| point.with(vec![Array::new(vec![1, 3], values.to_vec())], vec![], 1);
    assert!(there([1.0, f64::NAN, -1.0]).output.values()[0].is_nan());
    let tie = there([2.0, 2.0, 3.0]);
    let pulled = tie.at(|layer, at| layer.vjp_input(at, 0, &Array::new(vec![1], vec![1.0])));
    assert_eq!(pulled.values(), [1.0, 0.0, 0.0]);
}

fn joined(axis: usize, x: &[Array<f64>]) -> Array<f64> {
    let mut shape = x[0].shape().to_vec();
    shape[axis] = x.iter().map(|x| x.shape()[axis]).sum();
    build(&shape, |at| {
        let mut at = at.to_vec();
        for x in x {
            if at[axis] < x.shape()[axis] {
                return get(x, &at);
            }
            at[axis] -= x.shape()[axis];
        }
        unreachable!("inside one of the inputs")
    })
}

#[test]
fn concatenation_along_every_axis() {
    for axis in 0..3 {
        let shapes: Vec<Vec<usize>> = [1, 3, 2]
            .iter()
            .map(|&length| (0..3).map(|a| if a == axis { length } else { 2 }).collect())
            .collect();
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        check(&Case::new(Operation::Concatenate(axis), &shapes, move |x, _| joined(axis, x)).examples(3));
    }
    check(&Case::new(Operation::Concatenate(0), &[&[4]], |x, _| joined(0, x)));
    check(&Case::new(Operation::Concatenate(0), &[&[4], &[1]], |x, _| joined(0, x)));
}

#[test]
fn matrix_products_of_all_orders() {
    for (transpose_left, transpose_right) in [(false, false), (false, true), (true, false), (true, true)] {
        for batch in [vec![], vec![3], vec![2, 2]] {
            for [rows, inner, columns] in [[2, 3, 4], [1, 2, 1], [3, 1, 2]] {
                let left = if transpose_left { [inner, rows] } else { [rows, inner] };
                let right = if transpose_right { [columns, inner] } else { [inner, columns] };
                let (a, b) = ([&batch[..], &left].concat(), [&batch[..], &right].concat());
                let shape = [&batch[..], &[rows, columns]].concat();
                let operation = Operation::MatrixProduct(MatrixProduct { transpose_left, transpose_right });
                check(&Case::new(operation, &[&a, &b], move |x, _| {
                    build(&shape, |at| {
                        let (batch, last) = at.split_at(at.len() - 2);
                        let entry = |x: &Array<f64>, i: usize, j: usize, exchanged: bool| {
                            get(x, &[batch, &if exchanged { [j, i] } else { [i, j] }].concat())
                        };
                        (0..inner)
                            .map(|k| {
                                entry(&x[0], last[0], k, transpose_left)
                                    * entry(&x[1], k, last[1], transpose_right)
                            })
                            .sum()
                    })
                }));
            }
        }
    }
}
