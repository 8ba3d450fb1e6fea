//! What a row was to those before it: predictions **one step ahead**, of which the factor of all rows knows each.
//!
//! With `K̃ = L Lᵀ` the whitened residuals `z = L⁻¹ (y - m)` are `z_i = (y_i - μ_i) / s_i`, where `μ_i` and `s_i²` are mean and variance of row i given rows 1 to i - 1, and `s_i = L_ii`. Under the
//! model they are independent standard normal numbers, however rows depend on each other, and the densities of all rows add up to the evidence.

use super::posterior::ExactPosterior;

/// Rows of one target, each predicted from all rows before it, at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct OneStepAhead {
    /// `(y - μ) / s` of each row, noise included.
    pub residuals: Vec<f64>,
    /// `log p(y | rows before)` of each.
    pub log_densities: Vec<f64>,
}

impl ExactPosterior {
    /// The first target's rows from `first` on, each predicted from all rows before it. Cost `n²` flops: the factor is there.
    ///
    /// # Panics
    /// When there are fewer rows than `first`.
    pub fn one_step_ahead(&self, first: usize) -> OneStepAhead {
        let targets = self.data.targets().subcols(0, 1);
        let mean = self.model.mean().evaluate(self.data.inputs());
        let mut whitened = targets - mean.subcols(0, 1);
        self.cholesky.solve_factor_in_place(whitened.as_mut());
        let constant = 0.5 * (2.0 * std::f64::consts::PI).ln();
        let factor = self.cholesky.factor();
        let rows = self.data.rows();
        assert!(first <= rows, "row {first} of {rows}");
        let residuals: Vec<f64> = (first..rows).map(|i| whitened[(i, 0)]).collect();
        let density = |(i, z): (usize, &f64)| -0.5 * z * z - factor[(i, i)].ln() - constant;
        let log_densities = (first..rows).zip(&residuals).map(density).collect();
        OneStepAhead { residuals, log_densities }
    }
}
