//! `y_c = f_c + scale · t_c`, t of Student's distribution: noise with outliers.

use super::{is_one, one};
use crate::error::check_outputs;
use crate::expectation::{Slopes, Tilted, negative_expectation, sum_over_outputs};
use crate::likelihood::assert_lengths;
use crate::predictive::student_t_log_mixture;
use crate::special::polygamma::digamma;
use crate::{Likelihood, LikelihoodError};
use posterior_optim::{Parameters, Segment, Transform};
use rand::Rng;
use rand_distr::Distribution;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

const NAME: &str = "student_t";

/// Additive noise with heavy tails, independent between outputs, which share its parameters: a robust alternative to [`crate::Gaussian`].
///
/// `log p(y|f) = log Γ((ν+1)/2) - log Γ(ν/2) - ½ log(νπ s²) - (ν+1)/2 · log(1 + (y-f)²/(ν s²))` with scale s and ν degrees of
/// freedom. Not log-concave: far from f an observation pulls less and less, and the second derivative changes its sign. The
/// curvature is therefore the Fisher information `(ν+1) / ((ν+3) s²)`.
///
/// More than two degrees of freedom, so that predictions have a variance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct StudentT {
    scale: f64,
    degrees_of_freedom: f64,
    #[serde(skip_serializing_if = "is_one")]
    outputs: usize,
}

/// As written, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    scale: f64,
    degrees_of_freedom: f64,
    #[serde(default = "one")]
    outputs: usize,
}

impl TryFrom<Fields> for StudentT {
    type Error = LikelihoodError;
    fn try_from(fields: Fields) -> Result<Self, LikelihoodError> {
        check_outputs(NAME, "outputs", fields.outputs, 1, "give the number of targets of one observation")?;
        Ok(Self::new(fields.scale, fields.degrees_of_freedom)?.with_outputs(fields.outputs))
    }
}

impl StudentT {
    /// The floor of the degrees of freedom: at two the variance is infinite.
    pub const LEAST_DEGREES_OF_FREEDOM: f64 = 2.0;

    /// Names of its parameters.
    pub const SCALE: &str = "student_t.scale";
    /// See [`Self::SCALE`].
    pub const DEGREES_OF_FREEDOM: &str = "student_t.degrees_of_freedom";

    /// Noise on one output, of the given scale (in units of the target, not squared) and degrees of freedom.
    ///
    /// # Errors
    /// [`LikelihoodError::Parameter`] unless the scale is positive and the degrees of freedom exceed two.
    pub fn new(scale: f64, degrees_of_freedom: f64) -> Result<Self, LikelihoodError> {
        let error = |parameter: &str, value: f64, remedy| {
            let (parameter, value) = (parameter.into(), value.to_string());
            Err(LikelihoodError::Parameter { owner: NAME, parameter, value, remedy })
        };
        if !(scale > 0.0 && scale.is_finite()) {
            return error("scale", scale, "give a positive number in units of the target");
        }
        if !(degrees_of_freedom > Self::LEAST_DEGREES_OF_FREEDOM && degrees_of_freedom.is_finite()) {
            return error("degrees_of_freedom", degrees_of_freedom, "give a number above 2; 4 is customary");
        }
        Ok(Self { scale, degrees_of_freedom, outputs: 1 })
    }

    /// The same noise on each of so many outputs.
    pub fn with_outputs(self, outputs: usize) -> Self {
        Self { outputs, ..self }
    }

    /// The scale s.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The degrees of freedom ν.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom
    }

    /// `ν s²`, the squared residual at which the tails begin.
    fn width(&self) -> f64 {
        self.degrees_of_freedom * self.scale * self.scale
    }

    /// The variance of the noise.
    fn variance(&self) -> f64 {
        let nu = self.degrees_of_freedom;
        self.scale * self.scale * nu / (nu - 2.0)
    }

    fn log_normaliser(&self) -> f64 {
        let nu = self.degrees_of_freedom;
        libm::lgamma(0.5 * (nu + 1.0)) - libm::lgamma(0.5 * nu) - 0.5 * (PI * self.width()).ln()
    }
}

impl Parameters for StudentT {
    fn segments(&self) -> Vec<Segment> {
        let segment = |name: &str, transform| Segment { name: name.into(), shape: vec![1], transform };
        let above = Transform::LogAbove { lower: Self::LEAST_DEGREES_OF_FREEDOM };
        vec![segment(Self::SCALE, Transform::Log), segment(Self::DEGREES_OF_FREEDOM, above)]
    }
    fn values(&self) -> Vec<f64> {
        vec![self.scale, self.degrees_of_freedom]
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), 2, "the Student-t likelihood has two parameters");
        (self.scale, self.degrees_of_freedom) = (values[0], values[1]);
    }
}

