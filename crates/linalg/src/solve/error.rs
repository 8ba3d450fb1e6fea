//! Why an iterative solve could not begin or go on.

use crate::cholesky::CholeskyError;

/// What went wrong in a solve, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
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
    /// A setting outside its range.
    #[error("{what} is {value}, but must be {needed}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The range it must be in.
        needed: &'static str,
    },
    /// A NaN or an infinity among the numbers given.
    #[error(
        "{what} has the entry {value} at row {row}, column {column}: only finite numbers can be solved for"
    )]
    NotFinite {
        /// Which array.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A direction of negative or undefined curvature.
    #[error(
        "the matrix is not positive definite: in iteration {iteration} the curvature along the direction of right-hand side {column} is {curvature:.3e}; \
         raise the noise, or compute in f64"
    )]
    Indefinite {
        /// Iteration, from 0.
        iteration: usize,
        /// Right-hand side, from 0.
        column: usize,
        /// `dᵀ A d`.
        curvature: f64,
    },
    /// A small dense factorisation failed.
    #[error("inside a preconditioner: {0}")]
    Cholesky(#[from] CholeskyError),
    /// An eigenvalue decomposition did not converge, which only non-finite numbers cause.
    #[error(
        "the eigenvalues of the {dimension} x {dimension} matrix of {what} could not be computed: an entry is not finite"
    )]
    Eigenvalues {
        /// Rows of the small matrix.
        dimension: usize,
        /// Where it arose.
        what: &'static str,
    },
}

/// [`SolveError::Shape`] unless both sizes agree.
pub(super) fn same_size(what: &'static str, expected: usize, actual: usize) -> Result<(), SolveError> {
    if expected == actual { Ok(()) } else { Err(SolveError::Shape { what, expected, actual }) }
}
