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
    /// A target that the likelihood cannot have produced.
    #[error("the target of example {example}: {error}")]
    Target {
        /// The example, from 0.
        example: usize,
        /// What the likelihood said.
        error: LikelihoodError,
    },
    /// A feature map or its data failed on their own terms (a network, say).
    #[error(transparent)]
    Features(Box<dyn std::error::Error + Send + Sync>),
    /// The observer asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A structured curvature failed.
    #[error(transparent)]
    Structure(#[from] StructureError),
}
