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
    /// An order of Rényi's divergence under which the objective is infinite where training begins.
    #[error(
        "the Rényi divergence of order {order} is infinite where training begins: the {family} variational kernel has {seen}, and it admits less than {:.3} times (order / (order - 1)). Take an order below {admitted:.3} (all below 1 are admitted), or {wide}", .order / (.order - 1.0)
    )]
    Order {
        /// The order.
        order: f64,
        /// The family of kernels.
        family: String,
        /// How wide it is.
        seen: String,
        /// The orders below which it is finite there.
        admitted: f64,
        /// What is wide enough, or narrow enough.
        wide: &'static str,
    },
    /// Joint draws, or a joint covariance, of what is no joint distribution.
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
    /// The objective is no number where training begins.
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
