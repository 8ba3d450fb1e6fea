//! The **model**: a fitted process with all that is needed to use it - roles of columns, standardisation, hyperparameters,
//! posterior factors - and its file.
//!
//! | file | what |
//! |---|---|
//! | `container` | tensors and a JSON header in one file, written atomically, read suspiciously |
//! | `header` | what the JSON says |
//! | `fit` | table in, model out |
//! | `check` | how good it is on rows that had no part in it |
//! | `rates` | what this machine does in a second |
//! | `predict` | table in, predictions and scores out |
//! | `predict_plan` | what that takes |
//! | `file` | model to container and back, bit for bit |
//! | `posterior` | the posteriors that a model may hold |
//! | `scalable` | methods for large tables |

mod check;
mod container;
mod file;
mod fit;
mod header;
mod posterior;
mod predict;
mod predict_plan;
mod rates;
mod scalable;

pub use check::{CheckScores, CheckedOn, FitCheck, TriedMethod};
pub use container::{Container, FORMAT_VERSION, Tensor, TensorValues};
pub(crate) use file::{add_fingerprints, fingerprints, matrix, matrix_tensor, packed_tensor, unpack};
pub use fit::{FitStage, Prepared};
pub use header::{FitSummary, Header, Hyperparameter};
pub use posterior::ProcessPosterior;
pub use predict::{PredictOptions, Predictions, VarianceMethod, VarianceSolves};
pub use predict_plan::{PredictedInto, PredictionPlan, PredictionRequest};
pub use scalable::{
    Chosen, EXACT_ROWS, EvidenceSearchSummary, ScalablePlan, ScalableSummary, Solver, choose,
};

use posterior_data::{DataError, RowFingerprints};
use posterior_gp::GpError;
use posterior_kernels::KernelTextError;
use posterior_metrics::MetricsError;
use std::path::PathBuf;
use std::sync::Arc;

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    header: Header,
    posterior: Arc<ProcessPosterior>,
    /// Of the rows trained on; none in files of releases that did not record them.
    fingerprints: Option<Arc<RowFingerprints>>,
}

impl Model {
    /// What it is and how it came about.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Which rows it was trained on; None for files of releases that did not record it.
    pub fn fingerprints(&self) -> Option<&RowFingerprints> {
        self.fingerprints.as_deref()
    }

    /// The posterior, in standard units.
    pub fn posterior(&self) -> &ProcessPosterior {
        &self.posterior
    }
}

/// Why a model could not be fitted or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The process.
    #[error(transparent)]
    Gp(#[from] GpError),
    /// The kernel's text.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The scores.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The model file.
    #[error(transparent)]
    File(#[from] ModelFileError),
    /// Samples at too many rows.
    #[error(
        "samples at {rows} rows need {needed} bytes, above the limit of {limit}: ask for fewer rows, or allow more memory"
    )]
    TooManySampleRows {
        /// Rows asked for.
        rows: usize,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Predictions that do not fit into memory.
    #[error(
        "{plan}, above the limit of {:.3} MB: allow more memory (--memory GB), or ask for fewer rows, draws (--samples) or quantiles (--quantiles); `predict --stream` reads, predicts and writes part by part",
        *limit as f64 / 1e6
    )]
    PredictionMemory {
        /// What it takes.
        plan: PredictionPlan,
        /// Bytes allowed.
        limit: u64,
    },
    /// Exact variances that do not fit into memory.
    #[error(
        "exact variances need {needed} bytes, above the limit of {limit}: allow more memory (--memory GB), or take the variances of the samples"
    )]
    VarianceMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A checkpoint of another fit.
    #[error(
        "{path} is the checkpoint of another fit, which differs in {}: begin anew with --fresh, which removes it, or name another file with --checkpoint",
        differs.join(", ")
    )]
    OtherCheckpoint {
        /// The file.
        path: PathBuf,
        /// Names of settings, and the data.
        differs: Vec<String>,
    },
    /// A state that cannot be written or read.
    #[error("the state of the fit cannot be kept: {problem}")]
    Checkpoint {
        /// Why.
        problem: String,
    },
    /// A hyperparameter that the model does not have.
    #[error("`{name}` is given, and is no hyperparameter here; the kernel, mean and noise have: {}", known.join(", "))]
    UnknownHyperparameter {
        /// Its name.
        name: String,
        /// All that there are.
        known: Vec<String>,
    },
    /// Noise that a model of this floor cannot have.
    #[error(
        "the given noise variance {noise} is not above the noise floor {floor} (both in units of the target's variance); \
         lower the floor (--noise-floor), to 0 if need be"
    )]
    GivenNoise {
        /// What was given.
        noise: f64,
        /// The floor.
        floor: f64,
    },
    /// Hyperparameters that are not those of the kernel.
    #[error("no hyperparameter `{missing}` of {length} values is given; the kernel, mean and noise have: {}", known.join(", "))]
    Hyperparameters {
        /// The first that is missing.
        missing: String,
        /// Its number of values.
        length: usize,
        /// All that are needed.
        known: Vec<String>,
    },
    /// Inducing points that cannot be chosen.
    #[error("{0}")]
    Inducing(String),
    /// The observer said stop before there was anything to keep.
    #[error("interrupted")]
    Interrupted,
    /// More samples than a model keeps.
    #[error(
        "{wanted} draws were asked for, but the model keeps {kept} samples: ask for fewer, or fit with --samples {wanted}"
    )]
    TooManySamples {
        /// Draws asked for.
        wanted: usize,
        /// Samples in the model.
        kept: usize,
    },
    /// A method that solves nothing step by step, asked to.
    #[error("{method} is no iterative method")]
    NotIterative {
        /// The method.
        method: crate::options::MethodName,
    },
    /// A number out of its range.
    #[error("{what} is {value}: it must be {expected}")]
    Setting {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
}

/// Why a model file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// It cannot be read at all.
    #[error("cannot read the model {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It cannot be written; an older file is untouched.
    #[error("cannot write the model {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{path} is not a posterior model: {reason}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// It is damaged.
    #[error("the model {path} is damaged: {reason}. Fit it again or restore the file")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// It was written by a newer release.
    #[error(
        "the model {path} has format {found}, written by release {writer}; this release reads up to {supported}: update posterior"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest that this release reads.
        supported: u32,
        /// The release that wrote it.
        writer: String,
    },
}
