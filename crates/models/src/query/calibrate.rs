//! **Calibration after a fit**, by validation rows.

use crate::FitRecord;
use crate::calibration::{
    self, Before, Calibration, CalibrationRequest, Guarantee, JudgedRows, Learned, NetworkRecalibration,
    NumbersBy,
};
use crate::model::{Model, Source};
use crate::options::CalibrateName;
use crate::output::{Output, Target, noise_square};
use crate::rows::CheckedOn;
use crate::{ModelData, ModelError, Predicted, Predictive, Question, Truth};

impl Model {
    /// The same model, calibrated by validation rows with truths in place of those of its fit: intervals of numbers and counts, class probabilities and sets of classes. Costs one prediction of these rows.
    ///
    /// # Errors
    /// [`ModelError::Request`] for fewer than 19 rows, and for networks of other outputs than classes and numbers with additive noise; as [`Model::predictive`].
    pub fn calibrate(&self, data: &ModelData) -> Result<Self, ModelError> {
        let calibrate = CalibrateName::Conformal;
        let mut own = Self { calibration: Calibration::default(), ..self.clone() };
        let found = own.predictive(data, &Question { truth: true, ..Question::default() })?;
        let repeated = own.trained_on(data)?.map_or(0, |rows| rows.seen.len());
        let guarantee = Guarantee::of_unseen(false, repeated, false);
        let truths: Vec<f64> = match &found.truth {
            Some(Truth::Classes(classes)) => classes.iter().map(|class| *class as f64).collect(),
            Some(Truth::Values { values, .. }) => values.clone(),
            None => Vec::new(),
        };
        own.calibration = match &mut own.source {
            Source::Network(source) => {
                calibration::is_wanted(calibrate, &source.output.likelihood, Some(found.len()))?;
                let (record, learned) = NetworkRecalibration::learn((calibrate, guarantee), found, truths)?;
                source.record.recalibration = record;
                learned
            }
            Source::Table(source) => {
                calibration::check(calibrate, found.len(), false)?;
                let asked =
                    CalibrationRequest { calibrate, on: CheckedOn::HeldBack, guarantee, weighted: false };
                let learned = of_process(asked, &source.output, found, truths)?;
                match &mut source.record.fit {
                    FitRecord::Gaussian(fit) => {
                        fit.recalibration = learned.numbers.into_iter().next().flatten();
                    }
                    FitRecord::Likelihood(fit) => {
                        (fit.recalibration, fit.intervals) = (learned.classes, learned.tails);
                    }
                }
                learned.calibration
            }
        };
        Ok(own)
    }
}

/// What rows tell of a process that predicted them without calibration.
fn of_process(
    asked: CalibrationRequest,
    output: &Output,
    found: Predictive,
    truths: Vec<f64>,
) -> Result<Learned, ModelError> {
    let Some(own) = output.likelihood() else {
        let residuals = found.residuals(&truths).unwrap_or_default();
        let densities = found.log_density.unwrap_or_default();
        let nll = -densities.iter().sum::<f64>() / densities.len().max(1) as f64;
        return Calibration::learn_numbers(asked, [(Before::of_network(&residuals, nll), residuals)]);
    };
    let Predictive { mut predicted, width, .. } = found;
    let noise = noise_square(&own.target, &own.likelihood);
    if let (Some(noise), Predicted::Moments { variance, latent_variance, .. }) = (noise, &mut predicted) {
        variance.iter_mut().zip(latent_variance.iter()).for_each(|(v, latent)| *v = latent + noise);
    }
    let by = NumbersBy::Tails { counts: matches!(own.target, Target::Counts { .. }), noise };
    Calibration::learn(asked, &JudgedRows { predicted, width, truths, shares: own.marginal.clone() }, by)
}
