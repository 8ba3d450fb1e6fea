//! Options of fits with error bars, as experiments' files have them, laid over others.

use super::error::{ExperimentError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use toml::Table;

/// The options with what a table says in their place.
///
/// # Errors
/// When there is no option of a name, or it has another form.
pub(crate) fn overlaid<T: Serialize + DeserializeOwned>(base: T, over: &Table, whose: &str) -> Result<T> {
    let wrong = |e: &dyn Display| ExperimentError::Setting(format!("`{whose}`: {e}"));
    let mut options = serde_json::to_value(base).map_err(|e| wrong(&e))?;
    for (key, value) in over {
        if options.get(key).is_none() {
            return Err(wrong(&format!("a fit has no option `{key}`")));
        }
        options[key] = serde_json::to_value(value).map_err(|e| wrong(&e))?;
    }
    serde_json::from_value(options).map_err(|e| wrong(&e))
}
