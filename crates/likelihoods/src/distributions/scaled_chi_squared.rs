//! Squares of Gaussian noise: `y ~ exp(f) χ²₁`, with which the logarithm of a variance is learned from squared errors.

use crate::error::{check_each, check_width};
use crate::expectation::{Slopes, sum_over_outputs};
use crate::likelihood::{assert_lengths, no_parameters};
use crate::{Likelihood, LikelihoodError};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

const NAME: &str = "scaled_chi_squared";

/// One square of Gaussian noise of variance `exp(f)`: `log p(y | f) = -½ (log 2πy + f + y exp(-f))`. Targets are positive.
///
/// The log density is concave, so `B = ½ y exp(-f)` is the exact Hessian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaledChiSquared;

no_parameters!(ScaledChiSquared);

impl Likelihood for ScaledChiSquared {
    fn outputs(&self) -> usize {
        1
    }
    fn name(&self) -> &'static str {
        NAME
    }
    fn check_target(&self, y: &[f64]) -> Result<(), LikelihoodError> {
        check_width(NAME, 1, y)?;
        check_each(NAME, y, |y| y > 0.0 && y.is_finite(), "squares of noise are positive")
    }
    fn curvature_needs_target(&self) -> bool {
        true
    }
    fn log_density(&self, y: &[f64], f: &[f64]) -> f64 {
        assert_lengths(self, y, f);
        -0.5 * ((2.0 * PI * y[0]).ln() + f[0] + y[0] * (-f[0]).exp())
    }
    fn gradient(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        out[0] = 0.5 * (y[0] * (-f[0]).exp() - 1.0);
    }
    fn curvature_entries(&self, y: &[f64], f: &[f64], out: &mut [f64]) {
        assert_lengths(self, y, f);
        out[0] = 0.5 * y[0] * (-f[0]).exp();
    }
    fn moments(&self, f: &[f64], mean: &mut [f64], variance: &mut [f64]) {
        (mean[0], variance[0]) = (f[0].exp(), 2.0 * (2.0 * f[0]).exp());
    }
    fn sample(&self, f: &[f64], rng: &mut dyn Rng, out: &mut [f64]) {
        let noise: f64 = StandardNormal.sample(rng);
        out[0] = f[0].exp() * noise * noise;
    }
    /// `-½ (log 2πy + m + y exp(v/2 - m))`.
    fn expected_log_density(&self, y: &[f64], mean: &[f64], variance: &[f64], slopes: Slopes<'_>) -> f64 {
        assert_lengths(self, y, mean);
        sum_over_outputs(slopes, |i, _| {
            let ratio = y[i] * (0.5 * variance[i] - mean[i]).exp();
            let value = -0.5 * ((2.0 * PI * y[i]).ln() + mean[i] + ratio);
            (value, 0.5 * (ratio - 1.0), -0.25 * ratio)
        })
    }
    /// Those of a log-normal variance, plus the scatter of squares around it.
    fn predictive_moments(&self, mean: &[f64], variance: &[f64], out: (&mut [f64], &mut [f64])) {
        let square = (mean[0] + 0.5 * variance[0]).exp();
        (out.0[0], out.1[0]) = (square, square * square * (3.0 * variance[0].exp() - 1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::Gaussian;
    use posterior_linalg::random::Streams;

    #[test]
    fn it_is_the_density_of_the_square_of_noise() {
        for (y, f) in [(0.3f64, -1.0f64), (2.0, 0.7), (1e-6, 0.0)] {
            // Both roots of y, with the slope of the square.
            let root = y.sqrt();
            let noise = Gaussian::new(f.exp(), 0.0).log_density(&[root], &[0.0]);
            let expected = (2.0f64).ln() + noise - (2.0 * root).ln();
            let own = ScaledChiSquared.log_density(&[y], &[f]);
            assert!((own - expected).abs() < 1e-12, "{own} {expected}");
        }
        assert!(
            ScaledChiSquared.check_target(&[0.0]).is_err() && ScaledChiSquared.check_target(&[1.0]).is_ok()
        );
    }

    #[test]
    fn derivatives_are_those_of_the_density() {
        let (y, h) = ([0.8], 1e-4);
        for f in [-1.3, 0.0, 2.1] {
            let at = |f: f64| ScaledChiSquared.log_density(&y, &[f]);
            let (mut slope, mut bend) = ([0.0], [0.0]);
            ScaledChiSquared.gradient(&y, &[f], &mut slope);
            ScaledChiSquared.curvature_entries(&y, &[f], &mut bend);
            assert!((slope[0] - (at(f + h) - at(f - h)) / (2.0 * h)).abs() < 1e-6);
            assert!((bend[0] + (at(f + h) - 2.0 * at(f) + at(f - h)) / (h * h)).abs() < 1e-6);
        }
    }

    #[test]
    fn expectations_are_integrals() {
        let (y, m, v) = (0.8, 0.4, 0.6f64);
        // The midpoint rule in standard deviations.
        let integral = |of: &dyn Fn(f64) -> f64| -> f64 {
            (0..20_000)
                .map(|k| {
                    let u = -10.0 + (f64::from(k) + 0.5) / 1000.0;
                    of(m + v.sqrt() * u) * (-0.5 * u * u).exp() / (2.0 * PI).sqrt() / 1000.0
                })
                .sum()
        };
        let closed = |m: f64, v: f64| {
            let (mut a, mut b) = ([0.0], [0.0]);
            let slopes = Slopes { means: &mut a, variances: &mut b, parameters: &mut [] };
            let value = ScaledChiSquared.expected_log_density(&[y], &[m], &[v], slopes);
            (value, a[0], b[0])
        };
        let (value, in_mean, in_variance) = closed(m, v);
        assert!((value - integral(&|f| ScaledChiSquared.log_density(&[y], &[f]))).abs() < 1e-9);
        let h = 1e-5;
        assert!((in_mean - (closed(m + h, v).0 - closed(m - h, v).0) / (2.0 * h)).abs() < 1e-8);
        assert!((in_variance - (closed(m, v + h).0 - closed(m, v - h).0) / (2.0 * h)).abs() < 1e-8);
        let (mut mean, mut variance) = ([0.0], [0.0]);
        ScaledChiSquared.predictive_moments(&[m], &[v], (&mut mean, &mut variance));
        let (first, second) = (integral(&f64::exp), integral(&|f| 3.0 * (2.0 * f).exp()));
        assert!((mean[0] - first).abs() < 1e-9 && (variance[0] - (second - first * first)).abs() < 1e-8);
    }

    #[test]
    fn draws_have_its_moments() {
        let mut rng = Streams::new(1).stream("likelihoods/scaled-chi-squared");
        let (f, n, mut out) = ([0.5], 40_000, [0.0]);
        let draws: Vec<f64> = (0..n)
            .map(|_| {
                ScaledChiSquared.sample(&f, &mut rng, &mut out);
                out[0]
            })
            .collect();
        let (mut mean, mut variance) = ([0.0], [0.0]);
        ScaledChiSquared.moments(&f, &mut mean, &mut variance);
        let own = draws.iter().sum::<f64>() / f64::from(n);
        assert!((own - mean[0]).abs() < 5.0 * (variance[0] / f64::from(n)).sqrt());
    }
}
