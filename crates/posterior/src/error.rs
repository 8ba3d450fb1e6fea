//! What can go wrong between arrays and predictions.

use crate::arrays::ArraysError;
use crate::rows::Ragged;
use posterior_data::DataError;
use posterior_gp::GpError;
use posterior_kernels::KernelTextError;
use posterior_models::{ModelError, StoreError};
use posterior_networks::NetworkError;

/// Why a model could not be fitted or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Inputs or targets that are no arrays.
    #[error(transparent)]
    Arrays(#[from] ArraysError),
    /// As many targets as rows are needed.
    #[error("there are {rows} rows of inputs and {targets} targets")]
    Targets {
        /// Rows of inputs.
        rows: usize,
        /// Targets.
        targets: usize,
    },
    /// Targets of several columns.
    #[error("the targets have {found} columns: a process has one target, fit one for each")]
    TargetColumns {
        /// Columns given.
        found: usize,
    },
    /// Inputs of another width.
    #[error("the process was fitted to {expected} columns, these inputs have {found}")]
    Columns {
        /// Columns at the fit.
        expected: usize,
        /// Columns given.
        found: usize,
    },
    /// A number that is NaN or infinite.
    #[error("row {row}, column {column} of the inputs is {value}: remove or fill in such rows first")]
    NotFinite {
        /// Its row, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// What it is.
        value: f64,
    },
    /// A matrix for a process that was fitted to columns of text.
    #[error("the process was fitted to columns of text ({}), which no matrix has: ask it by a table file", columns.join(", "))]
    ByTable {
        /// The columns of text.
        columns: Vec<String>,
    },
    /// Draws as functions of a model that has none.
    #[error(
        "draws of networks and of generalised variational inference are joint draws at rows that are named together (`sample`), not functions"
    )]
    NoFunctions,
    /// Moments, quantiles and intervals of classes or events.
    #[error("the model predicts probabilities, which have no {wanted}: ask for `probabilities`")]
    NotNumbers {
        /// What was asked for.
        wanted: &'static str,
    },
    /// Probabilities of numbers.
    #[error("the model predicts numbers, which have no probabilities: ask for `quantile` or `interval`")]
    NotProbabilities,
    /// A level that is none.
    #[error("the level is {0}: it must be above 0 and below 1")]
    Level(f64),
    /// Quantiles that no rows tell.
    #[error(
        "quantiles of other than Gaussian predictions go by rows that the fit was judged on: let the fit hold back rows, and leave calibration on"
    )]
    NoQuantiles,
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The model.
    #[error(transparent)]
    Model(Box<ModelError>),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Error {
    /// Whether a [`CancelToken`](crate::optim::CancelToken) ended the fit, or a callback before there was anything to keep.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Model(error) if error.is_interruption())
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        Self::Model(error.into())
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        ModelError::from(error).into()
    }
}

impl From<GpError> for Error {
    fn from(error: GpError) -> Self {
        ModelError::from(error).into()
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        ModelError::from(error).into()
    }
}

impl From<Ragged> for Error {
    fn from(error: Ragged) -> Self {
        ArraysError::from(error).into()
    }
}
