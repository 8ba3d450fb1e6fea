//! Independent counts with more scatter than a Poisson distribution has: mean `μ = exp(f_c)`, variance `μ + μ²/r`.

use super::poisson::{check_counts, draw};
use super::{is_one, one};
use crate::error::check_outputs;
use crate::expectation::{Slopes, negative_expectation, nodes_reaching, one_dimensional, sum_over_outputs};
use crate::likelihood::assert_lengths;
use crate::predictive::counts_log_mixture;
use crate::special::polygamma::digamma_less_log;
use crate::special::saddle_point::{deviance, stirling_error};
use crate::special::softmax::sigmoid;
use crate::{Likelihood, LikelihoodError};
use posterior_optim::{Parameters, Segment, Transform};
use rand::Rng;
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "negative_binomial";

/// Overdispersed counts that are independent given the latent values, one for each output, with mean `μ = exp(f)` and variance
/// `μ + μ²/r`. Targets are whole numbers, not negative. All outputs share the **dispersion** r, which is learned: the larger, the nearer
/// to [`crate::Poisson`], which is the limit; for small r most counts are zero and few are very large. A count is Poisson with a rate from
/// a Gamma distribution of shape r and mean `μ`.
///
/// `log p(y|f) = log Γ(y+r) - log Γ(r) - log y! + r log(r/(r+μ)) + y log(μ/(r+μ))`.
///
/// Concave in f: with `σ = μ/(r+μ)` the exact Hessian is `(y + r) σ (1 - σ)`. The curvature is its expectation, the Fisher information
/// `r σ = r μ / (r + μ)`, which is positive too and needs no target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct NegativeBinomial {
    dispersion: f64,
    #[serde(skip_serializing_if = "is_one")]
    outputs: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    dispersion: f64,
    #[serde(default = "one")]
    outputs: usize,
}

impl TryFrom<Fields> for NegativeBinomial {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        check_outputs(NAME, "outputs", fields.outputs, 1, "give the number of counts of one observation")?;
        Ok(Self::new(fields.dispersion)?.with_outputs(fields.outputs))
    }
}

impl NegativeBinomial {
    /// One count with the given dispersion r, a pure number.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless it is positive and finite.
    pub fn new(dispersion: f64) -> Result<Self, LikelihoodError> {
        if dispersion > 0.0 && dispersion.is_finite() {
            return Ok(Self { dispersion, outputs: 1 });
        }
        Err(LikelihoodError::Parameter {
            owner: NAME,
            parameter: "dispersion".into(),
            value: dispersion.to_string(),
            remedy: "give a positive number; without overdispersion there is `poisson`",
        })
    }

    /// So many counts with the same dispersion.
    pub fn with_outputs(self, outputs: usize) -> Self {
        Self { outputs, ..self }
    }

    /// The dispersion r.
    pub fn dispersion(&self) -> f64 {
        self.dispersion
    }
}

/// One count y under the dispersion r: what depends on both alone is computed once.
struct Count {
    y: f64,
    r: f64,
    log_r: f64,
    constant: f64,
}

impl Count {
    fn new(y: f64, r: f64) -> Self {
        let constant = if y == 0.0 {
            0.0
        } else {
            let spread = if y < r { (y / r).ln_1p() } else { (y + r).ln() - r.ln() };
            stirling_error(y + r)
                - stirling_error(r)
                - stirling_error(y)
                - 0.5 * ((2.0 * PI * y).ln() + spread)
        };
        Self { y, r, log_r: r.ln(), constant }
    }

    /// `log p(y | f)` as Loader's saddle-point expansion: what is left beside Stirling's errors is minus
    /// `y log(y (r+μ) / (μ (r+y))) + r log((r+μ) / (r+y))`, which vanishes at `y = μ`.
    fn log_density(&self, f: f64) -> f64 {
        let (y, r, rate) = (self.y, self.r, f.exp());
        let excess = y - rate;
        let (_, toward_r) = self.ratio(rate, f);
        if y == 0.0 {
            return r * toward_r;
        }
        let near = excess.abs() < 0.1 * (y + rate);
        // Both forms are sums of terms that nearly cancel; this one has the smaller terms.
        if near && excess.abs() / y < r / (y + r) {
            return self.constant - deviance(y, rate) + deviance(y + r, rate + r);
        }
        let log_sum = log_of_sum(rate, r, f, self.log_r);
        let share = r / rate * excess / (y + r);
        let toward_y = if share.abs() < 0.5 { share.ln_1p() } else { y.ln() - f + log_sum - (y + r).ln() };
        self.constant - y * toward_y + r * toward_r
    }

    /// `q = (y - μ)/(r + μ)` and `log(1 + q) = log((r+y) / (r+μ))`.
    fn ratio(&self, rate: f64, f: f64) -> (f64, f64) {
        let q = if rate.is_finite() { (self.y - rate) / (self.r + rate) } else { -1.0 };
        let log = if q.abs() < 0.5 {
            q.ln_1p()
        } else {
            (self.y + self.r).ln() - log_of_sum(rate, self.r, f, self.log_r)
        };
        (q, log)
    }

