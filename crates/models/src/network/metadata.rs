//! What the metadata of a network's file say beside its weights.

use super::{NetworkFileError, refuse};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

/// Texts by key.
type Metadata = BTreeMap<String, String>;

/// What stands under a key of the file at `path`, if something does.
///
/// # Errors
/// For what cannot be read.
pub(crate) fn read<T: DeserializeOwned>(
    metadata: &Metadata,
    key: &str,
    path: &Path,
) -> Result<Option<T>, NetworkFileError> {
    let Some(text) = metadata.get(key) else { return Ok(None) };
    posterior_store::from_text(text)
        .map(Some)
        .or_else(|e| refuse(format!("{}: the metadata `{key}` is damaged: {e}", path.display())))
}

/// Puts something under a key.
///
/// # Errors
/// For numbers that are not finite.
pub(crate) fn add<T: Serialize>(
    metadata: &mut Metadata,
    key: &str,
    value: &T,
) -> Result<(), NetworkFileError> {
    let value = posterior_store::to_value(value).or_else(|e| refuse(e.to_string()))?;
    metadata.insert(key.into(), value.to_string());
    Ok(())
}
