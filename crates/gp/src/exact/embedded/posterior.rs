//! The posterior: rows go through the map first.

use crate::data::{check_finite, same_width};
use crate::exact::ExactPosterior;
use crate::{Averages, GpError, JointPrediction, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_kernels::{cross, diagonal};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linear::embedding::Embedding;

/// An exact process on what a map makes of the rows, conditioned on observations.
#[derive(Debug)]
pub struct EmbeddedPosterior {
    embedding: Box<dyn Embedding>,
    posterior: ExactPosterior,
}

impl Clone for EmbeddedPosterior {
    fn clone(&self) -> Self {
        Self { embedding: self.embedding.clone_box(), posterior: self.posterior.clone() }
    }
}

impl EmbeddedPosterior {
    /// A map, and the posterior of the rows that it was conditioned on, embedded.
    ///
    /// # Errors
    /// [`GpError::Shape`] when the posterior's inputs are not as wide as the map's embedding.
    pub fn new(embedding: Box<dyn Embedding>, posterior: ExactPosterior) -> Result<Self, GpError> {
        same_width("columns of the embedded rows", embedding.width(), posterior.data().inputs().ncols())?;
        Ok(Self { embedding, posterior })
    }

    /// The map.
    pub fn embedding(&self) -> &dyn Embedding {
        &*self.embedding
    }

    /// The posterior of the embedded rows.
    pub fn exact(&self) -> &ExactPosterior {
        &self.posterior
    }

    /// What the map makes of m rows, m x h.
    ///
    /// # Errors
    /// [`GpError::Shape`] for rows of another width, [`GpError::NotFinite`] for what is no number, before the map or behind it.
    pub fn embedded(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        same_width("columns of the inputs to predict", self.embedding.inputs(), x.ncols())?;
        check_finite("input", x)?;
        let embedded = self.embedding.embedded(x)?;
        check_finite("the embedding of", embedded.as_ref())?;
        Ok(embedded)
    }

    /// The least prior correlation of a training row with the first: near 1 where the map makes the same of all rows, and the process is a constant.
    pub fn smallest_correlation(&self) -> f64 {
        let (kernel, rows) = (self.posterior.model().kernel(), self.posterior.data().inputs());
        let (row, variances) = (cross(kernel, rows, rows.subrows(0, 1)), diagonal(kernel, rows));
        let of = |i: usize| row[(i, 0)] / (variances[0] * variances[i]).sqrt().max(f64::MIN_POSITIVE);
        (0..rows.nrows()).map(of).fold(1.0, f64::min)
    }
}

/// Costs are those of [`ExactPosterior`] and one pass of the rows through the map.
impl Posterior for EmbeddedPosterior {
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        self.posterior.predict(self.embedded(x)?.as_ref())
    }

    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        self.posterior.joint(self.embedded(x)?.as_ref())
    }

    fn mean_values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, GpError> {
        self.posterior.mean_values(self.embedded(x)?.as_ref())
    }

    fn averages(&self, x: MatRef<'_, f64>, each: usize) -> Result<Averages, GpError> {
        self.posterior.averages(self.embedded(x)?.as_ref(), each)
    }

    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        self.posterior.sample(self.embedded(x)?.as_ref(), target, count, rng)
    }
}
