//! `y_c = f_c + ε_c`, `ε_c ~ N(0, σ_c²)` independently.

use super::diagonal::{self, assert_lengths, diagonal_curvature};
use super::error::{check_each, check_outputs, check_width};
use crate::{LikelihoodError, VectorLikelihood};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "gaussian";

/// Additive Gaussian noise, independent between outputs, with one variance for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct IndependentGaussian {
    noise_variances: Vec<f64>,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    noise_variances: Vec<f64>,
}

impl TryFrom<Fields> for IndependentGaussian {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.noise_variances)
    }
}

impl IndependentGaussian {
    /// Noise of the given variances, one for each output, in squared units of the target.
    ///
    /// # Errors
    /// When there is none, or one is not positive and finite.
    pub fn new(noise_variances: Vec<f64>) -> Result<Self, LikelihoodError> {
        check_outputs(
            NAME,
            "the number of noise_variances",
            noise_variances.len(),
            1,
            "give one for each output",
        )?;
        if let Some(i) = noise_variances.iter().position(|&v| !(v > 0.0 && v.is_finite())) {
            return Err(LikelihoodError::Parameter {
                owner: NAME,
                parameter: format!("noise_variances[{i}]"),
                value: noise_variances[i].to_string(),
                remedy: "give a positive, finite variance in squared units of the target",
            });
        }
        Ok(Self { noise_variances })
    }

    /// The variance of the noise of each output.
    pub fn noise_variances(&self) -> &[f64] {
        &self.noise_variances
    }

    fn curvature_entry(&self, _: &[f64], _: &[f64], i: usize) -> f64 {
        1.0 / self.noise_variances[i]
    }
    assert_lengths!();
}

impl VectorLikelihood for IndependentGaussian {
    fn outputs(&self) -> usize {
        self.noise_variances.len()
    }
    fn target_width(&self) -> usize {
        self.noise_variances.len()
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, self.target_width(), y)?;
        check_each(NAME, y, f64::is_finite, "drop the row or fill in the missing value")
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        self.assert_lengths(y, f);
        self.noise_variances
            .iter()
            .zip(y.iter().zip(f))
            .map(|(v, (y, f))| -0.5 * ((2.0 * PI * v).ln() + (y - f) * (y - f) / v))
            .sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(out.len(), f.len(), "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = (y[i] - f[i]) / self.noise_variances[i];
        }
    }
    /// `diag(1 / σ_c²)`.
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        diagonal::matrix(self.outputs(), out, |i| self.curvature_entry(y, f, i));
    }
    diagonal_curvature!();
    fn curvature_needs_target(&self) -> bool {
        false
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs(), self.target_width()), "latent values and target");
        for (i, out) in out.iter_mut().enumerate() {
            let noise: f64 = StandardNormal.sample(rng);
            *out = f[i] + self.noise_variances[i].sqrt() * noise;
        }
    }
}
