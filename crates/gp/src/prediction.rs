//! What every posterior over functions answers.

use crate::GpError;
use faer::{Mat, MatRef};
use posterior_linalg::random::ChaCha8Rng;

/// Gaussian marginals at m points for t targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Posterior mean, m x t, in units of the targets.
    pub mean: Mat<f64>,
    /// Variance of the latent function at each point (m), shared by the targets, in squared units.
    pub latent_variance: Vec<f64>,
    /// Variance of the observation noise, to be added for new observations.
    pub noise_variance: f64,
    /// Latent variances that rounding had made negative and that were raised to 0.
    pub clipped: usize,
}

impl Prediction {
    /// Variance of a new observation at each point (m): latent variance plus noise.
    pub fn observed_variance(&self) -> Vec<f64> {
        self.latent_variance.iter().map(|v| v + self.noise_variance).collect()
    }
}

/// A Gaussian over the latent function at m points jointly.
#[derive(Clone, Debug, PartialEq)]
pub struct JointPrediction {
    /// Posterior mean, m x t.
    pub mean: Mat<f64>,
    /// Posterior covariance of the latent function, m x m, shared by the targets.
    pub covariance: Mat<f64>,
}

/// A posterior over functions.
pub trait Posterior {
    /// Marginal means and variances at the rows of `x` (m x D).
    ///
    /// # Errors
    /// [`GpError`] when the width is wrong or a value is not finite.
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError>;

    /// The joint Gaussian at the rows of `x` (m x D): `8m²` bytes, hence a request of its own.
    ///
    /// # Errors
    /// As [`Posterior::predict`].
    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError>;

    /// `count` draws of the latent function of target `target` at the rows of `x`: m x count, with the
    /// jitter that their covariance needed.
    ///
    /// # Errors
    /// As [`Posterior::predict`], and when the covariance cannot be factored.
    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError>;
}
