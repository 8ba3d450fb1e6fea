//! The kernel of counts against its definition, in all its representations.

use super::*;
use crate::features::{FeatureSettings, RandomFeatures};
use crate::matrix::KernelMatrix;
use crate::{Columns, Kernel, KernelExpression, Request, cross, gram, pullback};
use faer::{Mat, MatRef};
use posterior_linalg::operator::{LinearOperator, RowAccess};
use posterior_linalg::random::Streams;
use posterior_linalg::sparse::SparseRows;
use posterior_optim::check::{assert_close, gradient};
use rand::RngExt;
use std::sync::Arc;

/// Counts of which three quarters are zero, and a row of zeros.
fn counts(n: usize, d: usize, seed: u64, most: u32) -> Mat<f64> {
    let mut rng = Streams::new(seed).stream("counts");
    Mat::from_fn(n, d, |i, _| {
        let value = if rng.random::<f64>() < 0.25 { f64::from(rng.random_range(1..=most)) } else { 0.0 };
        if i == 3 { 0.0 } else { value }
    })
}

fn naive(x: &Mat<f64>, z: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(x.nrows(), z.nrows(), |i, j| {
        let pairs = (0..x.ncols()).map(|d| (x[(i, d)], z[(j, d)]));
        let (least, most) = pairs.fold((0.0, 0.0), |(l, m), (a, b)| (l + f64::min(a, b), m + f64::max(a, b)));
        if most == 0.0 { 1.0 } else { least / most }
    })
}

#[test]
fn dense_sparse_and_binary_agree_with_the_definition() {
    let (x, z) = (counts(150, 90, 1, 6), counts(40, 90, 2, 6));
    let (square, across) = (naive(&x, &x), naive(&z, &x));
    let kernel = Tanimoto::new(Columns::all(90));
    // Sums of small whole numbers are exact; one division rounds.
    assert!((cross(&kernel, z.as_ref(), x.as_ref()) - &across).norm_max() < 1e-15);
    let v = Mat::from_fn(150, 3, |i, j| ((i + 2 * j) as f64).sin());
    let chosen = [7, 3, 149, 7];
    let check = |matrix: &dyn RowAccess<f64>,
                 cross: &dyn LinearOperator<f64>,
                 square: &Mat<f64>,
                 across: &Mat<f64>| {
        assert!((matrix.to_dense() - square).norm_max() < 1e-14);
        let mut rows = Mat::zeros(4, 3);
        matrix.apply_rows(&chosen, v.as_ref(), rows.as_mut());
        let expected = square * &v;
        for (i, &row) in chosen.iter().enumerate() {
            (0..3).for_each(|c| assert!((rows[(i, c)] - expected[(row, c)]).abs() < 1e-12));
        }
        let mut principal = Mat::zeros(3, 3);
        matrix.principal_into(&chosen[..3], principal.as_mut());
        let expected = Mat::from_fn(3, 3, |i, j| square[(chosen[i], chosen[j])]);
        assert!((principal - expected).norm_max() < 1e-14);
        assert_eq!(matrix.diagonal(), (0..150).map(|i| square[(i, i)]).collect::<Vec<_>>());
        assert!((cross.multiply(v.as_ref()) - across * &v).norm_max() < 1e-12);
        let u = v.subrows(0, 40);
        assert!((cross.multiply_transpose(u) - across.transpose() * u).norm_max() < 1e-12);
    };
    let matrix = KernelMatrix::new(&kernel, x.as_ref());
    check(&matrix, &matrix.cross(z.as_ref()), &square, &across);
    let sparse = |m: &Mat<f64>| Arc::new(SparseCounts::from_dense(m.as_ref()).unwrap());
    let matrix = TanimotoMatrix::of_rows(sparse(&x), 2.0);
    let twice = |m: &Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| 2.0 * m[(i, j)]);
    check(&matrix, &matrix.cross(sparse(&z)), &twice(&square), &twice(&across));
    // Beyond the dimensions that are spread out: the same counts, far apart.
    let wide = |m: &Mat<f64>| {
        let rows = SparseRows::from_dense(m.as_ref()).unwrap();
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..rows.rows() {
            indices.extend(rows.row(i).0.iter().map(|c| c * 1000));
            values.extend_from_slice(rows.row(i).1);
            offsets.push(values.len());
        }
        Arc::new(SparseCounts::new(SparseRows::new(90_000, offsets, indices, values).unwrap()).unwrap())
    };
    let matrix = TanimotoMatrix::of_rows(wide(&x), 1.0);
    check(&matrix, &matrix.cross(wide(&z)), &square, &across);
}

#[test]
fn two_thousand_sparse_rows_equal_brute_force() {
    let x = counts(2000, 64, 3, 4);
    let rows = SparseCounts::from_dense(x.as_ref()).unwrap();
    let matrix = TanimotoMatrix::of_rows(Arc::new(rows), 1.0);
    let v = Mat::from_fn(2000, 1, |i, _| (i as f64).cos());
    let exact = naive(&x, &x);
    let mut columns = Mat::zeros(2000, 2000);
    matrix.columns_into(&(0..2000).collect::<Vec<_>>(), columns.as_mut());
    // Not one bit differs: sums of whole numbers, one division.
    assert!(columns == exact);
    assert!((matrix.multiply(v.as_ref()) - &exact * &v).norm_max() < 1e-10);
}

