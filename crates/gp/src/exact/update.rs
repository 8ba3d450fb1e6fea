//! New rows and withdrawn rows at fixed hyperparameters, without factoring again.

use super::posterior::ExactPosterior;
use crate::data::same_width;
use crate::{GpError, Observations};
use faer::Mat;
use posterior_kernels::{cross, gram};

impl ExactPosterior {
    /// Conditions on further observations: the posterior afterwards is that of all rows together.
    ///
    /// Cost `n²k` flops for k new rows (and a copy of the factor) in place of `(n + k)³/3`. On error nothing changes.
    ///
    /// # Errors
    /// [`GpError::Shape`] when widths differ, [`GpError::Cholesky`] when the new rows make `K̃` indefinite.
    pub fn append(&mut self, more: &Observations) -> Result<(), GpError> {
        let inputs = self.data.inputs();
        same_width("columns of the new inputs", inputs.ncols(), more.inputs().ncols())?;
        let kernel = self.model.kernel();
        let rectangle = cross(kernel, more.inputs(), inputs);
        let mut corner = gram(kernel, more.inputs());
        for i in 0..more.rows() {
            corner[(i, i)] += self.model.noise_variance_of_row(more, i);
        }
        let mut data = self.data.clone();
        data.extend(more)?;
        self.cholesky.append(rectangle.as_ref(), corner.as_ref())?;
        self.data = data;
        self.refresh_weights();
        Ok(())
    }

    /// Forgets training row `index`: the posterior afterwards is that of the other rows. Cost `O(n²)`.
    ///
    /// # Errors
    /// [`GpError::Empty`] when it is the last row, [`GpError::Shape`] when there is no such row.
    pub fn remove(&mut self, index: usize) -> Result<(), GpError> {
        let rows = self.data.rows();
        if index >= rows {
            return Err(GpError::Shape { what: "training rows", expected: index + 1, actual: rows });
        }
        if rows == 1 {
            return Err(GpError::Empty { what: "the table that would remain" });
        }
        self.cholesky.remove(index);
        self.data.remove(index);
        self.refresh_weights();
        Ok(())
    }

    /// `α = K̃⁻¹ (y - m(X))` with the current factor.
    fn refresh_weights(&mut self) {
        let mut residuals: Mat<f64> = self.data.targets() - self.model.mean().evaluate(self.data.inputs());
        self.cholesky.solve_in_place(residuals.as_mut());
        self.weights = residuals;
    }
}
