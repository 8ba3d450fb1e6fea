//! What the loop learns from.

use super::EvidenceCurvature;
use crate::mode::Predictor;
use crate::{LinearError, Prior};

/// A linear model whose evidence is maximised.
pub trait EvidenceModel {
    /// The curvature, at unit noise factor.
    fn curvature(&self) -> &dyn EvidenceCurvature;

    /// The factor on the curvature (and on the noise precision) that has been learned so far; 1 for models that learn none.
    fn noise_factor(&self) -> f64 {
        1.0
    }

    /// The posterior mode of the weights under this prior, searched from `start`.
    ///
    /// # Errors
    /// What the search refuses.
    fn mode(&mut self, prior: &Prior, start: &[f64], predictor: Predictor) -> Result<Vec<f64>, LinearError>;

    /// `log p(y | w)`, constants included.
    ///
    /// # Errors
    /// Those of evaluating the features.
    fn log_likelihood(&self, weights: &[f64], predictor: Predictor) -> Result<f64, LinearError>;

    /// The noise factor that maximises the evidence for fixed weights and effective dimension; `None` for models that learn none.
    ///
    /// # Errors
    /// Those of evaluating the features.
    fn best_noise_factor(
        &self,
        weights: &[f64],
        effective_dimension: f64,
        predictor: Predictor,
    ) -> Result<Option<f64>, LinearError> {
        let _ = (weights, effective_dimension, predictor);
        Ok(None)
    }

    /// Sets the noise factor. Called only with what [`EvidenceModel::best_noise_factor`] gave, kept within its limits.
    fn set_noise_factor(&mut self, factor: f64) {
        let _ = factor;
    }
}
