//! Independent counts: `y_c ~ Poisson(exp(f_c))`.

use super::one;
use crate::error::{check_each, check_outputs, check_width};
use crate::expectation::{Slopes, negative_expectation, one_dimensional, sum_over_outputs};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::predictive::counts_log_mixture;
use crate::{Likelihood, LikelihoodError};
use rand::Rng;
use rand_distr::Distribution;
use serde::{Deserialize, Serialize};

const NAME: &str = "poisson";

/// `log p(y | f) = y f - exp(f) - log y!`.
fn log_density(y: f64, f: f64) -> f64 {
    // Without the guard, 0 · -∞ for a rate of zero.
    let product = if y == 0.0 { 0.0 } else { y * f };
    product - f.exp() - libm::lgamma(y + 1.0)
}

/// A count of the given rate, or the rate itself where that is too large for the generator.
pub(super) fn draw(rate: f64, rng: &mut dyn Rng) -> f64 {
    match rand_distr::Poisson::new(rate) {
        Ok(counts) => counts.sample(rng),
        // Zero, infinite, NaN, or too large.
        Err(_) => rate,
    }
}

/// The error of targets that are not so many counts.
pub(super) fn check_counts(owner: &'static str, outputs: usize, y: &[f64]) -> Result<(), LikelihoodError> {
    check_width(owner, outputs, y)?;
    let valid = |y: f64| y >= 0.0 && y.is_finite() && y.fract() == 0.0;
    check_each(owner, y, valid, "counts are whole numbers from 0; do not standardise them")
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
    #[serde(default = "one")]
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
}

no_parameters!(Poisson);

impl Likelihood for Poisson {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_counts(NAME, self.outputs, y)
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        y.iter().zip(f).map(|(&y, &f)| log_density(y, f)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = y[i] - f[i].exp();
        }
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a diagonal has C numbers");
        out.iter_mut().zip(f).for_each(|(out, f)| *out = f.exp());
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        for (i, f) in f.iter().enumerate() {
            (mean[i], variance[i]) = (f.exp(), f.exp());
        }
    }
    /// A rate too large for the generator (1.8e19) is returned itself: its scatter is below the rounding of the count.
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        for (out, f) in out.iter_mut().zip(f) {
            *out = draw(f.exp(), rng);
        }
    }
    /// `y m - exp(m + v/2) - log y!`.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, _| {
            let rate = (mean[i] + 0.5 * variance[i]).exp();
            (y[i] * mean[i] - rate - libm::lgamma(y[i] + 1.0), y[i] - rate, -0.5 * rate)
        })
    }
    /// By a one-dimensional integral. The peak of the tilted density lies between the mean and `log y`, where y = 0 pulls it down by less than `α v`.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        sum_over_outputs(slopes, |i, _| {
            let (y, m, v) = (y[i], mean[i], variance[i]);
            let reach =
                if y > 0.0 { (y.ln().min(m), y.ln().max(m)) } else { (m.min(0.0) - alpha * v.max(0.0), m) };
            let each = |f: f64| (log_density(y, f), y - f.exp(), f.exp());
            one_dimensional(alpha, (m, v), reach, each, |_, _| {})
        })
    }
    /// Those of a log-normal rate, plus the scatter of counts around it.
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        for i in 0..self.outputs {
            let rate = (mean[i] + 0.5 * variance[i]).exp();
            (out.0[i], out.1[i]) = (rate, rate + rate * rate * variance[i].exp_m1());
        }
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        (0..y.len()).map(|i| counts_log_mixture(y[i], mean[i], variance[i], |f| log_density(y[i], f))).sum()
    }
}
