//! A low-rank model seen from function space, and rows that one is trained on.

use crate::{GpError, JointPrediction, Observations, Posterior, Prediction};
use faer::{Mat, MatRef};
use posterior_linalg::random::ChaCha8Rng;
use posterior_linear::LinearError;
use posterior_linear::low_rank::{
    LowRankData, LowRankPosterior, LowRankRows, ObservedRows, OwnedRows, RowBlock, WeightMarginals,
};
use std::ops::Range;

fn noise_variance(posterior: &LowRankPosterior) -> Result<f64, GpError> {
    let likelihood = posterior.likelihood();
    let refused = crate::inducing::InducingError::NotGaussian { likelihood: likelihood.name() };
    likelihood.shared_noise_variance().ok_or(refused.into())
}

impl Observations {
    /// Itself, as learned features see it.
    pub fn low_rank(&self) -> LowRankData<'_> {
        let (noise, weights, offsets) = (self.noise_variances(), self.weights(), self.offsets());
        let observed = ObservedRows { targets: self.targets(), noise, weights, offsets };
        LowRankData { inputs: self.inputs(), observed }
    }
}

impl LowRankRows for Observations {
    fn row_count(&self) -> usize {
        self.rows()
    }

    fn rows_in(&self, rows: Range<usize>) -> Result<RowBlock<'_>, LinearError> {
        Ok(RowBlock::View(self.low_rank().slice(rows)))
    }

    fn rows_at(&self, rows: &[usize]) -> Result<RowBlock<'_>, LinearError> {
        Ok(RowBlock::Copy(self.low_rank().owned(rows)))
    }
}

impl From<Observations> for OwnedRows {
    fn from(rows: Observations) -> Self {
        let (inputs, targets, [noise, weights, offsets]) = rows.into_parts();
        Self { inputs, targets, noise, weights, offsets }
    }
}

/// Answers for Gaussian noise of one target; [`LowRankPosterior::latent`] is for every likelihood.
impl Posterior for LowRankPosterior {
    fn predict(&self, x: MatRef<'_, f64>) -> Result<Prediction, GpError> {
        let noise_variance = noise_variance(self)?;
        let WeightMarginals { mean, variance } = self.latent(x)?;
        Ok(Prediction {
            mean,
            latent_variance: variance.col_as_slice(0).to_vec(),
            noise_variance,
            clipped: 0,
        })
    }

    fn joint(&self, x: MatRef<'_, f64>) -> Result<JointPrediction, GpError> {
        noise_variance(self)?;
        let (mean, covariance) = self.joint(x, 0)?;
        Ok(JointPrediction { mean, covariance })
    }

    /// Draws are functions of drawn weights: nothing is factored, nothing is added.
    fn sample(
        &self,
        x: MatRef<'_, f64>,
        target: usize,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<(Mat<f64>, f64), GpError> {
        let latents = self.distribution().latents();
        if target >= latents {
            let (what, expected) = ("functions of the model", target + 1);
            return Err(LinearError::Shape { what, expected, found: latents }.into());
        }
        Ok((self.draws(x, target, count, rng)?, 0.0))
    }
}
