//! Convolutions and their transposes, by the definition in any number of dimensions.

use super::case::Case;
use super::check::check;
use super::linear::same_gradients;
use super::numbers::{build, coordinates, get};
use crate::array::Array;
use crate::operation::{Convolution, Mode, Operation};

fn list(list: &[usize], axes: usize, default: usize) -> Vec<usize> {
    if list.is_empty() { vec![default; axes] } else { list.to_vec() }
}

fn channels_first(channel: usize, at: &[usize]) -> Vec<usize> {
    [&[channel], at].concat()
}

/// `y[o, t] = b[o] + sum_{c, k} w[o, c, k] x[group channels c, t s + k d - p]`.
fn correlation(config: &Convolution, x: &Array<f64>, p: &[Array<f64>]) -> Array<f64> {
    let (size, axes) = (x.shape()[1..].to_vec(), x.shape().len() - 1);
    let (stride, dilation) = (list(&config.stride, axes, 1), list(&config.dilation, axes, 1));
    let before = list(&config.padding, axes, 0);
    let after = if config.padding_after.is_empty() { before.clone() } else { config.padding_after.clone() };
    let target: Vec<usize> = (0..axes)
        .map(|i| (size[i] + before[i] + after[i] - dilation[i] * (config.kernel[i] - 1) - 1) / stride[i] + 1)
        .collect();
    let (cin, cout) = (x.shape()[0] / config.groups, config.outputs / config.groups);
    build(&channels_first(config.outputs, &target), |at| {
        let (o, t) = (at[0], &at[1..]);
        let mut sum = if config.bias { get(&p[1], &[o]) } else { 0.0 };
        for c in 0..cin {
            for k in coordinates(&config.kernel) {
                let from: Vec<isize> = (0..axes)
                    .map(|i| (t[i] * stride[i] + k[i] * dilation[i]) as isize - before[i] as isize)
                    .collect();
                if (0..axes).all(|i| from[i] >= 0 && from[i] < size[i] as isize) {
                    let from: Vec<usize> = from.iter().map(|&v| v as usize).collect();
                    sum += get(&p[0], &[&[o, c], &k[..]].concat())
                        * get(x, &channels_first(o / cout * cin + c, &from));
                }
            }
        }
        sum
    })
}

/// Every input value is spread: `y[group outputs o, t s + k d - p] += w[c, o, k] x[c, t]`.
fn spread(config: &Convolution, x: &Array<f64>, p: &[Array<f64>]) -> Array<f64> {
    let (size, axes) = (x.shape()[1..].to_vec(), x.shape().len() - 1);
    let (stride, dilation) = (list(&config.stride, axes, 1), list(&config.dilation, axes, 1));
    let (before, extra) = (list(&config.padding, axes, 0), list(&config.output_padding, axes, 0));
    let after = if config.padding_after.is_empty() { before.clone() } else { config.padding_after.clone() };
    let target: Vec<usize> = (0..axes)
        .map(|i| {
            (size[i] - 1) * stride[i] + dilation[i] * (config.kernel[i] - 1) + 1 + extra[i]
                - before[i]
                - after[i]
        })
        .collect();
    let (cin, cout) = (x.shape()[0] / config.groups, config.outputs / config.groups);
    let shape = channels_first(config.outputs, &target);
    let mut out = build(&shape, |at| if config.bias { get(&p[1], &at[..1]) } else { 0.0 });
    for c in 0..x.shape()[0] {
        for t in coordinates(&size) {
            for o in 0..cout {
                for k in coordinates(&config.kernel) {
                    let to: Vec<isize> = (0..axes)
                        .map(|i| (t[i] * stride[i] + k[i] * dilation[i]) as isize - before[i] as isize)
                        .collect();
                    if (0..axes).all(|i| to[i] >= 0 && to[i] < target[i] as isize) {
                        let to: Vec<usize> = to.iter().map(|&v| v as usize).collect();
                        let at = channels_first(c / cin * cout + o, &to);
                        let flat = shape.iter().zip(&at).fold(0, |sum, (&length, &i)| sum * length + i);
                        out.values_mut()[flat] +=
                            get(&p[0], &[&[c, o], &k[..]].concat()) * get(x, &channels_first(c, &t));
                    }
                }
            }
        }
    }
    out
}

fn case(shape: &[usize], config: Convolution) -> Case {
    let copy = config.clone();
    Case::new(Operation::Convolution(config), &[shape], move |x, p| {
        if copy.transposed { spread(&copy, &x[0], p) } else { correlation(&copy, &x[0], p) }
    })
}

fn plain(outputs: usize, kernel: &[usize]) -> Convolution {
    Convolution { outputs, kernel: kernel.to_vec(), groups: 1, bias: true, ..Convolution::default() }
}

fn up(outputs: usize, kernel: &[usize], stride: &[usize]) -> Convolution {
    Convolution { transposed: true, stride: stride.to_vec(), ..plain(outputs, kernel) }
}

