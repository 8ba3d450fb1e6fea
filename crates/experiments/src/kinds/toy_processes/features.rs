//! The posterior of a linear model in random features of the kernel, which stands for the process: cheap, and starved of variance when the data use up
//! its features.

use super::problem::Problem;
use crate::ExperimentError;
use faer::Mat;
use posterior_gp::{GpError, Prediction};
use posterior_kernels::features::{FeatureSettings, RandomFeatures};
use posterior_linalg::random::Streams;
use posterior_linear::exact::{ExactOptions, ExactPosterior};
use posterior_linear::noise::Noise;
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
    pub(super) fn new(
        problem: &Problem,
        count: usize,
        noise_variance: f64,
        seed: u64,
    ) -> Result<Self, ExperimentError> {
        let started = Instant::now();
        let kernel = problem.covariance.kernel::<f64>()?;
        let streams = Streams::new(seed).child("experiment/random-features", count as u64);
        let settings = FeatureSettings { count, ..FeatureSettings::default() };
        let features = RandomFeatures::new(&*kernel, 1, settings, streams).map_err(GpError::from)?;
        let y = problem.data.targets();
        let targets: Vec<f64> = (0..y.nrows()).map(|i| y[(i, 0)]).collect();
        let posterior = ExactPosterior::new(
            features.evaluate(problem.data.inputs()).as_ref(),
            &targets,
            &Noise::uniform(noise_variance.recip(), 1)?,
            &vec![1.0; features.count()],
            ExactOptions::default(),
        )?;
        let latent = posterior.predict(features.evaluate(problem.points.as_ref()).as_ref())?;
        let prediction = Prediction {
            mean: Mat::from_fn(latent.mean.len(), 1, |i, _| latent.mean[i]),
            latent_variance: latent.variance(),
            noise_variance,
            clipped: latent.clipped,
        };
        let effective_dimension = posterior.effective_dimension();
        Ok(Self { prediction, effective_dimension, seconds: started.elapsed().as_secs_f64() })
    }
}
