//! **Noise of places**: how far observations scatter around the function, learned by a process of its own.
//!
//! The logarithm of the noise's variance is a Gaussian process `g` of the columns and of the prediction itself, because what most often decides how far a target scatters is how large it is. Its data are squared errors of rows that are predicted
//! from all the others, `e_i² ~ (l_i + exp g_i) χ²₁`, where `l_i` is what the function is unsure of there. New observations scatter by `E exp g = exp(m + v/2)`.
//!
//! | file | what |
//! |---|---|
//! | `learn` | function and noise in turns, on some rows |
//! | `file` | its arrays |
//!
//! Source: Goldberg, Williams and Bishop, *Regression with input-dependent noise*, 1998; Kersting, Plagemann, Pfaff and Burgard, *Most likely heteroscedastic Gaussian process regression*, 2007. Here squared errors are those of left-out rows, with their own distribution instead of a
//! Gaussian for their logarithms, and the posterior of g is Laplace's.

mod file;
mod learn;

use crate::{Hyperparameter, ModelError};
use faer::{Mat, MatRef};
use posterior_gp::laplace::{LaplacePosterior, LatentPrediction};
use posterior_kernels::{KernelExpression, KernelTextError};
use serde::{Deserialize, Serialize};

pub(super) use file::{read, tensors};
pub(super) use learn::{learn, plan_in_words};

/// What stands in a model file of the noise of places, besides arrays.
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
    /// How often function and noise took turns.
    pub rounds: usize,
    /// Standard deviations of the noise at these rows, in standard units: at the 5 %, the middle and the 95 %.
    pub deviations: [f64; 3],
    /// Mean negative log density of these rows, each predicted from the others, with one noise for all.
    pub nll_before: f64,
    /// And with the noise of their places.
    pub nll_after: f64,
}

impl NoiseSummary {
    /// In words, of a target of this scale and name.
    pub(super) fn sentence(&self, scale: f64, unit: &str) -> String {
        let [low, middle, high] = self.deviations.map(|s| crate::text::number(s * scale));
        format!(
            "by place: deviations of {low} to {high} (the middle {middle}) of {unit}, learned from {} rows; their NLL, each from the others, {:.3} with one noise for all, {:.3} with that of places",
            self.rows, self.nll_before, self.nll_after
        )
    }
}

/// The process behind it.
#[derive(Debug)]
pub(crate) struct NoiseProcess {
    columns: Vec<usize>,
    posterior: LaplacePosterior,
}

impl NoiseProcess {
    /// Variances of the noise at standardised inputs (m x D) whose predicted means (m) are these, in squared standard units. Cost `O(r² m)` for r rows that it learned from.
    pub(super) fn variances(&self, x: MatRef<'_, f64>, means: &[f64]) -> Result<Vec<f64>, ModelError> {
        let LatentPrediction { mean, covariance, .. } =
            self.posterior.predict(seen(x, &self.columns, means).as_ref())?;
        Ok((0..means.len()).map(|i| (mean[(i, 0)] + 0.5 * covariance[i]).exp()).collect())
    }

    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> u64 {
        let n = self.posterior.inputs().nrows() as u64;
        8 * n * (n + self.columns.len() as u64 + 3)
    }

    /// Operations that a row takes.
    pub(super) fn flops_of_row(&self) -> f64 {
        (self.posterior.inputs().nrows() as f64).powi(2)
    }
}

/// What the noise's process sees of rows: some columns, and what is predicted there.
fn seen(x: MatRef<'_, f64>, columns: &[usize], means: &[f64]) -> Mat<f64> {
    Mat::from_fn(x.nrows(), columns.len() + 1, |i, j| match columns.get(j) {
        Some(&column) => x[(i, column)],
        None => means[i],
    })
}

/// The kernel of the logarithm of the variance: as wide as its columns want, smooth enough to be learned from few rows.
fn own_kernel() -> Result<KernelExpression, KernelTextError> {
    "matern32(ard)".parse()
}

/// What its inputs are called.
fn names(columns: &[usize], features: &[String]) -> Vec<String> {
    let own = columns.iter().map(|&j| features[j].clone());
    own.chain(["(the prediction)".to_string()]).collect()
}