impl Likelihood for StudentT {
    fn outputs(&self) -> usize {
        self.outputs
    }
    fn is_log_concave(&self) -> bool {
        false
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        let one = |(y, f): (&f64, &f64)| {
            let residual = y - f;
            self.log_normaliser()
                - 0.5 * (self.degrees_of_freedom + 1.0) * (residual * residual / self.width()).ln_1p()
        };
        y.iter().zip(f).map(one).sum()
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs, "a gradient has C numbers");
        for (i, out) in out.iter_mut().enumerate() {
            let residual = y[i] - f[i];
            *out = (self.degrees_of_freedom + 1.0) * residual / (self.width() + residual * residual);
        }
    }
    fn hessian(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        assert_eq!(out.len(), self.outputs * self.outputs, "a matrix of the outputs has C x C numbers");
        out.fill(0.0);
        for i in 0..self.outputs {
            let (residual, width) = (y[i] - f[i], self.width());
            let total = width + residual * residual;
            out[i * self.outputs + i] =
                (self.degrees_of_freedom + 1.0) * (width - residual * residual) / (total * total);
        }
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        let nu = self.degrees_of_freedom;
        out.fill((nu + 1.0) / ((nu + 3.0) * self.scale * self.scale));
    }
    /// Steps by the Fisher information, which is as large for an outlier as for any other, take hundreds. `(ν+1)/(ν s² + r²)` is the curvature of the quadratic that bounds the negative log density from above where it touches it
    /// (the weights of the t-distribution's expectation maximisation); half of it where the second derivative is less than that.
    fn step_curvature(&self, y: &[f64], f: &[f64], out: &mut [f64]) -> bool {
        assert_lengths(self, y, f);
        for (i, out) in out.iter_mut().enumerate() {
            let (residual, width) = (y[i] - f[i], self.width());
            let total = width + residual * residual;
            let share = ((width - residual * residual) / total).max(0.5);
            *out = (self.degrees_of_freedom + 1.0) / total * share;
        }
        true
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        mean.copy_from_slice(f);
        variance.fill(self.variance());
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        assert_eq!((f.len(), out.len()), (self.outputs, self.outputs), "latent values and target");
        let noise = rand_distr::StudentT::new(self.degrees_of_freedom);
        for (out, f) in out.iter_mut().zip(f) {
            *out = noise.as_ref().map_or(f64::NAN, |noise| f + self.scale * noise.sample(rng));
        }
    }
    /// By the one-dimensional integral of `log_excess`, to about 1e-12 whatever the ratio of latent deviation to scale;
    /// Gauss-Hermite quadrature fails where the latent deviation is large beside the scale.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        let (width, nu) = (self.width(), self.degrees_of_freedom);
        let half = 0.5 * (nu + 1.0);
        sum_over_outputs(slopes, |i, parameters| {
            let residual = y[i] - mean[i];
            let (p, q) = (variance[i] / width, residual * residual / width);
            let excess = log_excess(p, q);
            // The slope in log(ν s²): -½ of the normaliser, and p and q fall as it grows.
            let toward_width = -0.5 + half * (p * excess.slope_p + q * excess.slope_q);
            parameters[0] += 2.0 * toward_width / self.scale;
            parameters[1] += 0.5 * (digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu)) - 0.5 * excess.value
                + toward_width / nu;
            let mean_slope = half * excess.slope_q * 2.0 * residual / width;
            (self.log_normaliser() - half * excess.value, mean_slope, -half * excess.slope_p / width)
        })
    }
    /// A power of the density is a mixture of Gaussians again, `(1 + x²)^(-a) = ∫ t^(a-1) e^(-t (1 + x²)) dt / Γ(a)` with `a = α (ν + 1) / 2`, so that one integral over `t = eˢ` is left.
    fn alpha_energy(&self, alpha: f64, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        if alpha == 0.0 {
            return negative_expectation(self, y, (mean, variance), slopes);
        }
        let (width, nu) = (self.width(), self.degrees_of_freedom);
        sum_over_outputs(slopes, |i, parameters| {
            let residual = y[i] - mean[i];
            let (p, q) = (variance[i].max(0.0) / width, residual * residual / width);
            let power = log_power(0.5 * alpha * (nu + 1.0), p, q);
            // The slope of log E[p^α] in log(ν s²).
            let toward_width = -0.5 * alpha - p * power.slope_p - q * power.slope_q;
            parameters[0] -= 2.0 * toward_width / (alpha * self.scale);
            parameters[1] -= 0.5 * (digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu))
                + 0.5 * power.slope_a
                + toward_width / (alpha * nu);
            let value = -self.log_normaliser() - power.value / alpha;
            (value, 2.0 * power.slope_q * residual / (alpha * width), -power.slope_p / (alpha * width))
        })
    }
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        out.0.copy_from_slice(mean);
        out.1.iter_mut().zip(variance).for_each(|(out, v)| *out = v + self.variance());
    }
    fn log_predictive_density(&self, y: &[f64], mean: &[f64], variance: &[f64]) -> f64 {
        assert_lengths(self, y, mean);
        let one = |i: usize| {
            student_t_log_mixture(y[i] - mean[i], variance[i], self.scale, self.degrees_of_freedom)
        };
        (0..y.len()).map(one).sum()
    }
}

