//! Laws that all kernels obey: positive semi-definiteness, permutations, tiles, threads, translations, scales.

use super::*;
use faer::Side;
use proptest::prelude::*;

/// Kernels whose entries do not go through a matrix product: their bits do not depend on the tile.
fn is_entrywise(text: &str) -> bool {
    // Networks do in more columns than there are here.
    !["linear", "polynomial", "categorical"].iter().any(|name| text.contains(name))
}

fn assert_same(text: &str, a: f64, b: f64) {
    if is_entrywise(text) {
        assert_eq!(a.to_bits(), b.to_bits(), "{text}");
    } else {
        assert!((a - b).abs() <= 1e-13 * (1.0 + a.abs()), "{text}: {a} {b}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn matrices_are_positive_semi_definite(
        which in 0..TEXTS.len(),
        n in 1usize..25,
        seed in 0u64..1000,
        spread in prop::sample::select(vec![1e-3, 1.0, 30.0]),
        log_scale in -1.5..1.5f64,
    ) {
        let mut kernel = build::<f64>(TEXTS[which]);
        let values: Vec<f64> = kernel.values().iter().map(|v| v * log_scale.exp()).collect();
        kernel.set_values(&values);
        let mut x = points(n, seed);
        x *= faer::Scale(spread);
        let k = gram(&*kernel, x.as_ref());
        let eigenvalues = k.self_adjoint_eigenvalues(Side::Lower).unwrap();
        let largest = eigenvalues.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        // Entries are off by a few roundings of the largest, their matrix by n times that.
        prop_assert!(eigenvalues[0] >= -1e-14 * n as f64 * largest.max(1.0), "{} {:?}", TEXTS[which], eigenvalues);
    }

    #[test]
    fn rows_may_be_permuted(which in 0..TEXTS.len(), seed in 0u64..1000, shift in 1usize..12) {
        let x = points(13, seed);
        let order: Vec<usize> = (0..13).map(|i| (i * shift + 5) % 13).collect();
        let moved = Mat::from_fn(13, D, |i, j| x[(order[i], j)]);
        let kernel = build::<f64>(TEXTS[which]);
        let (k, permuted) = (gram(&*kernel, x.as_ref()), gram(&*kernel, moved.as_ref()));
        for i in 0..13 {
            for j in 0..13 {
                let (a, b) = (permuted[(i, j)], k[(order[i], order[j])]);
                prop_assert!((a - b).abs() <= 1e-13 * (1.0 + a.abs()), "{}", TEXTS[which]);
            }
        }
    }
}

#[test]
fn square_and_rectangular_matrices_agree_and_tiles_do_not_show() {
    let n = TILE + 70;
    let x = points(n, 12);
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let (square, whole) = (gram(&*kernel, x.as_ref()), cross(&*kernel, x.as_ref(), x.as_ref()));
        // A window over the border between tiles.
        let (i0, j0) = (TILE - 33, TILE - 21);
        let part = cross(&*kernel, x.subrows(i0, 60), x.subrows(j0, 50));
        let noise: f64 = if text.contains("white(variance=0.3)") {
            0.3
        } else if text.contains("white") {
            1.0
        } else {
            0.0
        };
        for j in 0..n {
            for i in 0..n {
                assert_eq!(square[(i, j)].to_bits(), square[(j, i)].to_bits(), "{text}");
                let expected = whole[(i, j)] + if i == j { noise } else { 0.0 };
                let error = (square[(i, j)] - expected).abs();
                assert!(error <= 1e-13 * (1.0 + expected.abs()), "{text} {i} {j}");
            }
        }
        for j in 0..50 {
            for i in 0..60 {
                assert_same(text, whole[(i0 + i, j0 + j)], part[(i, j)]);
            }
        }
    }
}

