//! What can go wrong with inducing points, and what to do about it.

use super::Plan;
use posterior_likelihoods::LikelihoodError;

/// Why an inducing-point method could not be built, fitted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InducingError {
    /// The plan does not fit into the memory that was allowed.
    #[error("{plan}, above the limit of {}: take fewer inducing points or a smaller batch, or allow more memory",
        crate::exact::bytes(*limit))]
    Memory {
        /// What would be needed.
        plan: Plan,
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// A target that the likelihood cannot produce.
    #[error("target of row {row}: {error}")]
    Target {
        /// Row, counted from 0.
        row: usize,
        /// What the likelihood says.
        error: LikelihoodError,
    },
    /// Known noise variances of rows with a likelihood that has none.
    #[error(
        "noise variances of rows were given, but the {likelihood} likelihood has no noise: drop that column"
    )]
    RowNoise {
        /// The likelihood.
        likelihood: &'static str,
    },
    /// A Gaussian prediction was asked of a model whose observations are not Gaussian.
    #[error(
        "observations of the {likelihood} likelihood are not Gaussian: ask for latent values or for observations"
    )]
    NotGaussian {
        /// The likelihood.
        likelihood: &'static str,
    },
    /// Random features cannot do what was asked.
    #[error(transparent)]
    Features(posterior_kernels::features::FeatureError),
    /// An option that cannot be used.
    #[error("{option} is {value}: {remedy}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was.
        value: String,
        /// What it should be.
        remedy: &'static str,
    },
    /// A saved state is damaged or belongs to another model.
    #[error("the saved state cannot be resumed: {0}. Start the fit afresh")]
    State(String),
    /// The bound or its gradient stopped being a number.
    #[error("step {step}: {what} is not finite. Lower the step sizes, or standardise inputs and targets")]
    Diverged {
        /// The step, from 1.
        step: usize,
        /// What is not finite.
        what: &'static str,
    },
}
