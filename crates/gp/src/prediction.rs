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

/// Gaussians of a function averaged over each of some runs of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Averages {
    /// Posterior mean of each average, g x t.
    pub mean: Mat<f64>,
    /// Posterior variance of each average of the latent function (g), shared by the targets.
    pub variance: Vec<f64>,
}

/// The mean of consecutive runs of `each` rows, column by column.
pub(crate) fn run_means(values: MatRef<'_, f64>, each: usize) -> Mat<f64> {
    Mat::from_fn(values.nrows() / each, values.ncols(), |g, t| {
        values.col(t).subrows(g * each, each).iter().sum::<f64>() / each as f64
    })
}

/// The number of runs of `each` rows that `rows` are.
///
/// # Errors
/// [`GpError::Shape`] when rows are left over, or runs are empty.
pub(crate) fn runs_of(rows: usize, each: usize) -> Result<usize, GpError> {
    if each == 0 || !rows.is_multiple_of(each) {
        let expected = rows.div_ceil(each.max(1)) * each.max(1);
        return Err(GpError::Shape { what: "rows of whole runs", expected, actual: rows });
    }
    Ok(rows / each)
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

    /// Posterior means alone at the rows of `x`, m x t, which some methods have for much less than variances.
    ///
    /// # Errors
    /// As [`Posterior::predict`].
    fn mean_values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        Ok(self.predict(x)?.mean)
    }

    /// The latent function averaged over each run of `each` consecutive rows of `x` (g · each x D): `var = 1ᵀ Σ 1 / each²` of the run's covariance Σ. Cost: a joint prediction of each run.
    ///
    /// # Errors
    /// As [`Posterior::predict`], and when rows are no whole number of runs.
    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Averages, GpError> {
        let runs = runs_of(x.nrows(), each)?;
        let mut variance = Vec::with_capacity(runs);
        let mut means: Vec<Mat<f64>> = Vec::with_capacity(runs);
        for run in 0..runs {
            let JointPrediction { mean, covariance } = self.joint(x.subrows(run * each, each))?;
            let sum: f64 = (0..each).map(|j| covariance.col(j).iter().sum::<f64>()).sum();
            variance.push((sum / (each * each) as f64).max(0.0));
            means.push(run_means(mean.as_ref(), each));
        }
        let targets = means.first().map_or(0, Mat::ncols);
        Ok(Averages { mean: Mat::from_fn(runs, targets, |g, t| means[g][(0, t)]), variance })
    }

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