#[test]
fn pullbacks_add_up_over_blocks_and_groups_of_strips() {
    // More columns than the strips that the driver keeps at a time.
    let (x, z) = (points(3, 13), points(33 * TILE, 14));
    let weights = Mat::<f64>::from_fn(3, z.nrows(), |i, j| ((7 * i + j) as f64).sin());
    let half = 20 * TILE + 11;
    for text in ["matern32(ard)", "se * periodic(x3) + linear"] {
        let kernel = build::<f64>(text);
        let pull = |from: usize, count: usize| {
            let (z, weights) = (z.subrows(from, count), weights.subcols(from, count));
            pullback(&*kernel, x.as_ref(), z, weights, Request::ALL)
        };
        let (whole, first, second) = (pull(0, z.nrows()), pull(0, half), pull(half, z.nrows() - half));
        for (i, total) in whole.parameters.iter().enumerate() {
            let sum = first.parameters[i] + second.parameters[i];
            assert!((total - sum).abs() <= 1e-11 * (1.0 + total.abs()), "{text}");
        }
        let (x0, x1, x2) = (whole.x.unwrap(), first.x.unwrap(), second.x.unwrap());
        assert!((&x0 - (&x1 + &x2)).norm_max() <= 1e-11 * (1.0 + x0.norm_max()), "{text}");
        let z0 = whole.z.unwrap();
        assert!((z0.subrows(0, half) - first.z.unwrap()).norm_max() < 1e-13, "{text}");
        assert!((z0.subrows(half, z.nrows() - half) - second.z.unwrap()).norm_max() < 1e-13, "{text}");
    }
}

#[test]
fn a_pullback_returns_the_sum_of_adjoint_times_kernel() {
    let x = points(9, 15);
    let weights = Mat::<f64>::from_fn(9, 9, |i, j| ((5 * i + j) as f64).cos());
    let mut kernels: Vec<Box<dyn Kernel<f64>>> = TEXTS.iter().map(|text| build(text)).collect();
    kernels.extend([
        Box::new(White) as Box<dyn Kernel<f64>>,
        Box::new(Constant),
        Box::new(Linear::new("linear", Columns::all(D), false, 1.0)),
    ]);
    for kernel in kernels {
        let k = gram(&*kernel, x.as_ref());
        let expected: f64 = (0..9).map(|j| (0..9).map(|i| k[(i, j)] * weights[(i, j)]).sum::<f64>()).sum();
        for request in [Request::ALL, Request::PARAMETERS, Request { parameters: false, x: false, z: false }]
        {
            let mut adjoints = Adjoints::zeros(request, kernel.parameter_count(), 9, 9, D);
            let pair = Pair { x: x.as_ref(), z: x.as_ref(), same: Some((0, 0)) };
            let total = kernel.pullback_tile(pair, weights.as_ref(), &mut adjoints);
            assert!((total - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{kernel:?}");
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let x = points(700, 7);
    for text in ["matern52(ard) * periodic(x1) + linear", "rq(ard) + polynomial"] {
        let kernel = build::<f64>(text);
        let run = |threads: usize| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
                let fill =
                    |r: std::ops::Range<usize>, c: std::ops::Range<usize>, mut t: faer::MatMut<'_, f64>| {
                        for j in 0..t.ncols() {
                            for i in 0..t.nrows() {
                                t[(i, j)] = ((r.start + i + c.start + j) as f64).sin();
                            }
                        }
                    };
                let request = Request { parameters: true, x: true, z: false };
                let weights: Vec<f64> = (0..700).map(|i| (i as f64).cos()).collect();
                (
                    gram(&*kernel, x.as_ref()),
                    pullback_gram(&*kernel, x.as_ref(), &fill, request),
                    pullback_diagonal(&*kernel, x.as_ref(), &weights, request),
                )
            })
        };
        let one = run(1);
        assert!(one == run(2) && one == run(3), "{text}");
    }
}

