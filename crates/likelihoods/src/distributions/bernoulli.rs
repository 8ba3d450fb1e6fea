//! Independent events: `p(y_c = 1 | f_c)` by a logit or probit link.

use super::one;
use crate::error::{check_each, check_outputs, check_width};
use crate::expectation::{Slopes, negative_expectation, nodes, one_dimensional, sum_over_outputs};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::special::normal_tail::{distribution, inverse_mills, log_distribution};
use crate::special::softmax::{log_sum_exp, sigmoid, softplus};
use crate::{Likelihood, LikelihoodError, Prediction};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "bernoulli";

/// How a latent value becomes the probability of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Link {
    /// Logistic
    ///
    /// `1 / (1 + exp(-f))`.
    #[default]
    Logit,
    /// Normal distribution function
    ///
    /// `Φ(f)`.
    Probit,
}

impl Link {
    /// The probability of the event.
    pub fn probability(self, f: f64) -> f64 {
        match self {
            Self::Logit => sigmoid(f),
            Self::Probit => distribution(f),
        }
    }

    /// `log p(y | f)` for y = 1 or 0; NaN for other targets.
    pub fn log_density(self, y: f64, f: f64) -> f64 {
        match self {
            Self::Logit => -softplus(-sign(y) * f),
            Self::Probit => log_distribution(sign(y) * f),
        }
    }

    /// The first derivative of `log p(y | f)` and the negative of the second, in f.
    pub fn derivatives(self, y: f64, f: f64) -> (f64, f64) {
        let (sign, z) = (sign(y), sign(y) * f);
        match self {
            Self::Logit => (sign * sigmoid(-z), sigmoid(z) * sigmoid(-z)),
            Self::Probit => {
                let (ratio, shifted) = inverse_mills(z);
                (sign * ratio, ratio * shifted)
            }
        }
    }

    /// `E[p(y = 1 | f)]` under `f ~ N(mean, variance)`: exact for the probit link, `Φ(m / √(1 + v))`; for the logit
    /// link the approximation `σ(m / √(1 + π v / 8))` of MacKay (1992), *The evidence framework applied to classification
    /// networks*, within 0.02 for all means and variances.
    pub fn expected_probability(self, mean: f64, variance: f64) -> f64 {
        self.probability(self.shrunk(mean, variance))
    }

    /// The latent value whose probability is [`expected_probability`](Self::expected_probability).
    pub(crate) fn shrunk(self, mean: f64, variance: f64) -> f64 {
        match self {
            Self::Logit => mean / (1.0 + PI / 8.0 * variance).sqrt(),
            Self::Probit => mean / (1.0 + variance).sqrt(),
        }
    }
}

/// 1 for an event, -1 for none, NaN for anything else.
fn sign(y: f64) -> f64 {
    if y == 1.0 {
        1.0
    } else if y == 0.0 {
        -1.0
    } else {
        f64::NAN
    }
}

/// Events that are independent given the latent values, one for each output. Targets are 0 or 1.
///
/// The log density is concave for both links, so `B` is the exact Hessian; for the probit link it depends on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Bernoulli {
    outputs: usize,
    link: Link,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(default = "one")]
    outputs: usize,
    #[serde(default)]
    link: Link,
}

impl TryFrom<Fields> for Bernoulli {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.outputs, fields.link)
    }
}

impl Bernoulli {
    /// So many events.
    ///
    /// # Errors
    /// For none, or more than 2²⁴.
    pub fn new(outputs: usize, link: Link) -> Result<Self, LikelihoodError> {
        check_outputs(NAME, "outputs", outputs, 1, "give the number of events of one observation")?;
        Ok(Self { outputs, link })
    }

    /// The link of all outputs.
    pub fn link(&self) -> Link {
        self.link
    }

    /// Nodes and weights for `f ~ N(mean, variance)`: the trapezoid rule with steps of at most 0.6. The log density is analytic for
    /// `|Im f| < π` (logit; probit: 2.8), so the error is near rounding for any variance. Rules of fixed size are off by percents
    /// where the deviation is large.
    fn nodes(mean: f64, variance: f64) -> impl Iterator<Item = (f64, f64)> {
        nodes(mean, variance, 0.6)
    }
}

no_parameters!(Bernoulli);

impl Likelihood for Bernoulli {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, self.outputs, y)?;
        check_each(
            NAME,
            y,
            |y| y == 0.0 || y == 1.0,
            "give 1 where the event happened and 0 where it did not",
        )
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        y.iter().zip(f).map(|(&y, &f)| self.link.log_density(y, f)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.link.derivatives(y[i], f[i]).0;
        }
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a diagonal has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = match self.link {
                // Does not read the target, which may be missing.
                Link::Logit => sigmoid(f[i]) * sigmoid(-f[i]),
                Link::Probit => self.link.derivatives(y[i], f[i]).1,
            };
        }
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        for (i, f) in f.iter().enumerate() {
            mean[i] = self.link.probability(*f);
            variance[i] = mean[i] * (1.0 - mean[i]);
        }
    }
    fn curvature_needs_target(&self) -> bool {
        self.link == Link::Probit
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        for (out, &f) in out.iter_mut().zip(f) {
            let (uniform, p) = (rng.random::<f64>(), self.link.probability(f));
            *out = if p.is_nan() { f64::NAN } else { f64::from(uniform < p) };
        }
    }
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, _| {
            let mut out = (0.0, 0.0, 0.0);
            for (f, weight) in Self::nodes(mean[i], variance[i]) {
                let (first, negative_second) = self.link.derivatives(y[i], f);
                out.0 += weight * self.link.log_density(y[i], f);
                out.1 += weight * first;
                out.2 -= 0.5 * weight * negative_second;
            }
            out
        })
    }
    /// By a one-dimensional integral. The peak of the tilted density lies between the mean and where the link saturates, or beyond by the pull of the logit link, at most `α v`.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        sum_over_outputs(slopes, |i, _| {
            let (m, v) = (mean[i], variance[i]);
            let furthest = sign(y[i]) * ((sign(y[i]) * m).max(0.0) + alpha * v.max(0.0));
            let each = |f: f64| {
                let (slope, bend) = self.link.derivatives(y[i], f);
                (self.link.log_density(y[i], f), slope, bend)
            };
            one_dimensional(alpha, (m, v), (m.min(furthest), m.max(furthest)), each, |_, _| {})
        })
    }
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        for i in 0..self.outputs {
            let sum: f64 = Self::nodes(mean[i], variance[i]).map(|(f, w)| w * self.link.probability(f)).sum();
            // Weights add up to one but for rounding. Not `f64::min`, which would turn NaN into certainty.
            let p = if sum > 1.0 { 1.0 } else { sum };
            (out.0[i], out.1[i]) = (p, p * (1.0 - p));
        }
    }
    fn predict(&self, mean: &[f64], variance: &[f64]) -> Prediction {
        let (mut p, mut variances) = (vec![0.0; self.outputs], vec![0.0; self.outputs]);
        self.predictive_moments(mean, variance, (&mut p, &mut variances));
        Prediction::Events(p)
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        let one = |i: usize| {
            let terms: Vec<f64> = Self::nodes(mean[i], variance[i])
                .map(|(f, w)| w.ln() + self.link.log_density(y[i], f))
                .collect();
            log_sum_exp(&terms)
        };
        (0..y.len()).map(one).sum()
    }
}
