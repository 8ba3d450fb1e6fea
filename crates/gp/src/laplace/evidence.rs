//! Laplace's approximation of the log evidence, and its gradient.

use super::curvature::{Factors, curvature_of_row, seen};
use super::mode::{Found, Mode, find};
use super::model::LaplaceGp;
use crate::data::same_width;
use crate::{GpError, Observations};
use faer::Mat;
use posterior_kernels::{Request, gram_lower_into, pullback_gram};
use posterior_likelihoods::Likelihood;
use posterior_linalg::parallel;
use posterior_linalg::symmetric::mirror_lower;
use posterior_optim::{Parameters, Transform};

/// A log evidence with its gradient.
#[derive(Debug)]
pub struct LaplaceEvaluation {
    /// The approximate log evidence, nats.
    pub value: f64,
    /// Its gradient in the natural values, in the order of the model's parameters; empty where it was not asked for.
    pub gradient: Vec<f64>,
    /// The mode.
    pub mode: Mode,
    /// The largest jitter that was added to a factored matrix (whose diagonal is one or more).
    pub jitter: f64,
}

/// K, both triangles.
pub(super) fn kernel_matrix(model: &LaplaceGp, data: &Observations) -> Mat<f64> {
    let n = data.rows();
    let mut kernel = Mat::zeros(n, n);
    gram_lower_into(model.kernel(), data.inputs(), kernel.as_mut());
    mirror_lower(kernel.as_mut());
    kernel
}

pub(super) fn value(found: &Found) -> f64 {
    let Found { mode, factors, mean } = found;
    let moved = &mode.latent - mean;
    let quadratic: f64 = (0..moved.ncols())
        .map(|k| {
            let pairs = mode.coefficients.col_as_slice(k).iter().zip(moved.col_as_slice(k));
            pairs.map(|(a, f)| a * f).sum::<f64>()
        })
        .sum();
    mode.log_likelihood - 0.5 * quadratic - 0.5 * factors.log_determinant()
}

/// The log evidence at the model's hyperparameters, without gradient. Cost: for each Newton step `C n³/3` flops, for classes `C n³`; `8 (C + 3) n²` bytes.
///
/// # Errors
/// [`GpError::Shape`], a target that the likelihood cannot produce, [`GpError::Cholesky`].
pub fn laplace_evidence(
    model: &LaplaceGp,
    data: &Observations,
    start: Option<&Mat<f64>>,
) -> Result<LaplaceEvaluation, GpError> {
    model.check(data)?;
    let kernel = kernel_matrix(model, data);
    let found = find(model, data, kernel.as_ref(), start)?;
    let (value, jitter) = (value(&found), found.factors.jitter());
    Ok(LaplaceEvaluation { value, gradient: Vec::new(), mode: found.mode, jitter })
}

/// The log evidence with its gradient, exact up to the central differences by which third derivatives of the log-likelihood, and its derivatives in its own parameters, are taken (relative error about 1e-7). `start` are coefficients of a mode nearby. Cost beyond the mode: `2 C n³` flops, for classes `6 C n³`; `8 (2C + 4) n²` bytes.
///
/// # Errors
/// As [`laplace_evidence`].
pub fn laplace_evidence_and_gradient(
    model: &LaplaceGp,
    data: &Observations,
    start: Option<&Mat<f64>>,
) -> Result<LaplaceEvaluation, GpError> {
    model.check(data)?;
    let kernel = kernel_matrix(model, data);
    let found = find(model, data, kernel.as_ref(), start)?;
    let value = value(&found);
    let Found { mode, factors, .. } = &found;
    let (n, c) = mode.latent.shape();

    // How the determinant changes with latent values, and what that is in terms of K and the means.
    let covariances = factors.covariances(kernel.as_ref());
    let slopes = determinant_slopes(model, data, mode, &covariances);
    let through = factors.times_inverse(&super::curvature::times_kernel(kernel.as_ref(), &slopes));
    let pulled = &slopes - through;

    let mut adjoint = Mat::<f64>::zeros(n, n);
    for k in 0..c {
        let block = factors.inverse_block(k);
        let (a, u) = (mode.coefficients.col_as_slice(k), pulled.col_as_slice(k));
        for j in 0..n {
            let out = adjoint.col_as_slice_mut(j);
            for i in j..n {
                out[i] += 0.5 * (a[i] * a[j] - block[(i, j)] + u[i] * a[j] + a[i] * u[j]);
            }
        }
    }
    let request = Request { parameters: true, x: false, z: false };
    let tile =
        |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, mut tile: faer::MatMut<'_, f64>| {
            for (b, j) in columns.enumerate() {
                for (a, i) in rows.clone().enumerate() {
                    tile[(a, b)] = if i >= j { adjoint[(i, j)] } else { adjoint[(j, i)] };
                }
            }
        };
    let of_kernel = pullback_gram(model.kernel(), data.inputs(), &tile, request).parameters;
    let of_mean = model.mean().pullback(data.inputs(), (&mode.coefficients + &pulled).as_ref());
    let moves = super::curvature::times_kernel(kernel.as_ref(), &pulled);
    let of_likelihood = likelihood_gradient(model, data, mode, &covariances, &moves);
    let gradient = [of_kernel, of_mean, of_likelihood].concat();
    let jitter = factors.jitter();
    Ok(LaplaceEvaluation { value, gradient, mode: found.mode, jitter })
}

