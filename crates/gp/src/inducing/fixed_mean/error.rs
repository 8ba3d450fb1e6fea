//! What can go wrong with a process whose mean is given.

use posterior_likelihoods::LikelihoodError;
use posterior_linalg::cholesky::CholeskyError;

/// Why such a process could not be built, fitted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixedMeanError {
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
    /// Something that cannot be used.
    #[error("{option} is {value}: {remedy}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was.
        value: String,
        /// What it should be.
        remedy: &'static str,
    },
    /// A number that is none among what was given.
    #[error("{what} of row {row} is not finite: remove the row, or look for what made it")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
    },
    /// The loss or a gradient stopped being a number.
    #[error("step {step}: {term} is not finite. Lower the learning rate, or standardise inputs and targets")]
    Diverged {
        /// The step, from 1.
        step: usize,
        /// Which term of the loss.
        term: &'static str,
    },
    /// A saved state is damaged or belongs to another model.
    #[error("the saved state cannot be resumed: {0}. Start the fit afresh")]
    State(String),
    /// A covariance is not positive definite.
    #[error(transparent)]
    Cholesky(#[from] CholeskyError),
    /// The likelihood.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// The kernel refuses points.
    #[error(transparent)]
    Kernel(Box<dyn std::error::Error + Send + Sync>),
    /// The score on held-out rows could not be had.
    #[error(transparent)]
    Validation(Box<dyn std::error::Error + Send + Sync>),
}

impl FixedMeanError {
    /// What the kernel says.
    pub(super) fn kernel(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Kernel(Box::new(error))
    }

    /// Whether sizes agree.
    pub(super) fn same(what: &'static str, expected: usize, actual: usize) -> Result<(), Self> {
        if expected == actual { Ok(()) } else { Err(Self::Shape { what, expected, actual }) }
    }
}
