//! Pullbacks against finite differences, and at coinciding images against the derivatives of the diagonal.

use super::*;
use crate::{
    Adjoints, Kernel, Pair, Request, cross, diagonal, gram, pullback, pullback_diagonal, pullback_gram,
};
use faer::{Mat, MatRef};
use posterior_optim::{Parameters, check};

fn flat(m: &Mat<f64>) -> Vec<f64> {
    (0..m.ncols()).flat_map(|j| m.col_as_slice(j).to_vec()).collect()
}

fn pairing(k: &Mat<f64>, weights: &Mat<f64>) -> f64 {
    (0..k.ncols()).map(|j| (0..k.nrows()).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
}

fn in_parameters(
    kernel: &ConvolutionalNetwork,
    mut value: impl FnMut(&ConvolutionalNetwork) -> f64,
) -> Vec<f64> {
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
    for (kernel, _) in networks() {
        let pixels = kernel.columns.count();
        let (x, z) = (normal(3, pixels, 11), normal(2, pixels, 12));
        let weights = Mat::from_fn(3, 2, |i, j| ((3 * i + 5 * j) as f64 + 1.0).sin());
        let at = |values: &[f64], rows| MatRef::from_column_major_slice(values, rows, pixels).to_owned();
        let value = |kernel: &ConvolutionalNetwork, x: &Mat<f64>, z: &Mat<f64>| {
            pairing(&cross(kernel, x.as_ref(), z.as_ref()), &weights)
        };
        let found = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        let numeric = in_parameters(&kernel, |moved| value(moved, &x, &z));
        check::assert_close(&found.parameters, &numeric, 1e-8, 1e-9);
        let numeric = check::gradient(|v| value(&kernel, &at(v, 3), &z), &flat(&x));
        check::assert_close(&flat(&found.x.unwrap()), &numeric, 1e-8, 1e-9);
        let numeric = check::gradient(|v| value(&kernel, &x, &at(v, 2)), &flat(&z));
        check::assert_close(&flat(&found.z.unwrap()), &numeric, 1e-8, 1e-9);
    }
}

/// More images than stand side by side, the last group not full, through the symmetric matrix and its diagonal.
#[test]
fn pullbacks_of_many_images_are_sums_of_those_of_pairs() {
    let layers = [convolution([2, 2]), RELU, pool([2, 2], [1, 1]), DENSE, ERF];
    let kernel = network([2, 4, 3], &layers, true, &scales(3));
    let (n, pixels) = (37, 24);
    let x = normal(n, pixels, 13);
    let weight = |i: usize, j: usize| ((i * j) as f64 + 0.3 * (i + j) as f64).sin();
    let found = pullback_gram(
        &kernel as &dyn Kernel<f64>,
        x.as_ref(),
        &|rows, columns, mut tile| {
            for j in 0..tile.ncols() {
                (0..tile.nrows()).for_each(|i| tile[(i, j)] = weight(rows.start + i, columns.start + j));
            }
        },
        Request::ALL,
    );
    let mut parameters = vec![0.0; 6];
    let mut toward = Mat::<f64>::zeros(n, pixels);
    for i in 0..n {
        for j in 0..n {
            let (a, b) = (x.subrows(i, 1), x.subrows(j, 1));
            let one = Mat::from_fn(1, 1, |_, _| weight(i, j));
            let part = pullback(&kernel, a, b, one.as_ref(), Request::ALL);
            parameters.iter_mut().zip(&part.parameters).for_each(|(p, v)| *p += v);
            for (row, part) in [(i, part.x.unwrap()), (j, part.z.unwrap())] {
                (0..pixels).for_each(|d| toward[(row, d)] += part[(0, d)]);
            }
        }
    }
    check::assert_close(&found.parameters, &parameters, 1e-11, 1e-11);
    check::assert_close(&flat(&found.x.unwrap()), &flat(&toward), 1e-11, 1e-11);
}

#[test]
fn a_pullback_returns_the_sum_of_adjoint_times_kernel_whatever_is_asked_for() {
    for (kernel, _) in networks() {
        let (pixels, parameters) = (kernel.columns.count(), kernel.values().len());
        let x = normal(4, pixels, 14);
        let weights = Mat::from_fn(4, 4, |i, j| ((5 * i + j) as f64).cos());
        let expected = pairing(&gram(&kernel, x.as_ref()), &weights);
        let pair = Pair { x: x.as_ref(), z: x.as_ref(), same: Some((0, 0)) };
        let mut all = Adjoints::zeros(Request::ALL, parameters, 4, 4, pixels);
        kernel.pullback_tile(pair, weights.as_ref(), &mut all);
        for request in [Request::ALL, Request::PARAMETERS, Request { parameters: false, x: true, z: false }] {
            let mut adjoints = Adjoints::zeros(request, parameters, 4, 4, pixels);
            let total = kernel.pullback_tile(pair, weights.as_ref(), &mut adjoints);
            assert!((total - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{kernel:?}");
            assert!(!request.parameters || adjoints.parameters == all.parameters);
            assert!(!request.x || adjoints.x == all.x);
        }
    }
}

/// The derivative of `k(x, x)`, by finite differences of the diagonal: half of it for either argument.
#[test]
fn coinciding_images_have_the_gradients_of_the_diagonal() {
    for (kernel, _) in networks() {
        let (pixels, parameters) = (kernel.columns.count(), kernel.values().len());
        let x = normal(1, pixels, 15);
        let own = |kernel: &ConvolutionalNetwork, x: MatRef<'_, f64>| diagonal(kernel, x)[0];
        let numeric = in_parameters(&kernel, |moved| own(moved, x.as_ref()));
        let toward =
            check::gradient(|v| own(&kernel, MatRef::from_column_major_slice(v, 1, pixels)), &flat(&x));
        let half: Vec<f64> = toward.iter().map(|v| 0.5 * v).collect();
        let one = Mat::from_fn(1, 1, |_, _| 1.0);
        let mut found = Adjoints::zeros(Request::ALL, parameters, 1, 1, pixels);
        kernel.pullback_tile(Pair { x: x.as_ref(), z: x.as_ref(), same: None }, one.as_ref(), &mut found);
        check::assert_close(&found.parameters, &numeric, 1e-8, 1e-9);
        check::assert_close(&flat(&found.x.unwrap()), &half, 1e-8, 1e-9);
        check::assert_close(&flat(&found.z.unwrap()), &half, 1e-8, 1e-9);
        let found = pullback_diagonal(&kernel, x.as_ref(), &[1.0], Request::ALL);
        check::assert_close(&found.parameters, &numeric, 1e-8, 1e-9);
        check::assert_close(&flat(&found.x.unwrap()), &toward, 1e-8, 1e-9);
    }
}

#[test]
fn adjoints_of_values_at_points_reach_the_parameters() {
    for (kernel, _) in networks() {
        let x = normal(19, kernel.columns.count(), 16);
        let weights: Vec<f64> = (0..19).map(|i| (i as f64).cos()).collect();
        let value = |kernel: &ConvolutionalNetwork| {
            diagonal(kernel, x.as_ref()).iter().zip(&weights).map(|(k, w)| k * w).sum::<f64>()
        };
        let mut found = vec![0.0; kernel.values().len()];
        kernel.pullback_values_at(x.as_ref(), &weights, &mut found);
        check::assert_close(&found, &in_parameters(&kernel, value), 1e-8, 1e-8);
    }
}

#[test]
fn single_precision_pulls_back_as_double_does() {
    let single = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] as f32);
    let double = |m: &Mat<f32>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| f64::from(m[(i, j)]));
    for (kernel, _) in networks() {
        let pixels = kernel.columns.count();
        let (x, z) = (single(&normal(6, pixels, 17)), single(&normal(5, pixels, 18)));
        let weights = Mat::from_fn(6, 5, |i, j| ((3 * i + 5 * j) as f32).sin());
        let found = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        let (x, z, weights) = (double(&x), double(&z), double(&weights));
        let exact = pullback(&kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
        check::assert_close(&found.parameters, &exact.parameters, 2e-5, 2e-5);
        check::assert_close(&flat(&double(&found.x.unwrap())), &flat(&exact.x.unwrap()), 2e-5, 2e-5);
        check::assert_close(&flat(&double(&found.z.unwrap())), &flat(&exact.z.unwrap()), 2e-5, 2e-5);
    }
}
