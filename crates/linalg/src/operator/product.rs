//! `A B`: first B, then A.

use super::{LinearOperator, OperatorError, Structure};
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
    /// [`OperatorError::Shapes`] when the columns of the left are not as many as the rows of the right.
    pub fn new<T: Real>(left: A, right: B) -> Result<Self, OperatorError>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        if left.shape().1 != right.shape().0 {
            return Err(OperatorError::Shapes {
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

    fn structure(&self) -> Structure {
        let (left, right) = (self.left.structure(), self.right.structure());
        let ((m, inner), n) = (self.left.shape(), self.right.shape().1);
        // The rank is at most that of either factor, which counts only where the product is not smaller than the factor.
        let smallest = m.min(n);
        let low = |known: Structure, bound: usize| known.contains(Structure::LOW_RANK) && bound <= smallest;
        let thin = inner < smallest || low(left, m.min(inner)) || low(right, inner.min(n));
        left.product(right) | if thin { Structure::LOW_RANK } else { Structure::GENERAL }
    }
}
