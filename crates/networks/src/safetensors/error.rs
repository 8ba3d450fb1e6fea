//! What can be wrong with safetensors files.

use crate::architecture::ArchitectureError;
use crate::graph::{GraphError, NetworkError};
use posterior_store::StoreError;
use std::path::PathBuf;
use thiserror::Error;

/// A safetensors file that cannot be read, written or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be written; an older one is as it was.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a safetensors file, or a damaged one.
    #[error("{} is no intact safetensors file: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Nothing that `torch.save` wrote of a state dictionary, or a damaged file.
    #[error("{}: no state dictionary of PyTorch that can be read: {problem}", path.display())]
    StateDict {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The tensors do not fit.
    #[error("{}: {source}", path.display())]
    Network {
        /// The file.
        path: PathBuf,
        /// Every tensor that does not fit.
        source: NetworkError,
    },
    /// The file says nothing of the network that the tensors belong to.
    #[error(
        "{} holds tensors but no architecture (metadata key `{}`): give an architecture file",
        path.display(),
        super::ARCHITECTURE_KEY
    )]
    NoArchitecture {
        /// The file.
        path: PathBuf,
    },
    /// The architecture in the file is damaged.
    #[error("the architecture in the metadata of {}: {source}", path.display())]
    Architecture {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ArchitectureError,
    },
    /// The architecture makes no graph.
    #[error("{}: {source}", path.display())]
    Graph {
        /// The file of the tensors.
        path: PathBuf,
        /// What is wrong.
        source: GraphError,
    },
}

impl From<StoreError> for SafetensorsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Read { path, source } => Self::Read { path, source },
            StoreError::Write { path, source } => Self::Write { path, source },
            StoreError::Foreign { path, reason: problem } | StoreError::Corrupt { path, reason: problem } => {
                Self::Malformed { path, problem }
            }
            other => Self::Malformed { path: PathBuf::new(), problem: other.to_string() },
        }
    }
}
