//! The word that every likelihood speaks, for one observation and one latent value.

use crate::GaussHermite;
use posterior_optim::Parameters;

/// `E[log p(y|f)]` for `f ~ N(mean, variance)`, with its derivatives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// The expectation.
    pub value: f64,
    /// Its derivative in the mean.
    pub mean_slope: f64,
    /// Its derivative in the variance.
    pub variance_slope: f64,
}

/// Mean and variance of an observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Mean, in units of the observation.
    pub mean: f64,
    /// Variance, in squared units.
    pub variance: f64,
}

/// A likelihood with one latent value for each observation.
pub trait Likelihood: Parameters {
    /// `log p(y|f)`.
    fn log_density(&self, y: f64, f: f64) -> f64;

    /// First and second derivative of `log p(y|f)` in f.
    fn derivatives(&self, y: f64, f: f64) -> (f64, f64);

    /// `E[log p(y|f)]` under `f ~ N(mean, variance)`. By default Gauss-Hermite quadrature with 20 nodes; its derivatives are
    /// `E[∂/∂f]` and `½ E[∂²/∂f²]` (Bonnet 1964, Price 1958).
    fn expected_log_density(&self, y: f64, mean: f64, variance: f64) -> Expectation {
        let rule = GaussHermite::standard();
        let mut out = Expectation { value: 0.0, mean_slope: 0.0, variance_slope: 0.0 };
        for (f, weight) in rule.nodes(mean, variance) {
            let (first, second) = self.derivatives(y, f);
            out.value += weight * self.log_density(y, f);
            out.mean_slope += weight * first;
            out.variance_slope += 0.5 * weight * second;
        }
        out
    }

    /// Writes the derivatives of [`expected_log_density`](Self::expected_log_density) in the likelihood's own natural parameters,
    /// in the order of [`Parameters::values`].
    ///
    /// # Panics
    /// When `out` has another length; by default, when there are parameters at all.
    fn expected_parameter_slopes(&self, _y: f64, _mean: f64, _variance: f64, out: &mut [f64]) {
        assert!(
            out.is_empty() && self.values().is_empty(),
            "a likelihood with parameters must say how they matter"
        );
    }

    /// Mean and variance of y when `f ~ N(mean, variance)`.
    fn predictive(&self, mean: f64, variance: f64) -> Moments;
}
