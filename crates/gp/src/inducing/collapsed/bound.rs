//! The collapsed bound and its exact gradient in every hyperparameter and inducing input.
//!
//! Adjoints, T targets: of Ψ it is `Γ = ½ T (I - W⁻¹) - ½ C Cᵀ`, of P it is `C = W⁻¹ P`, hence of the features of row i
//! `(2Γ v_i + C r̃_i) / √s_i`, whose outer product with the features sums to `2ΓΨ + C Pᵀ` in closed form.

use super::CollapsedGp;
use super::accumulate::Accumulated;
use crate::inducing::distribution::add_lower_product;
use crate::{GpError, Observations};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Accum, Mat, MatRef};
use posterior_kernels::{Request, pullback_diagonal};
use posterior_linalg::cholesky::Cholesky;
use posterior_linalg::dense::{multiply_into, product};
use posterior_linalg::symmetric::mirror_lower;

/// A bound with its gradient in the natural parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct CollapsedEvaluation {
    /// The bound, in nats, summed over the targets.
    pub value: f64,
    /// Its gradient in the natural values, in the order of the model's parameters.
    pub gradient: Vec<f64>,
    /// What was added to the diagonal of `K_ZZ`, relative to its mean.
    pub relative_jitter: f64,
}

/// The collapsed bound on the log evidence, summed over targets. Cost `2nm²` flops and the kernel matrix of data and inducing
/// points; `O(m²)` memory.
///
/// # Errors
/// [`GpError::Cholesky`] when `K_ZZ` cannot be factored, [`GpError::Shape`] when widths differ.
pub fn collapsed_bound(model: &CollapsedGp, data: &Observations) -> Result<f64, GpError> {
    Ok(model.accumulate(data)?.bound)
}

/// The bound with its gradient. Cost `6nm²` flops and three passes over the kernel matrix; `O(m²)` memory.
///
/// # Errors
/// As [`collapsed_bound`].
pub fn collapsed_bound_and_gradient(
    model: &CollapsedGp,
    data: &Observations,
) -> Result<CollapsedEvaluation, GpError> {
    let Accumulated { whitening, psi, w, projected, weights, bound } = model.accumulate(data)?;
    let (m, targets) = (model.inducing.nrows(), data.targets().ncols() as f64);
    let (kernel, z, moving) = (model.kernel(), model.inducing(), model.learn_inducing);
    let c = weights.as_ref();
    let gamma = adjoint_of_psi(w, c);

    // 2ΓΨ + C Pᵀ, lower triangle.
    let mut outer = Mat::zeros(m, m);
    add_lower_product(&mut outer, (gamma.as_ref(), Rectangular), (psi.as_ref(), Rectangular), 2.0);
    add_lower_product(&mut outer, (c, Rectangular), (projected.transpose(), Rectangular), 1.0);
    drop(psi);
    let through_factor = whitening.pull_back_factor(kernel, z, outer, moving);
    let mut parameters = through_factor.parameters;
    let mut inducing = through_factor.x;

    let mut mean_gradient = vec![0.0; posterior_optim::Parameters::values(&model.mean).len()];
    let mut noise_gradient = 0.0;
    for rows in model.blocks(data) {
        let block = model.block(data, &whitening, rows);
        let x = data.inputs().subrows(block.rows.start, block.rows.len());
        let mut adjoint = product(gamma.as_ref(), block.scaled.as_ref());
        // Σ_t v_iᵀ C_t r̃_ti needs V'C (b x T).
        let fitted = block.scaled.transpose() * c;
        let mut mean_adjoint = Mat::zeros(block.rows.len(), c.ncols());
        for (i, &s) in block.noise.iter().enumerate() {
            let v = block.scaled.col_as_slice(i);
            let quadratic: f64 = v.iter().zip(adjoint.col_as_slice(i)).map(|(v, g)| v * g).sum();
            let (mut squares, mut crossed) = (0.0, 0.0);
            for t in 0..c.ncols() {
                let residual = block.residuals[(i, t)];
                squares += residual * residual;
                crossed += residual * fitted[(i, t)];
                mean_adjoint[(i, t)] = (residual - fitted[(i, t)]) / s.sqrt();
            }
            let own = 0.5 * (targets * (block.variances[i] / s - 1.0) + squares);
            noise_gradient += (own - quadratic - crossed) / s;
        }
        multiply_into(adjoint.as_mut(), Accum::Add, c, block.residuals.transpose(), 0.5);
        for (i, s) in block.noise.iter().enumerate() {
            let scale = 2.0 / s.sqrt();
            adjoint.col_as_slice_mut(i).iter_mut().for_each(|a| *a *= scale);
        }
        let part = whitening.pull_back_features(kernel, z, x, &mut adjoint, moving);
        add(&mut parameters, &part.parameters);
        if let (Some(total), Some(part)) = (&mut inducing, part.x) {
            *total += part;
        }
        let of_variances: Vec<f64> = block.noise.iter().map(|s| -0.5 * targets / s).collect();
        add(&mut parameters, &pullback_diagonal(kernel, x, &of_variances, Request::PARAMETERS).parameters);
        add(&mut mean_gradient, &model.mean.pullback(x, mean_adjoint.as_ref()));
    }
    let inducing =
        inducing.map_or_else(|| vec![0.0; m * z.ncols()], |g| crate::inducing::prior::by_columns(&g));
    let gradient = [parameters, mean_gradient, vec![noise_gradient], inducing].concat();
    Ok(CollapsedEvaluation { value: bound, gradient, relative_jitter: whitening.relative_jitter })
}

/// `Γ = ½ T (I - W⁻¹) - ½ C Cᵀ` of the targets that are the columns of C, both triangles.
pub(super) fn adjoint_of_psi(w: Cholesky, c: MatRef<'_, f64>) -> Mat<f64> {
    let targets = c.ncols() as f64;
    let mut gamma = w.into_inverse();
    for j in 0..gamma.ncols() {
        gamma.col_as_slice_mut(j).iter_mut().for_each(|g| *g *= -0.5 * targets);
        gamma[(j, j)] += 0.5 * targets;
    }
    add_lower_product(&mut gamma, (c, Rectangular), (c.transpose(), Rectangular), -0.5);
    mirror_lower(gamma.as_mut());
    gamma
}

pub(super) fn add(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
}
