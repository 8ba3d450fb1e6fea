//! Checks of input, written once.

use crate::LinearError;
use faer::MatRef;

/// Most bytes of one buffer, unless a caller says otherwise: 16 GiB.
pub(crate) const BUFFER_LIMIT: u64 = 16 << 30;

pub(crate) fn same(what: &'static str, expected: usize, found: usize) -> Result<(), LinearError> {
    if expected == found { Ok(()) } else { Err(LinearError::Shape { what, expected, found }) }
}

pub(crate) fn finite(what: &'static str, values: &[f64]) -> Result<(), LinearError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(LinearError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

pub(crate) fn finite_matrix(what: &'static str, matrix: MatRef<'_, f64>) -> Result<(), LinearError> {
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

pub(crate) fn positive(what: &'static str, values: &[f64]) -> Result<(), LinearError> {
    match values.iter().position(|&v| !(v > 0.0 && v.is_finite())) {
        Some(index) => Err(LinearError::NotPositive { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Refuses a matrix of f64 of more than `limit` bytes.
pub(crate) fn size(what: &'static str, rows: usize, columns: usize, limit: u64) -> Result<(), LinearError> {
    let bytes = (rows as u64).saturating_mul(columns as u64).saturating_mul(8);
    if bytes <= limit { Ok(()) } else { Err(LinearError::TooLarge { what, bytes, limit }) }
}