#[test]
fn the_diagonal_pulls_back_to_inputs() {
    let x = points(6, 16);
    let weights: Vec<f64> = (0..6).map(|i| (i as f64).cos()).collect();
    for text in TEXTS {
        let kernel = build::<f64>(text);
        let adjoints = pullback_diagonal(&*kernel, x.as_ref(), &weights, Request::ALL);
        let flat: Vec<f64> = (0..D).flat_map(|j| x.col_as_slice(j).to_vec()).collect();
        let numeric = check::gradient(
            |v| {
                let moved = MatRef::from_column_major_slice(v, 6, D);
                diagonal(&*kernel, moved).iter().zip(&weights).map(|(k, w)| k * w).sum()
            },
            &flat,
        );
        let exact = adjoints.x.unwrap();
        let exact: Vec<f64> = (0..D).flat_map(|j| exact.col_as_slice(j).to_vec()).collect();
        check::assert_close(&exact, &numeric, 1e-7, 1e-8);
    }
}

#[test]
fn values_of_points_with_themselves_have_no_noise_and_pull_back_to_parameters() {
    let x = points(6, 19);
    let weights: Vec<f64> = (0..6).map(|i| (i as f64 + 0.4).cos()).collect();
    for text in TEXTS {
        let mut kernel = build::<f64>(text);
        let at = |kernel: &dyn Kernel<f64>| {
            let mut own = vec![0.0; 6];
            kernel.values_at(kernel.prepare(x.as_ref()).block(0..6), &mut own);
            own
        };
        let (found, whole) = (at(&*kernel), cross(&*kernel, x.as_ref(), x.as_ref()));
        for (i, value) in found.iter().enumerate() {
            assert!((value - whole[(i, i)]).abs() < 1e-14 * (1.0 + value.abs()), "{text}");
        }
        let mut exact = vec![0.0; kernel.parameter_count()];
        kernel.pullback_values_at(x.as_ref(), &weights, &mut exact);
        let start = kernel.values();
        let numeric = check::gradient(
            |values| {
                kernel.set_values(values);
                at(&*kernel).iter().zip(&weights).map(|(k, w)| k * w).sum()
            },
            &start,
        );
        check::assert_close(&exact, &numeric, 1e-7, 1e-8);
    }
}

#[test]
fn nothing_in_nothing_out() {
    let (none, some) = (Mat::<f64>::zeros(0, D), points(4, 17));
    for text in TEXTS {
        let kernel = build::<f64>(text);
        assert_eq!(cross(&*kernel, none.as_ref(), some.as_ref()).nrows(), 0);
        assert_eq!(cross(&*kernel, some.as_ref(), none.as_ref()).ncols(), 0);
        assert_eq!(gram(&*kernel, none.as_ref()).nrows(), 0);
        let adjoint = Mat::<f64>::zeros(4, 0);
        let adjoints = pullback(&*kernel, some.as_ref(), none.as_ref(), adjoint.as_ref(), Request::ALL);
        assert!(adjoints.parameters.iter().all(|p| *p == 0.0) && adjoints.x.unwrap().nrows() == 4);
    }
}

#[test]
fn a_variance_multiplies() {
    let x = points(8, 18);
    let (one, two) = (build::<f64>("matern52"), build::<f64>("matern52(variance=4)"));
    let (k, scaled) = (gram(&*one, x.as_ref()), gram(&*two, x.as_ref()));
    assert!((0..8).all(|j| (0..8).all(|i| scaled[(i, j)] == 4.0 * k[(i, j)])));
}

#[test]
fn stationary_kernels_ignore_translation_and_scale_with_their_lengthscale() {
    let x = points(8, 11);
    let shifted = Mat::from_fn(8, D, |i, j| x[(i, j)] + 10.0 * (j as f64 + 1.0));
    let doubled = Mat::from_fn(8, D, |i, j| 2.0 * x[(i, j)]);
    for name in ["se", "matern12", "matern32", "matern52", "rq"] {
        let k = gram(&*build::<f64>(name), x.as_ref());
        let far = gram(&*build::<f64>(name), shifted.as_ref());
        let long = gram(&*build::<f64>(&format!("{name}(lengthscale=2)")), doubled.as_ref());
        assert!((&k - &far).norm_max() < 1e-6 && (&k - &long).norm_max() < 1e-14, "{name}");
        for i in 0..8 {
            assert_eq!(k[(i, i)], 1.0);
        }
    }
}
