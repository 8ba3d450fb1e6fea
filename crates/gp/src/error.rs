//! What can go wrong with a Gaussian process, and what to do about it.

use crate::exact::Plan;
use posterior_linalg::cholesky::CholeskyError;
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
    /// A covariance matrix is not positive definite.
    #[error(transparent)]
    Cholesky(#[from] CholeskyError),
    /// The optimiser failed.
    #[error(transparent)]
    Optim(#[from] OptimError),
}
