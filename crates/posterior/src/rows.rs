//! Plain matrices.

use faer::{Mat, MatRef};

/// Anything with rows of numbers: arrays of arrays, vectors of vectors, a slice (one column), faer's matrices.
pub trait Rows {
    /// The numbers, n x D.
    ///
    /// # Errors
    /// [`Ragged`] where rows have different lengths.
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged>;
}

/// A row of another length than the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} has {found} numbers, the first row has {expected}: give rows of equal length")]
pub struct Ragged {
    /// Which row, from 0.
    pub row: usize,
    /// Its numbers.
    pub found: usize,
    /// Those of the first row.
    pub expected: usize,
}

/// Of rows that can be seen as slices.
fn of_slices<R: AsRef<[f64]>>(rows: &[R]) -> Result<Mat<f64>, Ragged> {
    let expected = rows.first().map_or(0, |row| row.as_ref().len());
    match rows.iter().position(|row| row.as_ref().len() != expected) {
        Some(row) => Err(Ragged { row, found: rows[row].as_ref().len(), expected }),
        None => Ok(Mat::from_fn(rows.len(), expected, |i, j| rows[i].as_ref()[j])),
    }
}

impl<const D: usize> Rows for [[f64; D]] {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        of_slices(self)
    }
}

impl<const N: usize, const D: usize> Rows for [[f64; D]; N] {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        of_slices(self)
    }
}

impl<const D: usize> Rows for Vec<[f64; D]> {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        of_slices(self)
    }
}

impl Rows for [Vec<f64>] {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        of_slices(self)
    }
}

impl Rows for Vec<Vec<f64>> {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        of_slices(self)
    }
}

/// One column.
impl Rows for [f64] {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        Ok(Mat::from_fn(self.len(), 1, |i, _| self[i]))
    }
}

/// One column.
impl Rows for Vec<f64> {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        self.as_slice().to_matrix()
    }
}

/// One column.
impl<const N: usize> Rows for [f64; N] {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        self.as_slice().to_matrix()
    }
}

impl Rows for Mat<f64> {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        Ok(self.clone())
    }
}

impl Rows for MatRef<'_, f64> {
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        Ok(self.to_owned())
    }
}
