//! `c I`: one number; noise, jitter and regularisation.

use super::{LinearOperator, Structure, check_apply, check_apply_transpose};
use crate::Real;
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

/// `c` times the identity of n x n.
#[derive(Clone, Copy, Debug)]
pub struct ScaledIdentity<T> {
    size: usize,
    factor: T,
}

impl<T: Real> ScaledIdentity<T> {
    /// The identity of n x n.
    pub fn identity(size: usize) -> Self {
        Self { size, factor: T::ONE }
    }

    /// `factor` times the identity of n x n.
    pub fn new(size: usize, factor: T) -> Self {
        Self { size, factor }
    }

    /// `c`.
    pub fn factor(&self) -> T {
        self.factor
    }
}

impl<T: Real> LinearOperator<T> for ScaledIdentity<T> {
    fn shape(&self) -> (usize, usize) {
        (self.size, self.size)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        scale_into(self.factor, input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        scale_into(self.factor, input, output);
    }

    fn structure(&self) -> Structure {
        Structure::IDENTITY.scaled(self.factor.to_f64())
    }
}

/// `output <- factor * input`.
fn scale_into<T: Real>(factor: T, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
    for j in 0..input.ncols() {
        for (out, &x) in output.rb_mut().col_mut(j).iter_mut().zip(input.col(j).iter()) {
            *out = factor * x;
        }
    }
}
