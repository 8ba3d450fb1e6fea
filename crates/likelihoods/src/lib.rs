//! How observations scatter around latent function values: `p(y | f)`.
//!
//! One trait, [`Likelihood`], for any number C of latent values behind one observation. Approximate inference asks three things of
//! it: how good a point is (the log density), where to go (its gradient), and how sure the data are there (the curvature `B`, and
//! a root `R` with `R Rᵀ = B`); variational inference asks for expectations under a Gaussian instead, and predictions for what
//! will be observed when latent values are Gaussian. A new likelihood writes six methods; the rest follows by quadrature.
//!
//! ```
//! use posterior_likelihoods::{Bernoulli, Likelihood, Link, Prediction};
//! let events = Bernoulli::new(1, Link::Logit)?;
//! let (mut gradient, mut curvature) = ([0.0], [0.0]);
//! events.gradient(&[1.0], &[0.0], &mut gradient);
//! events.curvature(&[1.0], &[0.0], &mut curvature);
//! assert_eq!((gradient, curvature), ([0.5], [0.25]));
//! let Prediction::Events(p) = events.predict(&[0.0], &[2.0]) else { unreachable!() };
//! assert!((p[0] - 0.5).abs() < 1e-12);
//! # Ok::<(), posterior_likelihoods::LikelihoodError>(())
//! ```
//!
//! | file | what |
//! |---|---|
//! | [`Likelihood`] | what every likelihood answers |
//! | `distributions` | [`Gaussian`], [`FullGaussian`], [`HeteroscedasticGaussian`], [`StudentT`], [`Bernoulli`], [`Poisson`], [`NegativeBinomial`], [`Categorical`], [`RobustMax`], [`ScaledChiSquared`] |
//! | [`OutputLikelihood`] | one of them, as written in a configuration or a model file |
//! | [`expectation`] | expected log densities under a Gaussian, for variational inference; quadrature |
//! | [`predictive`] | what will be observed when latent values are Gaussian, also correlated, by several rules |
//! | [`gaussianised`] | Gaussian approximations of likelihoods: pseudo-targets and pseudo-noise of classes, events and counts |
//! | [`NoiseStatistics`] | the noise covariance that expectation maximisation would choose |
//! | `special` | softmax, normal tails, derivatives of log Γ, Stirling's error |

mod distributions;
mod error;
pub mod expectation;
pub mod gaussianised;
mod likelihood;
mod noise_statistics;
mod output_likelihood;
pub mod predictive;
mod special;

pub use distributions::{
    Bernoulli, Categorical, FullGaussian, Gaussian, HeteroscedasticGaussian, Link, NegativeBinomial, Poisson,
    RobustMax, ScaledChiSquared, StudentT, softmax_root,
};
pub use error::LikelihoodError;
pub use expectation::{CorrelatedSlopes, GaussHermite, Slopes, sampled_alpha_energy};
pub use likelihood::{CloneLikelihood, Likelihood};
pub use noise_statistics::NoiseStatistics;
pub use output_likelihood::OutputLikelihood;
pub use predictive::{
    Clipping, CountMixture, Covariance, Integration, LatentGaussian, Prediction, PredictiveRule,
    PredictiveWorkspace,
};
