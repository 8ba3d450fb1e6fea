//! **What rows that no member has seen say of the mixture**: sets and a temperature of classes, factors of the standard deviations of numbers. What they say of a member alone, they do not say of the mixture.

use super::EnsembleModel;
use crate::laplace::recalibration::{Calibration, is_wanted, plan, recalibrated, shrink};
use crate::laplace::{CurvatureChoice, LaplaceRequest, NetworkRecalibration};
use crate::options::CalibrateName;
use crate::{Files, Guarantee, Model, ModelData, ModelError, Predicted, Predictive, Question, Truth};
use posterior_data::ReadOptions;
use posterior_laplace::UnseenPredictions;
use posterior_likelihoods::Prediction;

impl EnsembleModel {
    /// Refuses a recalibration that was asked for and that no rows can tell.
    pub(super) fn check_calibration(request: &LaplaceRequest) -> Result<(), ModelError> {
        if request.calibrate == CalibrateName::Conformal && request.validation.data.is_empty() {
            return Err(ModelError::Request(
                "--calibrate conformal goes by rows that no network of the folder has seen: give --validation-data (rows that `posterior train` set aside may be other ones for each network)".into(),
            ));
        }
        Ok(())
    }

    /// Recalibrated by the request's validation rows, where it has some, none of the members has seen them, and it wants that.
    ///
    /// # Errors
    /// What was asked for and cannot be had; rows that cannot be read; not enough memory for their predictions.
    pub(super) fn recalibrated(
        mut self,
        request: &LaplaceRequest,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Self, ModelError> {
        let source = &request.validation;
        let unseen = self.members.iter().all(|member| member.unseen().is_some());
        if source.data.is_empty() || request.calibrate == CalibrateName::None || !unseen {
            return Ok(self);
        }
        let held_out = |k: usize| self.members[k].header().data.held_out.as_ref();
        let rows = held_out(0).map(|own| own.examples);
        if !is_wanted(request, self.first().likelihood(), rows)? {
            return Ok(self);
        }
        let text = request.data.text;
        let files = Files {
            data: &source.data,
            inputs: &request.data.inputs,
            labels: &source.labels,
            truth: true,
            reading: ReadOptions { text, ..ReadOptions::limited(request.options.memory) },
        };
        let data = Model::read(self.first(), &files)?;
        announce(&format!("plan: {}", plan(data.len(), self.first().likelihood(), request.options.memory)?));
        let chosen = |k: usize| self.members[k].header().options.chooses_on_unseen();
        let members = 0..self.members.len();
        let guarantee = if request.curvature == CurvatureChoice::Auto || members.clone().any(chosen) {
            Guarantee::Chosen
        } else if members.clone().any(|k| held_out(k).is_some_and(|own| own.repeated > 0)) {
            Guarantee::Repeated
        } else {
            Guarantee::Holds
        };
        let predictive = self.mixed(&data, &Question::default())?;
        let found = recalibrated(request.calibrate, unseen_predictions(predictive, &data), guarantee)?;
        (self.recalibration, self.calibration) = found;
        Ok(self)
    }

    /// Whether deviations are multiplied with anything.
    pub(super) fn has_factors(&self) -> bool {
        !Calibration::factors(self.recalibration.as_ref()).is_empty()
    }

    /// Whether each number of an example has intervals by rows: a mixture of Gaussians has no simple quantiles of its own.
    pub(super) fn has_intervals(&self) -> bool {
        matches!(&self.recalibration, Some(NetworkRecalibration::Numbers(all)) if all.iter().all(Option::is_some))
    }

    /// The mixture as its rows have recalibrated it, with sets of classes of these levels; as its members have it where predictions are asked for in another way than at the fit.
    pub(super) fn as_recalibrated(
        &self,
        data: &ModelData,
        question: &Question,
    ) -> Result<Predictive, ModelError> {
        let mut out = self.mixed(data, question)?;
        if question.integration.is_some() {
            return Ok(out);
        }
        let known = self.recalibration.as_ref();
        let factors = Calibration::factors(known);
        // Where targets are moved to follows from the means.
        if let (false, Predicted::Moments { mean, .. }, Some(Truth::Values { values, width })) =
            (factors.is_empty(), &out.predicted, &data.truth)
        {
            let mut values = values.clone();
            shrink(mean, &mut values, &factors);
            let moved = ModelData { truth: Some(Truth::Values { values, width: *width }), ..data.clone() };
            out.log_density = self.mixed(&moved, question)?.log_density;
        }
        self.calibration.apply(known, &question.sets, &mut out);
        Ok(out)
    }
}

/// Predictions of examples with truths, one by one.
fn unseen_predictions(predictive: Predictive, data: &ModelData) -> UnseenPredictions {
    let width = predictive.width.max(1);
    let predictions = match predictive.predicted {
        Predicted::Classes(p) => p.chunks_exact(width).map(|p| Prediction::Classes(p.to_vec())).collect(),
        Predicted::Events(p) => p.chunks_exact(width).map(|p| Prediction::Events(p.to_vec())).collect(),
        Predicted::Moments { mean, variance, latent_variance } => {
            let own = |of: &[f64], i: usize| of[i * width..(i + 1) * width].to_vec();
            (0..mean.len() / width)
                .map(|i| Prediction::Moments {
                    mean: own(&mean, i),
                    variance: own(&variance, i),
                    latent_variance: own(&latent_variance, i),
                })
                .collect()
        }
    };
    let targets = match &data.truth {
        Some(Truth::Classes(classes)) => classes.iter().map(|c| *c as f64).collect(),
        Some(Truth::Values { values, .. }) => values.clone(),
        None => Vec::new(),
    };
    UnseenPredictions { predictions, targets }
}
