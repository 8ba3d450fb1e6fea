//! Every operator against the matrix that it stands for, over random shapes and entries.

use super::*;
use crate::random::Streams;
use proptest::prelude::*;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

type Boxed = Box<dyn LinearOperator<f64>>;

fn random(rng: &mut ChaCha8Rng, rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| rng.random_range(-1.0..1.0))
}

fn brute_product(a: &Mat<f64>, b: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), b.ncols(), |i, j| (0..a.ncols()).map(|l| a[(i, l)] * b[(l, j)]).sum())
}

fn transpose(a: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(a.ncols(), a.nrows(), |i, j| a[(j, i)])
}

fn dense(a: &Mat<f64>) -> Dense<f64> {
    Dense::new(a.clone())
}

/// Every operator and composition, with the matrix it stands for.
fn registry(seed: u64, m: usize, n: usize, r: usize) -> Vec<(&'static str, Boxed, Mat<f64>)> {
    let mut rng = Streams::new(seed).stream("linalg/operator tests");
    let rng = &mut rng;
    let (a, b, c) = (random(rng, m, n), random(rng, m, n), random(rng, n, r));
    let product = || Product::new(dense(&a), dense(&c)).unwrap();
    vec![
        ("dense", Box::new(dense(&a)), a.clone()),
        ("shared", Box::new(Arc::new(dense(&a))), a.clone()),
        ("sum", Box::new(Sum::new(dense(&a), dense(&b)).unwrap()), &a + &b),
        ("product", Box::new(product()), brute_product(&a, &c)),
        ("transposed", Box::new(Transposed::new(dense(&a))), transpose(&a)),
        ("transposed product", Box::new(Transposed::new(product())), transpose(&brute_product(&a, &c))),
    ]
}

fn largest(a: &Mat<f64>) -> f64 {
    (0..a.ncols()).flat_map(|j| a.col(j).iter()).fold(0.0, |largest, value| value.abs().max(largest))
}

fn assert_close(name: &str, actual: &Mat<f64>, expected: &Mat<f64>) {
    assert_eq!(actual.shape(), expected.shape(), "{name}");
    let (error, scale) = (largest(&(actual - expected)), largest(expected));
    assert!(error <= 1e-12 * (1.0 + scale), "{name}: error {error:e} of {scale:e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn products_are_those_of_the_matrix(seed: u64, m in 1usize..6, n in 1usize..6, r in 1usize..5, k in 0usize..4) {
        for (name, operator, matrix) in registry(seed, m, n, r) {
            prop_assert_eq!(operator.shape(), matrix.shape(), "{}", name);
            let mut rng = Streams::new(seed).stream("linalg/operator inputs");
            let x = random(&mut rng, matrix.ncols(), k);
            let u = random(&mut rng, matrix.nrows(), k);
            // Old content, NaN included, must not survive.
            let mut out = Mat::full(matrix.nrows(), k, f64::NAN);
            operator.apply(x.as_ref(), out.as_mut());
            assert_close(name, &out, &brute_product(&matrix, &x));
            let mut back = Mat::full(matrix.ncols(), k, f64::NAN);
            operator.apply_transpose(u.as_ref(), back.as_mut());
            assert_close(name, &back, &brute_product(&transpose(&matrix), &u));
            assert_close(name, &operator.to_dense(), &matrix);
            for j in 0..k {
                // <A x, u> = <x, Aᵀ u>, and a block equals its vectors one at a time.
                let (forward, backward): (f64, f64) = (
                    (0..matrix.nrows()).map(|i| out[(i, j)] * u[(i, j)]).sum(),
                    (0..matrix.ncols()).map(|i| x[(i, j)] * back[(i, j)]).sum(),
                );
                let scale: f64 = (0..matrix.nrows()).map(|i| (out[(i, j)] * u[(i, j)]).abs()).sum();
                prop_assert!((forward - backward).abs() <= 1e-12 * (1.0 + scale), "{}: {} {}", name, forward, backward);
                let single = operator.multiply(x.subcols(j, 1));
                assert_close(name, &single, &out.subcols(j, 1).to_owned());
            }
        }
    }
}

#[test]
fn strided_and_empty_blocks_work() {
    for (name, operator, matrix) in registry(3, 4, 3, 2) {
        let x = random(&mut Streams::new(4).stream("linalg/strided"), 2, matrix.ncols());
        let mut out = Mat::zeros(2, matrix.nrows());
        operator.apply(x.transpose(), out.transpose_mut());
        assert_close(name, &transpose(&out), &brute_product(&matrix, &transpose(&x)));
    }
    for (m, n, r) in [(0, 2, 1), (2, 0, 1), (3, 2, 0), (0, 0, 0)] {
        for (name, operator, matrix) in registry(5, m, n, r) {
            let x = random(&mut Streams::new(6).stream("linalg/empty"), matrix.ncols(), 2);
            let mut out = Mat::full(matrix.nrows(), 2, f64::NAN);
            operator.apply(x.as_ref(), out.as_mut());
            assert_close(name, &out, &brute_product(&matrix, &x));
        }
    }
}

#[test]
fn wrong_shapes_are_refused_with_words() {
    let a = Mat::<f64>::zeros(2, 3);
    let error = Sum::new(dense(&a), dense(&transpose(&a))).unwrap_err().to_string();
    assert_eq!(error, "a sum needs operators of the same shape, but the parts are 2 x 3 and 3 x 2");
    assert!(Product::new(dense(&a), dense(&a)).is_err());
    for (name, operator, matrix) in registry(1, 2, 3, 1) {
        let wrong = Mat::<f64>::zeros(matrix.ncols() + 1, 1);
        let attempt = std::panic::AssertUnwindSafe(|| operator.multiply(wrong.as_ref()));
        let message = *std::panic::catch_unwind(attempt).unwrap_err().downcast::<String>().unwrap();
        assert!(
            message.contains("an operator of") && message.contains("but the input is"),
            "{name}: {message}"
        );
        let wrong = Mat::<f64>::zeros(matrix.nrows() + 1, 1);
        let attempt = std::panic::AssertUnwindSafe(|| operator.multiply_transpose(wrong.as_ref()));
        assert!(std::panic::catch_unwind(attempt).is_err(), "{name}");
    }
}

#[test]
fn single_precision_and_large_parallel_products_agree() {
    let mut rng = Streams::new(9).stream("linalg/large");
    let a = random(&mut rng, 300, 200);
    let x = random(&mut rng, 200, 40);
    assert_close("large", &dense(&a).multiply(x.as_ref()), &brute_product(&a, &x));
    let narrow = |a: &Mat<f64>| Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[(i, j)] as f32);
    let single = Dense::new(narrow(&a)).multiply(narrow(&x).as_ref());
    let wide = Mat::from_fn(300, 40, |i, j| f64::from(single[(i, j)]));
    // 200 terms below 1, each rounded to 2⁻²⁴: 200 · 2⁻²⁴ · √200 bounds a random walk with room.
    assert!(largest(&(wide - brute_product(&a, &x))) < 200.0 * 2f64.powi(-24) * 200f64.sqrt());
}
