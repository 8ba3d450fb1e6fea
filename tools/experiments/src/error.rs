//! What can go wrong between a file and its results.

use crate::synthetic::FingerprintError;
use posterior_data::DataError;
use posterior_decisions::DecisionError;
use posterior_gp::GpError;
use posterior_kernels::KernelTextError;
use posterior_kernels::inducing::InducingError;
use posterior_kernels::tanimoto::CountError;
use posterior_laplace::LaplaceError;
use posterior_likelihoods::LikelihoodError;
use posterior_linear::evidence::EvidenceError;
use posterior_linear::sampled::SampledError;
use posterior_linear::{LinearError, PriorError};
use posterior_metrics::MetricsError;
use posterior_models::network::NetworkFileError;
use posterior_networks::train::TrainError;
use posterior_networks::{ArchitectureError, GraphError, NetworkError};
use posterior_tomography::TomographyError;
use std::path::PathBuf;
use thiserror::Error;

/// Why an experiment gave no results.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A file or folder that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Neither a file nor a built-in experiment.
    #[error("there is no file {}, and no built-in experiment of that name: `posterior-experiments list` names them", path.display())]
    Unknown {
        /// What was asked for.
        path: PathBuf,
    },
    /// A folder that cannot be made.
    #[error("cannot create {}: {source}", path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is no experiment.
    #[error("{} is not a valid experiment: {problem}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// Data that are not there.
    #[error("the data of this experiment are not there: {}; {remedy}", path.display())]
    MissingData {
        /// What was looked for.
        path: PathBuf,
        /// Where to get them.
        remedy: String,
    },
    /// Settings that do not fit together.
    #[error("{0}")]
    Setting(String),
    /// The model that the default fits.
    #[error(transparent)]
    Model(Box<posterior_models::ModelError>),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The architecture.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// The graph of the network.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network's file.
    #[error(transparent)]
    NetworkFile(#[from] NetworkFileError),
    /// The training run.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The posterior.
    #[error(transparent)]
    Laplace(#[from] LaplaceError),
    /// The linear model.
    #[error(transparent)]
    Linear(#[from] LinearError),
    /// The evidence.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The descent to samples.
    #[error(transparent)]
    Sampled(#[from] SampledError),
    /// The prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// The likelihood.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// The Gaussian process.
    #[error(transparent)]
    Gp(#[from] GpError),
    /// The text of a kernel.
    #[error(transparent)]
    Kernel(#[from] KernelTextError),
    /// The choice of inducing points.
    #[error(transparent)]
    Inducing(#[from] InducingError),
    /// A choice of points to evaluate.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// Fingerprints that cannot be made up.
    #[error(transparent)]
    Fingerprints(#[from] FingerprintError),
    /// Counts that are none.
    #[error(transparent)]
    Counts(#[from] CountError),
    /// A scan, its pictures or what is known of them.
    #[error(transparent)]
    Tomography(Box<TomographyError>),
    /// The scores.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The caller asked to stop; nothing was written.
    #[error("interrupted; no results were written")]
    Interrupted,
}

impl From<posterior_models::ModelError> for ExperimentError {
    fn from(error: posterior_models::ModelError) -> Self {
        Self::Model(Box::new(error))
    }
}

impl From<TomographyError> for ExperimentError {
    fn from(error: TomographyError) -> Self {
        match error {
            TomographyError::Interrupted => Self::Interrupted,
            other => Self::Tomography(Box::new(other)),
        }
    }
}

/// What may go wrong in an experiment unless something else is said.
pub(crate) type Result<T, E = ExperimentError> = std::result::Result<T, E>;

/// Refuses settings, saying in words what is wrong with them.
///
/// # Errors
/// Always: [`ExperimentError::Setting`].
pub(crate) fn refused<V>(problem: impl Into<String>) -> Result<V> {
    Err(ExperimentError::Setting(problem.into()))
}
