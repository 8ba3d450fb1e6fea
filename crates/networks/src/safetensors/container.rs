//! The file itself: eight bytes of length, a JSON header, numbers.

use super::SafetensorsError;
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of the header at most, as in the format's own library.
const LONGEST_HEADER: u64 = 100_000_000;

/// An open file whose header is consistent with its length.
#[derive(Debug)]
pub(super) struct Container {
    path: PathBuf,
    file: File,
    header: Metadata,
    /// Where the numbers begin.
    start: u64,
}

impl Container {
    /// Opens a file and checks its header: sizes, offsets without gaps, and the length of the file.
    pub(super) fn open(path: &Path) -> Result<Self, SafetensorsError> {
        let failed = |source| SafetensorsError::Read { path: path.into(), source };
        let malformed = |problem: String| SafetensorsError::Malformed { path: path.into(), problem };
        let mut file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(malformed("it is not an ordinary file".into()));
        }
        let length = about.len();
        let mut first = [0; 8];
        if length < 8 {
            return Err(malformed(format!("it has only {length} bytes")));
        }
        file.read_exact(&mut first).map_err(failed)?;
        let declared = u64::from_le_bytes(first);
        if declared > length - 8 {
            return Err(malformed(format!(
                "its header should have {declared} bytes, but only {} follow: it was cut off or is of another kind",
                length - 8
            )));
        }
        if declared > LONGEST_HEADER {
            return Err(malformed(format!("a header of {declared} bytes is longer than {LONGEST_HEADER}")));
        }
        let mut header = Vec::new();
        (&file).take(declared).read_to_end(&mut header).map_err(failed)?;
        if header.first() != Some(&b'{') {
            return Err(malformed("its header is no JSON object".into()));
        }
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|e| malformed(format!("its header is damaged: {e}")))?;
        let numbers = length - 8 - declared;
        if header.data_len() as u64 != numbers {
            return Err(malformed(format!(
                "its header describes {} bytes of numbers, but {numbers} follow: it was cut off or joined with something",
                header.data_len()
            )));
        }
        Ok(Self { path: path.into(), file, header, start: 8 + declared })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names in the order of the file.
    pub(super) fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    pub(super) fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.info(name)
    }

    /// Text that stands beside the tensors.
    pub(super) fn metadata(&self) -> BTreeMap<String, String> {
        self.header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The bytes of one tensor. Its size has been checked against the length of the file.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Vec<u8>, SafetensorsError> {
        let failed = |source| SafetensorsError::Read { path: self.path.clone(), source };
        let Some(info) = self.header.info(name) else {
            return Ok(Vec::new());
        };
        let (begin, end) = info.data_offsets;
        let mut bytes = vec![0; end - begin];
        self.file
            .seek(SeekFrom::Start(self.start + begin as u64))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(failed)?;
        Ok(bytes)
    }
}

/// The metadata of a file: text by key, not the tensors.
///
/// # Errors
/// [`SafetensorsError::Read`]; [`SafetensorsError::Malformed`] where the file is damaged or of another kind.
pub fn metadata(path: &Path) -> Result<BTreeMap<String, String>, SafetensorsError> {
    Ok(Container::open(path)?.metadata())
}
