//! **Model files**: one JSON header, and the arrays of each model under a prefix of its own. Nothing is recomputed on loading, so predictions are equal to the last bit.
//!
//! Sizes in bytes, for n rows of D inputs:
//!
//! | method | size |
//! |---|---|
//! | exact | about `4n² + 8n(D + 4)`: the packed factor, inputs, targets, weights, fingerprints |
//! | iterative | `8n(D + 1)` and the weights of mean and samples |
//! | m inducing points | `8m²`; under other likelihoods than Gaussian noise as much for each latent function |
//! | a network | its weights, and `4C²` for each dense block of C weights: lower triangles of curvature sums |
//!
//! Each has `8n` for the fingerprints of its rows beside.

use super::noise::{read as read_noise, write as write_noise};
use super::{RunRecord, Saved};
use crate::calibration::{Calibration, NetworkRecalibration, Records};
use crate::method::{NETWORK_READERS, PredictorHeader, READERS};
use crate::model::{Ensemble, Source};
use crate::record::NetworkHeader;
use crate::targets::SharedKernel;
use crate::{FitRecord, Model, Output, TableSource, TrainingRows};
use posterior_data::TransformedTarget;
use posterior_store::{Container, StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// How messages call a file that is none.
const IN_MEMORY: &str = "the bytes in memory";

/// What stands before the names of the arrays of a stream's state.
pub(crate) const STREAM: &str = "stream.";

/// All that stands in a file besides arrays.
#[derive(Serialize, Deserialize)]
pub(crate) struct FileHeader {
    /// One, or those of several targets in their order.
    models: Vec<ModelHeader>,
    /// What numeric targets share, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<SharedKernel>,
    /// How the command went that wrote it, where a command did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunRecord>,
    /// How far a stream has come, of the state of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<Value>,
}

/// A model besides its arrays.
#[derive(Serialize, Deserialize)]
struct ModelHeader {
    predictor: PredictorHeader,
    source: SourceHeader,
}

/// What a model was learned from, and what is known of that.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SourceHeader {
    Table(Box<TableSource>),
    Network(Box<NetworkHeader>),
    Ensemble {
        names: Vec<String>,
        /// Whether error bars of its networks are left out.
        plain: bool,
        /// How its predictions were recalibrated; none where they were not.
        recalibration: Option<NetworkRecalibration>,
        /// Its networks, each a model with arrays under a prefix.
        members: Vec<ModelHeader>,
    },
}

impl Model {
    /// Writes its file in one atomic step.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::NoReader`] for a kernel that nobody registered. An older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        self.container()?.write(path)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        self.container()?.to_bytes(Path::new(IN_MEMORY))
    }

    /// Its file.
    pub(crate) fn container(&self) -> Result<Container<FileHeader>, StoreError> {
        container(std::slice::from_ref(self), None, None)
    }

    /// Reads and checks a file of one model.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it; [`StoreError::Foreign`] for several targets.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        only(Container::read(path)?)
    }

    /// As [`Self::load`] for bytes in memory.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        only(Container::parse(bytes, Path::new(IN_MEMORY))?)
    }

    /// Adds its arrays; the rest.
    fn write(&self, tensors: &mut Tensors) -> Result<ModelHeader, StoreError> {
        let predictor = PredictorHeader::write(&*self.predictor, tensors)?;
        self.training.write(tensors);
        self.calibration.write(tensors);
        let source = match &self.source {
            Source::Table(own) => {
                check_reader(own)?;
                if let Some(noise) = own.output.gaussian().and_then(|own| own.process.as_deref()) {
                    write_noise(noise, tensors)?;
                }
                SourceHeader::Table(own.clone())
            }
            Source::Network(own) => match &own.ensemble {
                None => SourceHeader::Network(Box::new(own.record.clone())),
                Some(Ensemble { names, members, plain }) => SourceHeader::Ensemble {
                    names: names.clone(),
                    plain: *plain,
                    recalibration: own.record.recalibration.clone(),
                    members: write(members, tensors)?,
                },
            },
        };
        Ok(ModelHeader { predictor, source })
    }
}

impl Saved {
    /// Writes the file in one atomic step, with a copy of all models' arrays.
    ///
    /// # Errors
    /// [`StoreError::Write`]; [`StoreError::NoReader`] for a kernel that nobody registered. An older file is untouched then.
    pub fn save(&self, path: &Path) -> Result<(), StoreError> {
        container(&self.models, self.shared.as_ref(), self.run.as_ref())?.write(path)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// As [`Self::save`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        container(&self.models, self.shared.as_ref(), self.run.as_ref())?.to_bytes(Path::new(IN_MEMORY))
    }

    /// Opens a model file, whatever its method; the state of a stream is one as well.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with the file.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        saved(Container::read(path)?)
    }

    /// As [`Self::load`] for bytes in memory.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        saved(Container::parse(bytes, Path::new(IN_MEMORY))?)
    }
}

/// The file of models, of what some of them share, and of how the command went that writes it.
pub(crate) fn container(
    models: &[Model],
    shared: Option<&SharedKernel>,
    run: Option<&RunRecord>,
) -> Result<Container<FileHeader>, StoreError> {
    let mut tensors = Tensors::default();
    let models = write(models, &mut tensors)?;
    let header = FileHeader { models, shared: shared.cloned(), run: run.cloned(), stream: None };
    Ok(Container { header, tensors })
}

