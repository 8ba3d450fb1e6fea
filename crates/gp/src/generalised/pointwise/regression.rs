//! **Of numbers**: how likely the targets are under the latent marginals,
//!
//! ```text
//! (1/n) Σ_i [ ½ log 2π v_i + ½ (s β_i)² / v_i ],    v_i = s (1 - s G_ii)
//! ```
//!
//! It has no lower bound as s goes to zero, which is why a threshold ends its minimisation; the evidence, the default, has one.
//!
//! Source: spec `generalised_variational_inference`, section 2.2.

use super::OwnMarginals;
use crate::exact::ExactGp;
use crate::{GpError, Observations};
use faer::Mat;
use std::f64::consts::PI;

/// The risk, averaged over points and targets, with its gradient in the natural parameters of the model. Cost `O(n³)`.
///
/// # Errors
/// [`GpError::Cholesky`] when `K + σ² I` cannot be factored; [`GpError::Shape`].
pub fn pointwise_predictive_risk(model: &ExactGp, data: &Observations) -> Result<(f64, Vec<f64>), GpError> {
    let marginals = OwnMarginals::of(model, data)?;
    let (n, targets) = (data.rows(), data.targets().ncols());
    let scale = 1.0 / (n * targets) as f64;
    let mut value = 0.0;
    let (mut of_means, mut of_variances) = (Mat::zeros(n, targets), vec![0.0; n]);
    for (i, of_variance) in of_variances.iter_mut().enumerate() {
        let v = marginals.variance(i);
        for t in 0..targets {
            let r = marginals.residual(i, t);
            value += scale * 0.5 * ((2.0 * PI * v).ln() + r * r / v);
            *of_variance += scale * 0.5 * (1.0 - r * r / v) / v;
            of_means[(i, t)] = -scale * r / v;
        }
    }
    let gradient = marginals.pull_back(of_means.as_ref(), &of_variances);
    Ok((value, gradient))
}
