//! What can go wrong between a trained network and its error bars.

use posterior_gp::GpError;
use posterior_gp::inducing::fixed_mean::FixedMeanError;
use posterior_likelihoods::LikelihoodError;
use posterior_linear::evidence::EvidenceError;
use posterior_linear::sampled::SampledError;
use posterior_linear::structure::StructureError;
use posterior_linear::{LinearError, PriorError};
use posterior_networks::NetworkError;
use posterior_networks::train::TrainError;
use posterior_tangent::ObservationError;
use std::fmt::Arguments;

/// Why a posterior cannot be had as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaplaceError {
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A target that the likelihood does not know.
    #[error("example {example}: {source}")]
    Target {
        /// Number of the example, from 0.
        example: usize,
        /// What is wrong with it.
        source: LikelihoodError,
    },
    /// The likelihood.
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    /// The prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// The curvature.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// Data, network and likelihood that do not fit.
    #[error(transparent)]
    Observations(ObservationError),
    /// The linear model.
    #[error(transparent)]
    Linear(LinearError),
    /// A Gaussian process around the network.
    #[error(transparent)]
    Process(#[from] GpError),
    /// Samples.
    #[error(transparent)]
    Sampled(SampledError),
    /// The search for hyperparameters.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The training run.
    #[error(transparent)]
    Train(TrainError),
    /// More memory than allowed.
    #[error("{what} needs {} GB, above the limit of {} GB: {remedy}", gigabytes(*needed), gigabytes(*allowed))]
    Memory {
        /// What would be stored.
        what: String,
        /// Bytes.
        needed: u64,
        /// The limit, bytes.
        allowed: u64,
        /// The way out.
        remedy: String,
    },
    /// Things that do not fit each other.
    #[error("{0}")]
    Request(String),
    /// A number that is not finite.
    #[error("{what} of example {example} is not finite; check the data and the network")]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Number of the example, from 0.
        example: usize,
    },
    /// A file of the fit.
    #[error(transparent)]
    Store(#[from] posterior_store::StoreError),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<ObservationError> for LaplaceError {
    fn from(error: ObservationError) -> Self {
        match error {
            ObservationError::Target { example, source } => Self::Target { example, source },
            other => Self::Observations(other),
        }
    }
}

impl From<LinearError> for LaplaceError {
    /// What failed in the network or its data is told as itself.
    fn from(error: LinearError) -> Self {
        match error {
            LinearError::Interrupted => Self::Interrupted,
            LinearError::Structure(error) => Self::Structure(error),
            LinearError::Output { example } => Self::NotFinite { what: "the output", example },
            LinearError::Target { example, error } => Self::Target { example, source: error },
            LinearError::Features(inner) => match inner.downcast::<NetworkError>() {
                Ok(network) => Self::Network(*network),
                Err(other) => match other.downcast::<ObservationError>() {
                    Ok(own) => Self::from(*own),
                    Err(other) => Self::Linear(LinearError::Features(other)),
                },
            },
            other => Self::Linear(other),
        }
    }
}

impl From<FixedMeanError> for LaplaceError {
    /// What failed in the network is told as itself.
    fn from(error: FixedMeanError) -> Self {
        match error {
            FixedMeanError::Likelihood(error) => Self::Likelihood(error),
            FixedMeanError::Kernel(inner) => match inner.downcast::<NetworkError>() {
                Ok(network) => Self::Network(*network),
                Err(other) => Self::Request(other.to_string()),
            },
            other => Self::Request(other.to_string()),
        }
    }
}

impl From<SampledError> for LaplaceError {
    /// What failed in network and data is told as itself.
    fn from(error: SampledError) -> Self {
        match error {
            SampledError::Linear(error) => error.into(),
            other => Self::Sampled(other),
        }
    }
}

impl From<TrainError> for LaplaceError {
    /// What failed between two epochs is told as itself.
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Hook(inner) => match inner.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Train(TrainError::Hook(other)),
            },
            other => Self::Train(other),
        }
    }
}

/// Bytes for people.
fn gigabytes(bytes: u64) -> String {
    let value = bytes as f64 / 1e9;
    if value >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// An error with a remedy where more bytes are needed than are allowed.
pub(crate) fn check_memory(
    needed: u64,
    allowed: u64,
    what: Arguments<'_>,
    remedy: &str,
) -> Result<(), LaplaceError> {
    if needed <= allowed {
        return Ok(());
    }
    Err(LaplaceError::Memory { what: what.to_string(), needed, allowed, remedy: remedy.into() })
}