#[test]
fn one_dimension() {
    check(&case(&[2, 9], plain(3, &[3])));
    check(&case(&[2, 9], Convolution { stride: vec![2], padding: vec![2], bias: false, ..plain(5, &[4]) }));
    check(&case(
        &[4, 11],
        Convolution {
            stride: vec![3],
            padding: vec![1],
            padding_after: vec![4],
            dilation: vec![2],
            groups: 2,
            ..plain(6, &[3])
        },
    ));
    // Padding only behind (causal in reverse) and only before.
    check(&case(&[1, 6], Convolution { padding: vec![0], padding_after: vec![3], ..plain(1, &[4]) }));
    check(&case(&[1, 6], Convolution { padding: vec![3], padding_after: vec![0], ..plain(2, &[4]) }));
    // A stride larger than the kernel, and one larger than the input.
    check(&case(&[2, 10], Convolution { stride: vec![4], ..plain(2, &[2]) }));
    check(&case(&[2, 4], Convolution { stride: vec![50], ..plain(2, &[2]) }));
}

#[test]
fn two_dimensions() {
    check(&case(&[3, 5, 6], plain(2, &[3, 3])).examples(3));
    check(&case(&[3, 4, 4], plain(9, &[1, 1])));
    check(&case(&[2, 7, 6], Convolution { stride: vec![2, 3], padding: vec![1, 2], ..plain(5, &[3, 4]) }));
    check(&case(&[2, 8, 9], Convolution { dilation: vec![2, 3], padding: vec![2, 1], ..plain(2, &[3, 2]) }));
    check(&case(
        &[4, 5, 5],
        Convolution { padding: vec![1, 1], groups: 4, bias: false, ..plain(8, &[3, 3]) },
    ));
    check(&case(
        &[4, 6, 5],
        Convolution {
            stride: vec![2, 1],
            padding: vec![1, 0],
            padding_after: vec![0, 2],
            groups: 2,
            ..plain(2, &[2, 3])
        },
    ));
    check(&case(&[1, 3, 3], plain(1, &[3, 3])).examples(1));
    // More padding than input.
    check(&case(&[1, 2, 2], Convolution { padding: vec![4, 3], stride: vec![3, 2], ..plain(2, &[2, 2]) }));
}

#[test]
fn three_dimensions() {
    check(&case(&[2, 3, 4, 4], plain(2, &[2, 3, 2])));
    check(&case(
        &[2, 4, 3, 5],
        Convolution {
            stride: vec![2, 1, 2],
            padding: vec![1, 1, 0],
            dilation: vec![1, 1, 2],
            groups: 2,
            ..plain(4, &[2, 3, 2])
        },
    ));
}

#[test]
fn transposed() {
    check(&case(&[3, 4], up(2, &[3], &[2])));
    check(&case(&[2, 3, 4], up(3, &[3, 3], &[1, 1])));
    check(&case(&[2, 3, 3], Convolution { padding: vec![1, 1], bias: false, ..up(3, &[3, 3], &[2, 2]) }));
    check(&case(
        &[2, 3, 2],
        Convolution { padding: vec![1, 0], output_padding: vec![1, 0], ..up(5, &[3, 2], &[2, 3]) },
    ));
    check(&case(
        &[4, 3, 2],
        Convolution {
            groups: 2,
            dilation: vec![2, 1],
            output_padding: vec![1, 1],
            ..up(6, &[2, 3], &[2, 2])
        },
    ));
    check(&case(&[2, 2, 3, 2], Convolution { padding: vec![0, 1, 0], ..up(2, &[2, 3, 2], &[2, 1, 2]) }));
    // Strides beyond the kernel leave zeros (and the bias); the output may be extended beyond any tap.
    check(&case(&[1, 3], Convolution { output_padding: vec![2], ..up(2, &[2], &[4]) }));
    check(&case(&[1, 3], Convolution { output_padding: vec![3], ..up(1, &[2], &[2]) }));
    check(&case(&[2, 4], Convolution { padding: vec![2], padding_after: vec![1], ..up(1, &[4], &[2]) }));
    check(&case(&[2, 1], Convolution { padding: vec![1], ..up(2, &[4], &[100]) }));
}

#[test]
fn enough_channels_and_pixels_for_several_blocks() {
    check(&case(&[5, 9, 11], Convolution { padding: vec![1, 1], ..plain(13, &[3, 3]) }).examples(1));
    check(&case(&[9, 5, 7], Convolution { padding: vec![1, 1], ..up(5, &[3, 3], &[2, 2]) }).examples(1));
}

#[test]
fn factors_make_the_gradient() {
    for width in [1, 3] {
        let config = Convolution { stride: vec![2, 1], padding: vec![1, 1], ..plain(3, &[3, 2]) };
        same_gradients(&case(&[2, 5, 4], config).point(Mode::Evaluation), width, &[3, 2, 3, 2]);
        let config =
            Convolution { padding: vec![1, 0], output_padding: vec![0, 1], ..up(3, &[3, 2], &[2, 3]) };
        same_gradients(&case(&[2, 3, 4], config).point(Mode::Evaluation), width, &[2, 3, 3, 2]);
    }
    // Groups have no single outer product.
    let config = Convolution { groups: 2, ..plain(4, &[3]) };
    let point = case(&[2, 5], config).point(Mode::Evaluation);
    assert!(point.at(|layer, at| layer.factors(at, 0, &point.output).is_none()));
    assert!(point.at(|layer, at| layer.factors(at, 1, &point.output).is_none()));
}
