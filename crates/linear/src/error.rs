//! What can go wrong in weight space, and what to do about it.

use crate::structure::StructureError;
use posterior_likelihoods::LikelihoodError;

/// Why a linear model could not be built, solved or fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinearError {
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What was counted.
        what: &'static str,
        /// What the model has.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// Something that must hold at least one thing is empty.
    #[error("there are no {what}: at least one is needed")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// Rows that are not in memory could not be had.
    #[error("rows could not be read: {reason}")]
    Rows {
        /// Why.
        reason: String,
    },
    /// A number is NaN or infinite.
    #[error("{what} {index} is {value}: remove or impute the row, or check what computed it")]
    NotFinite {
        /// What the number is.
        what: &'static str,
        /// Its place, from 0; matrices are counted row by row.
        index: usize,
        /// The number.
        value: f64,
    },
    /// What a likelihood expects of a row of the training data is beyond what a number holds: its slopes are not finite.
    #[error(
        "after {steps} steps the {likelihood} likelihood's term of row {row} is no finite number: the intensity (or whatever else grows exponentially with the function) has exploded there. Train with a smaller step size (learning rate), or begin with a smaller deviation of the weights"
    )]
    Exploded {
        /// The likelihood.
        likelihood: &'static str,
        /// The row of the training data, from 0.
        row: usize,
        /// Steps taken before.
        steps: usize,
    },
    /// An option is outside its range.
    #[error("the option {name} is {value}: {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// A constant of an update rule is outside its range.
    #[error(
        "a constant of the update rule has no meaning: {problem}; take the published ones, or one within that range"
    )]
    Rule {
        /// Which, and where it must lie.
        problem: &'static str,
    },
    /// A target that the likelihood cannot have produced.
    #[error("the target of example {example}: {error}")]
    Target {
        /// The example, from 0.
        example: usize,
        /// What the likelihood said.
        error: LikelihoodError,
    },
    /// An output at the expansion point is NaN or infinite.
    #[error("the output of example {example} is not finite; check the data and the model")]
    Output {
        /// The example, from 0.
        example: usize,
    },
    /// Kronecker factors of weights that have none.
    #[error("a sub-network has no Kronecker-factored curvature: use the full or the diagonal one")]
    Factors,
    /// Numbers that were saved of other weights.
    #[error("the saved {what} does not belong to this network and selection of weights")]
    Foreign {
        /// Which numbers.
        what: &'static str,
    },
    /// An eigendecomposition did not converge.
    #[error(
        "the eigendecomposition of a {dimension} x {dimension} matrix did not converge: check the features for huge entries"
    )]
    Eigen {
        /// Rows of the matrix.
        dimension: usize,
    },
    /// A feature map or its data failed on their own terms (a network, say).
    #[error(transparent)]
    Features(Box<dyn std::error::Error + Send + Sync>),
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A matrix that must be positive definite is not.
    #[error(transparent)]
    Cholesky(#[from] posterior_linalg::cholesky::CholeskyError),
    /// A structured curvature failed.
    #[error(transparent)]
    Structure(#[from] StructureError),
}
