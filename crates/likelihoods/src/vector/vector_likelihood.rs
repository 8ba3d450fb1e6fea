//! The word that every likelihood of several latent values speaks.

use crate::LikelihoodError;
use rand::Rng;

/// `p(y | f)` for one observation `y` that depends on C latent values `f`.
///
/// Shapes: `y` holds [`target_width`](Self::target_width) numbers, `f` and gradients hold [`outputs`](Self::outputs) = C,
/// matrices are row-major, and S is [`root_width`](Self::root_width). Densities are in nats, against the counting measure for
/// classes, events and counts.
///
/// Targets should have passed [`check_target`](Self::check_target); others give NaN or the density of the formula, never a
/// panic. Latent values that are not finite give results that may be NaN.
///
/// # Panics
/// Every method that takes slices panics when one of them has not the length stated: that is a fault of the program, not of
/// its data.
pub trait VectorLikelihood: std::fmt::Debug + Send + Sync {
    /// C, the number of latent values of one observation.
    fn outputs(&self) -> usize;

    /// How many numbers one target has: 1 for a class index, C for Gaussian noise, events and counts, C/2 for
    /// heteroscedastic noise.
    fn target_width(&self) -> usize;

    /// Whether `y` can be observed at all.
    ///
    /// # Errors
    /// [`LikelihoodError::Length`] or [`LikelihoodError::Target`], which name the number and what would be valid.
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError>;

    /// `log p(y | f)`. Cost O(C), for correlated noise O(C²).
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64;

    /// `∂ log p / ∂f` (C numbers). Cost as [`log_density`](Self::log_density).
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// `-∂² log p / ∂f²` exactly (C x C). Indefinite for heteroscedastic noise.
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// `B` (C x C), the positive semi-definite matrix of a generalised Gauss-Newton approximation: the
    /// [`hessian`](Self::hessian) where that is positive semi-definite for all `f`, else the Fisher matrix
    /// `E[∇ log p ∇ log pᵀ]` under `y ~ p(. | f)`.
    fn curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// `B u` (C numbers) without forming `B`: O(C), for correlated noise O(C²).
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]);

    /// S, the number of columns of the root.
    fn root_width(&self) -> usize;

    /// `R` (C x S) with `R Rᵀ = B`.
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]);

    /// `R e` (C numbers) for S numbers `e`, at the cost of [`curvature_product`](Self::curvature_product). For `e ~ N(0, I)`
    /// the result is noise of covariance `B`, which exists even where `B⁻¹` does not.
    fn root_product(&self, y: &[f64], f: &[f64], e: &[f64], out: &mut [f64]);

    /// `Rᵀ u` (S numbers) for C numbers `u`; its squared norm is `uᵀ B u`, never negative.
    fn root_transpose_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]);

    /// Whether [`curvature`](Self::curvature) and the root depend on `y`. Where not, they can be asked for at inputs without
    /// targets, with any `y` of the right length.
    fn curvature_needs_target(&self) -> bool;

    /// Draws `y ~ p(. | f)` ([`target_width`](Self::target_width) numbers).
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]);
}
