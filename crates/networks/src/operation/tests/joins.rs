//! Operations with several inputs: sums, products, joins; and scaling.

use super::case::Case;
use super::check::check;
use super::numbers::{build, get};
use crate::array::Array;
use crate::operation::{MatrixProduct, Operation};

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
