//! A model file of either kind.

use crate::laplace::{LaplaceHeader, LaplaceModel, LaplaceModelError};
use crate::model::{Container, Header, Model, ModelFileError};
use std::path::Path;

/// A model of any method.
pub enum AnyModel {
    /// A Gaussian process.
    Process(Box<Model>),
    /// A network with error bars.
    Laplace(Box<LaplaceModel>),
}

impl AnyModel {
    /// Opens a model file, whatever its method.
    ///
    /// # Errors
    /// A [`ModelFileError`] that says what is wrong with the file, or what the posterior's parts do not agree on.
    pub fn load(path: &Path) -> Result<Self, LaplaceModelError> {
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        // First as text of any shape: the method says how to read it.
        let Container { header, tensors } = Container::<serde_json::Value>::read(path)?;
        let method = header.get("method").and_then(|m| m.as_str()).unwrap_or_default();
        if method == LaplaceHeader::METHOD {
            let header: LaplaceHeader = serde_json::from_value(header).map_err(|e| corrupt(e.to_string()))?;
            return Ok(Self::Laplace(Box::new(LaplaceModel::from_container(
                Container { header, tensors },
                path,
            )?)));
        }
        let header: Header = serde_json::from_value(header).map_err(|e| corrupt(e.to_string()))?;
        Ok(Self::Process(Box::new(Model::from_container(Container { header, tensors }, path)?)))
    }
}
