//! The prior, the noise, and how to compute with them.

use crate::iterative::problem::FreshFeatures;
use crate::iterative::solver::Budget;
use crate::{GpError, Mean, Observations, parameters};
use faer::{Mat, MatRef};
use posterior_kernels::Kernel;
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_likelihoods::Gaussian;
use posterior_linalg::Real;
use posterior_linalg::random::Streams;
use posterior_optim::{Parameters, Segment};
use serde::{Deserialize, Serialize};

/// A Gaussian process with Gaussian noise whose kernel is computed in precision T.
#[derive(Debug)]
pub struct PathwiseModel<T: Real> {
    /// The covariance function, without white noise, which is no function.
    pub kernel: Box<dyn Kernel<T>>,
    /// The prior mean.
    pub mean: Mean,
    /// The noise.
    pub noise: Gaussian,
}

impl<T: Real> Clone for PathwiseModel<T> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone_box(), mean: self.mean.clone(), noise: self.noise.clone() }
    }
}

impl<T: Real> PathwiseModel<T> {
    /// The likelihood's noise variance plus the known one of each row (n).
    pub(in crate::iterative) fn noise_variances(&self, data: &Observations) -> Vec<f64> {
        let known = data.noise_variances();
        (0..data.rows()).map(|i| self.noise.noise_variance() + known.map_or(0.0, |v| v[i])).collect()
    }
}

/// Those of the kernel, then those of the mean, then `noise_variance`.
impl<T: Real> Parameters for PathwiseModel<T> {
    fn segments(&self) -> Vec<Segment> {
        parameters::segments([&*self.kernel, &self.mean, &self.noise])
    }

    fn values(&self) -> Vec<f64> {
        parameters::values([&*self.kernel, &self.mean, &self.noise])
    }

    fn set_values(&mut self, values: &[f64]) {
        parameters::set_values([&mut *self.kernel, &mut self.mean, &mut self.noise], values);
    }
}

/// How to condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathwiseSettings {
    /// How long to solve.
    pub budget: Budget,
    /// Posterior samples, s; 64 are customary. None: mean and exact variances only.
    pub samples: usize,
    /// The features that prior functions are made of.
    pub features: FeatureSettings,
    /// Samples that share their features: each group of so many has its own, so that the error of the features averages out over groups. None: all share theirs.
    pub samples_per_features: Option<usize>,
    /// Seed of prior functions and noise draws.
    pub seed: u64,
    /// Bytes that may be used to keep the kernel matrix, or an inducing-point problem's targets, in memory.
    pub cache_bytes: usize,
}

impl Default for PathwiseSettings {
    /// 10,000 steps, 64 samples in groups of 8 with 2,000 features each, 512 MiB of cache.
    fn default() -> Self {
        Self {
            budget: Budget { steps: 10_000, time: None, tolerance: 1e-3 },
            samples: 64,
            features: FeatureSettings::default(),
            samples_per_features: Some(8),
            seed: 0,
            cache_bytes: 512 << 20,
        }
    }
}

/// Fresh random features of a kernel at fixed points, for the regularisers of primal objectives.
pub struct KernelFeatures<'a, T: Real> {
    /// The kernel.
    pub kernel: &'a dyn Kernel<T>,
    /// The points, n x D.
    pub points: MatRef<'a, T>,
    /// Form and frequencies; the count is the caller's.
    pub settings: FeatureSettings,
}

impl<T: Real> FreshFeatures<T> for KernelFeatures<'_, T> {
    fn features(&self, count: usize, seed: u64) -> Result<Mat<T>, GpError> {
        let settings = FeatureSettings { count, ..self.settings };
        let features = RandomFeatures::new(self.kernel, self.points.ncols(), settings, Streams::new(seed))?;
        Ok(features.evaluate(self.points))
    }
}