/// `log E[(1 + x²)^(-a)]` for `x ~ N(√q, p)` with its slopes.
struct LogPower {
    value: f64,
    slope_a: f64,
    slope_p: f64,
    slope_q: f64,
}

/// `E = ∫ e^(as) F(s) ds / Γ(a)`, `F = exp(-t - t q / u) / √u`, `u = 1 + 2 t p`; by parts `∫ e^(as) (-F'(s)) ds / Γ(1 + a)`, whose integrand decays at both ends however small a is.
fn log_power(a: f64, p: f64, q: f64) -> LogPower {
    let (low, high) = (-50.0 - (1.0 + p + q).ln(), (a + 60.0).ln() + 1.0);
    let rule = Tilted::new(low, high, |s| {
        let t = s.exp();
        let u = 1.0 + 2.0 * t * p;
        (1.0 + a) * s - t - 0.5 * u.ln() - t * q / u + (1.0 + p / u + q / (u * u)).ln()
    });
    let mut out = LogPower {
        value: rule.log_integral - libm::lgamma(1.0 + a),
        slope_a: -digamma(1.0 + a),
        slope_p: 0.0,
        slope_q: 0.0,
    };
    rule.visit(|s, weight| {
        let t = s.exp();
        let u = 1.0 + 2.0 * t * p;
        let decay = 1.0 + p / u + q / (u * u);
        out.slope_a += weight * s;
        out.slope_p +=
            weight * ((1.0 - 4.0 * t * q / u) / (u * u * decay) + 2.0 * t * t * q / (u * u) - t / u);
        out.slope_q += weight * (1.0 / (u * u * decay) - t / u);
    });
    out
}

/// `E[log(1 + x²)]` for `x ~ N(√q, p)` with its slopes.
#[derive(Clone, Copy, Debug)]
struct LogExcess {
    value: f64,
    slope_p: f64,
    slope_q: f64,
}