/// The models of a file.
fn saved(container: Container<FileHeader>) -> Result<Saved, StoreError> {
    let Container { header: FileHeader { models, shared, run, stream }, mut tensors } = container;
    if stream.is_some() {
        drop(tensors.take_under(STREAM));
    }
    let models = read(models, &mut tensors)?;
    nothing_else(&tensors)?;
    Ok(Saved { run, ..Saved::of(models, shared).map_err(|e| tensors.corrupt(e))? })
}

/// The model of a file of one.
pub(crate) fn only(container: Container<FileHeader>) -> Result<Model, StoreError> {
    let path = container.tensors.path().into();
    let reason = "it holds several, one for each target, which `Saved` reads".into();
    saved(container)?.into_only().ok_or(StoreError::Foreign { path, reason })
}

/// What stands before the names of a model's arrays.
fn prefix(model: usize) -> String {
    format!("model.{model}.")
}

/// Adds the arrays of models; the rest.
fn write(models: &[Model], tensors: &mut Tensors) -> Result<Vec<ModelHeader>, StoreError> {
    let mut headers = Vec::with_capacity(models.len());
    for (k, model) in models.iter().enumerate() {
        let mut own = Tensors::default();
        headers.push(model.write(&mut own)?);
        tensors.extend_under(&prefix(k), own);
    }
    Ok(headers)
}

/// The models again.
fn read(headers: Vec<ModelHeader>, tensors: &mut Tensors) -> Result<Vec<Model>, StoreError> {
    let mut models = Vec::with_capacity(headers.len());
    for (k, header) in headers.into_iter().enumerate() {
        let mut own = tensors.take_under(&prefix(k));
        models.push(header.read(&mut own)?);
        nothing_else(&own)?;
    }
    Ok(models)
}

/// Refuses arrays that nobody has taken.
fn nothing_else(tensors: &Tensors) -> Result<(), StoreError> {
    match tensors.iter().next() {
        Some((name, _)) => Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing"))),
        None => Ok(()),
    }
}

impl ModelHeader {
    /// The model with these arrays.
    fn read(self, tensors: &mut Tensors) -> Result<Model, StoreError> {
        let Self { predictor, source } = self;
        match source {
            SourceHeader::Table(source) => {
                let mut source = *source;
                check_reader(&source)?;
                check(&source).map_err(|e| tensors.corrupt(e))?;
                let training = TrainingRows::read(tensors)?;
                let calibration = Calibration::read(records(&source.record.fit), 1, tensors)?;
                if let Output::Gaussian(own) = &mut source.output
                    && let Some(summary) = &own.noise
                {
                    let names = source.inputs.schema.feature_names();
                    own.process = Some(Arc::new(read_noise(summary, &names, tensors)?));
                }
                let predictor = predictor.read(READERS, &source, tensors)?;
                if predictor.latents() != source.output.functions() {
                    return Err(tensors.corrupt("its functions are not those of its likelihood"));
                }
                Ok(Model::of_table(source, predictor, calibration, training))
            }
            SourceHeader::Network(record) => {
                let record = *record;
                let training = TrainingRows::read(tensors)?;
                let width = record.base_likelihood.target_width();
                let records = NetworkRecalibration::records(record.recalibration.as_ref());
                let calibration = Calibration::read(records, width, tensors)?;
                let predictor = predictor.read(NETWORK_READERS, &record, tensors)?;
                Ok(Model::of_network(record, predictor, training, calibration))
            }
            SourceHeader::Ensemble { names, plain, recalibration, members } => {
                let members = read(members, tensors)?;
                let mut own = Model::ensemble(members, names, plain).map_err(|e| tensors.corrupt(e))?;
                if let Source::Network(source) = &mut own.source {
                    let width = source.output.likelihood.target_width();
                    let records = NetworkRecalibration::records(recalibration.as_ref());
                    own.calibration = Calibration::read(records, width, tensors)?;
                    source.record.recalibration = recalibration;
                }
                Ok(own)
            }
        }
    }
}

/// What a process was recalibrated by.
fn records(fit: &FitRecord) -> Records<'_> {
    match fit {
        FitRecord::Gaussian(fit) => {
            Records { numbers: std::slice::from_ref(&fit.recalibration), ..Records::default() }
        }
        FitRecord::Likelihood(fit) => Records {
            classes: fit.recalibration.as_ref(),
            tails: fit.intervals.as_ref(),
            ..Records::default()
        },
    }
}

/// Refuses a kernel that cannot be made again from its name.
fn check_reader(source: &TableSource) -> Result<(), StoreError> {
    match source.record.kernel.unregistered() {
        Some(kernel) => Err(StoreError::NoReader { kernel: kernel.into() }),
        None => Ok(()),
    }
}

/// What numbers of a process's header must be, whoever wrote it.
fn check(source: &TableSource) -> Result<(), String> {
    source.inputs.sound()?;
    let sound = |own: &TransformedTarget| own.by.is_sound() && own.scale > 0.0 && own.mean.is_finite();
    if !source.inputs.standardisation.transform.as_deref().is_none_or(sound) {
        return Err("the map of its target is none".into());
    }
    match (&source.output, &source.record.fit) {
        (Output::Gaussian(_), FitRecord::Gaussian(_)) => Ok(()),
        (Output::Likelihood(own), FitRecord::Likelihood(_)) => own.sound(source.inputs.schema.features.len()),
        _ => Err("its likelihood is not that of its target".into()),
    }
}
