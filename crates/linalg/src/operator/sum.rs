//! `A + B`.

use super::{LinearOperator, OperatorError};
use crate::Real;
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

/// The sum of two operators of the same shape; sums of more are nested.
#[derive(Clone, Copy, Debug)]
pub struct Sum<A, B> {
    left: A,
    right: B,
}

impl<A, B> Sum<A, B> {
    /// `left + right`.
    ///
    /// # Errors
    /// [`OperatorError`] when they differ.
    pub fn new<T: Real>(left: A, right: B) -> Result<Self, OperatorError>
    where
        A: LinearOperator<T>,
        B: LinearOperator<T>,
    {
        if left.shape() != right.shape() {
            return Err(OperatorError {
                composition: "a sum",
                needed: "operators of the same shape",
                left: left.shape(),
                right: right.shape(),
            });
        }
        Ok(Self { left, right })
    }
}

impl<T: Real, A: LinearOperator<T>, B: LinearOperator<T>> LinearOperator<T> for Sum<A, B> {
    fn shape(&self) -> (usize, usize) {
        self.left.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.left.apply(input, output.rb_mut());
        output += self.right.multiply(input);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.left.apply_transpose(input, output.rb_mut());
        output += self.right.multiply_transpose(input);
    }
}