/// `-½ ∂ log |I + K W| / ∂F`, n x C: minus half the trace of each row's posterior covariance with the derivative of its curvature, by central differences.
fn determinant_slopes(model: &LaplaceGp, data: &Observations, mode: &Mode, covariances: &[f64]) -> Mat<f64> {
    let (n, c) = mode.latent.shape();
    let likelihood = model.likelihood();
    let rows: Vec<Vec<f64>> = parallel::map(n, 32, |i| {
        let y: Vec<f64> = data.targets().row(i).iter().copied().collect();
        let f = seen(data, &mode.latent, i);
        let weight = data.weights().map_or(1.0, |w| w[i]);
        let covariance = &covariances[i * c * c..][..c * c];
        let mut matrix = vec![0.0; c * c];
        let mut trace = |f: &[f64]| -> f64 {
            curvature_of_row(likelihood, &y, f, &mut matrix);
            matrix.iter().zip(covariance).map(|(w, s)| w * s).sum()
        };
        (0..c)
            .map(|k| {
                let step = 1e-4 * f[k].abs().max(1.0);
                let mut moved = f.clone();
                let mut at = |by: f64| {
                    moved[k] = f[k] + by;
                    trace(&moved)
                };
                // Of fourth order.
                let slope =
                    (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
                -0.5 * weight * slope
            })
            .collect()
    });
    Mat::from_fn(n, c, |i, k| rows[i][k])
}

/// What the evidence gains by the likelihood's own parameters: the density and the determinant at the mode, and what the mode's move does to the determinant. With a parameter's change the gradient `g` changes at each row, hence the mode by
/// `(K⁻¹ + W)⁻¹ ∂g`, of which `moves` (n x C) is the product with the determinant's slopes. By central differences of what single rows say, in the parameters' unconstrained coordinates.
fn likelihood_gradient(
    model: &LaplaceGp,
    data: &Observations,
    mode: &Mode,
    covariances: &[f64],
    moves: &Mat<f64>,
) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let c = mode.latent.ncols();
    let values = model.likelihood.values();
    let entries = model.likelihood.segments();
    let entries = entries.iter().flat_map(|own| (0..own.len()).map(|position| (own.transform, position)));
    let of_rows = |likelihood: &dyn Likelihood| -> f64 {
        let values = parallel::map(data.rows(), 64, |i| {
            let y: Vec<f64> = data.targets().row(i).iter().copied().collect();
            let f = seen(data, &mode.latent, i);
            let (mut gradient, mut matrix) = (vec![0.0; c], vec![0.0; c * c]);
            likelihood.gradient(&y, &f, &mut gradient);
            curvature_of_row(likelihood, &y, &f, &mut matrix);
            let moved: f64 = gradient.iter().enumerate().map(|(k, g)| g * moves[(i, k)]).sum();
            let covariance = &covariances[i * c * c..][..c * c];
            let trace: f64 = matrix.iter().zip(covariance).map(|(w, s)| w * s).sum();
            let weight = data.weights().map_or(1.0, |w| w[i]);
            weight * (likelihood.log_density(&y, &f) + moved - 0.5 * trace)
        });
        // In order, so that the sum does not depend on the number of threads.
        values.into_iter().sum()
    };
    let mut moved = model.likelihood.clone();
    let derivative = |(p, (transform, position)): (usize, (Transform, usize))| {
        let here = transform.inverse(position, values[p]);
        let mut at = |by: f64| {
            let mut other = values.clone();
            other[p] = transform.forward(position, here + by);
            moved.set_values(&other);
            (of_rows(&*moved), other[p])
        };
        let ((above, more), (below, less)) = (at(STEP), at(-STEP));
        if more > less { (above - below) / (more - less) } else { 0.0 }
    };
    entries.enumerate().map(derivative).collect()
}

/// The factors at a mode that is known, for a posterior.
pub(super) fn factors_at(
    model: &LaplaceGp,
    data: &Observations,
    start: Option<&Mat<f64>>,
) -> Result<(Mode, Factors, Mat<f64>), GpError> {
    same_width("columns of the inputs", model.mean().input_dimension(), data.inputs().ncols())?;
    let kernel = kernel_matrix(model, data);
    let Found { mode, factors, .. } = find(model, data, kernel.as_ref(), start)?;
    Ok((mode, factors, kernel))
}
