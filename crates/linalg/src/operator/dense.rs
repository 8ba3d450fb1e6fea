//! `A`, stored: m x n numbers, column-major.

use super::{LinearOperator, check_apply, check_apply_transpose};
use crate::Real;
use crate::dense::multiply_into;
use faer::{Accum, Mat, MatMut, MatRef};

/// A stored matrix of m x n. A block of k vectors costs `2mnk` flops.
#[derive(Clone, Debug)]
pub struct Dense<T> {
    matrix: Mat<T>,
}

impl<T: Real> Dense<T> {
    /// Of a matrix.
    pub fn new(matrix: Mat<T>) -> Self {
        Self { matrix }
    }

    /// The matrix.
    pub fn matrix(&self) -> MatRef<'_, T> {
        self.matrix.as_ref()
    }
}

impl<T: Real> LinearOperator<T> for Dense<T> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        multiply_into(output, Accum::Replace, self.matrix.as_ref(), input, T::ONE);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        multiply_into(output, Accum::Replace, self.matrix.transpose(), input, T::ONE);
    }

    fn to_dense(&self) -> Mat<T> {
        self.matrix.clone()
    }
}
