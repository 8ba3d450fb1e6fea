//! The model file's **container**: named f64 tensors and one JSON header in the safetensors format, so that other
//! tools can open it too.
//!
//! Writing goes through [`posterior_data::create_atomically`]: a reader sees the old file or the new one, never a part. Reading trusts nothing: the format mark, the version, the element type, every
//! declared size and every value are checked, and the format's own declared sizes are compared with the real length of the
//! file before anything is allocated for them.

use super::ModelFileError;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

/// The version of the layout that this release writes. Raise it when an old reader would misread a new file.
pub const FORMAT_VERSION: u32 = 1;

/// Key of the JSON header among the safetensors metadata; it also marks a file as ours.
const MARK: &str = "posterior";

/// A named array of doubles, row-major as safetensors has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes of its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f64>,
}

/// Everything a model file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Container<H> {
    /// The header: what kind of model, in words and small numbers.
    pub header: H,
    /// The arrays.
    pub tensors: BTreeMap<String, Tensor>,
}

/// What stands in the file around the header proper.
#[derive(Serialize, Deserialize)]
struct Envelope<H> {
    format_version: u32,
    crate_version: String,
    header: H,
}

/// Only the version, readable whatever a newer header looks like.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
    crate_version: String,
}

impl<H: Serialize + DeserializeOwned> Container<H> {
    /// Writes the file in one atomic step.
    ///
    /// # Errors
    /// [`ModelFileError::Write`] with the path; an existing file is untouched then.
    pub fn write(&self, path: &Path) -> Result<(), ModelFileError> {
        let failed = |source: std::io::Error| ModelFileError::Write { path: path.into(), source };
        let envelope = Envelope {
            format_version: FORMAT_VERSION,
            crate_version: env!("CARGO_PKG_VERSION").into(),
            header: &self.header,
        };
        let json = serde_json::to_string(&envelope).map_err(|e| failed(e.into()))?;
        let encoded: Vec<(&String, &Tensor, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| {
                (name, tensor, tensor.values.iter().flat_map(|v| v.to_le_bytes()).collect())
            })
            .collect();
        let mut views = Vec::with_capacity(encoded.len());
        for (name, tensor, bytes) in &encoded {
            let view = TensorView::new(Dtype::F64, tensor.shape.clone(), bytes)
                .map_err(|e| failed(std::io::Error::other(format!("tensor {name}: {e}"))))?;
            views.push((name.as_str(), view));
        }
        let metadata = HashMap::from([(MARK.to_string(), json)]);
        let bytes =
            safetensors::serialize(views, Some(metadata)).map_err(|e| failed(std::io::Error::other(e)))?;
        posterior_data::create_atomically(path, |file| file.write_all(&bytes)).map_err(|error| match error {
            posterior_data::DataError::Write { source, .. } => failed(source),
            other => failed(std::io::Error::other(other)),
        })
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`ModelFileError`] that says what is wrong: no such file, not a model, truncated, written by a newer release, a
    /// tensor of the wrong type, a value that is not finite.
    pub fn read(path: &Path) -> Result<Self, ModelFileError> {
        let bytes =
            std::fs::read(path).map_err(|source| ModelFileError::Read { path: path.into(), source })?;
        Self::parse(&bytes, path)
    }

