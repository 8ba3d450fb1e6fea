//! `y = f + ε`, `ε ~ N(0, noise_variance)`.

use crate::{Expectation, Likelihood, Moments};
use posterior_optim::{Parameters, Segment, Transform};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Additive Gaussian noise of one variance. Noise that is known for each row is added by the model that holds the rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gaussian {
    noise_variance: f64,
    floor: f64,
}

impl Gaussian {
    /// Noise of the given variance, never learned to be below `floor` (both in squared units of the target).
    ///
    /// The floor keeps `K + noise` factorable when the data seem free of noise.
    ///
    /// # Panics
    /// Unless `0 <= floor < noise_variance`.
    pub fn new(noise_variance: f64, floor: f64) -> Self {
        assert!(floor >= 0.0 && noise_variance > floor, "the noise variance must be above its floor");
        Self { noise_variance, floor }
    }

    /// The variance of the noise.
    pub fn noise_variance(&self) -> f64 {
        self.noise_variance
    }

    /// The least variance that is learned.
    pub fn floor(&self) -> f64 {
        self.floor
    }
}

impl Parameters for Gaussian {
    fn segments(&self) -> Vec<Segment> {
        let transform = Transform::LogAbove { lower: self.floor };
        vec![Segment { name: "noise_variance".into(), shape: vec![1], transform }]
    }
    fn values(&self) -> Vec<f64> {
        vec![self.noise_variance]
    }
    fn set_values(&mut self, values: &[f64]) {
        assert_eq!(values.len(), 1, "the Gaussian likelihood has one parameter");
        self.noise_variance = values[0];
    }
}

impl Likelihood for Gaussian {
    fn log_density(&self, y: f64, f: f64) -> f64 {
        -0.5 * ((2.0 * PI * self.noise_variance).ln() + (y - f).powi(2) / self.noise_variance)
    }

    fn derivatives(&self, y: f64, f: f64) -> (f64, f64) {
        ((y - f) / self.noise_variance, -1.0 / self.noise_variance)
    }

    /// `log N(y; mean, σ²) - variance / (2σ²)`.
    fn expected_log_density(&self, y: f64, mean: f64, variance: f64) -> Expectation {
        Expectation {
            value: self.log_density(y, mean) - 0.5 * variance / self.noise_variance,
            mean_slope: (y - mean) / self.noise_variance,
            variance_slope: -0.5 / self.noise_variance,
        }
    }

    fn expected_parameter_slopes(&self, y: f64, mean: f64, variance: f64, out: &mut [f64]) {
        assert_eq!(out.len(), 1, "one slope for each parameter");
        let squared = (y - mean).powi(2) + variance;
        out[0] = 0.5 * (squared / self.noise_variance - 1.0) / self.noise_variance;
    }

    fn predictive(&self, mean: f64, variance: f64) -> Moments {
        Moments { mean, variance: variance + self.noise_variance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaussHermite;
    use posterior_optim::check;
    use statrs::distribution::{Continuous, Normal};

    #[test]
    fn the_density_and_its_derivatives() {
        let likelihood = Gaussian::new(0.4, 0.0);
        let reference = Normal::new(1.2, 0.4f64.sqrt()).unwrap();
        assert!((likelihood.log_density(0.5, 1.2) - reference.ln_pdf(0.5)).abs() < 1e-14);
        let (first, second) = likelihood.derivatives(0.5, 1.2);
        check::assert_close(
            &[first],
            &check::gradient(|f| likelihood.log_density(0.5, f[0]), &[1.2]),
            1e-9,
            1e-10,
        );
        check::assert_close(
            &[second],
            &check::gradient(|f| likelihood.derivatives(0.5, f[0]).0, &[1.2]),
            1e-9,
            1e-10,
        );
    }

    #[test]
    fn expectations_agree_with_quadrature_and_their_slopes_with_differences() {
        let likelihood = Gaussian::new(0.3, 0.0);
        let closed = likelihood.expected_log_density(0.7, -0.2, 0.5);
        let numeric: f64 =
            GaussHermite::standard().nodes(-0.2, 0.5).map(|(f, w)| w * likelihood.log_density(0.7, f)).sum();
        assert!((closed.value - numeric).abs() < 1e-12);
        let slopes =
            check::gradient(|p| likelihood.expected_log_density(0.7, p[0], p[1]).value, &[-0.2, 0.5]);
        check::assert_close(&[closed.mean_slope, closed.variance_slope], &slopes, 1e-9, 1e-9);
        let mut slope = [0.0];
        likelihood.expected_parameter_slopes(0.7, -0.2, 0.5, &mut slope);
        let numeric =
            check::gradient(|s| Gaussian::new(s[0], 0.0).expected_log_density(0.7, -0.2, 0.5).value, &[0.3]);
        check::assert_close(&slope, &numeric, 1e-9, 1e-9);
    }

    #[test]
    fn the_default_expectation_is_the_closed_form() {
        struct ByQuadrature(Gaussian);
        impl Parameters for ByQuadrature {
            fn segments(&self) -> Vec<Segment> {
                self.0.segments()
            }
            fn values(&self) -> Vec<f64> {
                self.0.values()
            }
            fn set_values(&mut self, values: &[f64]) {
                self.0.set_values(values);
            }
        }
        impl Likelihood for ByQuadrature {
            fn log_density(&self, y: f64, f: f64) -> f64 {
                self.0.log_density(y, f)
            }
            fn derivatives(&self, y: f64, f: f64) -> (f64, f64) {
                self.0.derivatives(y, f)
            }
            fn predictive(&self, mean: f64, variance: f64) -> Moments {
                self.0.predictive(mean, variance)
            }
        }
        let gaussian = Gaussian::new(0.3, 0.0);
        let (a, b) = (
            gaussian.expected_log_density(1.0, 0.1, 0.8),
            ByQuadrature(gaussian).expected_log_density(1.0, 0.1, 0.8),
        );
        check::assert_close(
            &[a.value, a.mean_slope, a.variance_slope],
            &[b.value, b.mean_slope, b.variance_slope],
            1e-11,
            1e-12,
        );
    }
}
