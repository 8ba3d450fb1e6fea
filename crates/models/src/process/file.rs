//! A model to its file and back: nothing is recomputed on loading, so predictions are equal to the last bit.

use super::scalable::file::{inducing_tensors, pathwise_tensors};
use super::{Header, Hyperparameter, ProcessModel, ProcessPosterior};
use crate::{ClassRecalibration, ObservedRecalibration, ObservedTails};
use posterior_data::{RowFingerprints, TransformedTarget};
use posterior_gp::exact::{ExactGp, ExactPosterior};
use posterior_gp::{MeanForm, Observations};
use posterior_kernels::Kernel;
use posterior_likelihoods::Gaussian;
use posterior_linalg::cholesky::Cholesky;
use posterior_metrics::{ConformalTails, LabelSets, SplitConformal};
use posterior_optim::{Parameters, Segment};
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
        let mut tensors = posterior_tensors(&self.posterior);
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
        let posterior = match &header.fit.scalable {
            _ if header.method == "exact" => {
                let names = header.schema.feature_names();
                let kernel = header.kernel.build(&names).map_err(|e| tensors.corrupt(e))?;
                let model = exact_model(&header, (kernel, header.mean), names.len());
                let model = model.map_err(|e| tensors.corrupt(e))?;
                ProcessPosterior::Exact(read_exact(&header, model, (header.rows, d), &mut tensors)?)
            }
            Some(summary) => super::scalable::file::read(&header, summary, &mut tensors)?,
            None => return Err(tensors.corrupt(format!("its method `{}` is not known", header.method))),
        };
        Ok(Self { header, posterior: Arc::new(posterior), fingerprints, conformal, noise })
    }
}

/// The arrays of a posterior.
pub(super) fn posterior_tensors(posterior: &ProcessPosterior) -> Tensors {
    let mut tensors = Tensors::default();
    match posterior {
        ProcessPosterior::Exact(posterior) => exact_tensors(posterior, &mut tensors),
        ProcessPosterior::Single(posterior) => pathwise_tensors(posterior, &mut tensors),
        ProcessPosterior::Double(posterior) => pathwise_tensors(posterior, &mut tensors),
        ProcessPosterior::Inducing(posterior) => inducing_tensors(posterior, &mut tensors),
        ProcessPosterior::LowRank(posterior) => super::deep::file::tensors(posterior, &mut tensors),
        ProcessPosterior::Generalised(posterior) => super::gvi::file::tensors(posterior, &mut tensors),
        ProcessPosterior::Embedded(posterior) => {
            super::deep::file::embedding_tensors(posterior.embedding(), &mut tensors);
            exact_tensors(posterior.exact(), &mut tensors);
        }
    }
    tensors
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

/// The arrays of the rows that a posterior keeps.
pub(super) fn add_observations(data: &Observations, tensors: &mut Tensors) {
    tensors.insert_matrix("inputs", data.inputs());
    tensors.insert_matrix("targets", data.targets());
    if let Some(noise) = data.noise_variances() {
        tensors.insert_vector("noise_variances", noise);
    }
    if let Some(weights) = data.weights() {
        tensors.insert_vector("row_weights", weights);
    }
}

/// The rows again.
pub(super) fn observations(header: &Header, tensors: &mut Tensors) -> Result<Observations, StoreError> {
    observations_of((header.rows, header.schema.features.len()), tensors)
}

/// So many rows of so many inputs.
fn observations_of((n, d): (usize, usize), tensors: &mut Tensors) -> Result<Observations, StoreError> {
    let (inputs, targets) = (tensors.matrix("inputs", n, d)?, tensors.matrix("targets", n, 1)?);
    let noise = tensors.optional_vector("noise_variances", n)?;
    let weights = tensors.optional_vector("row_weights", n)?;
    let data = Observations::new(inputs, targets, noise).map_err(|e| tensors.corrupt(e))?;
    match weights {
        Some(weights) => data.with_weights(weights).map_err(|e| tensors.corrupt(e)),
        None => Ok(data),
    }
}

fn exact_tensors(posterior: &ExactPosterior, tensors: &mut Tensors) {
    add_observations(posterior.data(), tensors);
    tensors.insert_matrix("weights", posterior.weights());
    tensors.insert_triangle("factor", posterior.cholesky().factor());
}

/// The posterior of a process on so many rows of so many inputs.
pub(super) fn read_exact(
    header: &Header,
    model: ExactGp,
    (n, d): (usize, usize),
    tensors: &mut Tensors,
) -> Result<ExactPosterior, StoreError> {
    let data = observations_of((n, d), tensors)?;
    let weights = tensors.matrix("weights", n, 1)?;
    let cholesky = Cholesky::from_factor(tensors.factor("factor", n)?, header.cholesky);
    ExactPosterior::from_parts(model, data, cholesky, weights).map_err(|e| tensors.corrupt(e))
}

/// The process on so many inputs that the header describes, with its hyperparameters.
pub(super) fn exact_model(
    header: &Header,
    (kernel, mean): (Box<dyn Kernel<f64>>, MeanForm),
    inputs: usize,
) -> Result<ExactGp, String> {
    let noise = header.hyperparameter("noise_variance").and_then(|v| v.first().copied()).unwrap_or_default();
    let floor = header.noise_floor;
    if !(floor >= 0.0 && noise > floor && noise.is_finite()) {
        return Err(format!("its noise variance {noise} is not above its floor {floor}"));
    }
    let mut model = ExactGp::new(kernel, mean, Gaussian::new(noise, floor), inputs, 1);
    let segments = model.segments();
    let expected: Vec<(&str, usize)> = segments.iter().map(|s| (s.name.as_str(), s.len())).collect();
    let found: Vec<(&str, usize)> =
        header.hyperparameters.iter().map(|h| (h.name.as_str(), h.values.len())).collect();
    if expected != found {
        return Err(format!("its hyperparameters {found:?} are not those of its kernel, {expected:?}"));
    }
    let values: Vec<f64> = header.hyperparameters.iter().flat_map(|h| h.values.iter().copied()).collect();
    let bad = |(h, segment): (&Hyperparameter, &Segment)| h.out_of_range(segment).is_some();
    if header.hyperparameters.iter().zip(&segments).any(bad) {
        return Err("a hyperparameter is out of its range".into());
    }
    model.set_values(&values);
    Ok(model)
}
