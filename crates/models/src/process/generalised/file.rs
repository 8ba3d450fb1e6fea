//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::header::GeneralisedHeader;
use super::{GeneralisedModel, Target, events};
use crate::calibration::{Calibration, Records};
use crate::method::{self, Stored, kind};
use crate::process::Header;
use crate::rows::TrainingRows;
use posterior_store::{Container, StoreError, Tensors};
use std::path::Path;

impl GeneralisedModel {
    /// Writes the file in one atomic step. Its size is that of a process's file for each latent function (gaussianised), of inducing points and a root for each (variational), or of a factor for each (laplace).
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.container().write(path)
    }

    /// What its file holds.
    pub(crate) fn container(&self) -> Container<GeneralisedHeader> {
        let mut tensors = Tensors::default();
        self.predictor.write(&mut tensors);
        self.training.write(&mut tensors);
        self.calibration.write(&mut tensors);
        Container { header: self.header.clone(), tensors }
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    pub(crate) fn from_container(container: Container<GeneralisedHeader>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        check(&header).map_err(|e| tensors.corrupt(e))?;
        let training = TrainingRows::read(&mut tensors)?;
        let (classes, tails) = (header.fit.recalibration.as_ref(), header.fit.intervals.as_ref());
        let records = Records { classes, tails, ..Records::default() };
        let calibration = Calibration::read(records, 1, &mut tensors)?;
        let predictor = method::read(header.stored(), &mut tensors)?;
        if let Some((name, _)) = tensors.iter().next() {
            return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
        }
        Ok(Self { header, predictor, training, calibration })
    }
}

/// What numbers of a header must be, whoever wrote it.
fn check(header: &GeneralisedHeader) -> Result<(), String> {
    let d = header.schema.features.len();
    let standard = &header.standardisation;
    if header.input_ranges.0.iter().any(|range| range.input >= d) {
        return Err("its ranges do not fit its features".into());
    }
    if standard.feature_means.len() != d
        || standard.feature_scales.len() != d
        || !standard.feature_scales.iter().all(|s| *s > 0.0)
    {
        return Err("its standardisation does not fit its features".into());
    }
    let outputs = header.likelihood.outputs();
    let (functions, numbers) = match &header.target {
        Target::Classes { names } if names.count() == 2 && outputs == 1 => (1, 2),
        Target::Classes { names } => (names.count(), names.count()),
        Target::Counts { .. } => (1, 2),
        Target::Events { window, events } => {
            let sound = |[low, high]: &[f64; 2]| low.is_finite() && high.is_finite() && low < high;
            if window.len() != d || !window.iter().all(sound) || *events == 0 {
                return Err("its window is not one of its features".into());
            }
            (1, 2)
        }
        Target::Numbers { mean, scale } if mean.is_finite() && *scale > 0.0 && scale.is_finite() => (1, 2),
        Target::Numbers { .. } => return Err("the units of its target are no units".into()),
    };
    if outputs != functions || header.marginal.len() != numbers {
        return Err("its likelihood is not that of its target".into());
    }
    Ok(())
}

impl GeneralisedHeader {
    /// What a reader of its predictor is given.
    fn stored(&self) -> Stored<'_> {
        let fit = &self.fit;
        let kind = match self.method.as_str() {
            "gaussianised" if fit.stand_ins.is_some() => kind::INDEPENDENT,
            "variational" if fit.features.is_some() => kind::LOW_RANK,
            "variational" if fit.variation.is_some() => kind::GENERALISED,
            "variational" => kind::INDUCING,
            "laplace process" => kind::LAPLACE,
            _ => "",
        };
        let likelihood = match kind {
            kind::LOW_RANK => events::likelihood(&self.target, &self.likelihood),
            _ => self.likelihood.clone_box(),
        };
        Stored {
            kind,
            method: &self.method,
            schema: &self.schema,
            kernel: &self.kernel,
            mean: self.mean,
            rows: self.rows,
            hyperparameters: &self.hyperparameters,
            likelihood: Some(likelihood),
            noise_floor: 0.0,
            cholesky: Default::default(),
            inducing: fit.bound.as_ref().map(|own| own.inducing),
            solved: None,
            deep: fit.features.as_ref().map(|own| &own.learned),
            level: fit.features.as_ref().map(|own| own.level),
            variation: fit.variation.as_ref().map(|own| &own.learned),
            functions: fit
                .stand_ins
                .as_ref()
                .map(|own| (&own.offsets[..], own.scale, own.members.iter().map(Header::stored).collect())),
        }
    }
}
