//! What sections 5 and 6 prove.

use super::*;

#[test]
fn the_penalty_bounds_the_evidence_of_every_corrected_process() {
    let (n, m) = (6, 2);
    let (phi, y) = (normal(m, n, "phi"), normal(n, 1, "y"));
    for trial in 0..20 {
        // Any positive semi-definite C, not only a diagonal one.
        let root = normal(n, 3, &format!("correction {trial}"));
        let correction = &root * root.transpose();
        let mut covariance = phi.transpose() * &phi + &correction;
        (0..n).for_each(|i| covariance[(i, i)] += NOISE);
        let variances = (0..n).map(|i| squares(&phi)[i] + correction[(i, i)]).collect();
        let rows = ScaledRows::new(phi.clone(), y.clone(), vec![NOISE; n], variances);
        let (bound, exact) = (solved(&rows, 1.0).value, dense_log_density(&covariance, &y));
        assert!(bound <= exact + 1e-10, "{bound} {exact}");
    }
}

#[test]
fn the_expected_evidence_is_highest_for_a_kernel_of_one_function() {
    // Observations scatter by s around one function f: of all covariances f fᵀ + s I is best, whatever rank was allowed.
    let n = 5;
    let f = normal(n, 1, "function");
    let expected = |sigma: &Mat<f64>| {
        let inverse = sigma.partial_piv_lu().inverse();
        let trace: f64 = (0..n).map(|i| inverse[(i, i)]).sum();
        dense_log_density(sigma, &f) - 0.5 * NOISE * trace
    };
    let with_noise = |k: Mat<f64>| Mat::from_fn(n, n, |i, j| k[(i, j)] + if i == j { NOISE } else { 0.0 });
    let best = expected(&with_noise(&f * f.transpose()));
    for trial in 0..100 {
        let phi = normal(n, 1 + trial % 4, &format!("alternative {trial}"));
        let near = &f * f.transpose() + 0.1 * (&phi * phi.transpose());
        assert!(expected(&with_noise(&phi * phi.transpose())) < best);
        assert!(expected(&with_noise(near)) < best);
    }
}

#[test]
fn the_correction_regularises_and_does_not_bound_the_evidence() {
    // Features (y, √(M - y²)) have constant length, hence no penalty, and hold the targets: the evidence grows without end as the noise falls.
    let n = 8;
    let y = normal(n, 1, "y");
    let most = (0..n).map(|i| y[(i, 0)].powi(2)).fold(0.0, f64::max);
    let phi = Mat::from_fn(
        2,
        n,
        |j, i| if j == 0 { y[(i, 0)] } else { (most - y[(i, 0)].powi(2)).max(0.0).sqrt() },
    );
    let at = |noise: f64| {
        solved(&ScaledRows::new(phi.clone(), y.clone(), vec![noise; n], vec![most; n]), 1.0).value
    };
    let values: Vec<f64> = [1e-2, 1e-4, 1e-6].map(at).to_vec();
    // By ½ (n - r) log 100 = 13.8 for each step.
    assert!(values.windows(2).all(|w| w[1] - w[0] > 12.0 && w[1] - w[0] < 15.0), "{values:?}");

    // Waves in pairs have constant length, too: their correction is none.
    let frequencies = normal(3, 1, "frequencies");
    let x = normal(n, 1, "x");
    let waves = Mat::from_fn(6, n, |j, i| {
        let angle = frequencies[(j / 2, 0)] * x[(i, 0)];
        (if j % 2 == 0 { angle.cos() } else { angle.sin() }) / 3f64.sqrt()
    });
    let k = squares(&waves);
    assert!(k.iter().all(|k| (k - 1.0).abs() < 1e-14));
    let rows = ScaledRows::new(waves, y.clone(), vec![NOISE; n], vec![1.0; n]);
    assert_near(solved(&rows, 1.0).value, solved(&rows, 0.0).value, 1e-11);
}

#[test]
fn the_expected_error_is_lowest_for_a_kernel_of_one_function() {
    // Criterion (b): E‖f - E[f | y]‖² over y ~ N(f, s I). The posterior mean is H y, of which unit targets show the columns, so that it is ‖f - H f‖² + s ‖H‖².
    let n = 5;
    let f = normal(n, 1, "function");
    let error = |phi: &Mat<f64>| {
        let k = squares(phi);
        let rows = ScaledRows::new(phi.clone(), Mat::identity(n, n), vec![NOISE; n], k);
        let smoother = phi.transpose() * solved(&rows, 0.0).weights();
        (&f - &smoother * &f).squared_norm_l2() + NOISE * smoother.squared_norm_l2()
    };
    // Its minimum has a closed form, less than the error s of one row of raw data.
    let (best, length) = (error(&f.transpose().to_owned()), f.squared_norm_l2());
    assert_near(best, NOISE * length / (NOISE + length), 1e-14);
    assert!(best < NOISE);
    // It is ‖s Σ⁻¹ f‖² + s ‖Σ⁻¹ K‖².
    let phi = normal(2, n, "another");
    let kernel = phi.transpose() * &phi;
    let inverse = (&kernel + NOISE * Mat::<f64>::identity(n, n)).partial_piv_lu().inverse();
    let dense = (NOISE * &inverse * &f).squared_norm_l2() + NOISE * (&inverse * &kernel).squared_norm_l2();
    assert_near(error(&phi), dense, 1e-12);
    for trial in 0..100 {
        let rank = 1 + trial % 4;
        let phi = normal(rank, n, &format!("alternative {trial}"));
        // The function, a little off, or beside others.
        let scaled = Mat::from_fn(1, n, |_, i| f[(i, 0)] * (1.1 + 0.01 * trial as f64));
        let beside = Mat::from_fn(rank + 1, n, |j, i| if j == 0 { f[(i, 0)] } else { 0.1 * phi[(j - 1, i)] });
        for other in [&phi, &scaled, &beside] {
            assert!(error(other) > best, "{} {best}", error(other));
        }
    }
}
