//! A model file of any kind.

use crate::Model;
use crate::laplace::{FileHeader, NetworkModel};
use crate::process::{ProcessModel, StreamState};
use crate::targets::{TargetsHeader, TargetsModel};
use posterior_store::{Container, StoreError};
use std::path::Path;

/// A model of any method.
pub enum AnyModel {
    /// A Gaussian process, whatever is observed.
    Process(Box<ProcessModel>),
    /// A network with error bars, or an ensemble of them.
    Network(Box<NetworkModel>),
    /// Processes of several targets.
    Targets(Box<TargetsModel>),
}

impl AnyModel {
    /// What any model can be asked. Never inlined, as the others: a crate that makes such a reference itself compiles all methods of all families anew.
    #[inline(never)]
    pub fn model(&self) -> &dyn Model {
        match self {
            Self::Process(model) => &**model,
            Self::Network(model) => &**model,
            Self::Targets(model) => &**model,
        }
    }

    /// The model, whatever its family.
    #[inline(never)]
    pub fn into_model(self) -> Box<dyn Model> {
        match self {
            Self::Process(model) => model,
            Self::Network(model) => model,
            Self::Targets(model) => model,
        }
    }

    /// Opens a model file, whatever its method.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with the file.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    /// From what a file holds.
    pub(crate) fn from_container(container: Container<serde_json::Value>) -> Result<Self, StoreError> {
        // First as text of any shape: the method says how to read it.
        let method = container.header.get("method").and_then(|m| m.as_str()).unwrap_or_default();
        if method == StreamState::METHOD {
            return Self::from_container(StreamState::model_of(container)?);
        }
        Ok(match method {
            FileHeader::METHOD => Self::Network(Box::new(NetworkModel::from_container(container.typed()?)?)),
            TargetsHeader::METHOD => {
                Self::Targets(Box::new(TargetsModel::from_container(container.typed()?)?))
            }
            _ => Self::Process(Box::new(ProcessModel::from_container(container.typed()?)?)),
        })
    }
}
