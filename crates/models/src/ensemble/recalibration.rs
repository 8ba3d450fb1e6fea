//! **What rows that no member has seen say of the mixture**: sets and a temperature of classes, factors of the standard deviations of numbers. What they say of a member alone, they do not say of the mixture.

use crate::calibration::{NetworkRecalibration, is_wanted, plan};
use crate::laplace::{CurvatureChoice, LaplaceRequest, NetworkModel};
use crate::options::CalibrateName;
use crate::{Files, Guarantee, ModelError, Truth};
use posterior_data::ReadOptions;
use posterior_notes::fixes::VALIDATION_DATA;

/// Refuses a recalibration that was asked for and that no rows can tell.
pub(super) fn check_calibration(request: &LaplaceRequest) -> Result<(), ModelError> {
    if request.calibrate == CalibrateName::Conformal && request.validation.data.is_empty() {
        return Err(ModelError::Request(format!(
            "--calibrate conformal goes by rows that no network of the folder has seen: give {VALIDATION_DATA} (rows that `posterior train` set aside may be other ones for each network)"
        )));
    }
    Ok(())
}

impl NetworkModel {
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
        let unseen = self.members().iter().all(|member| member.unseen().is_some());
        if source.data.is_empty() || request.calibrate == CalibrateName::None || !unseen {
            return Ok(self);
        }
        let held_out = |k: usize| self.members()[k].header().data.held_out.as_ref();
        let rows = held_out(0).map(|own| own.examples);
        if !is_wanted(request.calibrate, self.first().likelihood(), rows)? {
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
        let data = self.read_files(&files)?;
        announce(&format!("plan: {}", plan(data.len(), self.first().likelihood(), request.options.memory)?));
        let chosen = self.members().iter().any(|own| own.header().options.chooses_on_unseen());
        let chosen = chosen || request.curvature == CurvatureChoice::Auto;
        let repeated: usize = (0..self.members().len()).filter_map(held_out).map(|own| own.repeated).sum();
        let guarantee = Guarantee::of_unseen(chosen, repeated, false);
        let predictive = self.predict_as_fitted(&data, None)?;
        let truths = match &data.truth {
            Some(Truth::Classes(classes)) => classes.iter().map(|c| *c as f64).collect(),
            Some(Truth::Values { values, .. }) => values.clone(),
            None => Vec::new(),
        };
        (self.record.recalibration, self.calibration) =
            NetworkRecalibration::learn((request.calibrate, guarantee), predictive, truths)?;
        Ok(self)
    }
}
