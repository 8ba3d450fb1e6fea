//! `K + diag(noise)`: the matrix that every Gaussian process with Gaussian noise must solve with.

use super::error::SolveError;
use super::error::same_size;
use crate::Real;
use crate::operator::{LinearOperator, RowAccess};
use faer::{Mat, MatMut, MatRef};

/// `K̃ = K + diag(noise)` for a positive semidefinite K of which products and rows can be had, n x n.
#[derive(Clone)]
pub struct System<'a, T: Real> {
    matrix: &'a dyn RowAccess<T>,
    noise: Vec<T>,
}

impl<'a, T: Real> System<'a, T> {
    /// `K + diag(noise)` for positive, finite noise variances (n).
    ///
    /// # Errors
    /// [`SolveError::Shape`] when K is not square or its size is not that of the noise; [`SolveError::Setting`] when a variance
    /// is not positive and finite.
    pub fn new(matrix: &'a dyn RowAccess<T>, noise: Vec<T>) -> Result<Self, SolveError> {
        let (rows, columns) = matrix.shape();
        same_size("columns of a symmetric matrix", rows, columns)?;
        same_size("noise variances", rows, noise.len())?;
        match noise.iter().find(|v| !(Real::is_finite(**v) && **v > T::ZERO)) {
            Some(value) => Err(SolveError::Setting {
                what: "a noise variance",
                value: value.to_f64(),
                needed: "positive and finite",
            }),
            None => Ok(Self { matrix, noise }),
        }
    }

    /// `K + variance I`.
    ///
    /// # Errors
    /// As [`System::new`].
    pub fn uniform(matrix: &'a dyn RowAccess<T>, variance: T) -> Result<Self, SolveError> {
        Self::new(matrix, vec![variance; matrix.shape().0])
    }

    /// Rows, n.
    pub fn rows(&self) -> usize {
        self.noise.len()
    }

    /// K, without the noise.
    pub fn matrix(&self) -> &'a dyn RowAccess<T> {
        self.matrix
    }

    /// The noise variances (n).
    pub fn noise(&self) -> &[T] {
        &self.noise
    }

    /// The largest noise variance.
    pub fn largest_noise(&self) -> f64 {
        self.noise.iter().fold(0.0, |largest, v| largest.max(v.to_f64()))
    }

    /// The mean noise variance.
    pub fn mean_noise(&self) -> f64 {
        self.noise.iter().map(|v| v.to_f64()).sum::<f64>() / self.noise.len().max(1) as f64
    }

    /// `output <- K̃[rows, :] input` (r x k for an input of n x k).
    ///
    /// # Panics
    /// When shapes do not fit or a row does not exist.
    pub fn apply_rows(&self, rows: &[usize], input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.matrix.apply_rows(rows, input, output.as_mut());
        for j in 0..input.ncols() {
            for (a, &i) in rows.iter().enumerate() {
                output[(a, j)] += self.noise[i] * input[(i, j)];
            }
        }
    }

    /// `targets - K̃ weights` (n x k): one product.
    ///
    /// # Panics
    /// When shapes do not fit.
    pub fn residual(&self, weights: MatRef<'_, T>, targets: MatRef<'_, T>) -> Mat<T> {
        let mut out = self.multiply(weights);
        for j in 0..out.ncols() {
            for i in 0..out.nrows() {
                out[(i, j)] = targets[(i, j)] - out[(i, j)];
            }
        }
        out
    }
}

impl<T: Real> LinearOperator<T> for System<'_, T> {
    fn shape(&self) -> (usize, usize) {
        self.matrix.shape()
    }

    fn apply(&self, input: MatRef<'_, T>, mut output: MatMut<'_, T>) {
        self.matrix.apply(input, output.as_mut());
        for j in 0..input.ncols() {
            for (i, &noise) in self.noise.iter().enumerate() {
                output[(i, j)] += noise * input[(i, j)];
            }
        }
    }

    fn apply_transpose(&self, input: MatRef<'_, T>, output: MatMut<'_, T>) {
        self.apply(input, output);
    }
}
