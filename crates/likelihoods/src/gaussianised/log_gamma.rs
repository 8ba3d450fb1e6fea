//! Gaussians for the logarithm of a **Gamma** variable, and of its relatives.
//!
//! `ω ~ Gamma(α, β)` (shape and rate) has `ψ = log ω` with the density `∝ exp(α ψ - β e^ψ)`. Rates only move it: `log ω + log β` has
//! the rate 1. With it, and `dm/dα`, `dv/dα` below:
//!
//! | matching | `m + log β` | `v` | `dm/dα` | `dv/dα` |
//! |---|---|---|---|---|
//! | moment-original | `log α - ½ log(1 + 1/α)` | `log(1 + 1/α)` | `1/α + 1/(2α(1+α))` | `-1/(α(1+α))` |
//! | moment | `ψ(α)` | `ψ₁(α)` | `ψ₁(α)` | `ψ₂(α)` |
//! | Laplace | `log α` | `1/α` | `1/α` | `-1/α²` |
//! | variational | `log α - 1/(2α)` | `1/α` | `1/α + 1/(2α²)` | `-1/α²` |
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*; spec `likelihood_approximations`, sections 3 and 4.1.

use super::fit::{check_positive, moments_of_a_gamma_only};
use super::{Fit, Matching};
use crate::LikelihoodError;
use crate::special::polygamma::{digamma, tetragamma, trigamma};

/// The Gaussian for `log ω`, `ω ~ Gamma(shape, rate)`, whose mean is `shape / rate`. Slopes in shape and rate. Cost O(1).
///
/// # Errors
/// [`LikelihoodError::Parameter`] unless shape and rate are positive, finite, and large enough for variance and slopes to be numbers of
/// the machine (from about 1e-100 on they are).
pub fn gamma(matching: Matching, shape: f64, rate: f64) -> Result<Fit<2>, LikelihoodError> {
    log_gamma("gamma", matching, ("shape", shape), ("rate", rate))
}

/// The Gaussian for `log ω`, `ω ~ Exponential(rate)`, whose mean is `1 / rate`: [`gamma`] with shape 1. Slopes in the rate. Cost O(1).
///
/// # Errors
/// [`LikelihoodError::Parameter`] as [`gamma`], and for [`Matching::MomentOriginal`].
pub fn exponential(matching: Matching, rate: f64) -> Result<Fit<1>, LikelihoodError> {
    let owner = "exponential";
    if matching == Matching::MomentOriginal {
        return moments_of_a_gamma_only(owner);
    }
    let Fit { observation, slopes, newton_steps } =
        log_gamma(owner, matching, ("shape", 1.0), ("rate", rate))?;
    Ok(Fit { observation, slopes: [slopes[1]], newton_steps })
}

/// The Gaussian for `log ω`, `1/ω ~ Gamma(shape, rate = scale)`: that of [`gamma`] mirrored. Slopes in shape and scale. Cost O(1).
///
/// # Errors
/// [`LikelihoodError::Parameter`] as [`gamma`], and for [`Matching::MomentOriginal`].
pub fn inverse_gamma(matching: Matching, shape: f64, scale: f64) -> Result<Fit<2>, LikelihoodError> {
    let owner = "inverse gamma";
    if matching == Matching::MomentOriginal {
        return moments_of_a_gamma_only(owner);
    }
    let mut fit = log_gamma(owner, matching, ("shape", shape), ("scale", scale))?;
    fit.observation.target = -fit.observation.target;
    fit.slopes.iter_mut().for_each(|s| s.target = -s.target);
    Ok(fit)
}

/// The Gaussian for `log ω`, `ω` chi-squared with so many degrees of freedom (its mean): [`gamma`] with shape `k / 2` and rate 1/2. Slopes
/// in the degrees of freedom. Cost O(1).
///
/// # Errors
/// [`LikelihoodError::Parameter`] as [`gamma`], and for [`Matching::MomentOriginal`].
pub fn chi_squared(matching: Matching, degrees_of_freedom: f64) -> Result<Fit<1>, LikelihoodError> {
    let (owner, name) = ("chi-squared", "degrees_of_freedom");
    if matching == Matching::MomentOriginal {
        return moments_of_a_gamma_only(owner);
    }
    check_positive(owner, name, degrees_of_freedom)?;
    let fit = log_gamma(owner, matching, (name, 0.5 * degrees_of_freedom), ("rate", 0.5))?;
    let mut toward = fit.slopes[0];
    (toward.target, toward.variance) = (0.5 * toward.target, 0.5 * toward.variance);
    Ok(Fit { observation: fit.observation, slopes: [toward], newton_steps: 0 })
}

fn log_gamma(
    owner: &'static str,
    matching: Matching,
    shape: (&str, f64),
    rate: (&str, f64),
) -> Result<Fit<2>, LikelihoodError> {
    check_positive(owner, shape.0, shape.1)?;
    check_positive(owner, rate.0, rate.1)?;
    let (a, inverse) = (shape.1, 1.0 / shape.1);
    let (target, variance, target_slope, variance_slope) = match matching {
        Matching::MomentOriginal => {
            let (v, slope) = (inverse.ln_1p(), inverse / (1.0 + a));
            (a.ln() - 0.5 * v, v, inverse + 0.5 * slope, -slope)
        }
        Matching::Moment => (digamma(a), trigamma(a), trigamma(a), tetragamma(a)),
        Matching::Laplace => (a.ln(), inverse, inverse, -inverse * inverse),
        Matching::Variational => {
            let square = inverse * inverse;
            (a.ln() - 0.5 * inverse, inverse, inverse + 0.5 * square, -square)
        }
    };
    let target = (target - rate.1.ln(), [target_slope, -1.0 / rate.1]);
    Fit::closed(target, (variance, [variance_slope, 0.0])).checked(owner, [shape, rate])
}
