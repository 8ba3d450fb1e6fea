//! Plain matrices.

use crate::error::Error;
use faer::{Col, ColRef, Mat, MatRef};
use posterior_data::Values;

/// Anything with rows of numbers, taken by reference: arrays of arrays, vectors of vectors, a slice (one column), matrices and columns of faer; with the feature `ndarray` its arrays and views of one and two
/// dimensions.
pub trait Rows {
    /// Numbers of rows and columns, n and D.
    ///
    /// # Errors
    /// [`Ragged`] where rows have different lengths.
    fn size(&self) -> Result<(usize, usize), Ragged>;

    /// The number in row i and column j.
    fn number(&self, i: usize, j: usize) -> f64;

    /// A copy, n x D.
    ///
    /// # Errors
    /// As [`Rows::size`].
    fn to_matrix(&self) -> Result<Mat<f64>, Ragged> {
        let (rows, columns) = self.size()?;
        Ok(Mat::from_fn(rows, columns, |i, j| self.number(i, j)))
    }
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

/// The size of rows that can be seen as slices.
fn of_slices<R: AsRef<[f64]>>(rows: &[R]) -> Result<(usize, usize), Ragged> {
    let expected = rows.first().map_or(0, |row| row.as_ref().len());
    match rows.iter().position(|row| row.as_ref().len() != expected) {
        Some(row) => Err(Ragged { row, found: rows[row].as_ref().len(), expected }),
        None => Ok((rows.len(), expected)),
    }
}

impl<const D: usize> Rows for [[f64; D]] {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.len(), if self.is_empty() { 0 } else { D }))
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self[i][j]
    }
}

impl Rows for [Vec<f64>] {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        of_slices(self)
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self[i][j]
    }
}

/// One column.
impl Rows for [f64] {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.len(), 1))
    }

    fn number(&self, i: usize, _: usize) -> f64 {
        self[i]
    }
}

impl<const N: usize, const D: usize> Rows for [[f64; D]; N] {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        self.as_slice().size()
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self.as_slice().number(i, j)
    }
}

impl<const D: usize> Rows for Vec<[f64; D]> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        self.as_slice().size()
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self.as_slice().number(i, j)
    }
}

impl Rows for Vec<Vec<f64>> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        self.as_slice().size()
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self.as_slice().number(i, j)
    }
}

/// One column.
impl Rows for Vec<f64> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        self.as_slice().size()
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self.as_slice().number(i, j)
    }
}

/// One column.
impl<const N: usize> Rows for [f64; N] {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        self.as_slice().size()
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self.as_slice().number(i, j)
    }
}

impl Rows for Mat<f64> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.nrows(), self.ncols()))
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self[(i, j)]
    }
}

impl Rows for MatRef<'_, f64> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.nrows(), self.ncols()))
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self[(i, j)]
    }
}

/// One column.
impl Rows for Col<f64> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.nrows(), 1))
    }

    fn number(&self, i: usize, _: usize) -> f64 {
        self[i]
    }
}

/// One column.
impl Rows for ColRef<'_, f64> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.nrows(), 1))
    }

    fn number(&self, i: usize, _: usize) -> f64 {
        self[i]
    }
}

#[cfg(feature = "ndarray")]
impl<S: ndarray::Data<Elem = f64>> Rows for ndarray::ArrayBase<S, ndarray::Ix2> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.nrows(), self.ncols()))
    }

    fn number(&self, i: usize, j: usize) -> f64 {
        self[[i, j]]
    }
}

/// One column.
#[cfg(feature = "ndarray")]
impl<S: ndarray::Data<Elem = f64>> Rows for ndarray::ArrayBase<S, ndarray::Ix1> {
    fn size(&self) -> Result<(usize, usize), Ragged> {
        Ok((self.len(), 1))
    }

    fn number(&self, i: usize, _: usize) -> f64 {
        self[i]
    }
}

/// The number of targets and their column.
pub(crate) fn targets_of<Y: Rows + ?Sized>(y: &Y) -> Result<(usize, Values), Error> {
    let (targets, columns) = y.size()?;
    if columns != 1 && targets > 0 {
        return Err(Error::TargetColumns { found: columns });
    }
    Ok((targets, Values::Numeric((0..targets).map(|i| y.number(i, 0)).collect())))
}
