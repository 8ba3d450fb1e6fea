//! The **model**: a fitted process with all that is needed to use it - roles of columns, standardisation, hyperparameters,
//! posterior factors - and its file.
//!
//! | file | what |
//! |---|---|
//! | `container` | tensors and a JSON header in one file, written atomically, read suspiciously |
//! | `header` | what the JSON says |
//! | `fit` | table in, model out |
//! | `predict` | table in, predictions and scores out |
//! | `file` | model to container and back, bit for bit |

mod container;
mod file;
mod fit;
mod header;
mod predict;

pub use container::{Container, FORMAT_VERSION, Tensor, TensorValues};
pub(crate) use file::{matrix, matrix_tensor, packed_tensor, unpack};
pub use header::{FitSummary, Header, Hyperparameter};
pub use predict::Predictions;

use posterior_data::DataError;
use posterior_gp::GpError;
use posterior_gp::exact::ExactPosterior;
use posterior_kernels::KernelTextError;
use posterior_metrics::MetricsError;
use std::path::PathBuf;

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    header: Header,
    posterior: ExactPosterior,
}

impl Model {
    /// What it is and how it came about.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The posterior, in standard units.
    pub fn posterior(&self) -> &ExactPosterior {
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
    /// Joint samples at too many rows.
    #[error(
        "joint samples at {rows} rows need {needed} bytes, above the limit of {limit}: ask for fewer rows"
    )]
    TooManySampleRows {
        /// Rows asked for.
        rows: usize,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
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
