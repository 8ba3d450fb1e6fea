//! What can go wrong with a Gaussian process, and what to do about it.

use crate::exact::Plan;
use posterior_kernels::features::FeatureError;
use posterior_linalg::cholesky::CholeskyError;
use posterior_linalg::solve::SolveError;
use posterior_optim::OptimError;

/// Why a Gaussian process could not be built, fitted or evaluated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpError {
    /// Two arrays that must agree do not.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// Which sizes disagree.
        what: &'static str,
        /// What was needed.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// No rows or no columns.
    #[error("{what} is empty: a Gaussian process needs at least one row and one target")]
    Empty {
        /// Which array.
        what: &'static str,
    },
    /// A NaN or an infinity.
    #[error("{what} row {row}, column {column} is {value}: remove or fill in non-finite values first")]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The offending value.
        value: f64,
    },
    /// A noise variance that is not positive.
    #[error("the noise variance of row {row} is {value}: variances must be positive")]
    NoiseNotPositive {
        /// Row, counted from 0.
        row: usize,
        /// The offending value.
        value: f64,
    },
    /// A weight that is not positive.
    #[error(
        "the weight of row {row} is {value}: weights must be positive; leave out rows that count for nothing"
    )]
    WeightNotPositive {
        /// Row, counted from 0.
        row: usize,
        /// The offending value.
        value: f64,
    },
    /// The mode of latent functions was not found.
    #[error(
        "the posterior's mode was not found under the likelihood `{likelihood}`: {steps} Newton steps, of which the next would still promise {promised:.1e} nats; hyperparameters at which it is lost can be kept out with --set bound"
    )]
    NoMode {
        /// Steps taken.
        steps: usize,
        /// What the next one promises, nats.
        promised: f64,
        /// The likelihood's name.
        likelihood: &'static str,
    },
    /// Rows that are not in memory could not be had.
    #[error("rows cannot be read: {reason}")]
    Rows {
        /// What the system said.
        reason: String,
    },
    /// Weights where there is no place for them.
    #[error(
        "of methods for Gaussian noise only the exact process weighs rows (by its evidence): take it, or another likelihood"
    )]
    Weighted,
    /// Offsets where targets say the same.
    #[error("methods for Gaussian noise take no offsets of rows: take them off the targets")]
    Offset,
    /// The plan does not fit into the memory that was allowed.
    #[error("{plan}, above the limit of {}: allow more memory (--memory GB) or learn from fewer rows", crate::exact::bytes(*limit))]
    Memory {
        /// What would be needed.
        plan: Plan,
        /// What is allowed, in bytes.
        limit: u64,
    },
    /// A hyperprior names a parameter that the model lacks.
    #[error("no hyperparameter is called `{name}`; this model has: {}", known.join(", "))]
    UnknownParameter {
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A stochastic solver was unstable at every step size that was tried.
    #[error(
        "the solver diverged even after {restarts} restarts, the last with β n = {step_size:.1e}: check that the kernel matrix is finite and positive semidefinite, or give a smaller step size"
    )]
    Diverged {
        /// The last step size, times the number of rows.
        step_size: f64,
        /// How often it began anew.
        restarts: usize,
    },
    /// A checkpoint of something else.
    #[error("this checkpoint does not belong here: {problem}; begin without it")]
    State {
        /// What does not fit.
        problem: String,
    },
    /// Exact variances of a posterior that is an approximation itself.
    #[error(
        "weights on inducing points have no exact variances: take those of the samples, or fit with weights on all rows (sdd, sap, sgd, cg)"
    )]
    ExactVariance,
    /// A method that needs random features was given none.
    #[error(
        "this gradient is estimated with random features, and there are none: give a kernel that has them, or estimate the regulariser from columns"
    )]
    NoFeatures,
    /// The kernel has no random features, or none that suit.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// An iterative solve could not begin or go on.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A covariance matrix is not positive definite.
    #[error(transparent)]
    Cholesky(#[from] CholeskyError),
    /// A pseudo-count where none is sought.
    #[error(
        "a pseudo-count to begin with is between {lower:e} and {upper:e}, not {value:e}: 0.1 is customary"
    )]
    PseudoCount {
        /// What was given.
        value: f64,
        /// The least.
        lower: f64,
        /// The most.
        upper: f64,
    },
    /// A likelihood, a matching or a target without Gaussian pseudo-targets.
    #[error(transparent)]
    GaussianLabels(#[from] posterior_likelihoods::LikelihoodError),
    /// An inducing-point method failed.
    #[error(transparent)]
    Inducing(#[from] crate::inducing::InducingError),
    /// A divergence could not be had.
    #[error(transparent)]
    Divergence(#[from] crate::generalised::divergence::DivergenceError),
    /// Generalised variational inference failed.
    #[error(transparent)]
    Generalised(#[from] crate::generalised::GeneralisedError),
    /// Inference in weights failed.
    #[error(transparent)]
    Weights(#[from] posterior_linear::LinearError),
    /// The optimiser failed.
    #[error(transparent)]
    Optim(#[from] OptimError),
}
