//! Targets by rows.

use crate::GpError;
use crate::data::same_width;
use faer::{Mat, MatRef};
use posterior_linalg::Real;

/// Targets `function + noise` (n x s) of which some rows are asked for at a time, so that they need not be stored.
pub trait TargetRows<T: Real>: Sync {
    /// s.
    fn columns(&self) -> usize;

    /// Some rows of both parts (r x s each). The same row is the same whenever it is asked for.
    fn rows(&self, rows: &[usize]) -> (Mat<T>, Mat<T>);
}

/// Targets in memory.
#[derive(Clone, Copy)]
pub struct StoredTargets<'a, T> {
    function: MatRef<'a, T>,
    noise: Option<MatRef<'a, T>>,
}

impl<'a, T: Real> StoredTargets<'a, T> {
    /// The function part and, where there is one, the noise (n x s).
    ///
    /// # Errors
    /// [`GpError::Shape`] when they differ in shape.
    pub fn new(function: MatRef<'a, T>, noise: Option<MatRef<'a, T>>) -> Result<Self, GpError> {
        if let Some(noise) = noise {
            same_width("rows of the targets' noise", function.nrows(), noise.nrows())?;
            same_width("columns of the targets' noise", function.ncols(), noise.ncols())?;
        }
        Ok(Self { function, noise })
    }
}

impl<T: Real> TargetRows<T> for StoredTargets<'_, T> {
    fn columns(&self) -> usize {
        self.function.ncols()
    }

    fn rows(&self, rows: &[usize]) -> (Mat<T>, Mat<T>) {
        let s = self.function.ncols();
        let function = Mat::from_fn(rows.len(), s, |a, j| self.function[(rows[a], j)]);
        let noise =
            Mat::from_fn(rows.len(), s, |a, j| self.noise.map_or(T::ZERO, |noise| noise[(rows[a], j)]));
        (function, noise)
    }
}
