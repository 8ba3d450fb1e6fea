//! Stochastic gradients against the gradients they estimate (spec, test 5 and 6).

use super::*;
use faer::MatRef;
use posterior_linalg::solve::System;

/// The exact primal gradient `K (W (Kα - z) + σ² α)`.
fn primal(matrix: &Mat<f64>, noise: &[f64], alpha: MatRef<'_, f64>, z: &Mat<f64>) -> Mat<f64> {
    let n = matrix.nrows();
    let mean = noise.iter().sum::<f64>() / n as f64;
    let product = matrix * alpha;
    let inner = Mat::from_fn(n, z.ncols(), |i, j| {
        mean / noise[i] * (product[(i, j)] - z[(i, j)]) + mean * alpha[(i, j)]
    });
    matrix * inner
}

#[test]
fn both_noise_placements_have_the_gradient_of_the_objective_and_it_is_k_times_the_dual() {
    let n = 30;
    let matrix = kernel_matrix(n, 0.5, true);
    let noise: Vec<f64> = (0..n).map(|i| 0.2 + 0.01 * i as f64).collect();
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let (function, errors) = (normal(n, 2, "function"), normal(n, 2, "errors"));
    let z = &function + &errors;
    let problem = Problem::new(&system, function.as_ref(), Some(errors.as_ref())).unwrap();
    let alpha = normal(n, 2, "alpha");
    let all: Vec<usize> = (0..n).collect();
    let expected = primal(&matrix, &noise, alpha.as_ref(), &z);
    let of = |gradient| gradient_estimate(gradient, &problem, alpha.as_ref(), &all, 0).unwrap().0;
    for placement in [NoisePlacement::Targets, NoisePlacement::Regulariser] {
        let found = of(Gradient::Primal { noise: placement, regulariser: Regulariser::Exact });
        assert!((&found - &expected).norm_max() < 1e-11, "{placement:?}");
    }
    assert!((of(Gradient::PrimalFull) - &expected).norm_max() < 1e-11);
    let dual = of(Gradient::DualFull);
    for gradient in [Gradient::DualCoordinates, Gradient::DualProductOnly] {
        assert!((of(gradient) - &dual).norm_max() < 1e-11);
    }
    // With uniform noise, the primal gradient is K times the dual one.
    let uniform = System::uniform(&k, 0.3).unwrap();
    let problem = Problem::new(&uniform, function.as_ref(), Some(errors.as_ref())).unwrap();
    let of = |gradient| gradient_estimate(gradient, &problem, alpha.as_ref(), &all, 0).unwrap().0;
    assert!((of(Gradient::PrimalFull) - &matrix * of(Gradient::DualFull)).norm_max() < 1e-11);
}

#[test]
fn stochastic_gradients_are_unbiased() {
    let (n, r, draws) = (12, 3, 20_000);
    let matrix = kernel_matrix(n, 0.6, true);
    let k = dense(&matrix);
    let noise: Vec<f64> = (0..n).map(|i| 0.2 + 0.02 * i as f64).collect();
    let system = System::new(&k, noise).unwrap();
    let (function, errors) = (normal(n, 1, "function"), normal(n, 1, "errors"));
    let features = RootFeatures(root(&matrix));
    let problem =
        Problem::new(&system, function.as_ref(), Some(errors.as_ref())).unwrap().with_features(&features);
    let alpha = normal(n, 1, "alpha");
    let all: Vec<usize> = (0..n).collect();
    let full = |gradient| gradient_estimate(gradient, &problem, alpha.as_ref(), &all, 0).unwrap().0;
    let regularisers = [Regulariser::Features { count: 4 }, Regulariser::Columns { count: 2 }];
    let mut cases = vec![
        (Gradient::DualCoordinates, full(Gradient::DualFull)),
        (Gradient::DualProductOnly, full(Gradient::DualFull)),
        (Gradient::DualFeatures { count: 3 }, full(Gradient::DualFull)),
    ];
    for noise in [NoisePlacement::Targets, NoisePlacement::Regulariser] {
        for regulariser in regularisers {
            cases.push((Gradient::Primal { noise, regulariser }, full(Gradient::PrimalFull)));
        }
    }
    for (gradient, expected) in cases {
        let mut batches = super::super::stochastic::row_batches(n, r, Sampling::Independent, 3);
        let (mut sum, mut squares) = (vec![0.0; n], vec![0.0; n]);
        for draw in 0..draws {
            let batch = batches.batch(draw);
            let found = gradient_estimate(gradient, &problem, alpha.as_ref(), &batch, draw as u64).unwrap().0;
            for i in 0..n {
                sum[i] += found[(i, 0)];
                squares[i] += found[(i, 0)].powi(2);
            }
        }
        for i in 0..n {
            let mean = sum[i] / draws as f64;
            let error = ((squares[i] / draws as f64 - mean * mean) / draws as f64).sqrt();
            // 84 comparisons: 4.5 standard errors are exceeded by chance once in two thousand runs of the test.
            assert!((mean - expected[(i, 0)]).abs() < 4.5 * error + 1e-12, "{gradient:?} {i}");
        }
    }
}

#[test]
fn only_coordinates_lose_their_noise_at_the_solution() {
    let n = 25;
    let matrix = kernel_matrix(n, 0.6, true);
    let noise = vec![0.2; n];
    let k = dense(&matrix);
    let system = System::new(&k, noise.clone()).unwrap();
    let z = normal(n, 1, "targets");
    let features = RootFeatures(root(&matrix));
    let problem = Problem::new(&system, z.as_ref(), None).unwrap().with_features(&features);
    let exact = exact_solution(&matrix, &noise, &z);
    let size =
        |gradient| gradient_estimate(gradient, &problem, exact.as_ref(), &[1, 5, 9], 2).unwrap().0.norm_l2();
    assert!(size(Gradient::DualCoordinates) < 1e-11);
    assert!(size(Gradient::DualProductOnly) > 0.1);
    assert!(size(Gradient::DualFeatures { count: 10 }) > 0.1);
}
