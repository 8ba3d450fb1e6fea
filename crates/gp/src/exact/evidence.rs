//! The **log evidence** `log p(y | X, θ)` and its exact gradient.
//!
//! The adjoint of `K̃` is `G = ½ (Σ_t α_t α_tᵀ - T K̃⁻¹)` (spec `stochastic_gaussian_processes`, section 9.1). It is never stored: the
//! inverse stands in the buffer of the factor and each tile of `G` is formed where the kernel pulls it back.

use super::model::{ExactGp, Factored};
use super::weighted::gained;
use crate::{GpError, Observations};
use faer::{Mat, MatRef};
use posterior_kernels::{Adjoints, Request, pullback_gram};
use posterior_linalg::cholesky::{Cholesky, CholeskyInfo};

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
    let value = value(&factored) + gained(model, data).0 * factored.weights.ncols() as f64;
    let cholesky = factored.cholesky.info();
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
    Ok(differentiated(model, data, factored, false).0)
}

/// The log evidence and its gradient from a factor that is there, in whose place the inverse comes; and, where `inputs` is true, its slopes in the inputs (n x D), through kernel and mean. Cost `2n³/3` flops plus one pass over the
/// kernel matrix.
pub(super) fn differentiated(
    model: &ExactGp,
    data: &Observations,
    factored: Factored,
    inputs: bool,
) -> (Evaluation, Option<Mat<f64>>) {
    let (of_weights, slope) = gained(model, data);
    let targets = factored.weights.ncols() as f64;
    let value = value(&factored) + of_weights * targets;
    let Factored { cholesky, weights, .. } = factored;
    let info = cholesky.info();
    let inverse = cholesky.into_inverse();
    let adjoint = |i: usize, j: usize, inverse: f64| {
        let outer: f64 = (0..weights.ncols()).map(|t| weights[(i, t)] * weights[(j, t)]).sum();
        0.5 * (outer - targets * inverse)
    };
    let request = Request { x: inputs, ..Request::PARAMETERS };
    let kernel = pull_back_lower(model, data, inverse.as_ref(), &adjoint, request);
    let of_row = |i: usize| data.weights().map_or(1.0, |w| w[i]);
    let noise = (0..data.rows()).map(|i| adjoint(i, i, inverse[(i, i)]) / of_row(i)).sum::<f64>();
    let noise = noise + targets * slope;
    let mean = model.mean().pullback(data.inputs(), weights.as_ref());
    let slopes = kernel.x.map(|mut slopes| {
        model.mean().add_input_slopes(weights.as_ref(), &mut slopes);
        slopes
    });
    let gradient = model.gradient(kernel.parameters, mean, noise);
    (Evaluation { value, gradient, cholesky: info, buffer: inverse }, slopes)
}

/// `Σ_t [-½ r_tᵀα_t] - (T/2) log det K̃ - (nT/2) log 2π`
fn value(factored: &Factored) -> f64 {
    let Factored { cholesky, residuals, weights } = factored;
    value_of(cholesky, residuals, weights)
}

/// See [`value`].
pub(super) fn value_of(cholesky: &Cholesky, residuals: &Mat<f64>, weights: &Mat<f64>) -> f64 {
    let (n, targets) = (residuals.nrows() as f64, residuals.ncols() as f64);
    let fit: f64 = (0..residuals.ncols()).map(|t| inner(residuals, weights, t)).sum();
    -0.5 * (fit + targets * (cholesky.log_determinant() + n * (2.0 * std::f64::consts::PI).ln()))
}

fn inner(a: &Mat<f64>, b: &Mat<f64>, column: usize) -> f64 {
    a.col(column).iter().zip(b.col(column).iter()).map(|(x, y)| x * y).sum()
}

/// What the kernel is asked for, for a symmetric adjoint whose entry (i, j) is `entry(i, j, lower[max(i,j), min(i,j)])`.
pub(super) fn pull_back_lower(
    model: &ExactGp,
    data: &Observations,
    lower: MatRef<'_, f64>,
    entry: &(dyn Fn(usize, usize, f64) -> f64 + Sync),
    request: Request,
) -> Adjoints<f64> {
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
}
