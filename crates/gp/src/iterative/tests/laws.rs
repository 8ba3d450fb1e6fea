//! Diagnostics and spectral analysis against their definitions (spec, tests 2 and 11).

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
    let bound = convergence_bound(&basis, z.norm_l2(), 1.0 / noise, eta, steps, 0.0, 0.05);
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
    let with = convergence_bound(&basis, along.norm_l2(), b, eta, steps, coefficient, failure);
    let fifth = convergence_bound(&basis, along.norm_l2(), b, eta, steps, 0.2 * coefficient, failure);
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

/// The proposition's bound on the coefficient along each `v_i` of the error of arithmetic-averaged minibatch descent on the primal
/// objective divided by the noise variance (no momentum, start at zero), with probability `1 - failure`:
/// `(1/√λ_i) [b ‖y‖ / (η t) + G √((2/t) log(n/failure))]`.
///
/// `step` is η, below `b⁻¹ / (λ₁ (λ₁ + b⁻¹))`; `precision` is b; `gradient_noise` is the sub-Gaussian coefficient G.
fn convergence_bound(
    basis: &SpectralBasis,
    target_norm: f64,
    precision: f64,
    step: f64,
    steps: usize,
    gradient_noise: f64,
    failure: f64,
) -> Vec<f64> {
    let (n, t) = (basis.eigenvalues().len() as f64, steps as f64);
    let bias = precision * target_norm / (step * t);
    let noise = gradient_noise * (2.0 / t * (n / failure).ln()).sqrt();
    basis.eigenvalues().iter().map(|eigenvalue| (bias + noise) / eigenvalue.sqrt()).collect()
}
