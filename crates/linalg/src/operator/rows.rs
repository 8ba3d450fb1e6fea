//! Symmetric matrices of which single rows can be had.

use super::{Dense, LinearOperator, check_apply, check_apply_transpose};
use crate::Real;
use crate::dense::multiply_into;
use faer::{Accum, Mat, MatMut, MatRef};

/// A symmetric n x n matrix whose rows can be had without the others: what stochastic solvers and pivoted factorisations ask of a
/// kernel matrix.
///
/// Rows are named by their numbers; a number may occur more than once, and then stands for as many rows. Numbers beyond n are mistakes of the
/// program and panic. Symmetry is the implementation's promise.
pub trait RowAccess<T: Real>: LinearOperator<T> {
    /// Entries on the diagonal (n).
    fn diagonal(&self) -> Vec<T>;

    /// `output <- A[rows, :] input`: r x k for an `input` of n x k.
    fn apply_rows(&self, rows: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>);

    /// `output <- A[:, columns] input`: n x k for an `input` of r x k.
    fn apply_columns(&self, columns: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>);

    /// `output <- A[:, columns]`: n x r, in memory of the caller.
    fn columns_into(&self, columns: &[usize], output: MatMut<'_, T>);

    /// `output <- A[rows, rows]`: r x r, symmetric to the last bit; `r²` entries, whatever n is. Rows are all different.
    fn principal_into(&self, rows: &[usize], output: MatMut<'_, T>);
}

impl<T: Real> RowAccess<T> for Dense<T> {
    fn diagonal(&self) -> Vec<T> {
        (0..self.shape().0).map(|i| self.matrix()[(i, i)]).collect()
    }

    /// Columns are gathered, since columns are contiguous and rows are not.
    fn apply_rows(&self, rows: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply((rows.len(), self.shape().0), input, &output);
        let gathered = gather(self.matrix(), rows);
        multiply_into(output, Accum::Replace, gathered.transpose(), input, T::ONE);
    }

    fn apply_columns(&self, columns: &[usize], input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose((columns.len(), self.shape().0), input, &output);
        let gathered = gather(self.matrix(), columns);
        multiply_into(output, Accum::Replace, gathered.as_ref(), input, T::ONE);
    }

    fn columns_into(&self, columns: &[usize], mut output: MatMut<'_, T>) {
        for (j, &column) in columns.iter().enumerate() {
            output.as_mut().col_mut(j).copy_from(self.matrix().col(column));
        }
    }

    fn principal_into(&self, rows: &[usize], mut output: MatMut<'_, T>) {
        check_principal(self.shape().0, rows, &output);
        for (j, &column) in rows.iter().enumerate() {
            let own = output.as_mut().col_mut(j);
            own.iter_mut()
                .zip(rows)
                .for_each(|(o, &row)| *o = self.matrix()[(row.max(column), row.min(column))]);
        }
    }
}

/// Checks the block of [`RowAccess::principal_into`] for a matrix of n rows.
///
/// # Panics
/// When it does not fit, or a row does not exist.
#[track_caller]
pub fn check_principal<T>(n: usize, rows: &[usize], output: &MatMut<'_, T>) {
    let shape = (output.nrows(), output.ncols());
    assert_eq!(shape, (rows.len(), rows.len()), "a row and a column for each chosen one");
    assert!(rows.iter().all(|&i| i < n), "rows of a matrix of {n} are counted from 0");
}

fn gather<T: Real>(matrix: MatRef<'_, T>, columns: &[usize]) -> Mat<T> {
    Mat::from_fn(matrix.nrows(), columns.len(), |i, j| matrix[(i, columns[j])])
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn rows_and_columns_of_a_stored_matrix() {
        let a = mat![[2.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 4.0]];
        let dense = Dense::new(a.clone());
        let v = mat![[1.0, 2.0], [0.0, 1.0], [-1.0, 3.0]];
        let chosen = [2, 0, 2];
        let mut out = Mat::zeros(3, 2);
        dense.apply_rows(&chosen, v.as_ref(), out.as_mut());
        let whole = &a * &v;
        for (i, &row) in chosen.iter().enumerate() {
            assert_eq!((out[(i, 0)], out[(i, 1)]), (whole[(row, 0)], whole[(row, 1)]));
        }
        let mut back = Mat::zeros(3, 2);
        dense.apply_columns(&chosen, v.as_ref(), back.as_mut());
        let mut columns = Mat::zeros(3, 3);
        dense.columns_into(&chosen, columns.as_mut());
        assert_eq!(back, &columns * &v);
        let mut principal = Mat::zeros(2, 2);
        dense.principal_into(&[2, 0], principal.as_mut());
        assert_eq!(principal, mat![[4.0, 0.5], [0.5, 2.0]]);
        assert_eq!(RowAccess::diagonal(&dense), [2.0, 3.0, 4.0]);
    }
}
