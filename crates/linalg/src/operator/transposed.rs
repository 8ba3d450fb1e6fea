//! `Aᵀ`.

use super::LinearOperator;
use crate::Real;
use faer::{MatMut, MatRef};

/// The transpose of an operator: its two products, exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<A> {
    operator: A,
}

impl<A> Transposed<A> {
    /// `operatorᵀ`.
    pub fn new(operator: A) -> Self {
        Self { operator }
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperator<T> for Transposed<A> {
    fn shape(&self) -> (usize, usize) {
        let (rows, columns) = self.operator.shape();
        (columns, rows)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.operator.apply_transpose(input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.operator.apply(input, output);
    }
}
