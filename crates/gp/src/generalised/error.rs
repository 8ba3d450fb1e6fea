//! What can go wrong in generalised variational inference, and what to do about it.

/// Why a generalised posterior could not be built or fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeneralisedError {
    /// A regulariser that this pair of kernels or this mean does not admit.
    #[error("the regulariser {regulariser} does not go with {what}: {remedy}")]
    Regulariser {
        /// The regulariser.
        regulariser: String,
        /// What it does not go with.
        what: String,
        /// What does.
        remedy: &'static str,
    },
    /// A number that cannot be used.
    #[error("{option} is {value}: {remedy}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was.
        value: f64,
        /// What it should be.
        remedy: &'static str,
    },
    /// Joint draws of what is no joint distribution.
    #[error(
        "the fixed sparse posterior kernel is no covariance at these {points} points together (its variances are raised to a floor point by point, nothing raises a matrix): ask for predictions without draws, or fit with another variational kernel"
    )]
    NoCovariance {
        /// Points.
        points: usize,
    },
    /// More inducing points than rows.
    #[error("{asked} inducing points were asked for among {rows} rows: they are rows, take at most {rows}")]
    TooManyPoints {
        /// Points asked for.
        asked: usize,
        /// Rows that there are.
        rows: usize,
    },
    /// The objective stopped being a number, and nothing better had been seen.
    #[error("step {step}: {what} is not finite. Lower the step size, or standardise inputs and targets")]
    Diverged {
        /// The step, from 1.
        step: usize,
        /// What is not finite.
        what: &'static str,
    },
    /// A mean of functions at rows that was needed and not given, or the other way round.
    #[error("{0}")]
    Means(&'static str),
}
