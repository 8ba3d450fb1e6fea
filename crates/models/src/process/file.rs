//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::{Header, ProcessModel, Solver};
use crate::calibration::{Calibration, Records};
use crate::method::{self, Stored, kind};
use crate::options::KernelPrecision;
use crate::rows::TrainingRows;
use posterior_data::TransformedTarget;
use posterior_store::{Container, StoreError, Tensors};
use std::path::Path;
use std::sync::Arc;

impl ProcessModel {
    /// Writes the file in one atomic step. Its size is about `4n² + 8n(D + 4)` bytes for the exact method: the packed factor, inputs, targets, weights, fingerprints;
    /// `8n(D + 1)` and the weights of mean and samples for iterative ones; `8m²` for bounds; each with `8n` for the fingerprints of the rows.
    ///
    /// # Errors
    /// [`StoreError::Write`]; an older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.container().write(path)
    }

    /// What its file holds.
    pub(crate) fn container(&self) -> Container<Header> {
        let mut tensors = Tensors::default();
        self.predictor.write(&mut tensors);
        self.training.write(&mut tensors);
        if let Some(noise) = &self.noise {
            super::noise::tensors(noise, &mut tensors);
        }
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

    /// As [`ProcessModel::load`] for bytes in memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`ProcessModel::load`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::parse(bytes, path)?)
    }

    pub(crate) fn from_container(container: Container<Header>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        let d = header.schema.features.len();
        let standard = &header.standardisation;
        let training = TrainingRows::read(&mut tensors)?;
        let numbers = std::slice::from_ref(&header.fit.recalibration);
        let records = Records { numbers, ..Records::default() };
        let calibration = Calibration::read(records, 1, &mut tensors)?;
        if header.input_ranges.0.iter().any(|range| range.input >= d) {
            return Err(tensors.corrupt("its ranges do not fit its features"));
        }
        let positive = standard.feature_scales.iter().chain([&standard.target_scale]).all(|s| *s > 0.0);
        if standard.feature_means.len() != d || standard.feature_scales.len() != d || !positive {
            return Err(tensors.corrupt("its standardisation does not fit its features"));
        }
        let sound = |own: &TransformedTarget| own.by.is_sound() && own.scale > 0.0 && own.mean.is_finite();
        if !standard.transform.as_deref().is_none_or(sound) {
            return Err(tensors.corrupt("the map of its target is none"));
        }
        let noise = match &header.noise {
            Some(own) => {
                Some(Arc::new(super::noise::read(own, &header.schema.feature_names(), &mut tensors)?))
            }
            None => None,
        };
        let predictor = method::read(header.stored(), &mut tensors)?;
        Ok(Self { header, predictor, training, calibration, noise })
    }
}

impl Header {
    /// What a reader of its predictor is given.
    pub(super) fn stored(&self) -> Stored<'_> {
        let solved = self.fit.scalable.as_ref();
        let kind = match solved.map(|own| (&own.solver, own.precision)) {
            _ if self.method == "exact" => kind::EXACT,
            Some((Solver::Collapsed | Solver::Stochastic { .. }, _)) => kind::INDUCING,
            Some((Solver::Features, _)) => match solved.and_then(|own| own.deep.as_ref()) {
                Some(deep) if deep.dense => kind::EMBEDDED,
                _ => kind::LOW_RANK,
            },
            Some((Solver::Variation, _)) => kind::GENERALISED,
            Some((Solver::Rows(_) | Solver::Inducing(_), KernelPrecision::Single)) => kind::SINGLE,
            Some((Solver::Rows(_) | Solver::Inducing(_), KernelPrecision::Double)) => kind::DOUBLE,
            None => "",
        };
        Stored {
            kind,
            method: &self.method,
            schema: &self.schema,
            kernel: &self.kernel,
            mean: self.mean,
            rows: self.rows,
            hyperparameters: &self.hyperparameters,
            likelihood: None,
            noise_floor: self.noise_floor,
            cholesky: self.cholesky,
            inducing: solved.map(|own| own.inducing),
            solved,
            deep: solved.and_then(|own| own.deep.as_ref()),
            level: None,
            variation: solved.and_then(|own| own.gvi.as_ref()),
            functions: None,
        }
    }
}
