//! Why an operator could not be built, or does not suit.

use super::Structure;

/// Why operators do not fit together, or one does not fit its purpose.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The shapes of the parts of a composition do not fit.
    #[error("{composition} needs {needed}, but the parts are {} x {} and {} x {}", .left.0, .left.1, .right.0, .right.1)]
    Shapes {
        /// What was being built.
        composition: &'static str,
        /// What it asks of the shapes.
        needed: &'static str,
        /// Rows and columns of the first part.
        left: (usize, usize),
        /// Rows and columns of the second part.
        right: (usize, usize),
    },
    /// The dimensions of a product of shapes do not fit in a machine word.
    #[error("{composition} of {} x {} and {} x {} has more rows or columns than can be counted", .left.0, .left.1, .right.0, .right.1)]
    TooLarge {
        /// What was being built.
        composition: &'static str,
        /// Rows and columns of the first part.
        left: (usize, usize),
        /// Rows and columns of the second part.
        right: (usize, usize),
    },
    /// A matrix does not have the structure that is claimed for it.
    #[error(
        "the matrix is declared {claimed}, but entry ({row}, {column}), counted from 0, contradicts it: {value}"
    )]
    Contradicted {
        /// What was claimed.
        claimed: Structure,
        /// Row of the entry that contradicts it, from 0.
        row: usize,
        /// Column of the entry that contradicts it, from 0.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// Structure that only square matrices have was claimed for another.
    #[error(
        "the matrix is declared {claimed}, which only a square matrix can be, but it is {rows} x {columns}"
    )]
    NotSquare {
        /// What was claimed.
        claimed: Structure,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// A method was given an operator without the structure that it relies on.
    #[error(
        "{method} needs an operator that is {needed}, but this one is known only to be {known}; declare the structure if it holds, or choose another method"
    )]
    Unsuitable {
        /// The method that refuses.
        method: &'static str,
        /// What it needs.
        needed: Structure,
        /// What is known of the operator.
        known: Structure,
    },
}
