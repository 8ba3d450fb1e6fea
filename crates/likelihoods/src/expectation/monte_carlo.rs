//! Energies by **Monte Carlo** over correlated latent values.

use crate::{Likelihood, LikelihoodError};
use faer::Mat;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// Where the slopes of an energy in correlated latent values go.
#[derive(Debug)]
pub struct CorrelatedSlopes<'a> {
    /// In the latent means (C), written.
    pub means: &'a mut [f64],
    /// In the latent covariance (C x C, symmetric: the change of the energy is the sum of the products of entries), written.
    pub covariance: &'a mut [f64],
}

/// `-(1/α) log E[p(y | f)^α]` for `f ~ N(mean, covariance)` (C x C, row-major), 0 < α <= 1, from `pairs` pairs of draws that are mirror images about the mean.
///
/// Slopes are the expectations that the exact energy has as slopes (Bonnet's and Price's theorems) under the same draws, `-E_t[∇l]` in the mean and
/// `½ E_t[-∇²l - α ∇l ∇lᵀ]` in the covariance, where draws are weighted by `p^α`; so they belong to the exact energy up to the error of the sampling, which falls as
/// `1/√pairs`. The value is biased upwards by about the variance of `p^α` over `2 α pairs`. Cost `O(pairs C²)`.
///
/// Parameters of the likelihood have no slopes here.
///
/// # Errors
/// When the covariance is not one, by more than rounding; [`LikelihoodError::Flat`] for a density that is flat between jumps, whose slopes draws do not see.
pub fn sampled_alpha_energy(
    likelihood: &dyn Likelihood,
    alpha: f64,
    y: &[f64],
    (mean, covariance): (&[f64], &[f64]),
    pairs: usize,
    rng: &mut dyn Rng,
    slopes: CorrelatedSlopes<'_>,
) -> Result<f64, LikelihoodError> {
    likelihood.check_curvature()?;
    let c = likelihood.outputs();
    let mut root = Mat::new();
    crate::predictive::root(covariance, c, &mut root)?;
    let count = 2 * pairs.max(1);
    let mut draws = vec![0.0; count * c];
    let mut normals = vec![0.0; c];
    for pair in draws.chunks_exact_mut(2 * c) {
        normals.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
        for i in 0..c {
            let moved: f64 = (0..c).map(|k| root[(i, k)] * normals[k]).sum();
            (pair[i], pair[c + i]) = (mean[i] + moved, mean[i] - moved);
        }
    }
    let mut weights: Vec<f64> = draws.chunks_exact(c).map(|f| alpha * likelihood.log_density(y, f)).collect();
    let peak = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    weights.iter_mut().for_each(|w| *w = (*w - peak).exp());
    let total: f64 = weights.iter().sum();
    slopes.means.fill(0.0);
    slopes.covariance.fill(0.0);
    let (mut gradient, mut hessian) = (vec![0.0; c], vec![0.0; c * c]);
    for (f, weight) in draws.chunks_exact(c).zip(&weights) {
        let weight = weight / total;
        likelihood.gradient(y, f, &mut gradient);
        likelihood.hessian(y, f, &mut hessian);
        for i in 0..c {
            slopes.means[i] -= weight * gradient[i];
            for j in 0..c {
                slopes.covariance[i * c + j] +=
                    0.5 * weight * (hessian[i * c + j] - alpha * gradient[i] * gradient[j]);
            }
        }
    }
    Ok(-(peak + (total / count as f64).ln()) / alpha)
}
