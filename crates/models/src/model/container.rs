//! The model file's **container**: named tensors and one JSON header in the safetensors format, so that other
//! tools can open it too.
//!
//! Numbers are in double precision; weights of networks may be in single precision, as they were trained.
//!
//! Writing goes through [`posterior_data::create_atomically`]: a reader sees the old file or the new one, never a part. Reading trusts nothing: the format mark, the version, the element type, every
//! declared size and every value are checked, and the format's own declared sizes are compared with the real length of the
//! file before anything is allocated for them.

use super::ModelFileError;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The version of the layout that this release writes. Raise it when an old reader would misread a new file.
pub const FORMAT_VERSION: u32 = 1;

/// Key of the JSON header among the safetensors metadata; it also marks a file as ours.
const MARK: &str = "posterior";

/// A named array, row-major as safetensors has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Sizes of its dimensions.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: TensorValues,
}

/// The values of a [`Tensor`].
#[derive(Clone, Debug, PartialEq)]
pub enum TensorValues {
    /// Double precision.
    F64(Vec<f64>),
    /// Single precision.
    F32(Vec<f32>),
}

impl From<Vec<f64>> for TensorValues {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(values)
    }
}

impl From<Vec<f32>> for TensorValues {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl TensorValues {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the element type in the format, and its bytes.
    fn element(&self) -> (&'static str, usize) {
        match self {
            Self::F64(_) => ("F64", 8),
            Self::F32(_) => ("F32", 4),
        }
    }

    /// Position and value of the first that is not finite.
    fn first_not_finite(&self) -> Option<(usize, f64)> {
        match self {
            Self::F64(v) => v.iter().position(|v| !v.is_finite()).map(|i| (i, v[i])),
            Self::F32(v) => v.iter().position(|v| !v.is_finite()).map(|i| (i, f64::from(v[i]))),
        }
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        match self {
            Self::F64(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
            Self::F32(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        }
    }
}

impl Tensor {
    /// A tensor.
    pub fn new(shape: Vec<usize>, values: impl Into<TensorValues>) -> Self {
        Self { shape, values: values.into() }
    }
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
    /// Writes the file in one atomic step, tensor by tensor: no second copy of the numbers is made.
    ///
    /// # Errors
    /// [`ModelFileError::Write`] with the path; an existing file is untouched then.
    pub fn write(&self, path: &Path) -> Result<(), ModelFileError> {
        let failed = |source: std::io::Error| ModelFileError::Write { path: path.into(), source };
        let header = self.format_header().map_err(failed)?;
        let write = |file: &mut std::io::BufWriter<&std::fs::File>| {
            file.write_all(&(header.len() as u64).to_le_bytes())?;
            file.write_all(header.as_bytes())?;
            self.in_file_order().try_for_each(|(_, tensor)| tensor.values.write(file))
        };
        posterior_data::create_atomically(path, write).map_err(|error| match error {
            posterior_data::DataError::Write { source, .. } => failed(source),
            other => failed(std::io::Error::other(other)),
        })
    }

    /// Wider elements first, so that all are aligned.
    fn in_file_order(&self) -> impl Iterator<Item = (&String, &Tensor)> {
        let wide = |t: &Tensor| matches!(t.values, TensorValues::F64(_));
        self.tensors.iter().filter(move |t| wide(t.1)).chain(self.tensors.iter().filter(move |t| !wide(t.1)))
    }

    /// The format's own header: what each tensor is and where it stands, padded to eight bytes.
    fn format_header(&self) -> std::io::Result<String> {
        let envelope = Envelope {
            format_version: FORMAT_VERSION,
            crate_version: env!("CARGO_PKG_VERSION").into(),
            header: &self.header,
        };
        let mut entries = serde_json::Map::new();
        let mark = serde_json::json!({ MARK: serde_json::to_string(&envelope)? });
        entries.insert("__metadata__".into(), mark);
        let mut start = 0;
        for (name, tensor) in self.in_file_order() {
            if tensor.shape.iter().product::<usize>() != tensor.values.len() {
                let problem = format!(
                    "tensor {name}: {:?} is not the shape of {} values",
                    tensor.shape,
                    tensor.values.len()
                );
                return Err(std::io::Error::other(problem));
            }
            let (dtype, size) = tensor.values.element();
            let end = start + tensor.values.len() * size;
            let entry =
                serde_json::json!({ "dtype": dtype, "shape": tensor.shape, "data_offsets": [start, end] });
            entries.insert(name.clone(), entry);
            start = end;
        }
        let mut text = serde_json::to_string(&entries)?;
        text.push_str(&" ".repeat(text.len().next_multiple_of(8) - text.len()));
        Ok(text)
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
            let values = values(&view).ok_or_else(|| {
                corrupt(format!("tensor `{name}` has element type {:?} instead of F64 or F32", view.dtype()))
            })?;
            if let Some((position, value)) = values.first_not_finite() {
                return Err(corrupt(format!("tensor `{name}` has {value} at position {position}")));
            }
            tensors.insert(name.to_string(), Tensor { shape: view.shape().to_vec(), values });
        }
        Ok(Self { header: envelope.header, tensors })
    }
}

/// The numbers of a tensor; None for other types.
fn values(view: &TensorView<'_>) -> Option<TensorValues> {
    Some(match view.dtype() {
        Dtype::F64 => {
            TensorValues::F64(view.data().as_chunks::<8>().0.iter().map(|c| f64::from_le_bytes(*c)).collect())
        }
        Dtype::F32 => {
            TensorValues::F32(view.data().as_chunks::<4>().0.iter().map(|c| f32::from_le_bytes(*c)).collect())
        }
        _ => return None,
    })
}

impl<H> Container<H> {
    /// Takes a tensor in double precision out, checking its shape.
    ///
    /// # Errors
    /// [`ModelFileError::Corrupt`] when it is absent or of another shape or type.
    pub fn take(&mut self, name: &str, shape: &[usize], path: &Path) -> Result<Vec<f64>, ModelFileError> {
        match self.take_any(name, shape, path)? {
            TensorValues::F64(values) => Ok(values),
            TensorValues::F32(_) => Err(ModelFileError::Corrupt {
                path: path.into(),
                reason: format!("tensor `{name}` is in single precision, double is expected"),
            }),
        }
    }

