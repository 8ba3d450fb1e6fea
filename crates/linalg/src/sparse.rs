//! **Rows of few non-zeros**: compressed rows (CSR), as tables of counts come in.

use crate::Real;
use faer::{Mat, MatRef};

/// A matrix of n x D numbers of which most are zero: for each row its non-zero columns, ascending, and their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows<T> {
    columns: usize,
    /// Where each row begins among `indices` and `values`, and where the last one ends.
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

/// Why parts are no sparse matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    /// Offsets that do not cut the entries into rows.
    #[error(
        "offsets begin with 0, never fall and end with the number of entries ({entries}); at position {position} they do not"
    )]
    Offsets {
        /// Where among the offsets.
        position: usize,
        /// How many entries there are.
        entries: usize,
    },
    /// Not as many values as column numbers.
    #[error("{indices} column numbers and {values} values; each entry has one of both")]
    Lengths {
        /// Column numbers.
        indices: usize,
        /// Values.
        values: usize,
    },
    /// A column that does not exist, or too many of them.
    #[error("row {row}: there is no column {column} among {columns}, counted from 0")]
    Column {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// How many there are.
        columns: usize,
    },
    /// Columns of a row out of order.
    #[error(
        "row {row}: column {column} is not larger than the one before; sort the entries of a row and merge equal ones"
    )]
    Order {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// More columns than numbers of 32 bits can name.
    #[error("{columns} columns are more than 4,294,967,295")]
    Wide {
        /// How many.
        columns: usize,
    },
}

impl<T: Real> SparseRows<T> {
    /// Takes the parts: row i has the entries `offsets[i]..offsets[i + 1]`, with columns ascending.
    ///
    /// # Errors
    /// [`SparseError`] when they do not hang together.
    pub fn new(
        columns: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, SparseError> {
        if columns > u32::MAX as usize {
            return Err(SparseError::Wide { columns });
        }
        if indices.len() != values.len() {
            return Err(SparseError::Lengths { indices: indices.len(), values: values.len() });
        }
        let wrong = |position| SparseError::Offsets { position, entries: values.len() };
        if offsets.first() != Some(&0) {
            return Err(wrong(0));
        }
        if let Some(position) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(wrong(position + 1));
        }
        if offsets.last() != Some(&values.len()) {
            return Err(wrong(offsets.len() - 1));
        }
        for (row, pair) in offsets.windows(2).enumerate() {
            let entries = &indices[pair[0]..pair[1]];
            if let Some(&column) = entries.iter().find(|&&c| c as usize >= columns) {
                return Err(SparseError::Column { row, column: column as usize, columns });
            }
            if let Some(at) = entries.windows(2).position(|pair| pair[0] >= pair[1]) {
                return Err(SparseError::Order { row, column: entries[at + 1] as usize });
            }
        }
        Ok(Self { columns, offsets, indices, values })
    }

    /// The entries of a dense matrix other than 0.
    ///
    /// # Errors
    /// [`SparseError::Wide`].
    pub fn from_dense(matrix: MatRef<'_, T>) -> Result<Self, SparseError> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        if matrix.ncols() > u32::MAX as usize {
            return Err(SparseError::Wide { columns: matrix.ncols() });
        }
        for i in 0..matrix.nrows() {
            for (j, &value) in matrix.row(i).iter().enumerate() {
                // NaN is not 0 and stays.
                if value != T::ZERO {
                    indices.push(j as u32);
                    values.push(value);
                }
            }
            offsets.push(values.len());
        }
        Self::new(matrix.ncols(), offsets, indices, values)
    }

    /// n.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// D.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many entries are stored.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Columns, ascending, and numbers of row i.
    ///
    /// # Panics
    /// When i is n or more.
    #[inline(always)]
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.offsets[i]..self.offsets[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// Some of the rows, in the order named; a number may occur more than once.
    ///
    /// # Panics
    /// When a number is n or more.
    pub fn select(&self, rows: &[usize]) -> Self {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &i in rows {
            let (columns, numbers) = self.row(i);
            indices.extend_from_slice(columns);
            values.extend_from_slice(numbers);
            offsets.push(values.len());
        }
        Self { columns: self.columns, offsets, indices, values }
    }

    /// The same with all its zeros, n x D.
    pub fn to_dense(&self) -> Mat<T> {
        let mut out = Mat::zeros(self.rows(), self.columns);
        for i in 0..self.rows() {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).for_each(|(&c, &v)| out[(i, c as usize)] = v);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn dense_matrices_round_trip_and_rows_are_selected() {
        let dense = mat![[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]];
        let sparse = SparseRows::from_dense(dense.as_ref()).unwrap();
        assert_eq!((sparse.rows(), sparse.columns(), sparse.entries()), (3, 3, 3));
        assert_eq!(sparse.to_dense(), dense);
        assert_eq!(sparse.row(2), (&[0, 2][..], &[1.0, 3.0][..]));
        let chosen = sparse.select(&[2, 1, 2]).to_dense();
        assert_eq!(chosen, mat![[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]);
    }

    #[test]
    fn parts_that_do_not_hang_together_are_refused() {
        let new = |offsets: &[usize], indices: &[u32], values: &[f64]| {
            SparseRows::new(4, offsets.to_vec(), indices.to_vec(), values.to_vec()).unwrap_err()
        };
        assert!(matches!(new(&[], &[], &[]), SparseError::Offsets { position: 0, .. }));
        assert!(matches!(new(&[0, 2, 1], &[0], &[1.0]), SparseError::Offsets { position: 2, .. }));
        assert!(matches!(new(&[0, 2], &[0], &[1.0]), SparseError::Offsets { position: 1, entries: 1 }));
        assert!(matches!(new(&[0, 1], &[0, 1], &[1.0]), SparseError::Lengths { indices: 2, values: 1 }));
        assert!(matches!(new(&[0, 1], &[4], &[1.0]), SparseError::Column { column: 4, .. }));
        assert!(matches!(new(&[0, 2], &[1, 1], &[1.0, 2.0]), SparseError::Order { row: 0, column: 1 }));
    }
}
