//! How far observations scatter at each place, where that was learned: a predictor of its own.

use crate::{Hyperparameter, ModelError};
use faer::{Mat, MatRef};
use posterior_gp::laplace::{LaplacePosterior, LatentPrediction};
use posterior_kernels::KernelExpression;
use serde::{Deserialize, Serialize};

/// What stands in a model file of heteroscedastic noise, besides arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseSummary {
    /// The kernel of the logarithm of the variance.
    pub kernel: KernelExpression,
    /// Which inputs it looks at, beside the prediction, which comes last.
    pub columns: Vec<usize>,
    /// What it learned.
    pub hyperparameters: Vec<Hyperparameter>,
    /// Rows that it learned from.
    pub rows: usize,
    /// Alternations between function and noise.
    pub rounds: usize,
    /// Standard deviations of the noise at these rows, in standard units: at the 5 %, the middle and the 95 %.
    pub deviations: [f64; 3],
    /// Mean negative log density of these rows, each predicted from the others, with one noise for all.
    pub nll_before: f64,
    /// And with heteroscedastic noise.
    pub nll_after: f64,
}

impl NoiseSummary {
    /// In words, of a target of this scale and name.
    pub(crate) fn sentence(&self, scale: f64, unit: &str) -> String {
        let [low, middle, high] = self.deviations.map(|s| crate::text::number(s * scale));
        format!(
            "heteroscedastic: standard deviations of {low} to {high} (median {middle}) of {unit}, learned from {} rows; leave-one-out NLL {:.3}, {:.3} with one noise for all",
            self.rows, self.nll_after, self.nll_before
        )
    }
}

/// The process behind it.
#[derive(Debug)]
pub(crate) struct NoiseProcess {
    pub(crate) columns: Vec<usize>,
    pub(crate) posterior: LaplacePosterior,
}

impl NoiseProcess {
    /// Variances of the noise at standardised inputs (m x D) whose predicted means (m) are these, in squared standard units. Cost `O(r² m)` for r rows that it learned from.
    pub(crate) fn variances(&self, x: MatRef<'_, f64>, means: &[f64]) -> Result<Vec<f64>, ModelError> {
        let LatentPrediction { mean, covariance, .. } =
            self.posterior.predict(seen(x, &self.columns, means).as_ref())?;
        Ok((0..means.len()).map(|i| (mean[(i, 0)] + 0.5 * covariance[i]).exp()).collect())
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> u64 {
        let n = self.posterior.inputs().nrows() as u64;
        8 * n * (n + self.columns.len() as u64 + 3)
    }

    /// Operations that a row takes.
    pub(crate) fn flops_of_row(&self) -> f64 {
        (self.posterior.inputs().nrows() as f64).powi(2)
    }
}

/// What the noise's process sees of rows: some columns, and what is predicted there.
pub(crate) fn seen(x: MatRef<'_, f64>, columns: &[usize], means: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), columns.len() + 1, |i, j| match columns.get(j) {
        Some(&column) => x[(i, column)],
        None => means[i],
    })
}
