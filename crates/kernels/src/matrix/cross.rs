//! `k(x, z)` as an operator.

use super::tiles::{TileSource, multiply, multiply_transpose};
use crate::{Kernel, Prepared};
use faer::{MatMut, MatRef};
use posterior_linalg::Real;
use posterior_linalg::operator::{LinearOperator, check_apply, check_apply_transpose};
use std::ops::Range;
use std::sync::Arc;

/// The cross matrix `k(x, z)`, n x m, of two sets of different points, which is never stored: `K(x*, x) v` evaluates a posterior mean or
/// sample with representer weights v at new points. Costs: the module's documentation.
#[derive(Debug)]
pub struct CrossMatrix<T: Real> {
    kernel: Box<dyn Kernel<T>>,
    x: Arc<Prepared<T>>,
    z: Arc<Prepared<T>>,
}

impl<T: Real> CrossMatrix<T> {
    /// The matrix with rows for x (n x D) and columns for z (m x D).
    pub fn new(kernel: &dyn Kernel<T>, x: MatRef<'_, T>, z: MatRef<'_, T>) -> Self {
        Self::of_prepared(kernel.clone_box(), Arc::new(kernel.prepare(x)), Arc::new(kernel.prepare(z)))
    }

    pub(super) fn of_prepared(kernel: Box<dyn Kernel<T>>, x: Arc<Prepared<T>>, z: Arc<Prepared<T>>) -> Self {
        Self { kernel, x, z }
    }
}

impl<T: Real> TileSource<T> for CrossMatrix<T> {
    fn shape(&self) -> (usize, usize) {
        (self.x.rows(), self.z.rows())
    }
    fn tile(&self, rows: Range<usize>, columns: Range<usize>, out: MatMut<'_, T>) {
        self.kernel.prepared_tile(self.x.block(rows), self.z.block(columns), None, out);
    }
}

impl<T: Real> LinearOperator<T> for CrossMatrix<T> {
    fn shape(&self) -> (usize, usize) {
        TileSource::shape(self)
    }

    fn apply(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply(TileSource::shape(self), input, &output);
        multiply(self, input, output);
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(TileSource::shape(self), input, &output);
        multiply_transpose(self, input, output);
    }
}
