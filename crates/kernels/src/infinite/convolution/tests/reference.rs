//! Values: of the specification, and of covariances of all pairs of positions.

use super::*;
use crate::infinite::InfiniteNetwork;
use crate::{Kernel, cross, diagonal, gram};
use faer::Mat;

#[test]
fn values_are_those_of_the_specification() {
    let layers = [convolution([3, 3]), RELU, pool([2, 2], [2, 2]), DENSE, RELU];
    let kernel = network([1, 8, 8], &layers, true, &[(1.1, 0.2), (1.0, 0.1), (1.0, 1.0)]);
    let x = Mat::from_fn(2, 64, |s, p| {
        let (s, i, j) = ((s + 1) as f64, (p / 8) as f64, (p % 8) as f64);
        (0.7 * i + 0.3 * s * j).sin() + 0.1 * s
    });
    let k = gram(&kernel as &dyn Kernel<f64>, x.as_ref());
    let expected = [[1.1516857463, 1.1043475747], [1.1043475747, 1.1355006528]];
    for j in 0..2 {
        for i in 0..2 {
            assert!((k[(i, j)] - expected[i][j]).abs() <= 6e-11, "{i} {j}: {}", k[(i, j)]);
        }
    }
}

#[test]
fn tiles_are_covariances_of_all_pairs_of_positions() {
    for (kernel, scales) in networks() {
        let exact = |x: &[f64], z: &[f64]| recursion(kernel.shape(), kernel.layers(), &scales, x, z);
        let pixels = kernel.columns.count();
        // More images than stand side by side; and fewer on the first side, which then change places.
        for (n, m) in [(18, 3), (2, 5)] {
            let (x, z) = (normal(n, pixels, 1), normal(m, pixels, 2));
            let (k, own) =
                (cross::<f64>(&kernel, x.as_ref(), z.as_ref()), diagonal::<f64>(&kernel, x.as_ref()));
            for i in 0..n {
                let first = row(x.as_ref(), i);
                let expected = exact(&first, &first);
                assert!((own[i] - expected).abs() < 1e-13, "{kernel:?} {i}: {} {expected}", own[i]);
                for j in 0..m {
                    let expected = exact(&first, &row(z.as_ref(), j));
                    assert!(
                        (k[(i, j)] - expected).abs() < 1e-13,
                        "{kernel:?} {i} {j}: {} {expected}",
                        k[(i, j)]
                    );
                }
            }
        }
    }
}

#[test]
fn without_positions_it_is_the_kernel_of_fully_connected_layers() {
    let layers = [DENSE, RELU, DENSE, ERF];
    for readout in [true, false] {
        let scales = scales(2 + usize::from(readout));
        let (weights, biases): (Vec<f64>, Vec<f64>) = scales.iter().copied().unzip();
        let images = network([2, 3, 4], &layers, readout, &scales);
        let rows = InfiniteNetwork::new(
            "nngp",
            Columns::all(24),
            vec![Activation::Relu, Activation::Erf],
            readout,
            1.0,
            1.0,
        )
        .with_scales(weights, biases);
        let x = normal(20, 24, 3);
        let (found, expected) = (gram::<f64>(&images, x.as_ref()), gram::<f64>(&rows, x.as_ref()));
        for j in 0..20 {
            (0..20).for_each(|i| assert!((found[(i, j)] - expected[(i, j)]).abs() < 1e-14));
        }
    }
}

#[test]
fn an_image_of_one_position_is_a_row_of_channels() {
    let kernel = network([5, 1, 1], &[convolution([1, 1]), SINE], true, &[(1.3, 0.2), (0.9, 0.4)]);
    let rows = InfiniteNetwork::new("nngp", Columns::all(5), vec![Activation::Sine], true, 1.0, 1.0)
        .with_scales(vec![1.3, 0.9], vec![0.2, 0.4]);
    let x = normal(9, 5, 4);
    let (found, expected) = (gram::<f64>(&kernel, x.as_ref()), gram::<f64>(&rows, x.as_ref()));
    for j in 0..9 {
        (0..9).for_each(|i| assert!((found[(i, j)] - expected[(i, j)]).abs() < 1e-14));
    }
}

#[test]
fn a_network_looks_at_its_columns_in_their_order() {
    let x = normal(6, 10, 5);
    let chosen = vec![9, 2, 4, 0, 7, 3];
    let some = Mat::from_fn(6, 6, |i, j| x[(i, chosen[j])]);
    let of = |columns| {
        let layers = vec![convolution([2, 2]), RELU, pool([1, 2], [1, 1])];
        ConvolutionalNetwork::new("nngp-conv", columns, [1, 2, 3], layers, true, 1.2, 0.3).unwrap()
    };
    let expected = gram::<f64>(&of(Columns::all(6)), some.as_ref());
    assert_eq!(gram::<f64>(&of(Columns::some(chosen.clone())), x.as_ref()), expected);
}

/// The specification counts 26² x 49 for this architecture. Of offsets of 3 only every other position is needed, and the last pool leaves out a row and a column of
/// 11, of which the first one has 12 of 13 left then: 34 pairs of windows along each axis.
#[test]
fn only_pairs_that_a_later_pool_needs_are_computed() {
    let layers = |pools: bool| {
        let mut out = vec![convolution([3, 3]), RELU, pool([2, 2], [2, 2]), convolution([3, 3]), RELU];
        out.extend(pools.then_some(pool([2, 2], [2, 2])));
        out
    };
    let entries = |layers: Vec<ImageLayer>| network([1, 28, 28], &layers, true, &scales(3)).entries();
    assert_eq!(entries(layers(true)), (34 * 4usize).pow(2) + 20 * 20);
    // Offsets of one pool only: windows of 2 on 26 positions.
    assert_eq!(entries(layers(false)), 52 * 52 + 11 * 11);
    assert_eq!(entries(vec![convolution([3, 3]), RELU, convolution([3, 3]), RELU]), 26 * 26 + 24 * 24);
}
