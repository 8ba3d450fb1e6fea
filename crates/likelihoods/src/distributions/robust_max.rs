//! One class of C: that of the largest latent value, but for errors.

use crate::error::{check_each, check_outputs, check_width};
use crate::expectation::{Slopes, largest_probabilities, largest_probability, negative_expectation};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::special::softmax::largest;
use crate::{Likelihood, LikelihoodError, Prediction};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

const NAME: &str = "robust_max";

/// One class of several: the place of the largest latent value, and with a probability of `error_rate` any of the others. The target is the index of the class, from zero.
///
/// `p(y = j | f) = 1 - δ` where `j = argmax f` (of equal values the first), else `δ / (C - 1)`: a label far from what was expected costs `log(δ / (C - 1))` and no more. Sources: Hernández-Lobato et al., *Robust multi-class Gaussian
/// process classification*, NIPS 2011; spec `generalised_variational_inference`, sections 2.3 and 12.
///
/// The density is [flat](Likelihood::is_flat): gradient and curvature are zero, so there is no Laplace approximation. Under a Gaussian everything follows from `S_j`, the probability that `f_j` is the largest, which is smooth:
/// `E[p(y)^α] = (1 - δ)^α S_y + (δ / (C - 1))^α (1 - S_y)` and `E[log p(y)] = log(1 - δ) S_y + log(δ / (C - 1)) (1 - S_y)`. S is exact to 1e-12 for variances in any ratio, from some 100 nodes that all classes share, at one error function and one exponential a node and class: expectations with all slopes cost O(C), as do the probabilities of all classes (2.5 µs of two classes and 10 µs of ten, on one core with AVX-512).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct RobustMax {
    classes: usize,
    error_rate: f64,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    classes: usize,
    #[serde(default = "customary")]
    error_rate: f64,
}

fn customary() -> f64 {
    RobustMax::CUSTOMARY_ERROR_RATE
}

impl TryFrom<Fields> for RobustMax {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.classes, fields.error_rate)
    }
}

impl RobustMax {
    /// The error rate where none is written.
    pub const CUSTOMARY_ERROR_RATE: f64 = 1e-2;

    /// So many classes, of which a label names another than the largest with this probability.
    ///
    /// # Errors
    /// For fewer than two classes, or more than 2²⁴; for an error rate that is not between 0 and 1, both excluded.
    pub fn new(classes: usize, error_rate: f64) -> Result<Self, LikelihoodError> {
        check_outputs(
            NAME,
            "classes",
            classes,
            2,
            "give at least two classes (for one event use `bernoulli`)",
        )?;
        if !(error_rate > 0.0 && error_rate < 1.0) {
            return Err(LikelihoodError::Parameter {
                owner: NAME,
                parameter: "error_rate".into(),
                value: error_rate.to_string(),
                remedy: "give the share of wrong labels, between 0 and 1, both excluded; 0.01 is customary",
            });
        }
        Ok(Self { classes, error_rate })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// δ, the probability of a label that is not the largest.
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// Writes `S_j = P(f_j is the largest)` for independent `f_c ~ N(mean_c, variance_c)` (C numbers); they sum to 1 to 1e-12. Cost O(C), some 100 nodes. NaN when an argument is not finite; of several classes without a variance that share the largest mean each has an equal part.
    ///
    /// # Panics
    /// When lengths differ.
    pub fn largest(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        assert_eq!((mean.len(), out.len()), (self.classes, self.classes), "one number for each class");
        largest_probabilities(mean, variance, out);
    }

    /// Writes `p(y = j) = (1 - δ) S_j + δ / (C - 1) (1 - S_j)` (C numbers), which sum to 1 to rounding. Cost as [`largest`](Self::largest).
    ///
    /// # Panics
    /// When lengths differ.
    pub fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        self.largest(mean, variance, out);
        self.with_errors(out);
    }

    /// Shares of being the largest, to be normalised, become probabilities of classes.
    pub(crate) fn with_errors(&self, shares: &mut [f64]) {
        let total: f64 = shares.iter().sum();
        let wrong = self.error_rate / (self.classes - 1) as f64;
        shares.iter_mut().for_each(|s| {
            let share = *s / total;
            *s = (1.0 - self.error_rate) * share + wrong * (1.0 - share);
        });
    }

    /// Entropy of a label whose latent values are known, nats.
    pub(crate) fn noise_entropy(&self) -> f64 {
        let [right, wrong] = self.logarithms();
        -(1.0 - self.error_rate) * right - self.error_rate * wrong
    }

    /// The class of the largest latent value, the first of equal ones; none where one is not a number.
    pub(crate) fn winner(&self, f: &[f64]) -> Option<usize> {
        (!f.iter().any(|f| f.is_nan())).then(|| largest(f))
    }

    /// `log(1 - δ)` and `log(δ / (C - 1))`.
    fn logarithms(&self) -> [f64; 2] {
        [(-self.error_rate).ln_1p(), self.error_rate.ln() - ((self.classes - 1) as f64).ln()]
    }

