//! Why a design cannot go on.

use crate::measured::MeasuredError;
use posterior_linalg::cholesky::CholeskyError;

/// What went wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
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
    /// An angle that the scanner does not have.
    #[error("there is no angle {angle} among {angles}, counted from 0")]
    Angle {
        /// Its number.
        angle: usize,
        /// How many there are.
        angles: usize,
    },
    /// An angle that was measured already.
    #[error("angle {angle} is in the design already: choose among those that `scores` gives")]
    Repeated {
        /// Its number.
        angle: usize,
    },
    /// Nothing left to choose.
    #[error("all {angles} angles have been chosen")]
    Exhausted {
        /// How many there are.
        angles: usize,
    },
    /// A score that is no number.
    #[error(
        "the score of angle {angle} is {value}: the root of the prior gives numbers that are not finite, or too large to be squared"
    )]
    Score {
        /// Its number.
        angle: usize,
        /// The score.
        value: f64,
    },
    /// Equidistant angles do not exist for this count.
    #[error(
        "{count} equidistant angles do not exist among {angles} with {pilot} equidistant ones among them: the count must divide {angles} and be a multiple of {pilot}; use `largest_gaps` otherwise"
    )]
    Equidistant {
        /// Angles of the scanner.
        angles: usize,
        /// Angles of the pilot scan.
        pilot: usize,
        /// Angles wanted.
        count: usize,
    },
    /// A covariance could not be factored.
    #[error("the covariance of angle {angle}: {source}; raise the stabiliser")]
    Cholesky {
        /// Its number.
        angle: usize,
        /// Why.
        source: CholeskyError,
    },
    /// The posterior of the angles so far could not be sampled.
    #[error("the angles so far: {0}")]
    Measured(#[from] MeasuredError),
}
