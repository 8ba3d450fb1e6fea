//! The collapsed bound and its exact gradient in every hyperparameter and inducing input: evidence and penalty of the whitened features
//! ([`posterior_linear::low_rank`]), whose gradients go back through `K_ZX` row by row and through `K_ZZ` once.

use super::CollapsedGp;
use super::accumulate::Accumulated;
use crate::{GpError, RowSource};
use posterior_kernels::{Request, pullback_diagonal};

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
/// points; `O(m²)` memory. Rows may be in memory or in files: they are read once, in their order.
///
/// # Errors
/// [`GpError::Cholesky`] when `K_ZZ` cannot be factored, [`GpError::Shape`] when widths differ, [`GpError::Rows`] where rows cannot be read.
pub fn collapsed_bound(model: &CollapsedGp, data: &dyn RowSource) -> Result<f64, GpError> {
    Ok(model.accumulate(data)?.evidence.value)
}

/// The bound with its gradient. Cost `6nm²` flops, three passes over the kernel matrix and two over the rows; `O(m²)` memory.
///
/// # Errors
/// As [`collapsed_bound`].
pub fn collapsed_bound_and_gradient(
    model: &CollapsedGp,
    data: &dyn RowSource,
) -> Result<CollapsedEvaluation, GpError> {
    let Accumulated { whitening, evidence } = model.accumulate(data)?;
    let value = evidence.value;
    let evidence = evidence.gradient();
    let m = model.inducing.nrows();
    let (kernel, z, moving) = (model.kernel(), model.inducing(), model.learn_inducing);
    let through_factor = whitening.pull_back_factor(kernel, z, evidence.outer(), moving);
    let mut parameters = through_factor.parameters;
    let mut inducing = through_factor.x;

    let mut mean_gradient = vec![0.0; posterior_optim::Parameters::values(&model.mean).len()];
    let mut noise_gradient = 0.0;
    for rows in model.blocks(data.rows()) {
        let seen = data.block(rows)?;
        let x = seen.inputs();
        let mut block = evidence.block(&model.scaled(&seen, &whitening)?);
        noise_gradient += block.noise.iter().sum::<f64>();
        let part = whitening.pull_back_features(kernel, z, x, &mut block.features, moving);
        add(&mut parameters, &part.parameters);
        if let (Some(total), Some(part)) = (&mut inducing, part.x) {
            *total += part;
        }
        add(&mut parameters, &pullback_diagonal(kernel, x, &block.variances, Request::PARAMETERS).parameters);
        add(&mut mean_gradient, &model.mean.pullback(x, block.means.as_ref()));
    }
    let inducing =
        inducing.map_or_else(|| vec![0.0; m * z.ncols()], |g| crate::inducing::prior::by_columns(&g));
    let gradient = [parameters, mean_gradient, vec![noise_gradient], inducing].concat();
    Ok(CollapsedEvaluation { value, gradient, relative_jitter: whitening.relative_jitter })
}

pub(super) fn add(total: &mut [f64], part: &[f64]) {
    total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
}