    /// Takes a tensor of either precision out, checking its shape.
    ///
    /// # Errors
    /// [`ModelFileError::Corrupt`] when it is absent or of another shape.
    pub fn take_any(
        &mut self,
        name: &str,
        shape: &[usize],
        path: &Path,
    ) -> Result<TensorValues, ModelFileError> {
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
    use std::collections::HashMap;

    fn example() -> Container<String> {
        let tensor = Tensor::new(vec![2, 2], vec![0.1, -0.0, f64::MIN_POSITIVE, 1e300]);
        let single = Tensor::new(vec![3], vec![0.1f32, -0.0, 1e38]);
        let tensors = BTreeMap::from([("a".to_string(), single), ("w".to_string(), tensor)]);
        Container { header: "a header".into(), tensors }
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
        let TensorValues::F64(w) = &read.tensors["w"].values else { panic!("double precision") };
        assert!(w[1].is_sign_negative());
        // The format's own library agrees on what stands where.
        let bytes = bytes_of(&example());
        let views = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(views.tensor("a").unwrap().data()[..4], 0.1f32.to_le_bytes());
        assert_eq!(views.tensor("w").unwrap().data()[..8], 0.1f64.to_le_bytes());
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
        poisoned.tensors.insert("w".into(), Tensor::new(vec![3], vec![0.0, 1.0, f64::NAN]));
        assert!(message(&bytes_of(&poisoned)).contains("tensor `w` has NaN at position 2"));
        poisoned.tensors.insert("w".into(), Tensor::new(vec![2], vec![0.0f32, f32::INFINITY]));
        assert!(message(&bytes_of(&poisoned)).contains("tensor `w` has inf at position 1"));
        let view = TensorView::new(Dtype::I64, vec![1], &[0; 8]).unwrap();
        let metadata =
            HashMap::from([(MARK.to_string(), json.replace("99", "1").replace("{\"unknown\":1}", "\"h\""))]);
        let whole = safetensors::serialize([("w", view)], Some(metadata)).unwrap();
        assert!(message(&whole).contains("element type I64"), "{}", message(&whole));
    }

    #[test]
    fn a_shape_that_does_not_fit_is_not_written() {
        let mut wrong = example();
        wrong.tensors.insert("w".into(), Tensor::new(vec![3], vec![1.0, 2.0]));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.posterior");
        assert!(wrong.write(&path).unwrap_err().to_string().contains("[3] is not the shape of 2 values"));
        assert!(!path.exists());
    }

    #[test]
    fn a_huge_declared_header_is_refused_without_allocation() {
        let mut bytes = vec![0xff; 7];
        bytes.push(0x7f);
        bytes.extend_from_slice(b"{}");
        assert!(message(&bytes).contains("cut off"));
    }
}
