//! Products without a stored matrix against products with one.

use super::*;
use crate::tests::{TEXTS, build, points};
use crate::{cross, gram};
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, RowAccess};
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

fn block<T: Real>(n: usize, k: usize) -> Mat<T> {
    let mut rng = Streams::new(3).stream("kernels/block");
    Mat::from_fn(n, k, |_, _| T::from_f64(StandardNormal.sample(&mut rng)))
}

/// `|a - b|` within `tolerance` of the sizes of what was added up.
fn assert_near<T: Real>(text: &str, a: MatRef<'_, T>, b: MatRef<'_, T>, scale: f64, tolerance: f64) {
    assert_eq!(a.shape(), b.shape(), "{text}");
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let error = (a[(i, j)] - b[(i, j)]).to_f64().abs();
            assert!(error <= tolerance * scale, "{text} ({i}, {j}): {} {}", a[(i, j)], b[(i, j)]);
        }
    }
}

#[test]
fn every_kernel_multiplies_as_its_stored_matrix_does() {
    // Several blocks, tiles of unequal sizes, and vectors on both sides of where matrix products begin.
    let n = 530;
    let (x, new) = (points(n, 31), points(70, 32));
    let chosen: Vec<usize> = (0..150).map(|i| (i * 37) % n).chain([5, 5, n - 1]).collect();
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let exact = gram(&*kernel, x.as_ref());
        let largest = exact.norm_max();
        let scale = largest * n as f64;
        let lazy = KernelMatrix::new(&*kernel, x.as_ref());
        let kept = KernelMatrix::with_budget(&*kernel, x.as_ref(), 8 * n * n);
        assert!(!lazy.is_stored() && kept.is_stored() && kept.bytes() > 8 * n * n);
        assert!(!KernelMatrix::with_budget(&*kernel, x.as_ref(), 8 * n * n - 1).is_stored());
        for matrix in [&lazy, &kept] {
            for k in [2, 7] {
                let v = block::<f64>(n, k);
                let expected = &exact * &v;
                assert_near(text, matrix.multiply(v.as_ref()).as_ref(), expected.as_ref(), scale, 1e-14);
                let mut rows = Mat::from_fn(chosen.len(), k, |_, _| f64::NAN);
                matrix.apply_rows(&chosen, v.as_ref(), rows.as_mut());
                let expected = Mat::from_fn(chosen.len(), k, |i, j| expected[(chosen[i], j)]);
                assert_near(text, rows.as_ref(), expected.as_ref(), scale, 1e-14);
                let w = block::<f64>(chosen.len(), k);
                let mut columns = Mat::from_fn(n, k, |_, _| f64::NAN);
                matrix.apply_columns(&chosen, w.as_ref(), columns.as_mut());
                let gathered = Mat::from_fn(n, chosen.len(), |i, j| exact[(i, chosen[j])]);
                assert_near(text, columns.as_ref(), (&gathered * &w).as_ref(), scale, 1e-14);
                let mut written = Mat::from_fn(n, chosen.len(), |_, _| f64::NAN);
                matrix.columns_into(&chosen, written.as_mut());
                assert_near(text, written.as_ref(), gathered.as_ref(), largest, 1e-13);
                let across = matrix.cross(new.as_ref());
                let expected = cross(&*kernel, new.as_ref(), x.as_ref());
                assert_near(
                    text,
                    across.multiply(v.as_ref()).as_ref(),
                    (&expected * &v).as_ref(),
                    scale,
                    1e-14,
                );
                let u = block::<f64>(70, k);
                let back = across.multiply_transpose(u.as_ref());
                assert_near(text, back.as_ref(), (expected.transpose() * &u).as_ref(), scale, 1e-14);
            }
            let some = &chosen[..150];
            let mut principal = Mat::from_fn(150, 150, |_, _| f64::NAN);
            matrix.principal_into(some, principal.as_mut());
            let expected = Mat::from_fn(150, 150, |i, j| exact[(some[i], some[j])]);
            assert_near(text, principal.as_ref(), expected.as_ref(), largest, 1e-13);
            assert_eq!(principal, principal.transpose(), "{text}");
            for (i, value) in RowAccess::diagonal(matrix).into_iter().enumerate() {
                assert!((value - exact[(i, i)]).abs() <= 1e-14 * largest, "{text}");
            }
        }
    }
}

