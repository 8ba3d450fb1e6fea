//! **What rows that no member has seen say of the mixture**: sets and a temperature of classes, factors of the standard deviations of numbers. What they say of a member alone, they do not say of the mixture.

use crate::calibration::{NetworkRecalibration, is_wanted, plan};
use crate::laplace::{CurvatureChoice, LaplaceRequest};
use crate::model::Source;
use crate::options::CalibrateName;
use crate::{Files, Guarantee, Model, ModelError, Truth};
use posterior_data::ReadOptions;
use posterior_notes::fixes::VALIDATION_DATA;

/// Refuses a recalibration that was asked for and that no rows can tell.
pub(crate) fn check_calibration(request: &LaplaceRequest) -> Result<(), ModelError> {
    if request.validation.calibrate == CalibrateName::Conformal && request.validation.data.is_empty() {
        return Err(ModelError::Request(format!(
            "--calibrate conformal goes by rows that no network of the folder has seen: give {VALIDATION_DATA} (rows that `posterior train` set aside may be other ones for each network)"
        )));
    }
    Ok(())
}

impl Model {
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
        let Some(own) = self.networks() else { return Ok(self) };
        let members = own.members();
        let unseen = members.iter().all(|member| member.unseen().is_some());
        if source.data.is_empty() || request.validation.calibrate == CalibrateName::None || !unseen {
            return Ok(self);
        }
        let held_out = |k: usize| members[k].header().data.held_out.as_ref();
        let rows = held_out(0).map(|held| held.examples);
        if !is_wanted(request.validation.calibrate, own.first().likelihood(), rows)? {
            return Ok(self);
        }
        let text = request.data.text;
        let files = Files {
            data: &source.data,
            inputs: &request.data.inputs,
            labels: &source.labels,
            truth: true,
            reading: ReadOptions { text, ..ReadOptions::limited(request.limits.memory) },
        };
        let data = own.read_files(&files)?;
        announce(&format!("plan: {}", plan(data.len(), own.first().likelihood(), request.limits.memory)?));
        let chosen = members.iter().any(|member| member.header().options.chooses_on_unseen());
        let chosen = chosen || request.curvature == CurvatureChoice::Auto;
        let repeated: usize = (0..members.len()).filter_map(held_out).map(|held| held.repeated).sum();
        let guarantee = Guarantee::of_unseen(chosen, repeated, false);
        let predictive = own.predict_as_fitted(&data, None)?;
        let truths = match &data.truth {
            Some(Truth::Classes(classes)) => classes.iter().map(|c| *c as f64).collect(),
            Some(Truth::Values { values, .. }) => values.clone(),
            None => Vec::new(),
        };
        let (recalibration, calibration) =
            NetworkRecalibration::learn((request.validation.calibrate, guarantee), predictive, truths)?;
        if let Source::Network(source) = &mut self.source {
            (source.record.recalibration, self.calibration) = (recalibration, calibration);
        }
        Ok(self)
    }
}
