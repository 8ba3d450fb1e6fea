//! How far approximate weights are from the exact ones, and which sampling loss has less noise.

use crate::GpError;
use crate::data::same_width;
use faer::{Mat, MatRef};
use posterior_linalg::Real;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::operator::LinearOperator;

/// Distances between two sets of representer weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightErrors {
    /// `‖α - α⋆‖₂`
    pub euclidean: f64,
    /// `‖α - α⋆‖_K`: the error of the mean function in the kernel's Hilbert space; times `√κ` a bound of its error anywhere.
    pub function: f64,
    /// `‖K (α - α⋆)‖₂`: the error of the predictions at the training rows.
    pub predictions: f64,
}

/// The errors of each column of `weights` (n x s). Cost: one product with K. Spec `stochastic_gaussian_processes`, section 8.
///
/// # Errors
/// [`GpError::Shape`] when sizes differ.
pub fn weight_errors<T: Real>(
    matrix: &dyn LinearOperator<T>,
    weights: MatRef<'_, T>,
    exact: MatRef<'_, T>,
) -> Result<Vec<WeightErrors>, GpError> {
    same_width("rows of the exact weights", weights.nrows(), exact.nrows())?;
    same_width("columns of the exact weights", weights.ncols(), exact.ncols())?;
    same_width("rows of the weights", matrix.shape().1, weights.nrows())?;
    let difference = Mat::from_fn(weights.nrows(), weights.ncols(), |i, j| weights[(i, j)] - exact[(i, j)]);
    let product = matrix.multiply(difference.as_ref());
    let sum = |j: usize, a: &Mat<T>, b: &Mat<T>| -> f64 {
        a.col_as_slice(j).iter().zip(b.col_as_slice(j)).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
    };
    let errors = (0..weights.ncols()).map(|j| WeightErrors {
        euclidean: sum(j, &difference, &difference).sqrt(),
        // Rounding may make a form of a semidefinite matrix negative.
        function: sum(j, &difference, &product).max(0.0).sqrt(),
        predictions: sum(j, &product, &product).sqrt(),
    });
    Ok(errors.collect())
}

/// Which of the two sampling losses has the less noisy single-row gradient in a linear model.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingLossComparison {
    /// `h_j = B_j φ_j H⁻¹ φ_jᵀ`, in [0, 1]; they sum to the effective dimension.
    pub leverages: Vec<f64>,
    /// `Tr M = Σ_j B_j ‖φ_j‖²`, by which the reduced form wins at the initialisation (total variance divided by n).
    pub gain_at_start: f64,
    /// `Σ_j B_j ‖φ_j‖² (1 - 2 h_j)`: by how much the plain form's variance exceeds the reduced form's at convergence; positive when
    /// the norm-weighted mean leverage is below ½.
    pub gain_at_convergence: f64,
    /// `2 a γ - Tr M`: the criterion as published, positive where it prefers the reduced form. It takes the covariance of sums for that of single
    /// rows; kept for comparison.
    pub published_criterion: f64,
    /// `γ = Σ_j h_j`.
    pub effective_dimension: f64,
}

/// Compares the plain and the variance-reduced sampling loss of a linear model with features Φ (n x d), noise precisions B (n) and prior precision a.
/// Cost `nd² + d³/3` flops. Spec `stochastic_gaussian_processes`, section 14.5 (corrected).
///
/// # Errors
/// [`GpError::Shape`] when sizes differ, [`GpError::Cholesky`] when `ΦᵀBΦ + aI` is not positive definite.
pub fn compare_sampling_losses(
    features: MatRef<'_, f64>,
    noise_precisions: &[f64],
    prior_precision: f64,
) -> Result<SamplingLossComparison, GpError> {
    let (n, d) = features.shape();
    same_width("noise precisions", n, noise_precisions.len())?;
    let scaled = Mat::<f64>::from_fn(n, d, |i, j| features[(i, j)] * noise_precisions[i].sqrt());
    let mut hessian = scaled.transpose() * &scaled;
    for j in 0..d {
        hessian[(j, j)] += prior_precision;
    }
    let factored = Cholesky::of(hessian.as_ref(), JitterPolicy::NONE)?;
    let mut whitened = scaled.transpose().to_owned();
    factored.solve_factor_in_place(whitened.as_mut());
    let leverages: Vec<f64> = (0..n).map(|i| whitened.col(i).squared_norm_l2()).collect();
    let norms: Vec<f64> = (0..n).map(|i| scaled.row(i).squared_norm_l2()).collect();
    let (trace, gamma) = (norms.iter().sum::<f64>(), leverages.iter().sum::<f64>());
    Ok(SamplingLossComparison {
        gain_at_start: trace,
        gain_at_convergence: norms.iter().zip(&leverages).map(|(b, h)| b * (1.0 - 2.0 * h)).sum(),
        published_criterion: 2.0 * prior_precision * gamma - trace,
        effective_dimension: gamma,
        leverages,
    })
}
