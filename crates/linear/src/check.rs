//! Checks of input, written once.

use crate::LinearError;
use faer::MatRef;

/// Whether a size is the one that is expected.
///
/// # Errors
/// [`LinearError::Shape`].
pub fn same(what: &'static str, expected: usize, found: usize) -> Result<(), LinearError> {
    if expected == found { Ok(()) } else { Err(LinearError::Shape { what, expected, found }) }
}

/// Whether numbers are finite.
///
/// # Errors
/// [`LinearError::NotFinite`] for the first that is not.
pub fn finite(what: &'static str, values: &[f64]) -> Result<(), LinearError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(LinearError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Whether entries are finite.
///
/// # Errors
/// [`LinearError::NotFinite`] for one that is not.
pub fn finite_matrix(what: &'static str, matrix: MatRef<'_, f64>) -> Result<(), LinearError> {
    for j in 0..matrix.ncols() {
        if let Some(i) = matrix.col(j).iter().position(|v| !v.is_finite()) {
            return Err(LinearError::NotFinite {
                what,
                index: i * matrix.ncols() + j,
                value: matrix[(i, j)],
            });
        }
    }
    Ok(())
}
