//! The **log evidence** `log p(y | X, θ)` and its exact gradient.
//!
//! The adjoint of `K̃` is `G = ½ (Σ_t α_t α_tᵀ - T K̃⁻¹)` (spec `stochastic_gaussian_processes`, section 9.1). It is never stored: the
//! inverse stands in the buffer of the factor and each tile of `G` is formed where the kernel pulls it back.

use super::model::{ExactGp, Factored};
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{Request, pullback_gram};
use posterior_linalg::cholesky::CholeskyInfo;

/// An objective's value with its gradient in the natural parameters.
#[derive(Debug)]
pub struct Evaluation {
    /// The value, summed over the targets.
    pub value: f64,
    /// Its gradient in the natural values, in the order of the model's parameters.
    pub gradient: Vec<f64>,
    /// What the factorisation needed.
    pub cholesky: CholeskyInfo,
    /// The n x n buffer, for the next evaluation.
    pub buffer: Mat<f64>,
}

/// The log evidence, summed over targets, without its gradient (which is left empty). Cost `n³/3` flops; `8n²` bytes in
/// `buffer`, which is allocated when absent.
///
/// # Errors
/// [`GpError::Cholesky`] when `K̃` is not positive definite, [`GpError::Shape`] when widths differ.
pub fn log_evidence(
    model: &ExactGp,
    data: &Observations,
    buffer: Option<Mat<f64>>,
) -> Result<Evaluation, GpError> {
    let factored = model.factor(data, buffer)?;
    let (value, cholesky) = (value(&factored), factored.cholesky.info());
    Ok(Evaluation { value, gradient: Vec::new(), cholesky, buffer: factored.cholesky.into_buffer() })
}

/// The log evidence with its gradient. Cost `n³` flops plus one pass over the kernel matrix; `8n²` bytes in
/// `buffer`, which is allocated when absent.
///
/// # Errors
/// As [`log_evidence`].
pub fn log_evidence_and_gradient(
    model: &ExactGp,
    data: &Observations,
    buffer: Option<Mat<f64>>,
) -> Result<Evaluation, GpError> {
    let factored = model.factor(data, buffer)?;
    let value = value(&factored);
    let Factored { cholesky, weights, .. } = factored;
    let info = cholesky.info();
    let inverse = cholesky.into_inverse();
    let targets = weights.ncols() as f64;
    let adjoint = |i: usize, j: usize, inverse: f64| {
        let outer: f64 = (0..weights.ncols()).map(|t| weights[(i, t)] * weights[(j, t)]).sum();
        0.5 * (outer - targets * inverse)
    };
    let kernel = pull_back_lower(model, data, inverse.as_ref(), &adjoint);
    let noise = (0..data.rows()).map(|i| adjoint(i, i, inverse[(i, i)])).sum();
    let mean = model.mean().pullback(data.inputs(), weights.as_ref());
    Ok(Evaluation { value, gradient: model.gradient(kernel, mean, noise), cholesky: info, buffer: inverse })
}

/// `Σ_t [-½ r_tᵀα_t] - (T/2) log det K̃ - (nT/2) log 2π`
fn value(factored: &Factored) -> f64 {
    let (n, targets) = (factored.residuals.nrows() as f64, factored.residuals.ncols() as f64);
    let fit: f64 =
        (0..factored.residuals.ncols()).map(|t| inner(&factored.residuals, &factored.weights, t)).sum();
    -0.5 * (fit + targets * (factored.cholesky.log_determinant() + n * (2.0 * std::f64::consts::PI).ln()))
}

fn inner(a: &Mat<f64>, b: &Mat<f64>, column: usize) -> f64 {
    a.col(column).iter().zip(b.col(column).iter()).map(|(x, y)| x * y).sum()
}

/// The kernel's gradient for a symmetric adjoint whose entry (i, j) is `entry(i, j, lower[max(i,j), min(i,j)])`.
pub(super) fn pull_back_lower(
    model: &ExactGp,
    data: &Observations,
    lower: MatRef<'_, f64>,
    entry: &(dyn Fn(usize, usize, f64) -> f64 + Sync),
) -> Vec<f64> {
    let request = Request { parameters: true, x: false, z: false };
    pullback_gram(
        model.kernel(),
        data.inputs(),
        &|rows, columns, mut tile| {
            for (b, j) in columns.enumerate() {
                for (a, i) in rows.clone().enumerate() {
                    tile[(a, b)] = entry(i, j, if i >= j { lower[(i, j)] } else { lower[(j, i)] });
                }
            }
        },
        request,
    )
    .parameters
}
