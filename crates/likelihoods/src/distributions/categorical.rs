//! One class of C: `p(y = c | f) = softmax(f)_c`.

use crate::error::{check_each, check_outputs, check_width};
use crate::expectation::{
    Slopes, expected_log_sum_exp, log_expected_power, negative_expectation, softmax_evidence,
};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::special::softmax::{largest, log_softmax, softmax};
use crate::{Likelihood, LikelihoodError, Prediction};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "categorical";

/// One class of several, by softmax. The target is the index of the class, from zero.
///
/// `B = diag(p) - p pᵀ` has rank C - 1 (a constant added to all latent values changes nothing), so `B⁻¹` does not exist; its
/// root is [`softmax_root`]. Both are computed with the complements of probabilities summed from the others, so that they keep
/// their relative accuracy when `p` is one-hot to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Categorical {
    classes: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    classes: usize,
}

impl TryFrom<Fields> for Categorical {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        Self::new(fields.classes)
    }
}

impl Categorical {
    /// So many classes.
    ///
    /// # Errors
    /// For fewer than two, or more than 2²⁴.
    pub fn new(classes: usize) -> Result<Self, LikelihoodError> {
        check_outputs(
            NAME,
            "classes",
            classes,
            2,
            "give at least two classes (for one event use `bernoulli`)",
        )?;
        Ok(Self { classes })
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// `log E[softmax(f)_y]` in nats for independent `f_c ~ N(mean_c, variance_c)`, exact to quadrature, and its slopes: those that moments of f given the class y are made of. Writes them (C numbers each). Some 5 µs a class.
    ///
    /// NaN when an argument is not finite.
    ///
    /// # Panics
    /// When there is no such class, or lengths differ.
    pub fn log_evidence(
        &self,
        class: usize,
        (mean, variance): (&[f64], &[f64]),
        (means, variances): (&mut [f64], &mut [f64]),
    ) -> f64 {
        assert!(class < self.classes, "class {class} of {}", self.classes);
        let lengths = [mean.len(), variance.len(), means.len(), variances.len()];
        assert!(lengths.iter().all(|n| *n == self.classes), "one number for each class: {lengths:?}");
        softmax_evidence(class, (mean, variance), (means, variances))
    }

    /// `-log softmax(t)_y`, `t_c = m_c / √(1 + π v_c / 8)`, with its slopes.
    fn probit_energy(
        &self,
        class: usize,
        mean: &[f64],
        variance: &[f64],
        means: &mut [f64],
        variances: &mut [f64],
    ) -> f64 {
        let shrink = |c: usize| 1.0 / (1.0 + PI / 8.0 * variance[c].max(0.0)).sqrt();
        let scaled: Vec<f64> = (0..self.classes).map(|c| mean[c] * shrink(c)).collect();
        self.gradient(&[class as f64], &scaled, means);
        for c in 0..self.classes {
            let (slope, shrink) = (-means[c], shrink(c));
            (means[c], variances[c]) =
                (slope * shrink, -slope * mean[c] * PI / 16.0 * shrink * shrink * shrink);
        }
        -log_softmax(&scaled, class)
    }

    /// The class that a target names, if there is one.
    pub(crate) fn class(&self, y: &[f64]) -> Option<usize> {
        match y {
            &[value] if value >= 0.0 && value < self.classes as f64 && value.fract() == 0.0 => {
                Some(value as usize)
            }
            _ => None,
        }
    }
}

/// The Cholesky factor of `diag(p) - p pᵀ`, `p` the softmax of C values, without its last column, which is zero: `[C, C - 1]`,
/// row-major.
///
/// With `t_j = Σ_(k > j) p_k` (and `t_(-1) = 1`): `L_jj = √(p_j t_j / t_(j-1))` and `L_ij = -p_i √(p_j / (t_j t_(j-1)))`. One column
/// less than the symmetric form `diag(√p) - p √pᵀ`. The tails are sums of what is left, so that nothing cancels near a certain class.
///
/// # Panics
/// When the root has not `C (C - 1)` numbers.
pub fn softmax_root(logits: &[f64], root: &mut [f64]) {
    let count = logits.len();
    let width = count.saturating_sub(1);
    assert_eq!(root.len(), count * width, "the root has C x (C - 1) numbers");
    if width == 0 {
        return;
    }
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut p: Vec<f64> = logits.iter().map(|f| (f - largest).exp()).collect();
    let total: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= total);
    let mut tails = vec![0.0; count + 1];
    (0..count).rev().for_each(|j| tails[j] = tails[j + 1] + p[j]);
    root.fill(0.0);
    for j in 0..width {
        // tails[j] is t_(j-1), tails[j + 1] is t_j.
        let (before, after) = (tails[j], tails[j + 1]);
        if !(before > 0.0 && after > 0.0) {
            continue;
        }
        root[j * width + j] = (p[j] * (after / before)).sqrt();
        let along = (p[j] / before).sqrt() / after.sqrt();
        (j + 1..count).for_each(|i| root[i * width + j] = -p[i] * along);
    }
}

no_parameters!(Categorical);

