//! `diag(d)`: n numbers.

use super::{LinearOperator, Structure, check_apply, check_apply_transpose};
use crate::Real;
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef};

/// A diagonal matrix of n x n. A block of k vectors costs `nk` multiplications.
#[derive(Clone, Debug)]
pub struct Diagonal<T> {
    entries: Vec<T>,
    structure: Structure,
}

impl<T: Real> Diagonal<T> {
    /// The matrix with `entries` on its diagonal. Their signs tell whether it is positive (semi)definite.
    pub fn new(entries: Vec<T>) -> Self {
        let mut structure = Structure::DIAGONAL;
        if entries.iter().all(|&d| d >= T::ZERO) {
            structure = structure | Structure::POSITIVE_SEMIDEFINITE;
        }
        if entries.iter().all(|&d| d > T::ZERO) {
            structure = structure | Structure::POSITIVE_DEFINITE;
        }
        if entries.iter().all(|&d| d == T::ONE) {
            structure = structure | Structure::IDENTITY;
        }
        if entries.contains(&T::ZERO) {
            structure = structure | Structure::LOW_RANK;
        }
        Self { entries, structure }
    }

    /// The diagonal.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }
}

impl<T: Real> LinearOperator<T> for Diagonal<T> {
    fn shape(&self) -> (usize, usize) {
        (self.entries.len(), self.entries.len())
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        check_apply(self.shape(), input, &output);
        for j in 0..input.ncols() {
            for ((out, &x), &d) in
                output.rb_mut().col_mut(j).iter_mut().zip(input.col(j).iter()).zip(&self.entries)
            {
                *out = d * x;
            }
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        check_apply_transpose(self.shape(), input, &output);
        self.apply(input, output);
    }

    fn structure(&self) -> Structure {
        self.structure
    }
}
