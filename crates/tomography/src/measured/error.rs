//! Why a posterior of measurements could not be had.

use posterior_linalg::cholesky::CholeskyError;
use posterior_linalg::solve::SolveError;

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MeasuredError {
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// Which sizes.
        what: &'static str,
        /// What was needed.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// A noise variance outside its range.
    #[error("the noise variance of the measurements is {value}, but must be positive and finite")]
    Noise {
        /// Its value.
        value: f64,
    },
    /// C could not be factored.
    #[error("the covariance of the measurements: {0}")]
    Cholesky(#[from] CholeskyError),
    /// Conjugate gradients could not begin or go on.
    #[error("sampling the posterior: {0}")]
    Solve(#[from] SolveError),
}

/// [`MeasuredError::Shape`] unless both sizes agree.
pub(crate) fn same_size(what: &'static str, expected: usize, actual: usize) -> Result<(), MeasuredError> {
    if expected == actual { Ok(()) } else { Err(MeasuredError::Shape { what, expected, actual }) }
}
