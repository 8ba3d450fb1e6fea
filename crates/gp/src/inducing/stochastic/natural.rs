//! **Natural gradients** of q: steps along its natural parameters, in which the bound of a conjugate model is solved by one step of
//! length 1.
//!
//! In whitened coordinates, precision `Λ = (R Rᵀ)⁻¹` and `θ = Λ mean`, a step of length ρ is
//!
//! ```text
//! Λ <- (1 - ρ) Λ + ρ (I - 2G)          θ <- (1 - ρ) θ + ρ (g - 2 G mean)
//! ```
//!
//! with the data term's gradients g in the mean and G in the covariance (Khan and Lin 2017; Salimbeni, Eleftheriadis and Hensman
//! 2018). Where the log density is concave, `-G` is positive semi-definite and so is every Λ on the way.

use super::StochasticEvaluation;
use crate::GpError;
use crate::inducing::InducingDistribution;
use crate::inducing::distribution::{inverse_of_lower, root_of_inverse, symmetric_product};
use faer::Mat;
use faer::linalg::matmul::triangular::BlockStructure::{TriangularLower, TriangularUpper};
use posterior_linalg::dense::product;

/// Halvings of a step that would leave the positive-definite matrices, before it is an error.
const HALVINGS: usize = 30;

/// Moves q by a natural-gradient step of `length` in (0, 1]. A step after which a precision would not be positive definite, which
/// only likelihoods without concave log densities ask for, is halved until it is. Returns the shortest length taken.
/// Cost about `2m³` flops a root.
///
/// # Errors
/// When no length is short enough: the gradients are not finite.
pub fn natural_step(
    distribution: &mut InducingDistribution,
    evaluation: &StochasticEvaluation,
    length: f64,
) -> Result<f64, GpError> {
    let count = distribution.sharing() as f64;
    let mut shortest = length;
    for index in 0..distribution.roots.len() {
        let g = &evaluation.covariances[index];
        let m = g.nrows();
        let latents: Vec<usize> =
            (0..distribution.latents()).filter(|&c| distribution.root_of(c) == index).collect();
        let inverse = inverse_of_lower(distribution.roots[index].as_ref());
        let upper = (inverse.transpose(), TriangularUpper);
        let old = symmetric_product(upper, (inverse.as_ref(), TriangularLower), 1.0);
        let mut rho = length;
        let mut halvings = 0;
        let root = loop {
            let toward = |i: usize, j: usize| f64::from(u8::from(i == j)) - 2.0 * g[(i, j)] / count;
            let precision = Mat::from_fn(m, m, |i, j| (1.0 - rho) * old[(i, j)] + rho * toward(i, j));
            match root_of_inverse(precision.as_ref()) {
                Ok(root) => break root,
                Err(error) if halvings == HALVINGS => return Err(error),
                Err(_) => (rho, halvings) = (0.5 * rho, halvings + 1),
            }
        };
        shortest = shortest.min(rho);
        for &c in &latents {
            let mut mean = distribution.mean.as_mut().subcols_mut(c, 1);
            let natural = product(old.as_ref(), mean.as_ref());
            let pulled = product(g.as_ref(), mean.as_ref());
            let theta = Mat::from_fn(m, 1, |i, _| {
                let toward = evaluation.mean[(i, c)] - 2.0 * pulled[(i, 0)] / count;
                (1.0 - rho) * natural[(i, 0)] + rho * toward
            });
            mean.copy_from(product(root.as_ref(), (root.transpose() * theta).as_ref()));
        }
        distribution.roots[index] = root;
    }
    Ok(shortest)
}
