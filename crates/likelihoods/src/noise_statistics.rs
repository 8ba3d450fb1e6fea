//! The noise covariance by **expectation maximisation**.
//!
//! For `y_n = f_n + ε_n`, `ε_n ~ N(0, Σ)`, with posterior `f_n ~ N(m_n, V_n)`, the expected log likelihood is
//! `-N/2 log det Σ - ½ tr(Σ⁻¹ Σ_n [(y_n - m_n)(y_n - m_n)ᵀ + V_n])`, which is largest at the mean of the bracket.

use crate::LikelihoodError;
use crate::predictive::Covariance;
use crate::{FullGaussian, Gaussian};

/// The running mean of `r rᵀ + V` over observations: residual `r = y - m` and posterior covariance `V` of the latent values.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseStatistics {
    outputs: usize,
    count: usize,
    /// Diagonal only (C numbers) or whole (C x C).
    sum: Vec<f64>,
    full: bool,
}

impl NoiseStatistics {
    /// For independent noise: one variance for each output.
    pub fn independent(outputs: usize) -> Self {
        Self { outputs, count: 0, sum: vec![0.0; outputs], full: false }
    }

    /// For noise that is correlated between outputs.
    pub fn full(outputs: usize) -> Self {
        Self { outputs, count: 0, sum: vec![0.0; outputs * outputs], full: true }
    }

    /// Counts one observation: its residual (C numbers) and the posterior covariance of its latent values.
    ///
    /// # Errors
    /// When a length is wrong or a number is not finite; the statistics are then unchanged.
    pub fn add(&mut self, residual: &[f64], covariance: Covariance<'_>) -> Result<(), LikelihoodError> {
        let n = self.outputs;
        covariance.check(n)?;
        if residual.len() != n {
            return Err(LikelihoodError::Length {
                owner: "gaussian",
                what: "the residual",
                needed: n,
                found: residual.len(),
                remedy: "give target minus mean, one number for each output",
            });
        }
        if let Some(position) = residual.iter().position(|r| !r.is_finite()) {
            return Err(LikelihoodError::NotFinite { what: "residual", position, value: residual[position] });
        }
        if self.full {
            for i in 0..n {
                for j in 0..n {
                    // Both sides of the diagonal, so that rounding in the covariance does not make the noise asymmetric.
                    let v = 0.5 * (covariance.entry(i, j, n) + covariance.entry(j, i, n));
                    self.sum[i * n + j] += residual[i] * residual[j] + v;
                }
            }
        } else {
            for i in 0..n {
                self.sum[i] += residual[i] * residual[i] + covariance.entry(i, i, n);
            }
        }
        self.count += 1;
        Ok(())
    }

    /// The mean of `r rᵀ + V`: C variances, or C x C numbers. NaN before the first observation.
    pub fn mean(&self) -> Vec<f64> {
        self.sum.iter().map(|sum| sum / self.count as f64).collect()
    }

    /// Independent noise with the variances found, none below `floor` (squared units of the target; zero for none).
    ///
    /// # Errors
    /// When nothing was counted, or a variance is zero and no floor given.
    pub fn to_independent(&self, floor: f64) -> Result<Gaussian, LikelihoodError> {
        let mean = self.mean();
        let step = if self.full { self.outputs + 1 } else { 1 };
        // Not `f64::max`, which would turn NaN into the floor.
        Gaussian::independent(
            mean.into_iter().step_by(step).map(|v| if v < floor { floor } else { v }).collect(),
        )
    }

    /// Correlated noise with the covariance found, `floor` added to its diagonal if it would be singular otherwise: give zero
    /// for the exact update.
    ///
    /// # Errors
    /// When only variances were counted, nothing was, or the covariance is singular.
    pub fn to_full(&self, floor: f64) -> Result<FullGaussian, LikelihoodError> {
        if !self.full {
            return Err(LikelihoodError::Parameter {
                owner: "full_gaussian",
                parameter: "the statistics".into(),
                value: "variances only".into(),
                remedy: "begin with `NoiseStatistics::full`",
            });
        }
        let mut mean = self.mean();
        let exact = FullGaussian::new(self.outputs, mean.clone());
        if exact.is_ok() || floor == 0.0 {
            return exact;
        }
        for i in 0..self.outputs {
            mean[i * self.outputs + i] += floor;
        }
        FullGaussian::new(self.outputs, mean)
    }
}
