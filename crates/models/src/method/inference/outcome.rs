//! What an inference leaves behind.

use super::check::Judged;
use super::search::SearchRecord;
use crate::options::InferenceName;
use crate::{
    BoundSummary, FeatureSummary, GaussianLabelSummary, ModeSummary, ModelError, Predictor, TriedInference,
    VariationSummary,
};
use posterior_likelihoods::OutputLikelihood;
use std::sync::Arc;

/// An inference, or what stood in its way.
pub(crate) type Inference = Result<Inferred, ModelError>;

/// What an inference leaves behind.
pub(crate) struct Inferred {
    pub(crate) inference: InferenceName,
    pub(crate) predictor: Arc<dyn Predictor>,
    pub(crate) likelihood: OutputLikelihood,
    pub(crate) told: SearchRecord,
    /// Of rows that are predicted from the others.
    pub(crate) judged: Option<Judged>,
    pub(crate) gaussian_labels: Option<GaussianLabelSummary>,
    pub(crate) bound: Option<BoundSummary>,
    pub(crate) mode: Option<ModeSummary>,
    pub(crate) features: Option<FeatureSummary>,
    pub(crate) variation: Option<VariationSummary>,
}

impl Inferred {
    /// Without what only some inferences have.
    pub(crate) fn new(
        inference: InferenceName,
        predictor: Arc<dyn Predictor>,
        likelihood: OutputLikelihood,
        told: SearchRecord,
    ) -> Self {
        let (judged, gaussian_labels, bound, mode, features, variation) =
            (None, None, None, None, None, None);
        Self {
            inference,
            predictor,
            likelihood,
            told,
            judged,
            gaussian_labels,
            bound,
            mode,
            features,
            variation,
        }
    }

    /// NLL of rows that are predicted from the others; infinite where that is not known.
    pub(crate) fn nll(&self) -> f64 {
        self.judged.as_ref().map_or(f64::INFINITY, |own| own.check.scores.nll)
    }

    pub(crate) fn scored(&self, seconds: f64) -> TriedInference {
        TriedInference {
            inference: self.inference,
            scores: self.judged.as_ref().map(|own| own.check.scores),
            seconds,
        }
    }
}
