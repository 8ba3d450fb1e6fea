//! **Gaussian approximations of likelihoods**: each observation becomes, once and without iteration, a pseudo-target `m` with the variance `v` of a
//! pseudo-noise, and any model of Gaussian observations with known noise serves for classes, events and counts:
//!
//! `p(y | f) ≈ N(f; m, v)` up to a factor.
//!
//! The parameter `ω` of the distribution of `y` has a weak conjugate prior; given one `y`, its posterior is again of a known family; the
//! latent value is `ψ = log ω` or `logit ω`, which takes all real values; and a Gaussian is matched to its density ([`Matching`]).
//!
//! | `y` | `ω` given `y`, with pseudo-count a and prior rate b | latent value |
//! |---|---|---|
//! | [`class`](Gaussianised::class) of several | `Gamma(a + c_k, 1)` for each class k | `log ω_k`, with a softmax |
//! | [`event`](Gaussianised::event) | `Beta(a + y, a + 1 - y)` | `logit ω` |
//! | [`binomial`](Gaussianised::binomial), y of n | `Beta(a + y, a + n - y)` | `logit ω` |
//! | [`count`](Gaussianised::count) in an exposure E | `Gamma(a + y, b + E)` | `log ω` |
//! | [`waiting_time`](Gaussianised::waiting_time) | `Gamma(a + 1, b + y)` | `log ω` |
//! | [`residual_variance`](Gaussianised::residual_variance), residual r | inverse `Gamma(a + ½, b + r²/2)` | `log ω` |
//!
//! | file | what |
//! |---|---|
//! | [`Gaussianised`] | the table above |
//! | [`LabelApproximation`] | what a target says of each latent value of its likelihood |
//! | [`Matching`] | how the Gaussian is chosen |
//! | [`gamma`], [`exponential`], [`inverse_gamma`], [`chi_squared`] | Gaussians of logarithms, with slopes |
//! | [`beta`] | Gaussians of logits, with slopes |
//! | `variational` | the least divergence to the logit of a Beta variable by Newton's method |
//! | `logistic` | expectations of the logistic function under Gaussians of any width |
//! | [`PseudoObservation`], [`PseudoSlopes`], [`Fit`] | what comes out |
//!
//! **Predictions** in the original domain use the latent variance only, never that of the pseudo-noise, and are those of the likelihood
//! itself: [`Categorical`](crate::Categorical) and [`Bernoulli`](crate::Bernoulli) by [`predict`](crate::Likelihood::predict) exactly, by
//! [`PredictiveRule`](crate::PredictiveRule) from samples or by the probit approximation; rates by
//! [`Poisson`](crate::Poisson), whose predictive mean is `exp(m + v/2)`. Dirichlet distributions of all classes together, with correlated
//! latent values, have [`dirichlet_bridge`](crate::predictive::dirichlet_bridge) and
//! [`laplace_bridge`](crate::predictive::laplace_bridge).
//!
//! Source: Bui, *Likelihood approximations via Gaussian approximate inference*; spec `likelihood_approximations`, sections 2 to 6.1.

mod approximation;
mod fit;
mod labels;
mod log_gamma;
mod logistic;
mod logit_beta;
mod matching;
#[cfg(test)]
mod tests;
mod variational;

pub use approximation::Gaussianised;
pub use fit::{Fit, PseudoObservation, PseudoSlopes};
pub use labels::LabelApproximation;
pub use log_gamma::{chi_squared, exponential, gamma, inverse_gamma};
pub use logit_beta::beta;
pub use matching::Matching;
