//! Why operators do not compose.

/// The shapes of the parts of a composition do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{composition} needs {needed}, but the parts are {} x {} and {} x {}", .left.0, .left.1, .right.0, .right.1)]
pub struct OperatorError {
    /// What was being built.
    pub composition: &'static str,
    /// What it asks of the shapes.
    pub needed: &'static str,
    /// Rows and columns of the first part.
    pub left: (usize, usize),
    /// Rows and columns of the second part.
    pub right: (usize, usize),
}
