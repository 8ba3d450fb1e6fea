//! `y_d = f_d + ε_d`, `ε_d ~ N(0, exp(f_{D+d}))`: the model says how noisy each observation is.

use super::gaussian::Energy;
use crate::error::{MOST_OUTPUTS, check_outputs};
use crate::expectation::{Slopes, negative_expectation, one_dimensional};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::predictive::heteroscedastic_log_mixture;
use crate::{Likelihood, LikelihoodError};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "heteroscedastic_gaussian";

/// Gaussian noise whose logarithmic variance is an output as well. With D targets there are C = 2D latent values: D means
/// `m`, then D log-variances `s`.
///
/// With `r = y - m`, the exact negative Hessian of one target in `(m, s)` is `[[e⁻ˢ, r e⁻ˢ], [r e⁻ˢ, r² e⁻ˢ / 2]]`, whose
/// determinant `-r² e⁻²ˢ / 2` is never positive: it is indefinite wherever the residual is not zero. The curvature is therefore
/// the Fisher matrix `diag(e⁻ˢ, 1/2)`, its expectation under the model, which needs no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct HeteroscedasticGaussian {
    targets: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    targets: usize,
}

impl TryFrom<Fields> for HeteroscedasticGaussian {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.targets)
    }
}

impl HeteroscedasticGaussian {
    /// So many targets, with twice as many latent values.
    ///
    /// # Errors
    /// For none, or more than 2²³.
    pub fn new(targets: usize) -> Result<Self, LikelihoodError> {
        let remedy = "give the number of targets of one observation, half the number of latent values";
        check_outputs(NAME, "targets", targets, 1, remedy)?;
        check_outputs(NAME, "targets", targets.min(MOST_OUTPUTS) * 2, 2, remedy)?;
        Ok(Self { targets })
    }

    /// D, how many targets there are.
    pub fn targets(&self) -> usize {
        self.targets
    }
}

no_parameters!(HeteroscedasticGaussian);

impl Likelihood for HeteroscedasticGaussian {
    fn outputs(&self) -> usize {
        2 * self.targets
    }
    fn target_width(&self) -> usize {
        self.targets
    }
    fn is_log_concave(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        let (means, log_variances) = f.split_at(self.targets);
        y.iter()
            .zip(means.iter().zip(log_variances))
            .map(|(y, (m, s))| -0.5 * ((2.0 * PI).ln() + s + (y - m) * (y - m) * (-s).exp()))
            .sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), f.len(), "a gradient has C numbers");
        for d in 0..self.targets {
            let (residual, precision) = (y[d] - f[d], (-f[self.targets + d]).exp());
            out[d] = residual * precision;
            out[self.targets + d] = 0.5 * (residual * residual * precision - 1.0);
        }
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        let (n, targets) = (self.outputs(), self.targets);
        assert_eq!(out.len(), n * n, "a matrix of the outputs has C x C numbers");
        out.fill(0.0);
        for d in 0..targets {
            let (residual, precision) = (y[d] - f[d], (-f[targets + d]).exp());
            out[d * n + d] = precision;
            out[d * n + targets + d] = residual * precision;
            out[(targets + d) * n + d] = residual * precision;
            out[(targets + d) * n + targets + d] = 0.5 * residual * residual * precision;
        }
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        let (means, log_variances) = out.split_at_mut(self.targets);
        means.iter_mut().zip(&f[self.targets..]).for_each(|(out, s)| *out = (-s).exp());
        log_variances.fill(0.5);
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        self.predictive_moments(f, &vec![0.0; f.len()], (mean, variance));
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs(), self.targets), "latent values and target");
        for (d, out) in out.iter_mut().enumerate() {
            let noise: f64 = StandardNormal.sample(rng);
            *out = f[d] + (0.5 * f[self.targets + d]).exp() * noise;
        }
    }
    /// With `E[e⁻ˢ] = exp(-s̄ + v_s/2)` and `E[(y - m)²] = (y - m̄)² + v_m`.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        let mut total = 0.0;
        for d in 0..self.targets {
            let (residual, s) = (y[d] - mean[d], self.targets + d);
            let precision = (-mean[s] + 0.5 * variance[s]).exp();
            let square = precision * (residual * residual + variance[d]);
            total -= 0.5 * ((2.0 * PI).ln() + mean[s] + square);
            (slopes.means[d], slopes.means[s]) = (residual * precision, 0.5 * (square - 1.0));
            (slopes.variances[d], slopes.variances[s]) = (-0.5 * precision, -0.25 * square);
        }
        total
    }
    /// Given the log-variance, the mean is integrated in closed form ([`Gaussian`](crate::Gaussian)); the log-variance by a one-dimensional integral. The peak of its tilted
    /// density is not above the larger of its mean and `log(r² + v)`, and not below its mean by more than `α v_s / 2`.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        let mut total = 0.0;
        for d in 0..self.targets {
            let (residual, s, v) = (y[d] - mean[d], self.targets + d, variance[d].max(0.0));
            let energy = |log_noise: f64| Energy::new(alpha, residual, v, log_noise.exp());
            let each = |log_noise: f64| {
                let energy = energy(log_noise);
                (-energy.value, -energy.toward_noise, energy.noise_bend)
            };
            let reach =
                (mean[s] - 0.5 * alpha * variance[s].max(0.0), (residual * residual + v).ln().max(mean[s]));
            let (mut toward_mean, mut toward_variance) = (0.0, 0.0);
            let value;
            (value, slopes.means[s], slopes.variances[s]) =
                one_dimensional(alpha, (mean[s], variance[s]), reach, each, |log_noise, weight| {
                    let energy = energy(log_noise);
                    toward_mean += weight * energy.toward_mean;
                    toward_variance += weight * energy.toward_variance;
                });
            (slopes.means[d], slopes.variances[d]) = (toward_mean, toward_variance);
            total += value;
        }
        total
    }
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        for i in 0..self.targets {
            let s = self.targets + i;
            (out.0[i], out.1[i]) = (mean[i], variance[i] + (mean[s] + 0.5 * variance[s]).exp());
        }
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        let one = |i: usize| {
            let s = self.targets + i;
            heteroscedastic_log_mixture(y[i], (mean[i], mean[s]), (variance[i], variance[s]), 0.0)
        };
        (0..self.targets).map(one).sum()
    }
}
