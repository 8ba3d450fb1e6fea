//! The density of many observations together, which sees how their latent values vary together.

use crate::special::softmax::log_sum_exp;
use crate::{Likelihood, LikelihoodError};

/// One point of a group, observed `count` times with the same target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointPoint<'a> {
    /// The target.
    pub target: &'a [f64],
    /// How often it was observed.
    pub count: usize,
}

/// `log (1/S) Σ_s Π_i p(y_i | f_s(x_i))^{n_i}`: the joint log density of a group of points under S sampled functions, in nats.
///
/// `latent` holds the values of the functions as S x points x C, row-major. Marginal densities cannot tell a model that knows
/// which of its errors go together from one that does not; this can. With one point and `n = 1` it is the Monte Carlo marginal.
/// Cost `O(S · points · C)`.
///
/// Source: Osband et al. (2022), *Evaluating high-order predictive distributions in deep learning* (dyadic sampling draws the
/// group and the counts `n_i`).
///
/// # Errors
/// When `latent` has not the size stated, there is no sample, or a target is not valid.
pub fn joint_log_density<L: Likelihood + ?Sized>(
    likelihood: &L,
    points: &[JointPoint<'_>],
    samples: usize,
    latent: &[f64],
) -> Result<f64, LikelihoodError> {
    let outputs = likelihood.outputs();
    let per_sample = points.len().saturating_mul(outputs);
    if samples == 0 || latent.len() != per_sample.saturating_mul(samples) {
        return Err(LikelihoodError::Length {
            owner: "joint",
            what: "the list of sampled latent values",
            needed: per_sample.saturating_mul(samples.max(1)),
            found: latent.len(),
            remedy: "give samples x points x outputs numbers, and at least one sample",
        });
    }
    for point in points {
        likelihood.check_target(point.target)?;
    }
    let totals: Vec<f64> = (0..samples)
        .map(|s| {
            let values = &latent[s * per_sample..(s + 1) * per_sample];
            points
                .iter()
                .zip(values.chunks(outputs))
                // A point that was not observed must not turn a density of zero into 0 · -∞.
                .filter(|(point, _)| point.count > 0)
                .map(|(point, f)| point.count as f64 * likelihood.log_density(point.target, f))
                .sum()
        })
        .collect();
    Ok(log_sum_exp(&totals) - (samples as f64).ln())
}
