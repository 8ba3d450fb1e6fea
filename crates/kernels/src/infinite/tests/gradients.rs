//! Pullbacks against finite differences, and at coinciding points against the derivatives of the diagonal.

use super::*;
use crate::{Adjoints, Kernel, Pair, Request, cross, diagonal, gram, pullback, pullback_diagonal};
use posterior_optim::{Parameters, check};

/// Every activation at depths 1 to 3, with and without read-out, and a mixed network.
fn cases(dimension: usize) -> Vec<InfiniteNetwork> {
    let mut out = Vec::new();
    for activation in ACTIVATIONS {
        for depth in 1..=3 {
            for readout in 0..2 {
                out.push(network(&vec![activation; depth], &scales(depth + readout), dimension));
            }
        }
    }
    out.push(network(&[Activation::Sine, Activation::Relu, Activation::Erf], &scales(4), dimension));
    out
}

fn flat(m: &Mat<f64>) -> Vec<f64> {
    (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect()
}

fn pairing(k: &Mat<f64>, weights: &Mat<f64>) -> f64 {
    (0..k.ncols()).map(|j| (0..k.nrows()).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
}

fn in_parameters(kernel: &InfiniteNetwork, mut value: impl FnMut(&InfiniteNetwork) -> f64) -> Vec<f64> {
    let mut moved = kernel.clone();
    check::gradient(
        |values| {
            moved.set_values(values);
            value(&moved)
        },
        &kernel.values(),
    )
}

#[test]
fn pullbacks_equal_finite_differences() {
    // On both sides of where inner products become a matrix product.
    for dimension in [3, 35] {
        let (x, z) = (normal(5, dimension, 11), normal(4, dimension, 12));
        let weights = Mat::from_fn(5, 4, |i, j| ((3 * i + 5 * j) as f64).sin());
        let at = |values: &[f64], rows| MatRef::from_column_major_slice(values, rows, dimension).to_owned();
        for kernel in cases(dimension) {
            let value = |kernel: &InfiniteNetwork, x: &Mat<f64>, z: &Mat<f64>| {
                pairing(&cross(kernel, x.as_ref(), z.as_ref()), &weights)
            };
            let found = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
            let numeric = in_parameters(&kernel, |moved| value(moved, &x, &z));
            check::assert_close(&found.parameters, &numeric, 1e-8, 1e-9);
            let numeric = check::gradient(|v| value(&kernel, &at(v, 5), &z), &flat(&x));
            check::assert_close(&flat(&found.x.unwrap()), &numeric, 1e-8, 1e-9);
            let numeric = check::gradient(|v| value(&kernel, &x, &at(v, 4)), &flat(&z));
            check::assert_close(&flat(&found.z.unwrap()), &numeric, 1e-8, 1e-9);
        }
    }
}

#[test]
fn a_pullback_returns_the_sum_of_adjoint_times_kernel_whatever_is_asked_for() {
    let x = normal(6, 3, 13);
    let weights = Mat::from_fn(6, 6, |i, j| ((5 * i + j) as f64).cos());
    for kernel in cases(3) {
        let expected = pairing(&gram(&kernel, x.as_ref()), &weights);
        for request in [Request::ALL, Request::PARAMETERS, Request { parameters: false, x: true, z: false }] {
            let mut adjoints = Adjoints::zeros(request, Kernel::<f64>::parameter_count(&kernel), 6, 6, 3);
            let pair = Pair { x: x.as_ref(), z: x.as_ref(), same: Some((0, 0)) };
            let total = kernel.pullback_tile(pair, weights.as_ref(), &mut adjoints);
            assert!((total - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{kernel:?}");
        }
    }
}

/// The derivative of `k(x, x)`, by finite differences of the diagonal: half of it for either argument.
#[test]
fn coinciding_points_have_the_gradients_of_the_diagonal() {
    for dimension in [3, 35] {
        let x = normal(1, dimension, 14);
        let one = Mat::from_fn(1, 1, |_, _| 1.0);
        for kernel in cases(dimension) {
            let own = |kernel: &InfiniteNetwork, x: MatRef<'_, f64>| diagonal(kernel, x)[0];
            let numeric = in_parameters(&kernel, |moved| own(moved, x.as_ref()));
            let toward = check::gradient(
                |v| own(&kernel, MatRef::from_column_major_slice(v, 1, dimension)),
                &flat(&x),
            );
            let half: Vec<f64> = toward.iter().map(|v| 0.5 * v).collect();
            // As one observation, and as two with equal coordinates; the latter at 35 columns by a matrix product, whose roundings are taken for distances: of 1e-16
            // in a cosine, 1e-8 in an angle.
            for (same, tolerance) in [(Some((7, 7)), 1e-9), (None, if dimension == 35 { 1e-7 } else { 1e-9 })]
            {
                let pair = Pair { x: x.as_ref(), z: x.as_ref(), same };
                let mut found =
                    Adjoints::zeros(Request::ALL, Kernel::<f64>::parameter_count(&kernel), 1, 1, dimension);
                kernel.pullback_tile(pair, one.as_ref(), &mut found);
                check::assert_close(&found.parameters, &numeric, tolerance, tolerance);
                check::assert_close(&flat(&found.x.unwrap()), &half, tolerance, tolerance);
                check::assert_close(&flat(&found.z.unwrap()), &half, tolerance, tolerance);
            }
            let found = pullback_diagonal(&kernel, x.as_ref(), &[1.0], Request::ALL);
            check::assert_close(&found.parameters, &numeric, 1e-9, 1e-9);
            check::assert_close(&flat(&found.x.unwrap()), &toward, 1e-9, 1e-9);
            let mut found = vec![0.0; Kernel::<f64>::parameter_count(&kernel)];
            kernel.pullback_values_at(x.as_ref(), &[1.0], &mut found);
            check::assert_close(&found, &numeric, 1e-9, 1e-9);
        }
    }
}

#[test]
fn single_precision_pulls_back_as_double_does() {
    let (x, z) = (normal(6, 3, 15), normal(5, 3, 16));
    let single = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32);
    let double = |m: &Mat<f32>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| f64::from(m[(i, j)]));
    let (x, z) = (single(&x), single(&z));
    let weights = Mat::from_fn(6, 5, |i, j| ((3 * i + 5 * j) as f32).sin());
    for kernel in cases(3) {
        let found = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        let (x, z, weights) = (double(&x), double(&z), double(&weights));
        let exact = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        check::assert_close(&found.parameters, &exact.parameters, 1e-5, 1e-5);
        check::assert_close(&flat(&double(&found.x.unwrap())), &flat(&exact.x.unwrap()), 1e-5, 1e-5);
        check::assert_close(&flat(&double(&found.z.unwrap())), &flat(&exact.z.unwrap()), 1e-5, 1e-5);
    }
}