#[test]
fn gradients_are_finite_differences_and_the_text_form_knows_it() {
    // Coordinates at least 0.05 apart, many times the differences' step: no minimum changes its mind.
    let positive = |first: usize, n| {
        Mat::<f64>::from_fn(n, 3, |i, d| 0.1 + 0.05 * ((7 * (first + i) + 3 * d) % 11) as f64)
    };
    let (x, z) = (positive(0, 5), positive(5, 4));
    let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
    let kernel = "tanimoto(a, c, variance=1.5) + se"
        .parse::<KernelExpression>()
        .unwrap()
        .build::<f64>(&names)
        .unwrap();
    assert_eq!(kernel.parameter_count(), 3);
    let weights = Mat::from_fn(5, 4, |i, j| ((i + 3 * j) as f64).sin());
    let value = |x: MatRef<'_, f64>, z: MatRef<'_, f64>| {
        let k = cross(&*kernel, x, z);
        (0..4).map(|j| (0..5).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum()
    };
    let flat = |m: &Mat<f64>| (0..3).flat_map(|d| m.col_as_slice(d).to_vec()).collect::<Vec<_>>();
    let got = pullback(&*kernel, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
    let in_x = gradient(|p| value(MatRef::from_column_major_slice(p, 5, 3), z.as_ref()), &flat(&x));
    let in_z = gradient(|p| value(x.as_ref(), MatRef::from_column_major_slice(p, 4, 3)), &flat(&z));
    assert_close(&flat(&got.x.unwrap()), &in_x, 1e-6, 1e-7);
    assert_close(&flat(&got.z.unwrap()), &in_z, 1e-6, 1e-7);
    let plain = Tanimoto::new(Columns::some(vec![0, 2]));
    let sum = pullback(&plain, x.as_ref(), z.as_ref(), weights.as_ref(), Request::ALL);
    assert!(sum.parameters.is_empty());
    assert_eq!("tanimoto".parse::<KernelExpression>().unwrap().to_string(), "tanimoto");
    assert!("tanimoto(ard)".parse::<KernelExpression>().is_err());
}

#[test]
fn what_is_no_count_shows() {
    let mut x = counts(5, 4, 5, 3);
    x[(2, 1)] = -1.0;
    let kernel = Tanimoto::new(Columns::all(4));
    let k = gram(&kernel, x.as_ref());
    assert!(k[(2, 0)].is_nan() && k[(2, 2)].is_nan() && k[(1, 0)].is_finite() && k[(3, 3)] == 1.0);
    let mut diagonal = vec![0.0; 5];
    kernel.diagonal(x.as_ref(), &mut diagonal);
    assert!(diagonal[2].is_nan() && diagonal[3] == 1.0);
    let error = SparseCounts::from_dense(x.as_ref()).unwrap_err();
    assert_eq!(error, CountError::NotACount { row: 2, column: 1, value: -1.0 });
    assert!(Hashes::new(1, 4, Streams::new(0)).hash([(0, f64::NAN)].into_iter()).is_none());
}

#[test]
fn hashes_agree_as_often_as_the_kernel_says() {
    const COUNT: usize = 100_000;
    let x = counts(6, 12, 6, 5);
    let exact = naive(&x, &x);
    let hashes = Hashes::new(12, COUNT, Streams::new(7));
    let all: Vec<_> = (0..6).map(|i| hashes.hash((0..12).map(|d| (d, x[(i, d)]))).unwrap()).collect();
    for i in 0..6 {
        for j in 0..=i {
            let agree = all[i].iter().zip(&all[j]).filter(|(a, b)| a == b).count() as f64 / COUNT as f64;
            let k = exact[(i, j)];
            // Four standard errors of a proportion; 0 and 1 exactly.
            let error = 4.0 * (k * (1.0 - k) / COUNT as f64).sqrt();
            assert!((agree - k).abs() <= error, "({i}, {j}): {agree} {k} ± {error}");
        }
    }
}

#[test]
fn features_reproduce_the_kernel_with_its_variance() {
    const COUNT: usize = 100_000;
    let x = counts(5, 12, 8, 5);
    let exact = naive(&x, &x);
    let rows = SparseCounts::from_dense(x.as_ref()).unwrap();
    let map = SparseFeatures::new(12, COUNT, 2.5, Streams::new(9));
    let phi: Mat<f64> = map.evaluate(&rows);
    let names: Vec<String> = (0..12).map(|i| format!("c{i}")).collect();
    let kernel = "tanimoto(variance=2.5)".parse::<KernelExpression>().unwrap().build::<f64>(&names).unwrap();
    let how = FeatureSettings { count: COUNT, ..FeatureSettings::default() };
    let dense = RandomFeatures::new(&*kernel, 12, how, Streams::new(10)).unwrap().evaluate(x.as_ref());
    for phi in [&phi, &dense] {
        let product = phi * phi.transpose();
        for i in 0..5 {
            for j in 0..=i {
                let k = exact[(i, j)];
                // Each term is ±v/d with mean vk/d: variance v²(1 - k²)/d, four standard errors.
                let error = 4.0 * 2.5 * ((1.0 - k * k) / COUNT as f64).sqrt();
                assert!((product[(i, j)] - 2.5 * k).abs() <= error + 1e-9, "({i}, {j})");
            }
        }
    }
    let w = Mat::from_fn(COUNT, 2, |i, j| ((i + j) as f64).sin());
    assert!((map.multiply(&rows, w.as_ref()) - &phi * &w).norm_max() < 1e-9);
}
