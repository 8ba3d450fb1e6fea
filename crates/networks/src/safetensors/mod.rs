//! **safetensors**: named tensors in one file, as PyTorch exchanges them.
//!
//! Weights are matched with a [`Graph`](crate::Graph) by name; [`Architecture`](crate::Architecture)s name their parameters as PyTorch does, so state
//! dictionaries load as they are. Files written here carry their architecture under [`ARCHITECTURE_KEY`] if the caller puts it there, and
//! [`read_network`] then needs nothing else.
//!
//! The same functions take state dictionaries of PyTorch, `.pt` and `.pth` (`state_dict`).
//!
//! A file is trusted in nothing: header and tensors are checked against the length of the file before memory is taken for them, and one
//! tensor is read at a time.

mod error;
mod load;
mod save;

use crate::tensors_in_file::TensorsInFile;
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
    Ok(TensorsInFile::open(path)?.metadata())
}

/// What a file says of one of its tensors.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TensorLine {
    /// Its name.
    pub name: String,
    /// The type of its numbers: `F32`, `I64`, ...
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// Format (`safetensors` or `pytorch`), tensors in an order of the file's own, and what was left out: what an architecture has to name. Reads no numbers.
///
/// # Errors
/// As [`load_safetensors`] where the file is damaged or of another kind.
pub fn tensors(path: &Path) -> Result<(&'static str, Vec<TensorLine>, Vec<String>), SafetensorsError> {
    let file = TensorsInFile::open(path)?;
    let line = |name: String| {
        let (dtype, shape) = file.info(&name)?;
        Some(TensorLine { dtype: dtype.to_string(), shape: shape.to_vec(), name })
    };
    Ok((file.format(), file.names().into_iter().filter_map(line).collect(), file.notes().to_vec()))
}

#[cfg(test)]
mod tests;
