//! What is asked of a fit.

use super::conditions::Needs;
use crate::network::Preprocess;
use crate::options::{CalibrateName, Limits};
use posterior_data::{Selection, TextOptions};
use posterior_laplace::FitOptions;
use posterior_likelihoods::{Integration, Link};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the network comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkSource {
    /// An ONNX or safetensors file, or a state dictionary of PyTorch.
    File {
        /// The file.
        path: PathBuf,
        /// The architecture of a safetensors file that does not hold it, or of a state dictionary.
        architecture: Option<PathBuf>,
        /// Which output of an ONNX file that has several.
        output: Option<String>,
        /// Whether a softmax at the end is dropped, so that outputs are logits.
        strip_softmax: bool,
    },
    /// A linear layer (`weight` `[C, P]`, `bias` `[C]`; safetensors or NPZ) on features that were computed elsewhere.
    Head {
        /// The file.
        path: PathBuf,
    },
}

impl NetworkSource {
    /// A file that says everything itself, taken whole.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), architecture: None, output: None, strip_softmax: false }
    }
}

/// Which data to learn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataSource {
    /// A table; or arrays or images, several of which are put together; or features.
    pub data: Vec<PathBuf>,
    /// Which inputs of a network the files of `data` are, and those of held-out data, one by one; empty where files are put one after the other.
    pub inputs: Vec<String>,
    /// Labels or targets of arrays, images and features that hold none.
    pub labels: Vec<PathBuf>,
    /// How delimited text is read, that of held-out data included.
    pub text: TextOptions,
    /// Tables: which columns.
    pub columns: Selection,
    /// Preparation.
    pub preprocess: Preprocess,
    /// Images: mean of each channel, on the scale of 0 to 1; one number for all.
    pub mean: Vec<f64>,
    /// Images: standard deviation of each channel.
    pub deviation: Vec<f64>,
    /// Names of the classes, in order.
    pub class_names: Vec<String>,
}

/// Held-out data that score a fit and choose its hyperparameters where that was asked for. Without any, rows that `posterior train` set aside of the same files are used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationSource {
    /// Their files.
    pub data: Vec<PathBuf>,
    /// Their labels.
    pub labels: Vec<PathBuf>,
    /// Else this share of the training examples, at random; refused unless `allow_seen`.
    pub fraction: f64,
    /// Whether rows that the network was trained on may choose hyperparameters. The result is worthless, and said to be.
    pub allow_seen: bool,
    /// Whether rows that the network has not seen recalibrate predictions.
    pub calibrate: CalibrateName,
}

/// What a network's outputs mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum LikelihoodKind {
    /// Logits of classes.
    Categorical,
    /// Means under additive noise.
    Gaussian,
    /// Logits of events, each on its own.
    Bernoulli,
    /// Logarithms of rates of counts.
    Poisson,
    /// Means, then logarithms of noise variances.
    Heteroscedastic,
}

/// Precision of the network's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumberFormat {
    /// Single where every weight of the file is a number of single precision.
    #[default]
    AsFile,
    /// Single.
    Single,
    /// Double.
    Double,
}

/// Who chooses weights and curvature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CurvatureChoice {
    /// [`FitOptions::weights`] and [`FitOptions::approximation`].
    #[default]
    Options,
    /// Several that fit memory and time, compared on examples that the network has not seen, or else by the evidence ([`posterior_laplace::auto()`]).
    Auto,
}

/// Everything that determines a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct LaplaceRequest {
    /// The network.
    pub network: NetworkSource,
    /// The precision of its numbers.
    pub numbers: NumberFormat,
    /// The data.
    pub data: DataSource,
    /// Held-out data for tuning.
    pub validation: ValidationSource,
    /// What outputs mean.
    pub likelihood: LikelihoodKind,
    /// Bernoulli: from outputs to probabilities.
    pub link: Link,
    /// Gaussian: noise variance at the start (for good, if it is not learned), in the network's units; the mean squared residual where absent.
    pub initial_noise: Option<f64>,
    /// Weight decay that the network was trained with, if its file does not say.
    pub weight_decay: Option<f64>,
    /// Who chooses weights and curvature.
    pub curvature: CurvatureChoice,
    /// Memory, and the time that [`CurvatureChoice::Auto`] may take, about; without, what it tries after its first candidate keeps to half a minute.
    pub limits: Limits,
    /// Seed of everything random.
    pub seed: u64,
    /// How uncertainty becomes a prediction; None for what suits the likelihood: sampled averages for up to 100 classes, whose logits vary together, and closed forms otherwise.
    pub predictive: Option<Integration>,
    /// Curvature, prior, tuning. Its predictive, memory and seed are replaced by those of the request.
    pub options: FitOptions,
    /// What was asked for by name, as `--set freeze=outputs`, and what each needs to have an effect: a fit whose network and data do not have it refuses them.
    pub conditions: Vec<(String, Needs)>,
    /// A file for the sums of an interrupted fit.
    pub checkpoint: Option<PathBuf>,
    /// Whether to go on from it, if it exists.
    pub resume: bool,
}

impl LaplaceRequest {
    /// With defaults for all but the files.
    pub fn new<P: Into<PathBuf>, Q: Into<PathBuf>>(
        network: impl Into<PathBuf>,
        data: impl IntoIterator<Item = P>,
        labels: impl IntoIterator<Item = Q>,
        likelihood: LikelihoodKind,
    ) -> Self {
        Self {
            network: NetworkSource::file(network),
            numbers: NumberFormat::AsFile,
            data: DataSource {
                data: data.into_iter().map(Into::into).collect(),
                labels: labels.into_iter().map(Into::into).collect(),
                ..DataSource::default()
            },
            validation: ValidationSource::default(),
            likelihood,
            link: Link::Logit,
            initial_noise: None,
            weight_decay: None,
            curvature: CurvatureChoice::Options,
            limits: Limits::default(),
            seed: 0,
            predictive: None,
            options: FitOptions::default(),
            conditions: Vec::new(),
            checkpoint: None,
            resume: false,
        }
    }

    /// Its options, with its limit of memory and its seed.
    pub(crate) fn fit_options(&self) -> FitOptions {
        FitOptions { memory: self.limits.memory, seed: self.seed, ..self.options.clone() }
    }
}
