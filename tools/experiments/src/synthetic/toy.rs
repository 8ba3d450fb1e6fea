//! Regression problems in one dimension with their truth.

use faer::MatRef;
use posterior_data::Standardisation;
use posterior_linalg::random::Streams;
use rand_distr::{Distribution, StandardNormal};

/// Noisy values of a function of one input, and the truth behind them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToyRegression {
    /// Inputs (n).
    pub(crate) x: Vec<f64>,
    /// Observed values (n): `function` plus independent normal noise.
    pub(crate) y: Vec<f64>,
    /// The noiseless function at each input (n), in the units of `y`.
    pub(crate) function: Vec<f64>,
    /// Standard deviation of the noise, in the units of `y`. The noise precision of a model is `1 / noise²`.
    pub(crate) noise: f64,
}

impl ToyRegression {
    /// The same problem with `x` and `y` of mean 0 and population standard deviation 1; function and noise are taken along, so
    /// that the noise becomes its former value over the standard deviation of `y`.
    pub(crate) fn standardised(mut self) -> Self {
        let x = MatRef::from_column_major_slice(&self.x, self.x.len(), 1);
        let Standardisation { feature_means, feature_scales, target_mean: mean, target_scale: scale, .. } =
            Standardisation::learn(x, &self.y);
        self.x.iter_mut().for_each(|v| *v = (*v - feature_means[0]) / feature_scales[0]);
        self.y.iter_mut().chain(&mut self.function).for_each(|v| *v = (*v - mean) / scale);
        self.noise /= scale;
        self
    }
}

/// The values of a function with independent normal noise of a standard deviation.
pub(super) fn noisy(function: &[f64], deviation: f64, streams: Streams, name: &str) -> Vec<f64> {
    let mut rng = streams.stream(name);
    let value = |f: &f64| {
        let noise: f64 = StandardNormal.sample(&mut rng);
        f + deviation * noise
    };
    function.iter().map(value).collect()
}
