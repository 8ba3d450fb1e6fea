//! Diagnostics, spectral analysis and effective dimensions against their definitions (spec, tests 2 and 11).

use super::*;
use posterior_linalg::solve::System;

#[test]
fn error_norms_are_what_they_say() {
    let matrix = kernel_matrix(20, 0.5, true);
    let (a, b) = (normal(20, 2, "a"), normal(20, 2, "b"));
    let found = weight_errors(&dense(&matrix), a.as_ref(), b.as_ref()).unwrap();
    let difference = &a - &b;
    for (j, errors) in found.iter().enumerate() {
        let d = Mat::from_fn(20, 1, |i, _| difference[(i, j)]);
        assert!((errors.euclidean - d.norm_l2()).abs() < 1e-12);
        assert!((errors.function.powi(2) - (d.transpose() * &matrix * &d)[(0, 0)]).abs() < 1e-11);
        assert!((errors.predictions - (&matrix * &d).norm_l2()).abs() < 1e-11);
    }
    assert!(weight_errors(&dense(&matrix), a.as_ref(), b.as_ref().get(.., ..1)).is_err());
}

#[test]
fn gradient_variances_by_enumeration() {
    // Single-row gradients n φ_j B_j (φ_j z - e_j): their variance over rows and noise, by enumeration of rows and many draws of noise.
    let (n, d, a) = (8, 3, 0.7);
    let features = normal(n, d, "features");
    let precisions: Vec<f64> = (0..n).map(|i| 0.5 + 0.1 * i as f64).collect();
    let found = compare_sampling_losses(features.as_ref(), &precisions, a).unwrap();
    let weighted = Mat::from_fn(n, d, |i, j| features[(i, j)] * precisions[i]);
    let m = features.transpose() * &weighted;
    let trace: f64 = (0..d).map(|i| m[(i, i)]).sum();
    assert!((found.gain_at_start - trace).abs() < 1e-12);
    let hessian = Mat::from_fn(d, d, |i, j| m[(i, j)] + if i == j { a } else { 0.0 });
    let factored = Cholesky::of(hessian.as_ref(), JitterPolicy::NONE).unwrap();
    let gamma: f64 = (0..d).map(|i| factored.solve(m.as_ref())[(i, i)]).sum();
    assert!((found.effective_dimension - gamma).abs() < 1e-11);
    assert!((found.published_criterion - (2.0 * a * gamma - trace)).abs() < 1e-11);
    let draws = 60_000;
    let noise = normal(n, draws, "noise");
    let prior = normal(d, draws, "prior");
    let mut differences = Vec::with_capacity(draws);
    for k in 0..draws {
        let e: Vec<f64> = (0..n).map(|i| noise[(i, k)] / precisions[i].sqrt()).collect();
        let right = Mat::from_fn(d, 1, |j, _| {
            a * prior[(j, k)] / a.sqrt() + (0..n).map(|i| weighted[(i, j)] * e[i]).sum::<f64>()
        });
        let zeta = factored.solve(right.as_ref());
        let mut difference = 0.0;
        let (mut mean_plain, mut mean_reduced) = (vec![0.0; d], vec![0.0; d]);
        for i in 0..n {
            let fit: f64 = (0..d).map(|j| features[(i, j)] * zeta[(j, 0)]).sum();
            for j in 0..d {
                let scale = n as f64 * weighted[(i, j)];
                let (plain, reduced) = (scale * (fit - e[i]), scale * fit);
                difference += (plain * plain - reduced * reduced) / n as f64;
                mean_plain[j] += plain / n as f64;
                mean_reduced[j] += reduced / n as f64;
            }
        }
        // E‖ĝ‖² differs by the variance and by the squared mean; the regulariser makes the full gradients 0, so the means are -a (ζ - w₀) and its shift.
        let means: f64 = mean_plain.iter().zip(&mean_reduced).map(|(p, r)| p * p - r * r).sum();
        differences.push((difference - means) / n as f64);
    }
    // Conditional on ζ and e, the rows' variance differs by (1/n) Σ_j n² B_j²‖φ_j‖²(...) minus the means', of expectation
    // Σ_j B_j‖φ_j‖²(1 - 2h_j) up to the variance of the conditional means, which enumerates exactly below.
    let h = posterior_linalg::solve::Estimate::of(&differences);
    // Full-gradient parts: E‖ΦᵀB(Φζ - e)‖² - E‖ΦᵀBΦζ‖² divided by n.
    let inverse = factored.solve(Mat::<f64>::identity(d, d).as_ref());
    let product = &m * &inverse * &m;
    let means = (trace - 2.0 * (0..d).map(|i| product[(i, i)]).sum::<f64>()) / n as f64;
    let expected = found.gain_at_convergence - means;
    assert!((h.mean - expected).abs() < 4.5 * h.standard_error, "{h:?} {expected}");
}

