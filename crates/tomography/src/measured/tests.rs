//! Against dense linear algebra in weight space and Monte Carlo.

use super::*;
use crate::randomised::{RandomisedOptions, RandomisedPreconditioner};
use crate::test_problem::{detectors, normal, projector};
use posterior_linalg::operator::Dense;
use posterior_linalg::random::Streams;
use posterior_linalg::solve::{NoPreconditioner, Preconditioner};

struct Problem {
    root: Dense<f64>,
    operator: Dense<f64>,
}

impl Problem {
    /// 5 x 4 pixels, 13 weights, 3 angles.
    fn new() -> Self {
        let operator = projector(5, 4, detectors(5, 4), 3);
        Self { root: Dense::new(normal(20, 13, 1)), operator: Dense::new(operator) }
    }

    fn observed(&self) -> ObservedPrior<'_> {
        ObservedPrior::new(&self.root, &self.operator, 0.3).unwrap()
    }
}

/// `F (I + Fᵀ Tᵀ T F / σ²)⁻¹ Fᵀ`: the first form of equation 7.6, with `b` and not `b²` (fix F2).
fn in_weight_space(problem: &Problem) -> Mat<f64> {
    let (f, t) = (problem.root.matrix(), problem.operator.matrix());
    let seen = t * f;
    let precision = seen.transpose() * &seen * faer::Scale(1.0 / 0.3) + Mat::<f64>::identity(13, 13);
    f * Cholesky::of(precision.as_ref(), JitterPolicy::NONE).unwrap().solve(f.transpose())
}

#[test]
fn the_operator_is_the_matrix_and_the_two_forms_of_the_posterior_agree() {
    let problem = Problem::new();
    let observed = problem.observed();
    let (f, t) = (problem.root.matrix(), problem.operator.matrix());
    let mut c = t * f * f.transpose() * t.transpose();
    assert!((observed.signal_matrix() - &c).norm_max() < 1e-11);
    (0..observed.rows()).for_each(|i| c[(i, i)] += 0.3);
    assert!((observed.to_dense() - &c).norm_max() < 1e-11);
    let factor = observed.factor(JitterPolicy::NONE).unwrap();
    assert!((observed.posterior_covariance(&factor) - in_weight_space(&problem)).norm_max() < 1e-10);
    // The mean by weights: F (I + ΦᵀΦ / σ²)⁻¹ Φᵀ y / σ² with Φ = T F.
    let y: Vec<f64> = (0..observed.rows()).map(|i| (i as f64 * 0.7).sin()).collect();
    let column = Mat::from_fn(y.len(), 1, |i, _| y[i] / 0.3);
    let expected = in_weight_space(&problem) * t.transpose() * column;
    let mean = observed.posterior_mean(&factor, &y).unwrap();
    mean.iter().enumerate().for_each(|(i, m)| assert!((m - expected[(i, 0)]).abs() < 1e-10));
}

/// The evidence by eigenvalues.
#[test]
fn the_evidence_is_the_density_of_the_measurements() {
    let problem = Problem::new();
    let observed = problem.observed();
    let factor = observed.factor(JitterPolicy::NONE).unwrap();
    let y: Vec<f64> = (0..observed.rows()).map(|i| (i as f64).cos()).collect();
    let eigen = posterior_linalg::dense::eigen(observed.to_dense().as_ref()).unwrap();
    let mut expected = 0.0;
    for (j, value) in eigen.values.iter().enumerate() {
        let along: f64 = (0..y.len()).map(|i| y[i] * eigen.vectors[(i, j)]).sum();
        expected -= 0.5 * (along * along / value + (TAU * value).ln());
    }
    assert!((observed.log_evidence(&factor, &y).unwrap() - expected).abs() < 1e-8);
}

/// Of m draws, an empirical covariance entry has variance `(S_ij² + S_ii S_jj) / m`; 210 entries are within 5 deviations with probability 1 - 1.2e-4.
#[test]
fn draws_have_the_posterior_covariance() {
    let problem = Problem::new();
    let observed = problem.observed();
    let exact = in_weight_space(&problem);
    let factor = observed.factor(JitterPolicy::NONE).unwrap();
    let m = 20_000;
    let drawn = observed.posterior_samples(0..m, Streams::new(4), SampleSolver::Factor(&factor)).unwrap();
    let empirical = &drawn.images * drawn.images.transpose() * faer::Scale(1.0 / m as f64);
    for j in 0..20 {
        for i in 0..=j {
            let deviation = ((exact[(i, j)].powi(2) + exact[(i, i)] * exact[(j, j)]) / m as f64).sqrt();
            assert!((empirical[(i, j)] - exact[(i, j)]).abs() < 5.0 * deviation + 1e-12);
        }
    }
    assert!(drawn.residuals.is_empty() && drawn.steps == 0);
}

#[test]
fn conjugate_gradients_draw_what_the_factor_draws() {
    let problem = Problem::new();
    let observed = problem.observed();
    let factor = observed.factor(JitterPolicy::NONE).unwrap();
    let streams = Streams::new(11);
    let exact = observed.posterior_samples(0..150, streams, SampleSolver::Factor(&factor)).unwrap();
    let options = RandomisedOptions { rank: 8, oversampling: 2, ..RandomisedOptions::default() };
    let randomised = RandomisedPreconditioner::new(&observed.signal(), 0.3, &options).unwrap();
    let preconditioners: [&dyn Preconditioner<f64>; 2] = [&NoPreconditioner, &randomised];
    let mut steps = Vec::new();
    for preconditioner in preconditioners {
        let solver = SampleSolver::Iterative { preconditioner, tolerance: 1e-10, steps: 300 };
        let drawn = observed.posterior_samples(0..150, streams, solver).unwrap();
        assert!(drawn.residuals.len() == 150 && drawn.largest_residual() <= 1e-10);
        assert!((&drawn.images - &exact.images).norm_max() < 1e-7 * exact.images.norm_max());
        steps.push(drawn.steps);
    }
    assert!(steps[1] < steps[0], "{steps:?}");
    // Out of steps: the residual says so, and the first draws do not depend on how many follow.
    let hasty = SampleSolver::Iterative { preconditioner: &NoPreconditioner, tolerance: 1e-10, steps: 2 };
    let hasty = observed.posterior_samples(0..3, streams, hasty).unwrap();
    assert!(hasty.steps == 2 && hasty.largest_residual() > 1e-10);
    let few = observed.posterior_samples(0..3, streams, SampleSolver::Factor(&factor)).unwrap();
    assert!((&few.images - exact.images.subcols(0, 3)).norm_max() < 1e-12);
    let prior = observed.prior_samples(3, streams);
    assert!((prior - observed.prior_samples(200, streams).subcols(0, 3)).norm_max() < 1e-12);
}

#[test]
fn what_does_not_fit_is_said() {
    let problem = Problem::new();
    let narrow = Dense::new(Mat::<f64>::zeros(3, 7));
    let error = ObservedPrior::new(&problem.root, &narrow, 1.0).err().unwrap();
    assert_eq!(error, MeasuredError::Shape { what: "pixels of the projector", expected: 20, actual: 7 });
    assert!(ObservedPrior::new(&problem.root, &problem.operator, 0.0).is_err());
    let observed = problem.observed();
    let factor = observed.factor(JitterPolicy::NONE).unwrap();
    assert!(observed.log_evidence(&factor, &[1.0]).is_err());
}
