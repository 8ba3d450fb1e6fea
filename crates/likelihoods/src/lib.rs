//! How observations scatter around latent function values: `p(y | f)`.
//!
//! | file | what |
//! |---|---|
//! | [`Likelihood`] | one latent value: log density, its derivatives, its expectation under a Gaussian, the predictive moments |
//! | [`Gaussian`] | additive noise |
//! | [`GaussHermite`] | expectations under a Gaussian by quadrature, for likelihoods without closed forms |
//! | [`vector`] | several latent values for one observation: classes, events, counts, noise of several outputs |
//! | [`StudentT`] | additive noise with outliers |
//! | [`variational`] | expected log densities under a Gaussian, for variational inference |
//! | [`predictive`] | what will be observed when the latent values are Gaussian |

mod gaussian;
mod likelihood;
pub mod predictive;
mod quadrature;
mod special;
mod student_t;
pub mod variational;
pub mod vector;

pub use gaussian::Gaussian;
pub use likelihood::{Expectation, Likelihood, Moments};
pub use predictive::{
    Clipping, Covariance, Integration, LatentGaussian, Prediction, PredictiveRule, PredictiveWorkspace,
};
pub use quadrature::GaussHermite;
pub use student_t::StudentT;
pub use variational::VariationalLikelihood;
pub use vector::{
    Bernoulli, Categorical, FullGaussian, HeteroscedasticGaussian, IndependentGaussian, JointPoint,
    LikelihoodError, Link, NoiseStatistics, OutputLikelihood, Poisson, ScalarBernoulli, ScalarPoisson,
    VectorLikelihood, joint_log_density,
};
