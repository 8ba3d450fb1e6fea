//! `A B`: first B, then A.

use super::{LinearOperator, OperatorError};
use crate::Real;
use faer::{MatMut, MatRef};

/// The product of an operator of m x l and one of l x n; products of more are nested.
#[derive(Clone, Copy, Debug)]
pub struct Product<A, B> {
    left: A,
    right: B,
}

impl<A, B> Product<A, B> {
    /// `left right`.
    ///
    /// # Errors
    /// [`OperatorError`] when the columns of the left are not as many as the rows of the right.
    pub fn new<T: Real>(left: A, right: B) -> Result<Self, OperatorError>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        if left.shape().1 != right.shape().0 {
            return Err(OperatorError {
                composition: "a product",
                needed: "as many columns on the left as rows on the right",
                left: left.shape(),
                right: right.shape(),
            });
        }
        Ok(Self { left, right })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for Product<A, B> {
    fn shape(&self) -> (usize, usize) {
        (self.left.shape().0, self.right.shape().1)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        super::check_apply(self.shape(), input, &output);
        self.left.apply(self.right.multiply(input).as_ref(), output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        super::check_apply_transpose(self.shape(), input, &output);
        self.right.apply_transpose(self.left.multiply_transpose(input).as_ref(), output);
    }
}