/// With `log(1 + z) = ∫₀^∞ (1 - e^{-tz}) e^{-t} / t dt` and `E e^{-t x²} = (1 + 2tp)^{-1/2} exp(-tq / (1 + 2tp))`, the expectation is
/// `∫ (1 - E e^{-t x²}) e^{-t} ds` over `t = eˢ`: analytic for `|Im s| < π/2` and decaying exponentially, so the trapezoid rule with
/// step 0.3 is exact to `exp(-π² / 0.3)`. The slopes are those of the sum. About 130 terms.
fn log_excess(p: f64, q: f64) -> LogExcess {
    const STEP: f64 = 0.3;
    // A variance that rounding made negative counts as none; NaN is kept.
    let p = if p < 0.0 { 0.0 } else { p };
    let reach = (1.0 + p + q).ln();
    if !reach.is_finite() {
        let value = if reach.is_nan() { f64::NAN } else { f64::INFINITY };
        return LogExcess { value, slope_p: value, slope_q: value };
    }
    let terms = ((reach + 32.0 + 3.6) / STEP).ceil() as usize;
    let mut out = LogExcess { value: 0.0, slope_p: 0.0, slope_q: 0.0 };
    for k in 0..=terms {
        let t = (3.6 - STEP * k as f64).exp();
        let shrink = 1.0 / (1.0 + 2.0 * t * p);
        let exponent = -0.5 * (2.0 * t * p).ln_1p() - t * q * shrink;
        let damping = STEP * (-t).exp();
        let toward_q = damping * exponent.exp() * t * shrink;
        out.value -= damping * exponent.exp_m1();
        out.slope_q += toward_q;
        out.slope_p += toward_q * (1.0 - 2.0 * t * q * shrink);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::tests::expect;
    use posterior_optim::check;
    use statrs::distribution::{Continuous, StudentsT};

    #[test]
    fn the_density_and_its_derivatives() {
        let likelihood = StudentT::new(0.7, 3.5).unwrap();
        let reference = StudentsT::new(1.2, 0.7, 3.5).unwrap();
        for y in [-3.0, 0.5, 1.2, 40.0] {
            assert!((likelihood.log_density(&[y], &[1.2]) - reference.ln_pdf(y)).abs() < 1e-12, "{y}");
            let gradient = |f: &[f64]| {
                let mut out = [0.0];
                likelihood.gradient(&[y], f, &mut out);
                out[0]
            };
            let mut hessian = [0.0];
            likelihood.hessian(&[y], &[1.2], &mut hessian);
            let slope = check::gradient(|f| likelihood.log_density(&[y], f), &[1.2]);
            let curvature = check::gradient(|f| -gradient(f), &[1.2]);
            check::assert_close(&[gradient(&[1.2]), hessian[0]], &[slope[0], curvature[0]], 1e-8, 1e-9);
        }
    }

    /// `E[log p]` by a fine Riemann sum: an independent route.
    fn brute(likelihood: &StudentT, y: f64, mean: f64, variance: f64) -> f64 {
        let (h, deviation) = (2e-4, variance.sqrt());
        (-50_000..=50_000)
            .map(|k| {
                let x = h * f64::from(k);
                h * (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
                    * likelihood.log_density(&[y], &[mean + deviation * x])
            })
            .sum()
    }

    #[test]
    fn expectations_agree_with_brute_force_in_all_regimes() {
        for (scale, nu) in [(0.05, 2.5), (0.7, 4.0), (3.0, 50.0)] {
            let likelihood = StudentT::new(scale, nu).unwrap();
            for (residual, variance) in [(0.0, 1e-6), (0.3, 0.2), (5.0, 1.0), (-40.0, 0.01), (0.1, 100.0)] {
                let (found, _) = expect(&likelihood, &[residual], &[0.0], &[variance]);
                let expected = brute(&likelihood, residual, 0.0, variance);
                assert!(
                    (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
                    "{scale} {nu} {residual} {variance}: {found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn slopes_equal_finite_differences() {
        for (y, mean, variance) in [(0.4, -0.3, 0.5), (10.0, 0.0, 0.1), (0.0, 0.0, 30.0)] {
            let likelihood = StudentT::new(0.6, 3.0).unwrap();
            let (_, slopes) = expect(&likelihood, &[y], &[mean], &[variance]);
            let numeric = check::gradient(
                |p| expect(&StudentT::new(p[2], p[3]).unwrap(), &[y], &p[..1], &p[1..2]).0,
                &[mean, variance, 0.6, 3.0],
            );
            check::assert_close(&slopes, &numeric, 1e-7, 1e-8);
        }
    }

    #[test]
    fn the_curvature_is_the_expected_square_of_the_gradient() {
        for (scale, nu) in [(0.4, 2.5), (1.7, 9.0)] {
            let likelihood = StudentT::new(scale, nu).unwrap();
            let (mut gradient, mut curvature) = ([0.0], [0.0]);
            // With y = s sinh(x) the integrand falls exponentially at both ends.
            let fisher: f64 = (-4000..=4000)
                .map(|k| 0.01 * f64::from(k))
                .map(|x| {
                    let y = [scale * x.sinh()];
                    likelihood.gradient(&y, &[0.0], &mut gradient);
                    let weight = 0.01 * scale * x.cosh() * likelihood.log_density(&y, &[0.0]).exp();
                    weight * gradient[0] * gradient[0]
                })
                .sum();
            likelihood.curvature(&[0.0], &[0.0], &mut curvature);
            check::assert_close(&curvature, &[fisher], 1e-12, 0.0);
        }
    }

    #[test]
    fn bad_parameters_and_extreme_arguments_are_answered() {
        for (scale, nu) in [(0.0, 3.0), (f64::NAN, 3.0), (1.0, 2.0), (1.0, f64::INFINITY)] {
            assert!(StudentT::new(scale, nu).is_err());
        }
        let likelihood = StudentT::new(1e-3, 4.0).unwrap();
        assert!(expect(&likelihood, &[1e100], &[0.0], &[1e100]).0.is_finite());
        assert!(expect(&likelihood, &[0.0], &[f64::NAN], &[1.0]).0.is_nan());
        assert!(expect(&likelihood, &[0.0], &[0.0], &[f64::NAN]).0.is_nan());
        let text = serde_json::to_string(&likelihood).unwrap();
        assert_eq!(serde_json::from_str::<StudentT>(&text).unwrap(), likelihood);
        assert!(serde_json::from_str::<StudentT>(&text.replace("4.0", "1.0")).is_err());
    }
}
