//! Independent counts: `y_c ~ Poisson(exp(f_c))`.

use super::diagonal::{self, assert_lengths, diagonal_curvature};
use super::error::{check_each, check_outputs, check_width};
use crate::{Expectation, Likelihood, LikelihoodError, Moments, VectorLikelihood};
use posterior_optim::{Parameters, Segment};
use rand::Rng;
use rand_distr::Distribution;
use serde::{Deserialize, Serialize};

const NAME: &str = "poisson";

/// `log p(y | f) = y f - exp(f) - log y!`.
pub(crate) fn log_density(y: f64, f: f64) -> f64 {
    // Without the guard, 0 · -∞ for a rate of zero.
    let product = if y == 0.0 { 0.0 } else { y * f };
    product - f.exp() - libm::lgamma(y + 1.0)
}

/// Mean and variance of a count when `f ~ N(mean, variance)`: those of a log-normal rate, plus the scatter of counts around it.
pub(crate) fn moments(mean: f64, variance: f64) -> Moments {
    let rate = (mean + 0.5 * variance).exp();
    Moments { mean: rate, variance: rate + rate * rate * variance.exp_m1() }
}

/// Counts that are independent given the latent values, one for each output, with rate `exp(f)`. Targets are whole numbers,
/// not negative.
///
/// The log density is concave, so `B = diag(exp(f))` is the exact Hessian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Poisson {
    outputs: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    outputs: usize,
}

impl TryFrom<Fields> for Poisson {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.outputs)
    }
}

impl Poisson {
    /// So many counts.
    ///
    /// # Errors
    /// For none, or more than 2²⁴.
    pub fn new(outputs: usize) -> Result<Self, LikelihoodError> {
        check_outputs(NAME, "outputs", outputs, 1, "give the number of counts of one observation")?;
        Ok(Self { outputs })
    }

    fn curvature_entry(&self, _: &[f64], f: &[f64], i: usize) -> f64 {
        f[i].exp()
    }
    assert_lengths!();
}

impl VectorLikelihood for Poisson {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn target_width(&self) -> usize {
        self.outputs
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, self.outputs, y)?;
        let valid = |y: f64| y >= 0.0 && y.is_finite() && y.fract() == 0.0;
        check_each(NAME, y, valid, "counts are whole numbers from 0; do not standardise them")
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        self.assert_lengths(y, f);
        y.iter().zip(f).map(|(&y, &f)| log_density(y, f)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = y[i] - f[i].exp();
        }
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        diagonal::matrix(self.outputs, out, |i| f[i].exp());
    }
    diagonal_curvature!();
    fn curvature_needs_target(&self) -> bool {
        false
    }
    /// A rate too large for the generator (1.8e19) is returned itself: its scatter is below the rounding of the count.
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        for (out, f) in out.iter_mut().zip(f) {
            let rate = f.exp();
            *out = match rand_distr::Poisson::new(rate) {
                Ok(counts) => counts.sample(rng),
                // Zero, infinite, NaN, or too large.
                Err(_) => rate,
            };
        }
    }
}

/// One count with one latent value, for models that speak [`Likelihood`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalarPoisson;

/// Nothing is learned.
impl Parameters for ScalarPoisson {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the Poisson likelihood has no parameters");
    }
}

impl Likelihood for ScalarPoisson {
    fn log_density(&self, y: f64, f: f64) -> f64 {
        log_density(y, f)
    }
    fn derivatives(&self, y: f64, f: f64) -> (f64, f64) {
        (y - f.exp(), -f.exp())
    }
    /// `y m - exp(m + v/2) - log y!`.
    fn expected_log_density(&self, y: f64, mean: f64, variance: f64) -> Expectation {
        let rate = (mean + 0.5 * variance).exp();
        Expectation {
            value: y * mean - rate - libm::lgamma(y + 1.0),
            mean_slope: y - rate,
            variance_slope: -0.5 * rate,
        }
    }
    fn predictive(&self, mean: f64, variance: f64) -> Moments {
        moments(mean, variance)
    }
}