    /// The first derivative in f, and the negative of the second.
    fn derivatives(&self, f: f64) -> (f64, f64) {
        let (share, rest) = (sigmoid(f - self.log_r), sigmoid(self.log_r - f));
        (self.y * rest - self.r * share, (self.y + self.r) * share * rest)
    }

    /// The derivative in r less the [constant](Self::slope_constant): `log(1 + q) - q`.
    fn slope(&self, f: f64) -> f64 {
        let (q, log) = self.ratio(f.exp(), f);
        log - q
    }

    /// `ψ(y+r) - log(y+r) - ψ(r) + log r`.
    fn slope_constant(&self) -> f64 {
        digamma_less_log(self.y + self.r) - digamma_less_log(self.r)
    }
}

/// `log(μ + r)`, also where `μ = exp(f)` or the sum is infinite.
fn log_of_sum(rate: f64, r: f64, f: f64, log_r: f64) -> f64 {
    let sum = rate + r;
    if sum.is_finite() { sum.ln() } else { f.max(log_r) }
}

impl Parameters for NegativeBinomial {
    fn segments(&self) -> Vec<Segment> {
        vec![Segment { name: "dispersion".into(), shape: vec![1], transform: Transform::Log }]
    }
    fn values(&self) -> Vec<f64> {
        vec![self.dispersion]
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), 1, "the negative binomial likelihood has one parameter");
        self.dispersion = values[0];
    }
}

impl Likelihood for NegativeBinomial {
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
        y.iter().zip(f).map(|(&y, &f)| Count::new(y, self.dispersion).log_density(f)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = Count::new(y[i], self.dispersion).derivatives(f[i]).0;
        }
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        let n = self.outputs;
        assert_eq!(out.len(), n * n, "a matrix of the outputs has C x C numbers");
        out.fill(0.0);
        for i in 0..n {
            out[i * n + i] = Count::new(y[i], self.dispersion).derivatives(f[i]).1;
        }
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a diagonal has C numbers");
        let log_r = self.dispersion.ln();
        out.iter_mut().zip(f).for_each(|(out, f)| *out = self.dispersion * sigmoid(f - log_r));
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        for (i, f) in f.iter().enumerate() {
            let rate = f.exp();
            (mean[i], variance[i]) = (rate, rate + rate * (rate / self.dispersion));
        }
    }
    /// A rate from a Gamma distribution, then a count as [`crate::Poisson`] draws it.
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        let shares = Gamma::new(self.dispersion, 1.0);
        for (out, f) in out.iter_mut().zip(f) {
            let mean = f.exp();
            *out = match &shares {
                Ok(shares) => draw(shares.sample(rng) / self.dispersion * mean, rng),
                Err(_) => f64::NAN,
            };
        }
    }
    /// By the trapezoid rule with steps of at most 0.6: the log density is analytic for `|Im f| < π`, so the error is near rounding for any
    /// variance.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, parameters| {
            let count = Count::new(y[i], self.dispersion);
            // The log density falls as exp(f) up to log r, then as r f.
            let furthest = mean[i] + variance[i].min((count.log_r - mean[i]).max(0.0));
            let mut out = (0.0, 0.0, 0.0);
            let mut slope = count.slope_constant();
            for (f, weight) in nodes_reaching(mean[i], variance[i], 0.6, furthest) {
                let (first, negative_second) = count.derivatives(f);
                out.0 += weight * count.log_density(f);
                out.1 += weight * first;
                out.2 -= 0.5 * weight * negative_second;
                slope += weight * count.slope(f);
            }
            parameters[0] += slope;
            out
        })
    }
    /// By a one-dimensional integral. The peak of the tilted density lies between the mean and `log y`, where y = 0 pulls it down by less than `α v` or `α v r`.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        sum_over_outputs(slopes, |i, parameters| {
            let (y, m, v) = (y[i], mean[i], variance[i]);
            let count = Count::new(y, self.dispersion);
            let pull = alpha * v.max(0.0);
            let least = if y > 0.0 { y.ln() } else { (m.min(0.0) - pull).max(m - pull * self.dispersion) };
            let each = |f: f64| {
                let (first, negative_second) = count.derivatives(f);
                (count.log_density(f), first, negative_second)
            };
            parameters[0] -= count.slope_constant();
            one_dimensional(alpha, (m, v), (least.min(m), least.max(m)), each, |f, weight| {
                parameters[0] -= weight * count.slope(f);
            })
        })
    }
    /// Those of a log-normal mean, plus the scatter of counts around it.
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        for i in 0..self.outputs {
            let rate = (mean[i] + 0.5 * variance[i]).exp();
            let own = variance[i].exp() / self.dispersion;
            (out.0[i], out.1[i]) = (rate, rate + rate * rate * (variance[i].exp_m1() + own));
        }
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        let one = |i: usize| {
            let count = Count::new(y[i], self.dispersion);
            counts_log_mixture(y[i], mean[i], variance[i], |f| count.log_density(f))
        };
        (0..y.len()).map(one).sum()
    }
}

#[cfg(test)]
mod tests;
