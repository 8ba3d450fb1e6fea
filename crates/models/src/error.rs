//! What can go wrong between files and predictions.

use crate::network::NetworkFileError;
use crate::{Family, PredictionPlan};
use posterior_data::{DataError, Table};
use posterior_gp::GpError;
use posterior_kernels::KernelTextError;
use posterior_kernels::inducing::InducingError;
use posterior_laplace::LaplaceError;
use posterior_likelihoods::LikelihoodError;
use posterior_metrics::MetricsError;
use posterior_networks::{GraphError, NetworkError};
use posterior_notes::fixes::{FIT_SAMPLES, MEMORY, NOISE_FLOOR};
use posterior_optim::Reason;
use posterior_store::StoreError;
use std::fmt::Display;

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
    /// Linearised Laplace.
    #[error(transparent)]
    Laplace(#[from] LaplaceError),
    /// Sums over the rows of a stream.
    #[error(transparent)]
    Linear(#[from] posterior_linear::LinearError),
    /// A network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network's file.
    #[error(transparent)]
    NetworkFile(Box<NetworkFileError>),
    /// The likelihood.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// A question that this model has no answer to.
    #[error("{0}")]
    Usage(String),
    /// A part of a question that this family has no answer to.
    #[error("this model is {}, which takes no --{flag}", family.one())]
    NotTaken {
        /// What asks for it on the command line.
        flag: &'static str,
        /// The model's family.
        family: Family,
    },
    /// Things that do not fit each other.
    #[error("{0}")]
    Request(String),
    /// The kernel's text.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The scores.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// A file of a model or checkpoint.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    #[error("{}", plan.refusal(*limit))]
    PredictionMemory {
        /// What it takes.
        plan: Box<PredictionPlan>,
        /// Bytes allowed.
        limit: u64,
    },
    /// Exact variances that do not fit into memory.
    #[error(
        "exact variances need {needed} bytes, above the limit of {limit}: allow more memory ({}), or take the variances of the samples",
        MEMORY
    )]
    VarianceMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
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
         lower the floor ({}), to 0 if need be",
        NOISE_FLOOR
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
    #[error(transparent)]
    Inducing(#[from] InducingError),
    /// The observer said stop before there was anything to keep.
    #[error("interrupted")]
    Interrupted,
    /// More samples than a model keeps.
    #[error(
        "{wanted} draws were asked for, but the model keeps {kept} samples: ask for fewer, or fit with {} {wanted}",
        FIT_SAMPLES
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
        method: &'static str,
    },
    /// A number out of its range.
    #[error("{what} is {value}: it must be {expected}")]
    Setting {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        expected: String,
    },
}

impl From<NetworkFileError> for ModelError {
    fn from(error: NetworkFileError) -> Self {
        Self::NetworkFile(error.into())
    }
}

impl From<GraphError> for ModelError {
    fn from(error: GraphError) -> Self {
        Self::Network(error.into())
    }
}

impl ModelError {
    /// The same error about rows of a table in memory, by the file that the row is from and its number there.
    pub(crate) fn in_table(self, table: &Table) -> Self {
        match self {
            Self::Data(error) => error.in_table(table).into(),
            other => other,
        }
    }

    /// Refuses the first of some mistakes that was made, in its words.
    pub(crate) fn refuse_first(mistakes: &[(bool, &dyn Display)]) -> Result<(), Self> {
        match mistakes.iter().find(|(made, _)| *made) {
            Some((_, problem)) => Err(Self::Request(problem.to_string())),
            None => Ok(()),
        }
    }

    /// An error where a search was ended by its observer, for what is worth nothing half done.
    pub(crate) fn heed(reason: Reason) -> Result<(), Self> {
        if reason == Reason::Interrupted { Err(Self::Interrupted) } else { Ok(()) }
    }

    /// Whether the question was wrong, rather than the answer impossible.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::NotTaken { .. })
    }

    /// Whether the caller's own wish to stop was the reason.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Laplace(LaplaceError::Interrupted))
    }
}

impl Family {
    /// Refuses the first of these flags that is given: the family takes none of them.
    pub(crate) fn without(self, flags: &[(bool, &'static str)]) -> Result<(), ModelError> {
        match flags.iter().find(|(given, _)| *given) {
            Some((_, flag)) => Err(ModelError::NotTaken { flag, family: self }),
            None => Ok(()),
        }
    }
}

impl PredictionPlan {
    /// Refuses what does not fit.
    ///
    /// # Errors
    /// [`ModelError::PredictionMemory`].
    pub fn check(&self, limit: u64) -> Result<(), ModelError> {
        if self.peak_bytes <= limit {
            return Ok(());
        }
        Err(ModelError::PredictionMemory { plan: Box::new(self.clone()), limit })
    }
}
