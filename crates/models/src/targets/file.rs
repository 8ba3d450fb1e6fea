//! Models of several targets to their file and back: their headers in one, their arrays under a prefix each.

use super::TargetsModel;
use super::shared::SharedKernel;
use crate::ProcessModel;
use posterior_store::{Container, StoreError, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A model's description: all of it but the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetsHeader {
    /// `targets`.
    pub method: String,
    /// What numeric targets share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedKernel>,
    /// The headers of the models, in the order of the targets.
    pub models: Vec<Value>,
}

impl TargetsHeader {
    /// What `method` says.
    pub const METHOD: &str = "targets";
}

/// What stands before the names of a model's arrays.
fn prefix(model: usize) -> String {
    format!("target.{model}.")
}

impl TargetsModel {
    /// Writes the file in one step, with a copy of all models' arrays.
    pub(super) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let mut tensors = Tensors::default();
        let mut models = Vec::with_capacity(self.models.len());
        for (k, model) in self.models.iter().enumerate() {
            let (header, own) = model.stored()?;
            models.push(header);
            tensors.extend_under(&prefix(k), own);
        }
        let header =
            TargetsHeader { method: TargetsHeader::METHOD.into(), shared: self.shared.clone(), models };
        Container { header, tensors }.write(path)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong with it.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        Self::from_container(Container::read(path)?)
    }

    pub(crate) fn from_container(container: Container<TargetsHeader>) -> Result<Self, StoreError> {
        let Container { header, mut tensors } = container;
        if header.method != TargetsHeader::METHOD {
            let (own, expected) = (&header.method, TargetsHeader::METHOD);
            return Err(tensors.corrupt(format!("its method is `{own}`, expected `{expected}`")));
        }
        let mut models = Vec::new();
        for (k, header) in header.models.into_iter().enumerate() {
            // Models of models would be read without end.
            if header.get("method").and_then(Value::as_str) == Some(TargetsHeader::METHOD) {
                return Err(tensors.corrupt("a model of several targets is within another"));
            }
            let own = tensors.take_under(&prefix(k));
            models.push(ProcessModel::from_container(Container { header, tensors: own }.typed()?)?);
        }
        if let Some((name, _)) = tensors.iter().next() {
            return Err(tensors.corrupt(format!("tensor `{name}` belongs to nothing")));
        }
        Self::of(models, header.shared).map_err(|e| tensors.corrupt(e))
    }
}
