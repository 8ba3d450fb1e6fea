//! What an inference leaves behind.

use super::check::Judged;
use super::header::{
    BoundSummary, FeatureSummary, ModeSummary, StandInSummary, TriedInference, VariationSummary,
};
use super::searching::Told;
use crate::options::InferenceName;
use crate::{ModelError, Predictor};
use posterior_likelihoods::OutputLikelihood;
use std::sync::Arc;

/// An inference, or what stood in its way.
pub(crate) type Inference = Result<Inferred, ModelError>;

/// What an inference leaves behind.
pub(crate) struct Inferred {
    pub(super) inference: InferenceName,
    pub(super) predictor: Arc<dyn Predictor>,
    pub(super) likelihood: OutputLikelihood,
    pub(super) told: Told,
    /// Of rows that are predicted from the others.
    pub(super) judged: Option<Judged>,
    pub(super) stand_ins: Option<StandInSummary>,
    pub(super) bound: Option<BoundSummary>,
    pub(super) mode: Option<ModeSummary>,
    pub(super) features: Option<FeatureSummary>,
    pub(super) variation: Option<VariationSummary>,
}

impl Inferred {
    /// Without what only some inferences have.
    pub(super) fn new(
        inference: InferenceName,
        predictor: Arc<dyn Predictor>,
        likelihood: OutputLikelihood,
        told: Told,
    ) -> Self {
        let (judged, stand_ins, bound, mode, features, variation) = (None, None, None, None, None, None);
        Self { inference, predictor, likelihood, told, judged, stand_ins, bound, mode, features, variation }
    }

    /// NLL of rows that are predicted from the others; infinite where that is not known.
    pub(super) fn nll(&self) -> f64 {
        self.judged.as_ref().map_or(f64::INFINITY, |own| own.check.scores.nll)
    }

    pub(super) fn scored(&self, seconds: f64) -> TriedInference {
        TriedInference {
            inference: self.inference,
            scores: self.judged.as_ref().map(|own| own.check.scores),
            seconds,
        }
    }
}