impl Likelihood for Categorical {
    fn outputs(&self) -> usize {
        self.classes
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn target_width(&self) -> usize {
        1
    }
    fn is_diagonal(&self) -> bool {
        false
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, 1, y)?;
        let remedy = format!(
            "classes are whole numbers from 0 to {}; renumber the labels or raise `classes`",
            self.classes - 1
        );
        check_each(NAME, y, |value| self.class(&[value]).is_some(), &remedy)
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        self.class(y).map_or(f64::NAN, |class| log_softmax(f, class))
    }
    /// `e_y - p`.
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        let Some(class) = self.class(y) else { return out.fill(f64::NAN) };
        let peak = softmax(f, out);
        out.iter_mut().for_each(|p| *p = -*p);
        out[class] = if class == peak.class { peak.complement } else { 1.0 + out[class] };
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.classes * self.classes, "a matrix of the outputs has C x C numbers");
        let peak = softmax(f, &mut out[..self.classes]);
        // The first row holds p and is replaced last.
        for i in (0..self.classes).rev() {
            let p = out[i];
            for j in 0..self.classes {
                out[i * self.classes + j] = -p * out[j];
            }
            let complement = if i == peak.class { peak.complement } else { 1.0 - p };
            out[i * self.classes + i] = p * complement;
        }
    }
    /// `p ⊙ (u - pᵀu)`, with `u` counted from its entry at the peak so that nothing cancels.
    fn curvature_product(&self, y: &[f64], f: &[f64], u: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(u.len(), self.classes, "B multiplies C numbers");
        let peak = softmax(f, out);
        let origin = u[peak.class];
        let mean: f64 = out.iter().zip(u).map(|(p, u)| p * (u - origin)).sum();
        for (out, u) in out.iter_mut().zip(u) {
            *out *= (u - origin) - mean;
        }
    }
    fn root_width(&self) -> usize {
        self.classes - 1
    }
    fn root(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        softmax_root(f, out);
    }
    /// Those of the index.
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        let mut p = vec![0.0; self.classes];
        softmax(f, &mut p);
        mean[0] = p.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
        variance[0] = p.iter().enumerate().map(|(k, p)| (k as f64 - mean[0]).powi(2) * p).sum();
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.classes, 1), "latent values and target");
        let peak = f[largest(f)];
        let total: f64 = f.iter().map(|value| (value - peak).exp()).sum();
        let mut left = rng.random::<f64>() * total;
        // Rounding may leave a crumb after the last class; it belongs to the last one that can occur.
        let mut drawn = 0;
        for (class, value) in f.iter().enumerate() {
            let weight = (value - peak).exp();
            if weight > 0.0 {
                drawn = class;
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        out[0] = if total.is_nan() { f64::NAN } else { drawn as f64 };
    }
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        let Slopes { means, variances, .. } = slopes;
        let normaliser = expected_log_sum_exp(mean, variance, means, variances);
        means.iter_mut().chain(variances).for_each(|s| *s = -*s);
        let Some(class) = self.class(y) else { return f64::NAN };
        means[class] += 1.0;
        mean[class] - normaliser
    }
    /// For α < 1 exact, as `E[p_y^α] = exp(α m_y + α² v_y / 2) E[(Σ exp f)^(-α)]` with the mean of class y moved by `α v_y`. At α = 1 the **extended probit approximation**
    /// of the published runs, `-log softmax(m_c / √(1 + π v_c / 8))_y`, which costs one softmax; it differs from the exact energy, to which α just below 1 comes close.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        let Slopes { means, variances, .. } = slopes;
        let Some(class) = self.class(y) else {
            means.iter_mut().chain(variances).for_each(|s| *s = f64::NAN);
            return f64::NAN;
        };
        if alpha == 1.0 {
            return self.probit_energy(class, mean, variance, means, variances);
        }
        let mut moved = mean.to_vec();
        moved[class] += alpha * variance[class];
        let power = log_expected_power(alpha, &moved, variance, means, variances);
        variances[class] += alpha * means[class] + 0.5 * alpha * alpha;
        means[class] += alpha;
        means.iter_mut().chain(variances).for_each(|s| *s /= -alpha);
        -(alpha * mean[class] + 0.5 * alpha * alpha * variance[class] + power) / alpha
    }
    fn predict(&self, mean: &[f64], variance: &[f64]) -> Prediction {
        let (mut p, mut slopes) = (vec![0.0; self.classes], vec![0.0; self.classes]);
        expected_log_sum_exp(mean, variance, &mut p, &mut slopes);
        // Quadrature leaves the sum at one to 1e-11; probabilities should be there to rounding.
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
        Prediction::Classes(p)
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        match (self.predict(mean, variance), self.class(y)) {
            (Prediction::Classes(p), Some(class)) => p[class].ln(),
            _ => f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triangular_root_is_a_root_even_near_certainty() {
        for logits in [
            vec![0.3, -0.2, 1.0, 0.4],
            vec![40.0, 0.0, -3.0],
            vec![0.0, 0.0, 60.0],
            vec![-800.0, 800.0, 0.0],
            vec![1e4, -1e4],
        ] {
            let (count, width) = (logits.len(), logits.len() - 1);
            let mut root = vec![0.0; count * width];
            softmax_root(&logits, &mut root);
            let mut expected = vec![0.0; count * count];
            Categorical::new(count).unwrap().curvature(&[0.0], &logits, &mut expected);
            let product: Vec<f64> = (0..count * count)
                .map(|k| (0..width).map(|s| root[k / count * width + s] * root[k % count * width + s]).sum())
                .collect();
            // Entries between rare classes are differences; their scale is that of the two variances.
            for k in 0..count * count {
                let scale = (expected[k / count * (count + 1)] * expected[k % count * (count + 1)]).sqrt();
                assert!((product[k] - expected[k]).abs() <= 1e-13 * scale, "{logits:?} {k}");
            }
        }
    }
}
