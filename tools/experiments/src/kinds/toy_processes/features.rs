//! The posterior of a linear model in random features of the kernel, which stands for the process: cheap, and starved of variance when the data use up
//! its features.

use crate::kinds::prelude::*;
use crate::line::KnownLine;
use crate::tangent::{curvature, product, variances};
use posterior_gp::{GpError, Prediction};
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_linear::{LinearError, Prior};
use std::time::Instant;

/// What is left of it.
pub(super) struct FeaturePosterior {
    /// On the grid.
    pub(super) prediction: Prediction,
    /// How many directions the data decide.
    pub(super) effective_dimension: f64,
    /// Features, factorisation and prediction.
    pub(super) seconds: f64,
}

impl FeaturePosterior {
    /// Standard normal weights on `count` features. Cost `n d² + d³/3`.
    pub(super) fn new(line: &KnownLine, count: usize, seed: u64) -> Result<Self> {
        let (started, noise_variance) = (Instant::now(), line.noise_variance);
        let kernel = line.covariance.kernel::<f64>()?;
        let streams = Streams::new(seed).child("experiment/random-features", count as u64);
        let settings = FeatureSettings { count, ..FeatureSettings::default() };
        let features = RandomFeatures::new(&*kernel, 1, settings, streams).map_err(GpError::from)?;
        let y = line.data.targets();
        let targets: Vec<f64> = (0..y.nrows()).map(|i| y[(i, 0)] / noise_variance).collect();
        let phi = features.evaluate(line.data.inputs());
        let curvature = curvature(phi.as_ref(), noise_variance)?;
        let prior = Prior::scalar(features.count(), 1.0)?;
        let posterior = curvature.condition(&prior, 1.0).map_err(LinearError::from)?;
        let weights = posterior.solve(&product(phi.transpose(), &targets));
        let test = features.evaluate(line.points.as_ref());
        let mean = product(test.as_ref(), &weights);
        let prediction = Prediction {
            mean: Mat::from_fn(mean.len(), 1, |i, _| mean[i]),
            latent_variance: variances(&posterior, test.as_ref()),
            noise_variance,
            clipped: 0,
        };
        let terms = curvature.terms(&prior, 1.0).map_err(LinearError::from)?;
        let effective_dimension = terms.effective_dimensions.iter().sum();
        Ok(Self { prediction, effective_dimension, seconds: started.elapsed().as_secs_f64() })
    }
}