    /// `log E[p^α] / α` where the class is the largest with probability `s`, and its slope in s; α > 0. Divided by the power of the likelier of both outcomes, so that neither a small α nor a small δ cancels.
    fn log_expected_power(&self, alpha: f64, s: f64) -> (f64, f64) {
        let [right, wrong] = self.logarithms();
        let (base, rest, toward) =
            if s < 0.5 { (wrong, s, right - wrong) } else { (right, 1.0 - s, wrong - right) };
        let growth = (alpha * toward).exp_m1();
        let slope = growth / (alpha * (1.0 + rest * growth));
        (base + (rest * growth).ln_1p() / alpha, if s < 0.5 { slope } else { -slope })
    }

    /// The class that a target names, if there is one.
    fn class(&self, y: &[f64]) -> Option<usize> {
        match y {
            &[value] if value >= 0.0 && value < self.classes as f64 && value.fract() == 0.0 => {
                Some(value as usize)
            }
            _ => None,
        }
    }

    /// S of the class of a target with its slopes, which are written; NaN where there is no such class.
    fn share(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: (&mut [f64], &mut [f64])) -> f64 {
        assert_lengths(self, y, mean);
        match self.class(y) {
            Some(class) => largest_probability(class, (mean, variance), slopes),
            None => {
                slopes.0.iter_mut().chain(slopes.1).for_each(|s| *s = f64::NAN);
                f64::NAN
            }
        }
    }
}

no_parameters!(RobustMax);

impl Likelihood for RobustMax {
    fn outputs(&self) -> usize {
        self.classes
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn target_width(&self) -> usize {
        1
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, 1, y)?;
        let remedy = format!(
            "classes are whole numbers from 0 to {}; renumber the labels or raise `classes`",
            self.classes - 1
        );
        check_each(NAME, y, |value| self.class(&[value]).is_some(), &remedy)
    }
    fn is_flat(&self) -> bool {
        true
    }
    fn is_log_concave(&self) -> bool {
        false
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        let [right, wrong] = self.logarithms();
        match (self.class(y), self.winner(f)) {
            (Some(class), Some(winner)) if class == winner => right,
            (Some(_), Some(_)) => wrong,
            _ => f64::NAN,
        }
    }
    /// Zero: the density is constant between jumps.
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.classes, "a gradient has C numbers");
        out.fill(if self.class(y).is_some() { 0.0 } else { f64::NAN });
    }
    /// Zero, which stands for nothing ([`Likelihood::is_flat`]).
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.classes, "a diagonal has C numbers");
        out.fill(0.0);
    }
    /// Those of the index.
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        let mut p = vec![0.0; self.classes];
        match self.winner(f) {
            Some(winner) => p[winner] = 1.0,
            None => p.fill(f64::NAN),
        }
        self.with_errors(&mut p);
        (mean[0], variance[0]) = index_moments(&p);
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.classes, 1), "latent values and target");
        let uniform = rng.random::<f64>();
        let Some(winner) = self.winner(f) else { return out.fill(f64::NAN) };
        if uniform >= self.error_rate {
            out[0] = winner as f64;
            return;
        }
        // Below the error rate what was drawn is uniform again: one of the others.
        let others = self.classes - 1;
        let other = ((uniform / self.error_rate * others as f64) as usize).min(others - 1);
        out[0] = (if other < winner { other } else { other + 1 }) as f64;
    }
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        let Slopes { means, variances, .. } = slopes;
        let share = self.share(y, mean, variance, (&mut *means, &mut *variances));
        let [right, wrong] = self.logarithms();
        means.iter_mut().chain(variances).for_each(|s| *s *= right - wrong);
        right * share + wrong * (1.0 - share)
    }
    /// Exact for all α, as `E[p^α]` is linear in S.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        if alpha == 0.0 {
            assert_lengths(self, y, mean);
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        let Slopes { means, variances, .. } = slopes;
        let share = self.share(y, mean, variance, (&mut *means, &mut *variances));
        let (value, slope) = self.log_expected_power(alpha, share);
        means.iter_mut().chain(variances).for_each(|s| *s *= -slope);
        -value
    }
    /// Those of the index.
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        let mut p = vec![0.0; self.classes];
        self.probabilities(mean, variance, &mut p);
        (out.0[0], out.1[0]) = index_moments(&p);
    }
    fn predict(&self, mean: &[f64], variance: &[f64]) -> Prediction {
        let mut p = vec![0.0; self.classes];
        self.probabilities(mean, variance, &mut p);
        Prediction::Classes(p)
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        match (self.predict(mean, variance), self.class(y)) {
            (Prediction::Classes(p), Some(class)) => p[class].ln(),
            _ => f64::NAN,
        }
    }
}

/// Mean and variance of an index with these probabilities.
fn index_moments(p: &[f64]) -> (f64, f64) {
    let mean: f64 = p.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
    (mean, p.iter().enumerate().map(|(k, p)| (k as f64 - mean).powi(2) * p).sum())
}

#[cfg(test)]
mod tests;
