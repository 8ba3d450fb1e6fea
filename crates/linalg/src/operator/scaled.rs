//! `c A`.

use super::{LinearOperator, Structure};
use crate::Real;
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

/// An operator times a number.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<T, A> {
    factor: T,
    operator: A,
}

impl<T: Real, A: LinearOperator<T>> Scaled<T, A> {
    /// `factor * operator`.
    pub fn new(factor: T, operator: A) -> Self {
        Self { factor, operator }
    }

    fn scale(&self, mut output: MatMut<'_, T>) {
        for j in 0..output.ncols() {
            output.rb_mut().col_mut(j).iter_mut().for_each(|value| *value *= self.factor);
        }
    }
}

impl<T: Real, A: LinearOperator<T>> LinearOperator<T> for Scaled<T, A> {
    fn shape(&self) -> (usize, usize) {
        self.operator.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.operator.apply(input, output.rb_mut());
        self.scale(output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.operator.apply_transpose(input, output.rb_mut());
        self.scale(output);
    }

    fn structure(&self) -> Structure {
        self.operator.structure().scaled(self.factor.to_f64())
    }
}