    /// As [`Container::read`] for bytes in memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Container::read`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, ModelFileError> {
        let foreign = |reason: String| ModelFileError::Foreign { path: path.into(), reason };
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        check_length(bytes).map_err(|shortfall| match shortfall {
            Shortfall::NotOurs(reason) => foreign(reason),
            Shortfall::Truncated { declared, actual } => corrupt(format!(
                "the header needs {declared} bytes, but the file has {actual}: it was cut off"
            )),
        })?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| corrupt(e.to_string()))?;
        let json = metadata
            .metadata()
            .as_ref()
            .and_then(|m| m.get(MARK))
            .ok_or_else(|| foreign("it is a safetensors file, but holds no posterior model".into()))?;
        let version: VersionOnly = serde_json::from_str(json).map_err(|e| corrupt(e.to_string()))?;
        if version.format_version > FORMAT_VERSION {
            return Err(ModelFileError::Newer {
                path: path.into(),
                found: version.format_version,
                supported: FORMAT_VERSION,
                writer: version.crate_version,
            });
        }
        let envelope: Envelope<H> = serde_json::from_str(json).map_err(|e| corrupt(e.to_string()))?;
        let views = SafeTensors::deserialize(bytes).map_err(|e| corrupt(e.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in views.iter() {
            if view.dtype() != Dtype::F64 {
                return Err(corrupt(format!(
                    "tensor `{name}` has element type {:?} instead of F64",
                    view.dtype()
                )));
            }
            let values: Vec<f64> =
                view.data().as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
            if let Some(position) = values.iter().position(|v| !v.is_finite()) {
                return Err(corrupt(format!(
                    "tensor `{name}` has {} at position {position}",
                    values[position]
                )));
            }
            tensors.insert(name.to_string(), Tensor { shape: view.shape().to_vec(), values });
        }
        Ok(Self { header: envelope.header, tensors })
    }

    /// Takes a tensor out, checking its shape.
    ///
    /// # Errors
    /// [`ModelFileError::Corrupt`] when it is absent or of another shape.
    pub fn take(&mut self, name: &str, shape: &[usize], path: &Path) -> Result<Vec<f64>, ModelFileError> {
        let corrupt = |reason: String| ModelFileError::Corrupt { path: path.into(), reason };
        let tensor =
            self.tensors.remove(name).ok_or_else(|| corrupt(format!("tensor `{name}` is missing")))?;
        if tensor.shape != shape {
            return Err(corrupt(format!("tensor `{name}` has shape {:?}, expected {shape:?}", tensor.shape)));
        }
        Ok(tensor.values)
    }
}

enum Shortfall {
    NotOurs(String),
    Truncated { declared: u64, actual: usize },
}

/// The eight-byte header length against the real length: distinguishes a cut-off file from one of another kind.
fn check_length(bytes: &[u8]) -> Result<(), Shortfall> {
    let Some(first) = bytes.first_chunk::<8>() else {
        return Err(Shortfall::NotOurs(format!("it has only {} bytes", bytes.len())));
    };
    if bytes.get(8).is_some_and(|&b| b != b'{') {
        return Err(Shortfall::NotOurs("it does not begin like a safetensors file".into()));
    }
    let declared = u64::from_le_bytes(*first).saturating_add(8);
    if declared > bytes.len() as u64 {
        return Err(Shortfall::Truncated { declared, actual: bytes.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Container<String> {
        let tensor = Tensor { shape: vec![2, 2], values: vec![0.1, -0.0, f64::MIN_POSITIVE, 1e300] };
        Container { header: "a header".into(), tensors: BTreeMap::from([("w".to_string(), tensor)]) }
    }

    fn bytes_of(container: &Container<String>) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.posterior");
        container.write(&path).unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no temporary file may remain");
        std::fs::read(path).unwrap()
    }

    fn message(bytes: &[u8]) -> String {
        Container::<String>::parse(bytes, Path::new("m.posterior")).unwrap_err().to_string()
    }

    #[test]
    fn a_round_trip_is_the_identity() {
        let read = Container::<String>::parse(&bytes_of(&example()), Path::new("m")).unwrap();
        assert_eq!(read, example());
        assert!(read.tensors["w"].values[1].is_sign_negative());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = bytes_of(&example());
        for length in 0..bytes.len() {
            let text = message(&bytes[..length]);
            assert!(text.contains("m.posterior"), "{text}");
        }
        assert!(message(&bytes[..40]).contains("cut off"));
    }

    #[test]
    fn foreign_newer_and_poisoned_files_say_so() {
        assert!(message(b"PK\x03\x04 something else entirely").contains("does not begin like"));
        let other = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), None).unwrap();
        assert!(message(&other).contains("holds no posterior model"));
        let json = r#"{"format_version":99,"crate_version":"9.9.9","header":{"unknown":1}}"#;
        let metadata = HashMap::from([(MARK.to_string(), json.to_string())]);
        let newer = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), Some(metadata)).unwrap();
        let text = message(&newer);
        assert!(text.contains("99") && text.contains("9.9.9"), "{text}");
        let mut poisoned = example();
        poisoned.tensors.get_mut("w").unwrap().values[2] = f64::NAN;
        assert!(message(&bytes_of(&poisoned)).contains("tensor `w` has NaN at position 2"));
    }

    #[test]
    fn a_huge_declared_header_is_refused_without_allocation() {
        let mut bytes = vec![0xff; 7];
        bytes.push(0x7f);
        bytes.extend_from_slice(b"{}");
        assert!(message(&bytes).contains("cut off"));
    }
}
