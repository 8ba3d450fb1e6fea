//! What can go wrong in weight space, and what to do about it.

use crate::PriorError;
use crate::structure::StructureError;
use posterior_likelihoods::LikelihoodError;
use posterior_linalg::cholesky::CholeskyError;
use posterior_optim::OptimError;

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
    /// A number that must be positive is not.
    #[error("{what} {index} is {value}: it must be positive and finite")]
    NotPositive {
        /// What the number is.
        what: &'static str,
        /// Its place, from 0.
        index: usize,
        /// The number.
        value: f64,
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
    /// A curvature block is not positive semi-definite.
    #[error(
        "the curvature of example {example} has the eigenvalue {eigenvalue:.3e} (largest {largest:.3e}): a precision must be \
         positive semi-definite. Use the Gauss-Newton part of the curvature, or a likelihood that is log-concave"
    )]
    Indefinite {
        /// The example, from 0.
        example: usize,
        /// The negative eigenvalue.
        eigenvalue: f64,
        /// The largest magnitude among the eigenvalues.
        largest: f64,
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
    /// What was asked for needs an invertible noise precision.
    #[error(
        "{what} needs a noise precision that can be inverted, but that of example {example} is singular (as for softmax): use \
         the Laplace form of the evidence, which does not need it"
    )]
    SingularNoise {
        /// What was asked for.
        what: &'static str,
        /// The first singular example.
        example: usize,
    },
    /// The posterior was built around a given mode, so its data's targets are unknown.
    #[error(
        "{what} needs the targets, but this posterior was built around a given mode: build it from targets instead"
    )]
    NoTargets {
        /// What was asked for.
        what: &'static str,
    },
    /// A buffer would be larger than allowed.
    #[error(
        "{what} would take {bytes} bytes, more than the limit of {limit}: use fewer examples or parameters, a matrix-free \
         method, or raise the limit"
    )]
    TooLarge {
        /// The buffer.
        what: &'static str,
        /// Its size; saturates.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An iteration reached a point with a non-finite value.
    #[error(
        "{what} is {value} at step {step}: lower the step size, raise the prior precision, or check the features' scale"
    )]
    Diverged {
        /// What stopped being finite.
        what: &'static str,
        /// The step, from 0.
        step: usize,
        /// The value.
        value: f64,
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
    /// A factorisation failed.
    #[error(transparent)]
    Cholesky(#[from] CholeskyError),
    /// A structured curvature failed.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// A prior was refused.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// An optimiser failed.
    #[error(transparent)]
    Optimiser(#[from] OptimError),
}
