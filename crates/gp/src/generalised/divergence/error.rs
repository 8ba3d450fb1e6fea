//! What can go wrong with a divergence.

use posterior_linalg::cholesky::CholeskyError;

/// Why a divergence could not be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DivergenceError {
    /// A name that none has.
    #[error(
        "`{0}` is no divergence: write kullback-leibler, kullback-leibler=posterior-to-prior, renyi=0.5 (or another order), bhattacharyya, hellinger, wasserstein, squared-difference or symmetric-kullback-leibler"
    )]
    Unknown(String),
    /// An order at which the divergence does not exist.
    #[error("the order of {what} is {value}: {remedy}")]
    Order {
        /// Of which divergence.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What it should be.
        remedy: &'static str,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {actual}")]
    Shape {
        /// Which sizes disagree.
        what: &'static str,
        /// What was needed.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// No rows, of which nothing can be averaged.
    #[error("{what} is empty: a divergence is an average over at least one row")]
    Empty {
        /// What there is none of.
        what: &'static str,
    },
    /// A NaN or an infinity.
    #[error(
        "{what} row {row}, column {column} is {value}: look for the step after which parameters are no longer finite"
    )]
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
    /// An amount of jitter that is none.
    #[error("the relative jitter is {0}: give a number from 0, such as 1e-8")]
    Jitter(f64),
    /// A covariance has no factor.
    #[error(transparent)]
    Cholesky(#[from] CholeskyError),
    /// A decomposition has not converged.
    #[error(
        "the decomposition of {what} did not converge: its entries differ too much in size; scale targets and kernels to about 1"
    )]
    Decomposition {
        /// Of which matrix.
        what: &'static str,
    },
}

impl DivergenceError {
    /// Whether sizes agree.
    pub(super) fn same(what: &'static str, expected: usize, actual: usize) -> Result<(), Self> {
        if expected == actual { Ok(()) } else { Err(Self::Shape { what, expected, actual }) }
    }

    /// Whether all numbers of a vector are finite.
    pub(super) fn finite(what: &'static str, values: &[f64]) -> Result<(), Self> {
        match values.iter().position(|v| !v.is_finite()) {
            Some(row) => Err(Self::NotFinite { what, row, column: 0, value: values[row] }),
            None => Ok(()),
        }
    }

    /// Whether all numbers of a matrix are finite; of `rows` in each column (a triangle, say).
    pub(super) fn finite_matrix(
        what: &'static str,
        matrix: faer::MatRef<'_, f64>,
        rows: impl Fn(usize) -> std::ops::Range<usize>,
    ) -> Result<(), Self> {
        for column in 0..matrix.ncols() {
            if let Some(row) = rows(column).find(|&row| !matrix[(row, column)].is_finite()) {
                return Err(Self::NotFinite { what, row, column, value: matrix[(row, column)] });
            }
        }
        Ok(())
    }
}
