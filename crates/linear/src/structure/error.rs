//! What can be wrong with a structured curvature or its prior.

use posterior_linalg::cholesky::CholeskyError;
use std::ops::Range;

/// Why a curvature cannot be used as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StructureError {
    /// Blocks do not tile the weights.
    #[error(
        "block `{block}` covers weights {range:?} with a matrix of size {size}, but it should begin at {expected_start}; blocks must follow one another"
    )]
    Shape {
        /// The block.
        block: String,
        /// Its weights.
        range: Range<usize>,
        /// Where the last block ended.
        expected_start: usize,
        /// The size of its matrix.
        size: usize,
    },
    /// NaN or infinity.
    #[error(
        "the curvature of `{block}` is not finite; check the data and the network's outputs for overflow"
    )]
    NotFinite {
        /// The block.
        block: String,
    },
    /// A prior for other weights.
    #[error("the prior is for {found} weights, the curvature for {expected}")]
    Prior {
        /// Weights of the curvature.
        expected: usize,
        /// Weights of the prior.
        found: usize,
    },
    /// A strength that is not positive.
    #[error("the curvature's strength (1 / noise variance) is {value}; it must be a positive finite number")]
    Strength {
        /// What was given.
        value: f64,
    },
    /// A Kronecker block with several precisions.
    #[error(
        "the Kronecker-factored block `{block}` needs one prior precision, but its weights belong to {groups} groups; use a prior that is constant in each layer (scalar, layerwise or g-prior) or another curvature"
    )]
    SeveralPrecisions {
        /// The block.
        block: String,
        /// Groups inside it.
        groups: usize,
    },
    /// A block that was scaled already.
    #[error("the features have been scaled to a unit diagonal already; scale once")]
    ScaledTwice,
    /// A matrix that is not positive definite.
    #[error("the posterior precision of `{block}` cannot be factored: {source}")]
    Factor {
        /// The block.
        block: String,
        /// Where it failed.
        source: CholeskyError,
    },
    /// An eigendecomposition that did not converge.
    #[error("the eigenvalues of `{block}` could not be found; check the data for extreme values")]
    Eigen {
        /// The block.
        block: String,
    },
}