#[test]
fn the_spectral_basis_is_orthonormal_and_explains_the_rows() {
    let n = 40;
    let matrix = kernel_matrix(n, 0.8, true);
    let basis = SpectralBasis::new(matrix.as_ref()).unwrap();
    // v_i at the training rows: Σ_j v_i(x_j)² = λ_i.
    let values = basis.functions(matrix.as_ref(), n).unwrap();
    for i in 0..n {
        let squares = values.col(i).squared_norm_l2();
        assert!((squares - basis.eigenvalues()[i]).abs() < 1e-10);
    }
    assert!(basis.eigenvalues().is_sorted_by(|a, b| a >= b));
    // Orthonormal in the Hilbert space: weights W = V Λ^{-½} have WᵀKW = I.
    let weights = Mat::from_fn(n, n, |i, j| basis.vectors()[(i, j)] / basis.eigenvalues()[j].sqrt());
    let gram = weights.transpose() * &matrix * &weights;
    assert!((gram - Mat::<f64>::identity(n, n)).norm_max() < 1e-9);
    let delta = normal(n, 2, "delta");
    let coefficients = basis.coefficients(delta.as_ref()).unwrap();
    let norm = (delta.transpose() * &matrix * &delta)[(1, 1)];
    assert!((coefficients.col(1).squared_norm_l2() - norm).abs() < 1e-10 * norm);
    assert!(SpectralBasis::new(Mat::from_fn(2, 2, |_, _| f64::NAN).as_ref()).is_err());
}

#[test]
fn primal_descent_converges_along_large_directions_first_and_within_its_bound() {
    let (n, noise, steps) = (50, 0.1, 3000);
    let matrix = kernel_matrix(n, 0.8, true);
    let basis = SpectralBasis::new(matrix.as_ref()).unwrap();
    let k = dense(&matrix);
    let system = System::uniform(&k, noise).unwrap();
    let z = normal(n, 1, "targets");
    let problem = Problem::new(&system, z.as_ref(), None).unwrap();
    let exact = exact_solution(&matrix, &vec![noise; n], &z);
    let largest = basis.eigenvalues()[0];
    // Gradients of L_p are σ² times those of ½ the objective: η = β / σ².
    let eta = 0.9 * noise / (largest * (largest + noise));
    let options = DescentOptions {
        gradient: Gradient::PrimalFull,
        rule: DescentRule::Plain,
        averaging: Averaging::Arithmetic { from: 0 },
        step_size: StepSize::TimesRows(n as f64 * eta / noise),
        clip: None,
        ..DescentOptions::default()
    };
    let budget = Budget::steps(steps);
    let found = solve(&Method::Descent(options), &problem, Start::Zero, &budget, &mut watch).unwrap();
    let errors = basis.coefficients((&found.weights - &exact).as_ref()).unwrap();
    let initial = basis.coefficients(exact.as_ref()).unwrap();
    // Full gradients have no noise: G = 0.
    let bound = basis.convergence_bound(z.norm_l2(), 1.0 / noise, eta, steps, 0.0, 0.05);
    let remaining: Vec<f64> = (0..n).map(|i| (errors[(i, 0)] / initial[(i, 0)]).abs()).collect();
    for i in 0..n {
        assert!(errors[(i, 0)].abs() <= bound[i] * (1.0 + 1e-9), "{i}");
    }
    assert!(remaining[0] < 0.01 && remaining[n - 1] > 0.9, "{remaining:?}");
    for i in 1..n {
        assert!(remaining[i] > remaining[i - 1] - 1e-9, "{i}");
    }
}

/// The noise part of the bound: descent with gradient noise of known size, which decouples along the eigenvectors.
#[test]
fn averages_of_noisy_descent_stay_within_the_bound_as_often_as_it_says() {
    // Nearly independent rows and much noise: no direction is slow, and the bound is within some standard deviations.
    let (n, noise, steps, coefficient, failure, trials) = (12, 2.0, 400, 3.0, 0.05, 400);
    let basis = SpectralBasis::new(kernel_matrix(n, 0.05, true).as_ref()).unwrap();
    let (b, values) = (1.0 / noise, basis.eigenvalues());
    let eta = 0.9 * noise / (values[0] * (values[0] + noise));
    let along = normal(n, 1, "targets");
    let with = basis.convergence_bound(along.norm_l2(), b, eta, steps, coefficient, failure);
    let fifth = basis.convergence_bound(along.norm_l2(), b, eta, steps, 0.2 * coefficient, failure);
    let (mut outside, mut outside_fifth) = (0, 0);
    for trial in 0..trials {
        // Gaussian noise of deviation G is sub-Gaussian with coefficient G.
        let draws = normal(steps, n, &format!("noise {trial}"));
        let error = |i: usize| {
            let curvature = values[i] * (b * values[i] + 1.0);
            let (mut delta, mut sum) = (-along[(i, 0)] / (values[i] + noise), 0.0);
            for t in 0..steps {
                sum += delta;
                delta -= eta * (curvature * delta + coefficient * draws[(t, i)]);
            }
            values[i].sqrt() * (sum / steps as f64).abs()
        };
        let errors: Vec<f64> = (0..n).map(error).collect();
        let beyond = |bound: &[f64]| errors.iter().zip(bound).any(|(e, b)| e > b);
        outside += usize::from(beyond(&with));
        outside_fifth += usize::from(beyond(&fifth));
    }
    // Two tails have at most twice the stated chance; 4.5 standard deviations of so many trials.
    let allowed = 2.0 * failure * trials as f64;
    assert!((outside as f64) < allowed + 4.5 * allowed.sqrt(), "{outside} of {trials}");
    assert!(outside_fifth > trials / 2, "{outside_fifth} of {trials}: the noise says nothing");
}

