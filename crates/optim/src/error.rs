//! What can go wrong in the loop, and what to do about it.

use crate::ObjectiveError;

/// Why a minimisation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptimError {
    /// The objective has no value at the initial point.
    #[error("the objective cannot be evaluated at the initial values: {0}")]
    Initial(ObjectiveError),
    /// The initial vector has the wrong length.
    #[error("{found} initial values for an objective of {expected} parameters")]
    Dimension {
        /// What the objective has.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A saved state is damaged or belongs to another objective.
    #[error("the saved state cannot be resumed: {0}. Start the run afresh")]
    State(String),
    /// A step led to a point without a value and the method has no way back.
    #[error("step {step} failed: {error}. Lower the step size or change the initial values")]
    Step {
        /// The step, from 1.
        step: usize,
        /// What the objective said.
        error: ObjectiveError,
    },
    /// A constraint that the model cannot keep.
    #[error("the constraint on `{parameter}` cannot be kept: {problem}")]
    Constraint {
        /// What it speaks of.
        parameter: String,
        /// Why.
        problem: String,
    },
    /// Every initial point failed.
    #[error("all {count} initial points failed; the first with: {first}")]
    AllRestarts {
        /// Points tried.
        count: usize,
        /// What became of the first.
        first: String,
    },
}
