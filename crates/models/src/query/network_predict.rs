//! Predictions of a model and, for comparison, of its plain network.

use crate::method::PIECE;
use crate::model::Networks;
use crate::{Batch, ModelData, ModelError, Predictive, Want};
use posterior_likelihoods::Integration;
use posterior_linalg::tiles::pieces;

impl Networks<'_> {
    /// Predicts examples, recalibrated where the model is; with another integration than the model's own, if one is given. Where the data hold truths, their log densities are computed on the way.
    ///
    /// Memory: the covariances of 512 examples at a time, and the results.
    ///
    /// # Errors
    /// When inputs do not fit or the integration does not suit the likelihood.
    pub fn predict(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<Predictive, ModelError> {
        self.predict_with_sets(data, integration, &[])
    }

    /// As [`Self::predict`], with sets of classes of these levels, where rows that no network has seen tell them.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn predict_with_sets(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
        levels: &[f64],
    ) -> Result<Predictive, ModelError> {
        // No question names the several ways in which the members of an ensemble average.
        let own = (!self.is_ensemble()).then_some(self.output.integration);
        let Some(known) = self.calibration.under(integration, own) else {
            return self.predict_as_fitted(data, integration);
        };
        let mut out = self.predict_with(data, (false, integration), known.factors())?;
        known.apply(levels, &mut out);
        Ok(out)
    }

    /// As [`Self::predict`], before rows that no network has seen recalibrate anything.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn predict_as_fitted(
        &self,
        data: &ModelData,
        integration: Option<Integration>,
    ) -> Result<Predictive, ModelError> {
        self.predict_with(data, (false, integration), &[])
    }

    /// What the network alone predicts: its outputs taken at their word, with the best constant noise on the training data.
    ///
    /// # Errors
    /// When inputs do not fit.
    pub fn predict_plain(&self, data: &ModelData) -> Result<Predictive, ModelError> {
        self.predict_with(data, (true, None), &[])
    }

    fn predict_with(
        &self,
        data: &ModelData,
        (plain, integration): (bool, Option<Integration>),
        factors: &[f64],
    ) -> Result<Predictive, ModelError> {
        let plain = plain || self.is_plain();
        let rule = self.output.rule((plain, integration), factors)?;
        let scored = data.truth.is_some();
        let want = Want { integration, scored, plain, ..Want::default() };
        let mut out = rule.empty(scored);
        for range in pieces(data.len(), PIECE) {
            let piece = data.selected(&range.collect::<Vec<_>>())?;
            let latent = self.predictor.latent(Batch::Arrays(&piece.inputs), &want)?;
            rule.add(&latent, piece.truth.as_ref(), &mut out)?;
        }
        Ok(out)
    }
}