#[test]
fn points_belong_to_regions() {
    let cross = Mat::from_fn(3, 2, |i, j| [[0.9, 0.1], [0.3, 0.2], [1e-4, 0.0]][i][j]);
    let found = regions(&[1.0; 3], &[0.1, 0.8, 1.0], cross.as_ref(), 0.01).unwrap();
    assert_eq!(found, [Region::Interpolation, Region::Extrapolation, Region::Prior]);
    assert!(regions(&[1.0; 3], &[0.1], cross.as_ref(), 0.01).is_err());
    let basis = SpectralBasis::new(kernel_matrix(10, 1.0, false).as_ref()).unwrap();
    let count = basis.interpolation_directions(0.1);
    assert!(
        count > 0 && count < 10 && basis.eigenvalues()[count - 1] > 0.1 && basis.eigenvalues()[count] <= 0.1
    );
}

#[test]
fn the_effective_dimension_from_sampling_weights() {
    let (n, s) = (30, 4000);
    let matrix = kernel_matrix(n, 0.7, true);
    let noise: Vec<f64> = (0..n).map(|i| 0.1 + 0.01 * i as f64).collect();
    let k_tilde = shifted(&matrix, &noise);
    let factored = Cholesky::of(k_tilde.as_ref(), JitterPolicy::NONE).unwrap();
    // Targets f + ε have covariance K̃.
    let targets = factored.multiply_factor(normal(n, s, "white").as_ref());
    let u = factored.solve(targets.as_ref());
    let found = effective_dimension(u.as_ref(), &noise).unwrap();
    let exact: f64 = (0..n).map(|i| factored.solve(matrix.as_ref())[(i, i)]).sum();
    assert!((found.mean - exact).abs() < 4.5 * found.standard_error, "{found:?} {exact}");
    assert!(effective_dimension(u.as_ref(), &noise[1..]).is_err());
}

#[test]
fn mackay_steps_end_where_the_evidence_is_stationary() {
    let n = 40;
    let unit = kernel_matrix(n, 0.7, true);
    // Targets drawn from the model, so that a fixed point inside exists.
    let truth = shifted(&(&unit * faer::Scale(2.0)), &vec![0.3; n]);
    let y = Cholesky::of(truth.as_ref(), JitterPolicy::NONE)
        .unwrap()
        .multiply_factor(normal(n, 1, "draw").as_ref());
    let evidence = |theta: &[f64]| {
        let k = shifted(&(&unit * faer::Scale(theta[0].exp())), &vec![theta[1].exp(); n]);
        let factored = Cholesky::of(k.as_ref(), JitterPolicy::NONE).unwrap();
        -0.5 * (y.transpose() * factored.solve(y.as_ref()))[(0, 0)] - 0.5 * factored.log_determinant()
    };
    let (mut amplitude, mut noise) = (1.0, 1.0);
    for _ in 0..3000 {
        let k = &unit * faer::Scale(amplitude);
        let factored = Cholesky::of(shifted(&k, &vec![noise; n]).as_ref(), JitterPolicy::NONE).unwrap();
        let alpha = factored.solve(y.as_ref());
        let gamma: f64 = (0..n).map(|i| factored.solve(k.as_ref())[(i, i)]).sum();
        let quadratic = (alpha.transpose() * &k * &alpha)[(0, 0)];
        let update = mackay_update(n, gamma, quadratic, alpha.squared_norm_l2(), noise).unwrap();
        amplitude *= update.amplitude_factor;
        noise = update.noise_variance;
    }
    let slope = posterior_optim::check::gradient(evidence, &[f64::ln(amplitude), f64::ln(noise)]);
    assert!(slope.iter().all(|s| s.abs() < 1e-6), "{slope:?} at {amplitude}, {noise}");
    assert!(mackay_update(10, 11.0, 1.0, 1.0, 1.0).is_err());
}
