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

/// Every operator and composition, with the matrix it stands for, entry by entry, and tags that it must have.
fn registry(seed: u64, m: usize, n: usize, r: usize) -> Vec<(&'static str, Boxed, Mat<f64>, Structure)> {
    let mut rng = Streams::new(seed).stream("linalg/operator tests");
    let rng = &mut rng;
    let (a, b, c) = (random(rng, m, n), random(rng, m, n), random(rng, n, r));
    let (u, v) = (random(rng, m, r), random(rng, n, r));
    let d: Vec<f64> = (0..n).map(|_| rng.random_range(0.5..2.0)).collect();
    let signed: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 0.0 } else { -d[i] }).collect();
    let diag = |d: &[f64]| Mat::from_fn(d.len(), d.len(), |i, j| if i == j { d[i] } else { 0.0 });
    let eye = |n: usize| diag(&vec![1.0; n]);
    let square = random(rng, n, n);
    let spd = brute_product(&square, &transpose(&square)) + eye(n);
    let lower = Mat::from_fn(n, n, |i, j| if i >= j { square[(i, j)] } else { 0.0 });
    let core = random(rng, r, r);
    let core = brute_product(&core, &transpose(&core));
    let kron = |a: &Mat<f64>, b: &Mat<f64>| {
        Mat::from_fn(a.nrows() * b.nrows(), a.ncols() * b.ncols(), |row, column| {
            a[(row / b.nrows(), column / b.ncols())] * b[(row % b.nrows(), column % b.ncols())]
        })
    };
    let blocks = |parts: &[&Mat<f64>]| {
        let rows = parts.iter().map(|p| p.nrows()).sum();
        let mut out = Mat::zeros(rows, parts.iter().map(|p| p.ncols()).sum());
        let (mut i, mut j) = (0, 0);
        for part in parts {
            for column in 0..part.ncols() {
                for row in 0..part.nrows() {
                    out[(i + row, j + column)] = part[(row, column)];
                }
            }
            (i, j) = (i + part.nrows(), j + part.ncols());
        }
        out
    };
    let declared = |a: &Mat<f64>, structure| Dense::with_structure(a.clone(), structure).unwrap();
    let definite = || declared(&spd, Structure::POSITIVE_DEFINITE);
    let triangular = || declared(&lower, Structure::LOWER_TRIANGULAR);
    let general = Structure::GENERAL;
    let (pd, psd) = (Structure::POSITIVE_DEFINITE, Structure::POSITIVE_SEMIDEFINITE);
    let product = |a: &Mat<f64>, b: &Mat<f64>| brute_product(a, b);
    let outer_uu = product(&u, &transpose(&u));
    let low_rank_if = |yes| if yes { Structure::LOW_RANK } else { general };
    vec![
        ("dense", Box::new(dense(&a)), a.clone(), general),
        ("dense, definite", Box::new(definite()), spd.clone(), pd),
        ("dense, triangular", Box::new(triangular()), lower.clone(), Structure::LOWER_TRIANGULAR),
        ("diagonal", Box::new(Diagonal::new(d.clone())), diag(&d), pd | Structure::DIAGONAL),
        ("singular diagonal", Box::new(Diagonal::new(signed.clone())), diag(&signed), Structure::DIAGONAL),
        ("diagonal of ones", Box::new(Diagonal::new(vec![1.0; n])), eye(n), Structure::IDENTITY),
        ("identity", Box::new(ScaledIdentity::<f64>::identity(n)), eye(n), Structure::IDENTITY),
        ("minus two", Box::new(ScaledIdentity::new(n, -2.0)), diag(&vec![-2.0; n]), Structure::DIAGONAL),
        ("three", Box::new(ScaledIdentity::new(n, 3.0)), diag(&vec![3.0; n]), Structure::DIAGONAL | pd),
        ("scaled", Box::new(Scaled::new(-1.5, dense(&a))), faer::Scale(-1.5) * &a, general),
        ("scaled definite", Box::new(Scaled::new(2.0, definite())), faer::Scale(2.0) * &spd, pd),
        (
            "negated definite",
            Box::new(Scaled::new(-2.0, definite())),
            faer::Scale(-2.0) * &spd,
            Structure::SYMMETRIC,
        ),
        ("nothing", Box::new(Scaled::new(0.0, definite())), faer::Scale(0.0) * &spd, psd),
        ("sum", Box::new(Sum::new(dense(&a), dense(&b)).unwrap()), &a + &b, general),
        (
            "low rank plus noise",
            Box::new(Sum::new(LowRank::gram(u.clone()), ScaledIdentity::new(m, 0.1)).unwrap()),
            &outer_uu + faer::Scale(0.1) * eye(m),
            pd,
        ),
        (
            "identity twice",
            Box::new(
                Sum::new(ScaledIdentity::<f64>::identity(n), ScaledIdentity::<f64>::identity(n)).unwrap(),
            ),
            faer::Scale(2.0) * eye(n),
            pd | Structure::DIAGONAL,
        ),
        (
            "triangular sum",
            Box::new(Sum::new(triangular(), Diagonal::new(d.clone())).unwrap()),
            &lower + diag(&d),
            { Structure::LOWER_TRIANGULAR },
        ),
        ("product", Box::new(Product::new(dense(&a), dense(&c)).unwrap()), product(&a, &c), {
            low_rank_if(n < m.min(r))
        }),
        (
            "product with low rank",
            Box::new(Product::new(LowRank::outer(u.clone(), v.clone()).unwrap(), dense(&c)).unwrap()),
            product(&product(&u, &transpose(&v)), &c),
            general,
        ),
        (
            "triangular product",
            Box::new(Product::new(triangular(), triangular()).unwrap()),
            product(&lower, &lower),
            Structure::LOWER_TRIANGULAR,
        ),
        (
            "diagonal product",
            Box::new(Product::new(Diagonal::new(d.clone()), Diagonal::new(d.clone())).unwrap()),
            product(&diag(&d), &diag(&d)),
            pd | Structure::DIAGONAL,
        ),
        (
            "definite times definite",
            Box::new(Product::new(definite(), Diagonal::new(d.clone())).unwrap()),
            product(&spd, &diag(&d)),
            general,
        ),
        (
            "product with the identity",
            Box::new(Product::new(ScaledIdentity::<f64>::identity(n), definite()).unwrap()),
            spd.clone(),
            pd,
        ),
        ("transposed", Box::new(Transposed::new(dense(&a))), transpose(&a), general),
        ("upper", Box::new(Transposed::new(triangular())), transpose(&lower), Structure::UPPER_TRIANGULAR),
        ("low rank, gram", Box::new(LowRank::gram(u.clone())), outer_uu, psd | low_rank_if(r < m)),
        (
            "low rank, congruence",
            Box::new(LowRank::congruence(u.clone(), declared(&core, psd)).unwrap()),
            product(&product(&u, &core), &transpose(&u)),
            psd | low_rank_if(r < m),
        ),
        (
            "low rank, outer",
            Box::new(LowRank::outer(u.clone(), v.clone()).unwrap()),
            product(&u, &transpose(&v)),
            low_rank_if(r < m.min(n)),
        ),
        ("kronecker", Box::new(Kronecker::new(dense(&a), dense(&c)).unwrap()), kron(&a, &c), general),
        (
            "definite kronecker",
            Box::new(Kronecker::new(definite(), Diagonal::new(d.clone())).unwrap()),
            kron(&spd, &diag(&d)),
            pd,
        ),
        (
            "triangular kronecker",
            Box::new(Kronecker::new(triangular(), ScaledIdentity::<f64>::identity(3)).unwrap()),
            kron(&lower, &eye(3)),
            Structure::LOWER_TRIANGULAR,
        ),
        (
            "kronecker of low rank",
            Box::new(Kronecker::new(LowRank::gram(u.clone()), dense(&b)).unwrap()),
            kron(&product(&u, &transpose(&u)), &b),
            low_rank_if(r < m && n > 0),
        ),
        (
            "blocks",
            Box::new(BlockDiagonal::new(vec![
                Box::new(dense(&a)) as Boxed,
                Box::new(Diagonal::new(d.clone())),
                Box::new(dense(&c)),
            ])),
            blocks(&[&a, &diag(&d), &c]),
            general,
        ),
        (
            "definite blocks, shared",
            Box::new(Arc::new(BlockDiagonal::new(vec![definite(), definite()]))),
            blocks(&[&spd, &spd]),
            pd,
        ),
        (
            "no blocks",
            Box::new(BlockDiagonal::<Dense<f64>>::new(vec![])),
            Mat::zeros(0, 0),
            Structure::IDENTITY,
        ),
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

/// Every claim is checked on the matrix itself; definiteness and rank by eigenvalues and singular values.
fn assert_true_structure(name: &str, claimed: Structure, a: &Mat<f64>) {
    let (m, n) = a.shape();
    if claimed.needs_square() {
        assert_eq!(m, n, "{name} is not square");
    }
    let small = 1e-12 * (1.0 + largest(a)) * m.max(n) as f64;
    let each = |structure, holds: &dyn Fn(usize, usize) -> bool| {
        if claimed.contains(structure) {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert!(holds(i, j), "{name} is not {structure}: entry ({i}, {j})");
            }
        }
    };
    each(Structure::SYMMETRIC, &|i, j| (a[(i, j)] - a[(j, i)]).abs() <= small);
    each(Structure::LOWER_TRIANGULAR, &|i, j| i >= j || a[(i, j)] == 0.0);
    each(Structure::UPPER_TRIANGULAR, &|i, j| i <= j || a[(i, j)] == 0.0);
    each(Structure::DIAGONAL, &|i, j| i == j || a[(i, j)] == 0.0);
    each(Structure::IDENTITY, &|i, j| a[(i, j)] == f64::from(u8::from(i == j)));
    if claimed.contains(Structure::POSITIVE_SEMIDEFINITE) && n > 0 {
        let least = a.self_adjoint_eigenvalues(faer::Side::Lower).unwrap()[0];
        assert!(least >= -small, "{name} has eigenvalue {least}");
        assert!(
            !claimed.contains(Structure::POSITIVE_DEFINITE) || least > small,
            "{name} has eigenvalue {least}"
        );
    }
    if claimed.contains(Structure::LOW_RANK) {
        let least = a.singular_values().unwrap().into_iter().fold(f64::INFINITY, f64::min);
        assert!(least <= small, "{name} has full rank: {least}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn products_are_those_of_the_matrix(seed: u64, m in 1usize..6, n in 1usize..6, r in 1usize..5, k in 0usize..4) {
        for (name, operator, matrix, _) in registry(seed, m, n, r) {
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

    #[test]
    fn structure_is_carried_and_true(seed: u64, m in 1usize..6, n in 1usize..6, r in 1usize..5) {
        for (name, operator, matrix, least) in registry(seed, m, n, r) {
            let structure = operator.structure();
            prop_assert!(structure.contains(least), "{} is only {}, not {}", name, structure, least);
            assert_true_structure(name, structure, &matrix);
        }
    }
}

#[test]
fn strided_and_empty_blocks_work() {
    for (name, operator, matrix, _) in registry(3, 4, 3, 2) {
        let x = random(&mut Streams::new(4).stream("linalg/strided"), 2, matrix.ncols());
        let mut out = Mat::zeros(2, matrix.nrows());
        operator.apply(x.transpose(), out.transpose_mut());
        assert_close(name, &transpose(&out), &brute_product(&matrix, &transpose(&x)));
    }
    for (m, n, r) in [(0, 2, 1), (2, 0, 1), (3, 2, 0), (0, 0, 0)] {
        for (name, operator, matrix, _) in registry(5, m, n, r) {
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
    assert!(LowRank::outer(Mat::<f64>::zeros(2, 3), Mat::zeros(2, 2)).is_err());
    assert!(LowRank::congruence(Mat::<f64>::zeros(5, 2), Dense::new(Mat::zeros(3, 3))).is_err());
    let huge = ScaledIdentity::new(usize::MAX / 2, 1.0);
    assert!(matches!(Kronecker::new(huge, huge), Err(OperatorError::TooLarge { .. })));
    for (name, operator, matrix, _) in registry(1, 2, 3, 1) {
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
fn kronecker_follows_the_convention() {
    // (A ⊗ B) vec(X) = vec(B X Aᵀ), by its other definition.
    let mut rng = Streams::new(8).stream("linalg/kronecker");
    let (a, b, x) = (random(&mut rng, 2, 3), random(&mut rng, 4, 5), random(&mut rng, 5, 3));
    let vec = |x: &Mat<f64>| Mat::from_fn(x.nrows() * x.ncols(), 1, |i, _| x[(i % x.nrows(), i / x.nrows())]);
    let expected = brute_product(&brute_product(&b, &x), &transpose(&a));
    let actual = Kronecker::new(dense(&a), dense(&b)).unwrap().multiply(vec(&x).as_ref());
    assert_close("kronecker", &actual, &vec(&expected));
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
