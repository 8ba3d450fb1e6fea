//! A process on a table, as the parts of its [`Model`](crate::Model).

use crate::calibration::Calibration;
use crate::output::NoiseProcess;
use crate::{
    GaussianOutput, Intervals, ModelError, Output, Predictor, ProcessRecord, TableInputs, TableSource,
    TrainingRows,
};
use std::sync::Arc;

/// A process on a table, as the parts of its [`Model`](crate::Model).
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Rows of a table as standardised inputs.
    pub(crate) inputs: &'a TableInputs,
    /// What predicts the latent functions, in standard units.
    pub(crate) predictor: &'a Arc<dyn Predictor>,
    /// What is observed of them.
    pub(crate) output: &'a Output,
    /// What rows that it was judged on say of its predictions.
    pub(crate) calibration: &'a Calibration,
    /// Not known once rows of a stream were learned.
    pub(crate) training: &'a TrainingRows,
    /// How it came about.
    pub(crate) record: &'a ProcessRecord,
}

impl<'a> Process<'a> {
    /// What it reads.
    pub fn inputs(&self) -> &'a TableInputs {
        self.inputs
    }

    /// What is observed of its functions.
    pub fn output(&self) -> &'a Output {
        self.output
    }

    /// How it came about.
    pub fn record(&self) -> &'a ProcessRecord {
        self.record
    }

    /// What stands in its file besides arrays.
    pub fn header(&self) -> TableSource {
        let (inputs, output, record) = (self.inputs.clone(), self.output.clone(), self.record.clone());
        TableSource { inputs, output, record }
    }

    /// Which rows it was trained on; not known once rows of a stream were learned.
    pub fn training(&self) -> &'a TrainingRows {
        self.training
    }

    /// How wide intervals of observations are, where they were recalibrated.
    pub fn intervals(&self) -> Option<Intervals> {
        self.calibration.intervals().pop().flatten()
    }

    /// What predicts the functions, in standard units.
    pub fn predictor(&self) -> &'a dyn Predictor {
        &**self.predictor
    }

    /// Its output, where that is numbers with Gaussian noise.
    ///
    /// # Errors
    /// [`ModelError::Usage`] for other models.
    pub(crate) fn numbers(&self) -> Result<&'a GaussianOutput, ModelError> {
        self.output.gaussian().ok_or_else(|| {
            ModelError::Usage(
                "this is of numbers with Gaussian noise, and the model is of another likelihood: ask for its predictive distributions".into(),
            )
        })
    }

    /// What predicts heteroscedastic noise, where that was learned.
    pub(crate) fn heteroscedastic_noise(&self) -> Option<&'a NoiseProcess> {
        self.output.gaussian()?.process.as_deref()
    }
}
