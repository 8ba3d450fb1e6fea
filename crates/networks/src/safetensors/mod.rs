//! **safetensors**: named tensors in one file, as PyTorch exchanges them.
//!
//! Weights are matched with a [`Graph`](crate::Graph) by name; [`Architecture`](crate::Architecture)s name their parameters as PyTorch does, so state
//! dictionaries load as they are. Files written here carry their architecture under [`ARCHITECTURE_KEY`] if the caller puts it there, and
//! [`read_network`] then needs nothing else.
//!
//! A file is trusted in nothing: header and tensors are checked against the length of the file before memory is taken for them, and one
//! tensor is read at a time.

mod error;
mod load;
mod save;

use posterior_store::TensorFile;
use std::collections::BTreeMap;
use std::path::Path;

pub use error::SafetensorsError;
pub use load::{Loaded, ReadNetwork, load_safetensors, read_network};
pub use save::save_safetensors;

/// Key of the metadata under which a file holds its architecture, as TOML.
pub const ARCHITECTURE_KEY: &str = "posterior.architecture";

/// The metadata of a file: text by key, not the tensors.
///
/// # Errors
/// [`SafetensorsError::Read`]; [`SafetensorsError::Malformed`] where the file is damaged or of another kind.
pub fn metadata(path: &Path) -> Result<BTreeMap<String, String>, SafetensorsError> {
    Ok(TensorFile::open(path)?.metadata())
}

#[cfg(test)]
mod tests;
