//! What can go wrong between files.

use posterior_data::DataError;
use posterior_networks::safetensors::SafetensorsError;
use posterior_store::StoreError;
use posterior_tomography::TomographyError;
use std::path::PathBuf;

/// Why a scan could not be read, computed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// What is computed.
    #[error(transparent)]
    Tomography(#[from] TomographyError),
    /// In a file.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TomographyError,
    },
    /// Reading and writing.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Writing.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A network's file.
    #[error(transparent)]
    Network(#[from] SafetensorsError),
    /// Parts of a request that do not fit each other.
    #[error("{0}")]
    Request(String),
}

/// Parts that do not fit each other, in words.
pub(crate) fn refuse<T>(problem: impl Into<String>) -> Result<T, ScanError> {
    Err(ScanError::Request(problem.into()))
}

impl ScanError {
    /// Whether the work was stopped, and can go on.
    pub fn interrupted(&self) -> bool {
        matches!(self, Self::Tomography(TomographyError::Interrupted))
    }
}