#[test]
fn large_products_cross_blocks_and_groups() {
    // Beyond the sizes at which tiles, groups of rows and wide transposed products change their ways.
    let (n, m) = (2_500, 2_300);
    let (x, z) = (points(n, 41), points(m, 42));
    let kernel = build::<f64>("matern32(ard) + white(variance=0.3)");
    let (v, u) = (block::<f64>(m, 5), block::<f64>(n, 5));
    let exact = cross(&*kernel, x.as_ref(), z.as_ref());
    let lazy = CrossMatrix::new(&*kernel, x.as_ref(), z.as_ref());
    let scale = n as f64;
    assert_near("cross", lazy.multiply(v.as_ref()).as_ref(), (&exact * &v).as_ref(), scale, 1e-14);
    let back = lazy.multiply_transpose(u.as_ref());
    assert_near("transposed", back.as_ref(), (exact.transpose() * &u).as_ref(), scale, 1e-14);
    let square = KernelMatrix::new(&*kernel, x.as_ref());
    let expected = &gram(&*kernel, x.as_ref()) * &u;
    assert_near("square", square.multiply(u.as_ref()).as_ref(), expected.as_ref(), scale, 1e-14);
}

#[test]
fn single_precision_rounds_and_wide_points_are_centred() {
    let (n, wide) = (300, 40);
    let mut rng = Streams::new(8).stream("wide");
    for d in [3, wide] {
        let x = Mat::<f32>::from_fn(n, d, |_, _| StandardNormal.sample(&mut rng));
        let names: Vec<String> = (0..d).map(|i| format!("f{i}")).collect();
        let expression: crate::KernelExpression = "matern32(lengthscale=4)".parse().unwrap();
        let (single, double) =
            (expression.build::<f32>(&names).unwrap(), expression.build::<f64>(&names).unwrap());
        let x64 = Mat::from_fn(n, d, |i, j| f64::from(x[(i, j)]));
        let v = block::<f32>(n, 2);
        let v64 = Mat::from_fn(n, 2, |i, j| f64::from(v[(i, j)]));
        let exact = &gram(&*double, x64.as_ref()) * &v64;
        let product = KernelMatrix::new(&*single, x.as_ref()).multiply(v.as_ref());
        let product = Mat::from_fn(n, 2, |i, j| f64::from(product[(i, j)]));
        // Each of n terms is off by some 40 roundings (q² by about d of them), and rounding adds up like the root of n at worst times 4.
        assert_near(
            "f32",
            product.as_ref(),
            exact.as_ref(),
            (n as f64).sqrt(),
            160.0 * f64::from(f32::EPSILON),
        );
    }
}

#[test]
fn products_do_not_depend_on_the_number_of_threads() {
    let n = 1300;
    let x = points(n, 51);
    let kernel = build::<f64>("matern52(ard) + linear");
    let v = block::<f64>(n, 2);
    let chosen: Vec<usize> = (0..200).map(|i| (i * 7) % n).collect();
    let run = |threads: usize| {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
            let matrix = KernelMatrix::new(&*kernel, x.as_ref());
            let mut rows = Mat::zeros(chosen.len(), 2);
            matrix.apply_rows(&chosen, v.as_ref(), rows.as_mut());
            let cross = matrix.cross(x.as_ref());
            (
                matrix.multiply(v.as_ref()),
                rows,
                cross.multiply(v.as_ref()),
                cross.multiply_transpose(v.as_ref()),
            )
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn no_points_no_vectors_no_rows() {
    let kernel = build::<f64>("se + matern32");
    let none = KernelMatrix::new(&*kernel, Mat::<f64>::zeros(0, 3).as_ref());
    assert_eq!(none.multiply(Mat::<f64>::zeros(0, 2).as_ref()).shape(), (0, 2));
    let some = KernelMatrix::new(&*kernel, points(5, 1).as_ref());
    assert_eq!(some.multiply(Mat::<f64>::zeros(5, 0).as_ref()).shape(), (5, 0));
    some.apply_rows(&[], Mat::<f64>::zeros(5, 1).as_ref(), Mat::zeros(0, 1).as_mut());
    let mut out = Mat::from_fn(5, 1, |_, _| 9.0);
    some.apply_columns(&[], Mat::<f64>::zeros(0, 1).as_ref(), out.as_mut());
    assert!((0..5).all(|i| out[(i, 0)] == 0.0));
    let strided = Mat::<f64>::from_fn(2, 5, |i, j| (i + j) as f64);
    let contiguous = strided.transpose().to_owned();
    let (a, b) = (some.multiply(strided.transpose()), some.multiply(contiguous.as_ref()));
    assert!((&a - &b).norm_max() < 1e-13);
}
