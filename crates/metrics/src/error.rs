//! Inputs that cannot be scored.

/// Why predictions cannot be scored. Rows are counted from 0.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// Nothing to score.
    #[error("there are no predictions to score")]
    Empty,
    /// Arrays of different lengths.
    #[error("{means} means, {variances} variances and {truths} truths: they must be equally many")]
    Lengths {
        /// Number of means.
        means: usize,
        /// Number of variances.
        variances: usize,
        /// Number of truths.
        truths: usize,
    },
    /// A value that is not finite.
    #[error("the {what} of row {row} is {value}")]
    NotFinite {
        /// Mean, variance or truth.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A variance that is not positive.
    #[error("the variance of row {row} is {value}: a predictive distribution needs a positive one")]
    VarianceNotPositive {
        /// Row, counted from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A scale that is not positive.
    #[error("the target's scale is {value}: it must be positive and finite")]
    Scale {
        /// The value.
        value: f64,
    },
    /// Residuals so large that their squares are not finite.
    #[error("a score overflows: the errors are too large for double precision; change the target's unit")]
    Overflow,
}
