//! Gaussians for the logit of a **Beta** variable.
//!
//! `ω ~ Beta(α, β)` has `ψ = log(ω / (1 - ω))` with the density `∝ φ(ψ)^α (1 - φ(ψ))^β`, `φ` the logistic function.
//!
//! | matching | `m` | `v` |
//! |---|---|---|
//! | moment | `ψ(α) - ψ(β)` | `ψ₁(α) + ψ₁(β)` |
//! | Laplace | `log α - log β` | `1/α + 1/β` |
//! | variational | by Newton's method (`variational`) | |
//!
//! Source: spec `likelihood_approximations`, sections 3, 3.1 and 4.2.

use super::fit::{check_positive, moments_of_a_gamma_only};
use super::{Fit, Matching, variational};
use crate::LikelihoodError;
use crate::special::polygamma::{digamma, tetragamma, trigamma};

/// The Gaussian for the logit of `ω ~ Beta(first, second)`, whose mean is `first / (first + second)`. Slopes in both. Exchanging the two
/// changes the sign of the mean, and nothing else.
///
/// Cost O(1); the variational one takes one to five steps of Newton's method, of 10 µs each, or 90 µs where the Gaussian is wide.
///
/// # Errors
/// [`LikelihoodError::Parameter`] for [`Matching::MomentOriginal`], and unless both are positive, finite, and such that mean, variance and
/// slopes are numbers of the machine (from 1e-100 on they are).
pub fn beta(matching: Matching, first: f64, second: f64) -> Result<Fit<2>, LikelihoodError> {
    let owner = "beta";
    check_positive(owner, "first", first)?;
    check_positive(owner, "second", second)?;
    let (a, b) = (1.0 / first, 1.0 / second);
    let fit = match matching {
        Matching::MomentOriginal => return moments_of_a_gamma_only(owner),
        Matching::Moment => {
            let (up, down) = (trigamma(first), trigamma(second));
            let bends = [tetragamma(first), tetragamma(second)];
            Fit::closed((digamma(first) - digamma(second), [up, -down]), (up + down, bends))
        }
        Matching::Laplace => Fit::closed((first.ln() - second.ln(), [a, -b]), (a + b, [-a * a, -b * b])),
        Matching::Variational => variational::fit(first, second),
    };
    fit.checked(owner, [("first", first), ("second", second)])
}
