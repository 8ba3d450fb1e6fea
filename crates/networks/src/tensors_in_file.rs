//! Named tensors in a file of either format, one read at a time.

use crate::safetensors::SafetensorsError;
use crate::state_dict::StateDict;
use posterior_store::TensorFile;
use safetensors::Dtype;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// An open file.
#[derive(Debug)]
pub(crate) enum TensorsInFile {
    Safetensors(TensorFile),
    StateDict(StateDict),
}

impl TensorsInFile {
    /// Opens a file of tensors by what it begins with, whatever its name.
    ///
    /// # Errors
    /// Those of the format; what begins like neither is taken for safetensors.
    pub(crate) fn open(path: &Path) -> Result<Self, SafetensorsError> {
        let mut head = Vec::new();
        let failed = |source| SafetensorsError::Read { path: path.into(), source };
        File::open(path).and_then(|file| file.take(4).read_to_end(&mut head)).map_err(failed)?;
        if StateDict::recognises(&head) {
            return Ok(Self::StateDict(StateDict::open(path)?));
        }
        Ok(Self::Safetensors(TensorFile::open(path)?))
    }

    /// The name of the format.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Self::Safetensors(_) => "safetensors",
            Self::StateDict(_) => "pytorch",
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Safetensors(file) => file.path(),
            Self::StateDict(file) => file.path(),
        }
    }

    /// The tensors' names, in an order of the file's own.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Safetensors(file) => file.names(),
            Self::StateDict(file) => file.names(),
        }
    }

    /// Type and shape of a tensor.
    pub(crate) fn info(&self, name: &str) -> Option<(Dtype, &[usize])> {
        match self {
            Self::Safetensors(file) => file.info(name).map(|info| (info.dtype, info.shape.as_slice())),
            Self::StateDict(file) => file.info(name),
        }
    }

    /// The little-endian bytes of one tensor, row-major; none where there is no such tensor.
    pub(crate) fn bytes(&mut self, name: &str) -> Result<Vec<u8>, SafetensorsError> {
        match self {
            Self::Safetensors(file) => Ok(file.bytes(name)?),
            Self::StateDict(file) => file.bytes(name),
        }
    }

    /// Text that stands beside the tensors.
    pub(crate) fn metadata(&self) -> BTreeMap<String, String> {
        match self {
            Self::Safetensors(file) => file.metadata(),
            Self::StateDict(_) => BTreeMap::new(),
        }
    }

    /// What was chosen and left out when it was opened.
    pub(crate) fn notes(&self) -> &[String] {
        match self {
            Self::Safetensors(_) => &[],
            Self::StateDict(file) => file.notes(),
        }
    }
}
