//! Values in other places: transposes, slices, pads, means, repetitions, shapes.

use super::case::Case;
use super::check::check;
use super::numbers::{build, coordinates, get};
use crate::array::Array;
use crate::operation::{Broadcast, Mean, Operation, Pad, PadMode, Slice, Transpose};

#[test]
fn transposes() {
    for (shape, axes) in [
        (vec![3], vec![0]),
        (vec![2, 3], vec![1, 0]),
        (vec![2, 3, 4], vec![2, 0, 1]),
        (vec![2, 3, 4], vec![0, 2, 1]),
        (vec![2, 3, 4], vec![1, 0, 2]),
        (vec![2, 1, 3, 4], vec![3, 1, 0, 2]),
        (vec![2, 3, 2, 3], vec![1, 2, 3, 0]),
    ] {
        let order = axes.clone();
        check(&Case::new(Operation::Transpose(Transpose { axes }), &[&shape], move |x, _| {
            let shape: Vec<usize> = order.iter().map(|&a| x[0].shape()[a]).collect();
            build(&shape, |at| {
                let from: Vec<usize> =
                    (0..at.len()).map(|axis| at[order.iter().position(|&a| a == axis).unwrap()]).collect();
                get(&x[0], &from)
            })
        }));
    }
}

#[test]
fn slices() {
    for (shape, axis, start, step, length) in [
        (vec![6], 0, 1, 1, 3),
        (vec![6], 0, 5, -1, 6),
        (vec![6], 0, 4, -2, 3),
        (vec![2, 7, 3], 1, 0, 3, 3),
        (vec![2, 7, 3], 0, 1, 1, 1),
        (vec![2, 7, 3], 2, 2, -1, 3),
    ] {
        let slice = Operation::Slice(Slice { axis, start, step, length });
        check(&Case::new(slice, &[&shape], move |x, _| {
            let mut shape = x[0].shape().to_vec();
            shape[axis] = length;
            build(&shape, |at| {
                let mut at = at.to_vec();
                at[axis] = (start as isize + step * at[axis] as isize) as usize;
                get(&x[0], &at)
            })
        }));
    }
}

#[test]
fn pads() {
    for (shape, before, after) in [
        (vec![3], vec![2], vec![1]),
        (vec![2, 3], vec![0, 1], vec![2, 0]),
        (vec![2, 2, 2], vec![1, 0, 2], vec![0, 0, 1]),
    ] {
        let (b, a) = (before.clone(), after.clone());
        check(&Case::new(Operation::Pad(Pad::zeros(before, after)), &[&shape], move |x, _| {
            let s = x[0].shape();
            let shape: Vec<usize> = (0..s.len()).map(|i| b[i] + s[i] + a[i]).collect();
            build(&shape, |at| {
                let inside = (0..s.len()).all(|i| at[i] >= b[i] && at[i] - b[i] < s[i]);
                if inside { get(&x[0], &(0..s.len()).map(|i| at[i] - b[i]).collect::<Vec<_>>()) } else { 0.0 }
            })
        }));
    }
}

/// A constant, and the values of the example itself.
#[test]
fn other_pads() {
    for (shape, before, after) in [
        (vec![4], vec![3], vec![2]),
        (vec![2, 3], vec![0, 2], vec![0, 1]),
        (vec![3, 2, 4], vec![1, 0, 2], vec![2, 1, 0]),
    ] {
        for (mode, value) in
            [(PadMode::Constant, -1.5), (PadMode::Reflect, 0.0), (PadMode::Edge, 0.0), (PadMode::Wrap, 0.0)]
        {
            let (b, a) = (before.clone(), after.clone());
            let pad = Pad { mode, value, ..Pad::zeros(before.clone(), after.clone()) };
            check(&Case::new(Operation::Pad(pad), &[&shape], move |x, _| {
                let s = x[0].shape();
                let shape: Vec<usize> = (0..s.len()).map(|i| b[i] + s[i] + a[i]).collect();
                // Walks to the place step by step, turning round at the ends or starting again at the other one.
                let walk = |axis: usize, to: usize| -> Option<usize> {
                    let (length, mut steps) = (s[axis], to as isize - b[axis] as isize);
                    let (mut at, mut direction) = (0, steps.signum());
                    while steps != 0 {
                        steps -= steps.signum();
                        let next = at + direction;
                        at = match mode {
                            _ if (0..length as isize).contains(&next) => next,
                            PadMode::Constant => return None,
                            PadMode::Edge => at,
                            PadMode::Wrap => {
                                if next < 0 {
                                    length as isize - 1
                                } else {
                                    0
                                }
                            }
                            PadMode::Reflect => {
                                direction = -direction;
                                at + direction
                            }
                        };
                    }
                    Some(at as usize)
                };
                build(&shape, |at| {
                    let from: Option<Vec<usize>> = (0..s.len()).map(|i| walk(i, at[i])).collect();
                    from.map_or(value, |from| get(&x[0], &from))
                })
            }));
        }
    }
}

#[test]
fn means() {
    for (shape, axes) in [
        (vec![5], vec![0]),
        (vec![3, 4], vec![0]),
        (vec![3, 4], vec![1]),
        (vec![3, 4], vec![1, 0]),
        (vec![2, 3, 4], vec![1, 2]),
        (vec![2, 3, 4], vec![0, 2]),
    ] {
        for keep in [false, true] {
            let over = axes.clone();
            check(&Case::new(Operation::Mean(Mean { axes: axes.clone(), keep }), &[&shape], move |x, _| {
                mean(&x[0], &over, keep)
            }));
        }
    }
}

fn mean(x: &Array<f64>, axes: &[usize], keep: bool) -> Array<f64> {
    let rest: Vec<usize> = (0..x.shape().len()).filter(|a| !axes.contains(a)).collect();
    let dropped: Vec<usize> = rest.iter().map(|&a| x.shape()[a]).collect();
    let found = build(&dropped, |at| {
        let members: Vec<f64> = coordinates(x.shape())
            .iter()
            .filter(|from| rest.iter().zip(at).all(|(&a, &i)| from[a] == i))
            .map(|from| get(x, from))
            .collect();
        members.iter().sum::<f64>() / members.len() as f64
    });
    let kept: Vec<usize> =
        x.shape().iter().enumerate().map(|(a, &s)| if axes.contains(&a) { 1 } else { s }).collect();
    if keep { found.reshaped(kept) } else { found }
}

#[test]
fn broadcasts() {
    for (shape, target) in [
        (vec![1], vec![4]),
        (vec![3], vec![2, 3]),
        (vec![3, 1], vec![3, 4]),
        (vec![1, 3, 1], vec![2, 3, 2]),
        (vec![], vec![2, 2]),
        (vec![2, 3], vec![2, 3]),
    ] {
        let operation = Operation::Broadcast(Broadcast { shape: target.clone() });
        check(&Case::new(operation, &[&shape], move |x, _| {
            let s = x[0].shape();
            build(&target, |at| {
                let at = &at[at.len() - s.len()..];
                get(&x[0], &at.iter().zip(s).map(|(&i, &s)| if s == 1 { 0 } else { i }).collect::<Vec<_>>())
            })
        }));
    }
}

#[test]
fn shapes() {
    for (shape, target) in
        [(vec![6], vec![2, 3]), (vec![2, 3], vec![6]), (vec![2, 2, 3], vec![3, 4]), (vec![1], vec![])]
    {
        let operation = Operation::Reshape(target.clone());
        check(&Case::new(operation, &[&shape], move |x, _| {
            Array::new(target.clone(), x[0].values().to_vec())
        }));
    }
}
