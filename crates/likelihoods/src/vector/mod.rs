//! Likelihoods of **several latent values for each observation**, such as all outputs of a network.
//!
//! Approximate inference around a point asks three things of `p(y | f)`: how good the point is (the log density), where to
//! go (its gradient), and how sure the data are there (the curvature `B`, and a root `R` with `R Rᵀ = B`, so that noise of
//! covariance `B` can be drawn without ever inverting it). Everything writes into slices of the caller, so that a pass over
//! many observations allocates nothing.
//!
//! | file | what | curvature |
//! |---|---|---|
//! | [`VectorLikelihood`] | what every likelihood answers | |
//! | [`OutputLikelihood`] | one of those below, as written in a configuration | |
//! | [`IndependentGaussian`] | additive noise, one variance for each output | diagonal, constant |
//! | [`FullGaussian`] | additive noise that is correlated between outputs | dense, constant |
//! | [`Categorical`] | one class of several, softmax | `diag(p) - p pᵀ` |
//! | [`Bernoulli`] | independent events, logit or probit link | diagonal |
//! | [`Poisson`] | independent counts, rate `exp(f)` | diagonal |
//! | [`HeteroscedasticGaussian`] | additive noise whose variance is an output as well | diagonal (Fisher) |
//! | [`NoiseStatistics`] | the noise covariance that expectation maximisation would choose | |
//! | [`joint_log_density`] | many observations at once, averaged over sampled functions | |

mod bernoulli;
mod categorical;
mod diagonal;
mod error;
mod full_gaussian;
mod heteroscedastic;
mod independent_gaussian;
mod joint;
mod noise_statistics;
pub(crate) mod normal_tail;
mod output;
mod poisson;
pub(crate) mod softmax;
mod vector_likelihood;

pub use bernoulli::{Bernoulli, Link, ScalarBernoulli};
pub use categorical::Categorical;
pub use error::LikelihoodError;
pub use full_gaussian::FullGaussian;
pub use heteroscedastic::HeteroscedasticGaussian;
pub use independent_gaussian::IndependentGaussian;
pub use joint::{JointPoint, joint_log_density};
pub use noise_statistics::NoiseStatistics;
pub use output::OutputLikelihood;
pub use poisson::{Poisson, ScalarPoisson};
pub(crate) use poisson::{log_density as poisson_log_density, moments as poisson_moments};
pub use vector_likelihood::VectorLikelihood;
