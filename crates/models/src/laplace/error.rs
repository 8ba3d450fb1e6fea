//! What can go wrong between files and error bars.

use crate::ModelFileError;
use crate::network::NetworkFileError;
use posterior_data::DataError;
use posterior_laplace::LaplaceError;
use posterior_likelihoods::LikelihoodError;
use posterior_metrics::MetricsError;
use posterior_networks::{GraphError, NetworkError};

/// Why a network got no error bars, or its model cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaplaceModelError {
    /// The posterior.
    #[error(transparent)]
    Laplace(#[from] LaplaceError),
    /// The network's file.
    #[error(transparent)]
    NetworkFile(#[from] NetworkFileError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model file.
    #[error(transparent)]
    File(#[from] ModelFileError),
    /// The likelihood.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// The scores.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Things that do not fit each other.
    #[error("{0}")]
    Request(String),
}

impl From<GraphError> for LaplaceModelError {
    fn from(error: GraphError) -> Self {
        Self::Network(error.into())
    }
}

impl LaplaceModelError {
    /// Whether the caller's own wish to stop was the reason.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Laplace(LaplaceError::Interrupted))
    }
}
