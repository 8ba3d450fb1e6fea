//! One file for each distribution of an observation given its latent values.
//!
//! | file | what | curvature |
//! |---|---|---|
//! | [`Gaussian`] | additive noise, one variance for all outputs or one for each | diagonal, constant |
//! | [`FullGaussian`] | additive noise that is correlated between outputs | dense, constant |
//! | [`HeteroscedasticGaussian`] | additive noise whose variance is an output as well | diagonal (Fisher) |
//! | [`ScaledChiSquared`] | squares of noise, variance `exp(f)` | diagonal |
//! | [`StudentT`] | additive noise with outliers | diagonal, constant (Fisher) |
//! | [`Bernoulli`] | independent events, logit or probit link | diagonal |
//! | [`Poisson`] | independent counts, rate `exp(f)` | diagonal |
//! | [`NegativeBinomial`] | independent counts with more scatter than those, mean `exp(f)` | diagonal (Fisher) |
//! | [`Categorical`] | one class of several, softmax | `diag(p) - p pᵀ` |
//! | [`RobustMax`] | one class of several, the largest latent value but for errors | none: zero |

mod bernoulli;
mod categorical;
mod full_gaussian;
mod gaussian;
mod heteroscedastic;
mod negative_binomial;
mod poisson;
mod robust_max;
mod scaled_chi_squared;
mod student_t;

pub use bernoulli::{Bernoulli, Link};
pub use categorical::{Categorical, softmax_root};
pub use full_gaussian::FullGaussian;
pub use gaussian::Gaussian;
pub use heteroscedastic::HeteroscedasticGaussian;
pub use negative_binomial::NegativeBinomial;
pub use poisson::Poisson;
pub use robust_max::RobustMax;
pub use scaled_chi_squared::ScaledChiSquared;
pub use student_t::StudentT;

/// Outputs of a likelihood that is written without their number.
fn one() -> usize {
    1
}

/// Whether the number of outputs need not be written.
fn is_one(outputs: &usize) -> bool {
    *outputs == 1
}
