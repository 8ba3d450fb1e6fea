//! Independent events: `p(y_c = 1 | f_c)` by a logit or probit link.

use super::diagonal::{self, assert_lengths, diagonal_curvature};
use super::error::{check_each, check_outputs, check_width};
use super::normal_tail::{distribution, inverse_mills, log_distribution};
use super::softmax::{sigmoid, softplus};
use crate::{Expectation, Likelihood, LikelihoodError, Moments, VectorLikelihood};
use posterior_optim::{Parameters, Segment};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "bernoulli";

/// How a latent value becomes the probability of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// `1 / (1 + exp(-f))`.
    #[default]
    Logit,
    /// `Φ(f)`, the standard normal distribution function.
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

    fn curvature_entry(&self, y: &[f64], f: &[f64], i: usize) -> f64 {
        match self.link {
            // Does not read the target, which may be missing.
            Link::Logit => sigmoid(f[i]) * sigmoid(-f[i]),
            Link::Probit => self.link.derivatives(y[i], f[i]).1,
        }
    }
    assert_lengths!();
}

impl VectorLikelihood for Bernoulli {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn target_width(&self) -> usize {
        self.outputs
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
        self.assert_lengths(y, f);
        y.iter().zip(f).map(|(&y, &f)| self.link.log_density(y, f)).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.link.derivatives(y[i], f[i]).0;
        }
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        self.assert_lengths(y, f);
        diagonal::matrix(self.outputs, out, |i| self.link.derivatives(y[i], f[i]).1);
    }
    diagonal_curvature!();
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
}

/// One event with one latent value, for models that speak [`Likelihood`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalarBernoulli {
    /// How the latent value becomes a probability.
    #[serde(default)]
    pub link: Link,
}

/// Nothing is learned.
impl Parameters for ScalarBernoulli {
    fn segments(&self) -> Vec<Segment> {
        Vec::new()
    }
    fn values(&self) -> Vec<f64> {
        Vec::new()
    }
    fn set_values(&mut self, values: &[f64]) {
        assert!(values.is_empty(), "the Bernoulli likelihood has no parameters");
    }
}

impl Likelihood for ScalarBernoulli {
    fn log_density(&self, y: f64, f: f64) -> f64 {
        self.link.log_density(y, f)
    }
    fn derivatives(&self, y: f64, f: f64) -> (f64, f64) {
        let (first, negative_second) = self.link.derivatives(y, f);
        (first, -negative_second)
    }
    /// By the trapezoid rule with steps of at most 0.6: the log density is analytic for `|Im f| < π` (logit; probit: 2.8), so the
    /// error is near rounding for any variance. Rules of fixed size are off by percents where the deviation is large.
    fn expected_log_density(&self, y: f64, mean: f64, variance: f64) -> Expectation {
        let mut out = Expectation { value: 0.0, mean_slope: 0.0, variance_slope: 0.0 };
        for (f, weight) in crate::variational::nodes(mean, variance, 0.6) {
            let (first, negative_second) = self.link.derivatives(y, f);
            out.value += weight * self.link.log_density(y, f);
            out.mean_slope += weight * first;
            out.variance_slope -= 0.5 * weight * negative_second;
        }
        out
    }
    /// With [`Link::expected_probability`], which is approximate for the logit link.
    fn predictive(&self, mean: f64, variance: f64) -> Moments {
        let p = self.link.expected_probability(mean, variance);
        Moments { mean: p, variance: p * (1.0 - p) }
    }
}
