//! **Leave-one-out** predictions of each row from all others, in closed form, and their log score as an objective.
//!
//! With `P = K̃⁻¹`, `c = diag P`, `α = P r`: row i has predictive mean `y_i - α_i / c_i` and variance `1 / c_i`
//! (Rasmussen and Williams 2006, eq. 5.12), so the log pseudo-likelihood is
//! `Σ_i ½ log c_i - α_i² / (2 c_i) - ½ log 2π` (eq. 5.10 and 5.11).
//!
//! Its adjoint, derived here by matrix differentials instead of one product for each parameter (eq. 5.13):
//! with `a_i = -α_i / c_i` and `g_i = 1 / (2 c_i) + α_i² / (2 c_i²)`, both from the partial derivatives in `α` and `c`,
//! `G = -½ (P a αᵀ + α aᵀ P) - P diag(g) P`. As `g > 0`, the last term is `S Sᵀ` with `S = P diag(√g)`: one triangular product.

use super::evidence::{Evaluation, pull_back_lower};
use super::model::{ExactGp, add_outer};
use crate::{GpError, Observations};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat};
use posterior_kernels::Request;
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};
use posterior_linalg::dense::{parallelism, product};

/// Predictions of every training row from all the other rows, at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaveOneOut {
    /// Predictive means, n x t.
    pub mean: Mat<f64>,
    /// Predictive variances of the observations, noise included (n).
    pub variance: Vec<f64>,
    /// The same of the noiseless function (n): without the noise of each row, and without jitter.
    pub latent_variance: Vec<f64>,
    /// Variances of the function that rounding had made negative and that were raised to 0.
    pub clipped: usize,
    /// `Σ log p(y_i | all other rows)`, summed over targets.
    pub log_score: f64,
}

impl LeaveOneOut {
    /// From the factor, the weights `α`, the targets (n x t) and the noise variance of each row (n). Cost `n³/3` flops.
    pub(super) fn new(
        cholesky: &Cholesky,
        weights: &Mat<f64>,
        targets: faer::MatRef<'_, f64>,
        noise: &[f64],
    ) -> Self {
        let precision = cholesky.inverse_diagonal();
        let mean = Mat::from_fn(weights.nrows(), weights.ncols(), |i, t| {
            targets[(i, t)] - weights[(i, t)] / precision[i]
        });
        let log_score = log_score_of(&precision, weights);
        // Jitter is no noise of new observations.
        let jitter = cholesky.info().jitter;
        let bare: Vec<f64> = precision.iter().zip(noise).map(|(c, noise)| 1.0 / c - jitter - noise).collect();
        let clipped = bare.iter().filter(|v| **v < 0.0).count();
        let latent_variance: Vec<f64> = bare.into_iter().map(|v| v.max(0.0)).collect();
        let variance = latent_variance.iter().zip(noise).map(|(v, noise)| v + noise).collect();
        Self { mean, variance, latent_variance, clipped, log_score }
    }
}

/// `Σ_{i,t} log N(y_it; mean_it, variance_i)`
pub(super) fn log_score(own: &LeaveOneOut, targets: faer::MatRef<'_, f64>) -> f64 {
    let density = |(i, t): (usize, usize)| {
        let (v, e) = (own.variance[i], targets[(i, t)] - own.mean[(i, t)]);
        -0.5 * ((2.0 * std::f64::consts::PI * v).ln() + e * e / v)
    };
    (0..targets.ncols()).flat_map(|t| (0..targets.nrows()).map(move |i| (i, t))).map(density).sum()
}

/// `Σ_{i,t} ½ log c_i - α_it² / (2 c_i) - ½ log 2π`
fn log_score_of(precision: &[f64], weights: &Mat<f64>) -> f64 {
    let constant = 0.5 * (2.0 * std::f64::consts::PI).ln();
    let term = |i: usize, t: usize| {
        0.5 * precision[i].ln() - 0.5 * weights[(i, t)].powi(2) / precision[i] - constant
    };
    (0..weights.ncols())
        .flat_map(|t| (0..weights.nrows()).map(move |i| (i, t)))
        .map(|(i, t)| term(i, t))
        .sum()
}

/// The leave-one-out log score and its gradient. Cost about `3n³` flops; `24n²` bytes.
///
/// # Errors
/// As [`super::log_evidence`].
pub fn leave_one_out_and_gradient(
    model: &ExactGp,
    data: &Observations,
    buffer: Option<Mat<f64>>,
) -> Result<Evaluation, GpError> {
    // Left out is a row with all that it counts as, whose density is not that of one observation.
    data.plain()?;
    let factored = model.factor(data, buffer)?;
    let info: CholeskyInfo = factored.cholesky.info();
    let weights = factored.weights;
    let (n, targets) = (weights.nrows(), weights.ncols());
    let mut inverse = factored.cholesky.into_inverse();
    for j in 0..n {
        for i in j + 1..n {
            inverse[(j, i)] = inverse[(i, j)];
        }
    }
    let precision: Vec<f64> = (0..n).map(|i| inverse[(i, i)]).collect();
    let value = log_score_of(&precision, &weights);

    let a = Mat::from_fn(n, targets, |i, t| -weights[(i, t)] / precision[i]);
    let pulled = product(inverse.as_ref(), a.as_ref()); // P a
    let root: Vec<f64> = (0..n)
        .map(|i| {
            let c = precision[i];
            let g: f64 = (0..targets).map(|t| 0.5 / c + 0.5 * (weights[(i, t)] / c).powi(2)).sum();
            g.sqrt()
        })
        .collect();
    for j in 0..n {
        inverse.as_mut().col_mut(j).iter_mut().for_each(|v| *v *= root[j]);
    }
    let (lower, full) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    let mut adjoint = Mat::zeros(n, n);
    let s = inverse.as_ref();
    matmul(adjoint.as_mut(), lower, Accum::Replace, s, full, s.transpose(), full, -1.0, parallelism(n, n));
    add_outer(&mut adjoint, &pulled, &weights, -0.5);
    add_outer(&mut adjoint, &weights, &pulled, -0.5);

    let own = &|_, _, lower| lower;
    let kernel = pull_back_lower(model, data, adjoint.as_ref(), own, Request::PARAMETERS).parameters;
    let noise = (0..n).map(|i| adjoint[(i, i)]).sum();
    let mean = model.mean().pullback(data.inputs(), (-pulled).as_ref());
    Ok(Evaluation { value, gradient: model.gradient(kernel, mean, noise), cholesky: info, buffer: inverse })
}
