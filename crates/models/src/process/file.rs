//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::{Header, ProcessModel, Solver};
use crate::method::{self, Stored, kind};
use crate::options::KernelPrecision;
use crate::{ClassRecalibration, ObservedRecalibration, ObservedTails};
use posterior_data::{RowFingerprints, TransformedTarget};
use posterior_metrics::{ConformalTails, LabelSets, SplitConformal};
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
        add_fingerprints(self.fingerprints.as_deref(), &mut tensors);
        if let Some(noise) = &self.noise {
            super::noise::tensors(noise, &mut tensors);
        }
        if let Some(conformal) = &self.conformal {
            tensors.insert_vector(CONFORMAL, conformal.magnitudes());
        }
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
        let fingerprints = fingerprints(&mut tensors)?;
        let conformal = conformal(&header, &mut tensors)?;
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
        Ok(Self { header, predictor, fingerprints, conformal, noise })
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

/// The tensor of the fingerprints of training rows.
const FINGERPRINTS: &str = "row_fingerprints";

/// The tensor of residuals that intervals were recalibrated by.
const CONFORMAL: &str = "conformal_magnitudes";

/// These residuals, of a model that was recalibrated.
fn conformal(header: &Header, tensors: &mut Tensors) -> Result<Option<Arc<SplitConformal>>, StoreError> {
    let Some(own) = &header.fit.recalibration else { return Ok(None) };
    let magnitudes = tensors.take::<f64>(CONFORMAL, &[own.rows])?;
    let found = SplitConformal::new(&magnitudes).map_err(|e| tensors.corrupt(e))?;
    if !(own.factor > 0.0 && own.factor.is_finite()) {
        return Err(tensors.corrupt("its factor of intervals is no positive number"));
    }
    Ok(Some(Arc::new(found)))
}

/// The tensor of scores that sets of classes go by.
const SETS: &str = "conformal_scores";

/// Adds what sets of classes go by, where a model has them.
pub(crate) fn add_sets(sets: Option<&LabelSets>, tensors: &mut Tensors) {
    if let Some(sets) = sets {
        tensors.insert_vector(SETS, sets.scores());
    }
}

/// What sets of classes go by, of a model with such rows.
pub(crate) fn sets(
    own: Option<&ClassRecalibration>,
    tensors: &mut Tensors,
) -> Result<Option<Arc<LabelSets>>, StoreError> {
    let Some(own) = own else { return Ok(None) };
    let scores = tensors.take::<f64>(SETS, &[own.rows])?;
    let found = LabelSets::from_scores(&scores).map_err(|e| tensors.corrupt(e))?;
    if !own.is_sound() {
        return Err(tensors.corrupt("its temperature is no positive number"));
    }
    Ok(Some(Arc::new(found)))
}

/// The tensor of scores that intervals of counts and of numbers with outliers go by.
const TAILS: &str = "conformal_tails";

/// Adds what intervals of counts and of numbers with outliers go by, where a model has it.
pub(crate) fn add_tails(tails: Option<&ObservedTails>, tensors: &mut Tensors) {
    if let Some(tails) = tails {
        tensors.insert_vector(TAILS, tails.tails().scores());
    }
}

/// The same again, of a model with such rows, of counts or not.
pub(crate) fn tails(
    (own, counts): (Option<&ObservedRecalibration>, bool),
    tensors: &mut Tensors,
) -> Result<Option<ObservedTails>, StoreError> {
    let Some(own) = own else { return Ok(None) };
    let scores = tensors.take::<f64>(TAILS, &[own.rows])?;
    let found = ConformalTails::new(&scores).map_err(|e| tensors.corrupt(e))?;
    Ok(Some(ObservedTails::new(found, counts)))
}

/// Adds the fingerprints of training rows, where they are known.
pub(crate) fn add_fingerprints(fingerprints: Option<&RowFingerprints>, tensors: &mut Tensors) {
    if let Some(fingerprints) = fingerprints {
        tensors.insert_vector(FINGERPRINTS, &fingerprints.to_numbers());
    }
}

/// The fingerprints of the training rows, where the file has them.
pub(crate) fn fingerprints(tensors: &mut Tensors) -> Result<Option<Arc<RowFingerprints>>, StoreError> {
    let Some(shape) = tensors.shape(FINGERPRINTS) else { return Ok(None) };
    let numbers = tensors.take::<f64>(FINGERPRINTS, &shape)?;
    let found = RowFingerprints::from_numbers(&numbers);
    Ok(Some(Arc::new(found.ok_or_else(|| tensors.corrupt("its fingerprints of training rows are none"))?)))
}
