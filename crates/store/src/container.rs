//! **Container**: named arrays and one JSON header in the safetensors format, so that other tools can open it too. Model files and checkpoints are containers.
//!
//! Numbers are in double precision; weights of networks may be in single precision, as they were trained. Reading trusts nothing: the format mark, the version, the element type, every
//! declared size and every value are checked.

use crate::{
    Links, Numbers, StoreError, TensorFile, Tensors, tensors_to_bytes, to_value, write_tensors_checked,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

/// The version of the layout, the only one that is read. Raise it when the layout changes.
pub const FORMAT_VERSION: u32 = 2;

/// Key of the JSON header among the metadata; it also marks a file as ours.
const MARK: &str = "posterior";

/// Everything that a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Container<H> {
    /// The header: what it is, in words and small numbers.
    pub header: H,
    /// The arrays.
    pub tensors: Tensors,
}

/// What stands in the file around the header proper.
#[derive(Serialize, Deserialize)]
struct Envelope {
    format_version: u32,
    crate_version: String,
    header: Value,
}

impl<H: Serialize + DeserializeOwned> Container<H> {
    /// Writes the file in one atomic step, array by array: no second copy of the numbers is made. The new file's header is read again before the file takes the place of an older one.
    ///
    /// # Errors
    /// [`StoreError::Write`] with the path, also for numbers that are not finite, with their place; an existing file is untouched then.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        self.write_with(path, Links::Follow)
    }

    /// As [`Container::write`] for a file whose name the program makes up: a symbolic link in its place is replaced, not followed.
    ///
    /// # Errors
    /// As [`Container::write`].
    pub fn replace(&self, path: &Path) -> Result<(), StoreError> {
        self.write_with(path, Links::Replace)
    }

    fn write_with(&self, path: &Path, links: Links) -> Result<(), StoreError> {
        let read_again = |metadata| header_in(metadata, path).and_then(|h| typed::<H>(h, path)).map(drop);
        write_tensors_checked(path, links, &self.metadata(path)?, &self.arrays(), &read_again)
    }

    /// What [`Container::write`] writes, as bytes; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Container::write`].
    pub fn to_bytes(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        tensors_to_bytes(path, &self.metadata(path)?, &self.arrays())
    }

    fn metadata(&self, path: &Path) -> Result<BTreeMap<String, String>, StoreError> {
        let header = to_value(&self.header)
            .map_err(|e| StoreError::Write { path: path.into(), source: std::io::Error::other(e) })?;
        let envelope = Envelope {
            format_version: FORMAT_VERSION,
            crate_version: env!("CARGO_PKG_VERSION").into(),
            header,
        };
        Ok(BTreeMap::from([(MARK.to_string(), serde_json::to_string(&envelope)?)]))
    }

    fn arrays(&self) -> Vec<(&str, &[usize], Numbers<'_>)> {
        let tensors = self.tensors.iter();
        tensors.map(|(name, tensor)| (name.as_str(), &tensor.shape[..], tensor.values.numbers())).collect()
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong: no such file, of another kind, truncated, of another format version, a
    /// tensor of the wrong type, a value that is not finite.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        Container::<Value>::from_file(TensorFile::open(path)?)?.typed()
    }

    /// As [`Container::read`] for bytes in memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Container::read`].
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, StoreError> {
        Container::<Value>::from_file(TensorFile::new(Cursor::new(bytes), path)?)?.typed()
    }
}

/// The header among the metadata of a file that this release can read. Headers become what they are from here on only: reading each type from text as well would be compiled for each
/// of them.
fn header_in(mut metadata: BTreeMap<String, String>, path: &Path) -> Result<Value, StoreError> {
    let Some(json) = metadata.remove(MARK) else {
        let reason = "it is a safetensors file, but holds no posterior model".into();
        return Err(StoreError::Foreign { path: path.into(), reason });
    };
    let corrupt = |e: serde_json::Error| StoreError::Corrupt { path: path.into(), reason: e.to_string() };
    let Envelope { format_version, crate_version, header } = serde_json::from_str(&json).map_err(corrupt)?;
    if format_version != FORMAT_VERSION {
        return Err(StoreError::OtherFormat {
            path: path.into(),
            found: format_version,
            supported: FORMAT_VERSION,
            writer: crate_version,
        });
    }
    Ok(header)
}

fn typed<H: DeserializeOwned>(header: Value, path: &Path) -> Result<H, StoreError> {
    serde_json::from_value(header)
        .map_err(|e| StoreError::Corrupt { path: path.into(), reason: e.to_string() })
}

impl Container<Value> {
    fn from_file<R: Read + Seek>(mut file: TensorFile<R>) -> Result<Self, StoreError> {
        let header = header_in(file.metadata(), file.path())?;
        let mut tensors = Tensors::of(file.path());
        for name in file.names() {
            let shape = file.info(&name).map(|info| info.shape.clone()).unwrap_or_default();
            let values = file.values(&name)?;
            tensors.insert_values(name, shape, values);
        }
        Ok(Self { header, tensors })
    }

    /// Reads the header as what it turned out to be.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it is something else.
    pub fn typed<H: DeserializeOwned>(self) -> Result<Container<H>, StoreError> {
        let header = typed(self.header, self.tensors.path())?;
        Ok(Container { header, tensors: self.tensors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::{Dtype, SafeTensors, TensorView};
    use std::collections::HashMap;

    fn example() -> Container<String> {
        let mut tensors = Tensors::of(Path::new("m"));
        tensors.insert("a", vec![3], &[0.1f32, -0.0, 1e38]);
        tensors.insert("w", vec![2, 2], &[0.1, -0.0, f64::MIN_POSITIVE, 1e300]);
        Container { header: "a header".into(), tensors }
    }

    fn bytes_of(container: &Container<String>) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.posterior");
        container.write(&path).unwrap();
        assert_eq!(container.to_bytes(&path).unwrap(), std::fs::read(&path).unwrap());
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
        let w = read.tensors.clone().take::<f64>("w", &[2, 2]).unwrap();
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
    fn foreign_files_other_versions_and_bad_numbers_are_errors() {
        assert!(message(b"PK\x03\x04 something else entirely").contains("does not begin like"));
        let other = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), None).unwrap();
        assert!(message(&other).contains("holds no posterior model"));
        let envelope = |version: u32, header: &str| {
            format!(r#"{{"format_version":{version},"crate_version":"9.9.9","header":{header}}}"#)
        };
        for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
            let metadata = HashMap::from([(MARK.to_string(), envelope(version, r#"{"unknown":1}"#))]);
            let other = safetensors::serialize(Vec::<(&str, TensorView<'_>)>::new(), Some(metadata)).unwrap();
            let text = message(&other);
            assert!(text.contains(&format!("has format {version}, written by release 9.9.9")), "{text}");
        }
        let header = envelope(FORMAT_VERSION, "\"h\"");
        let poisoned = |dtype, numbers: &[u8], shape| {
            let view = TensorView::new(dtype, shape, numbers).unwrap();
            let metadata = HashMap::from([(MARK.to_string(), header.clone())]);
            message(&safetensors::serialize([("w", view)], Some(metadata)).unwrap())
        };
        let numbers = [0.0, 1.0, f64::NAN].map(f64::to_le_bytes).concat();
        assert!(poisoned(Dtype::F64, &numbers, vec![3]).contains("tensor `w` has NaN at position 2"));
        let numbers = [0.0, f32::INFINITY].map(f32::to_le_bytes).concat();
        assert!(poisoned(Dtype::F32, &numbers, vec![2]).contains("tensor `w` has inf at position 1"));
        let view = TensorView::new(Dtype::I64, vec![1], &[0; 8]).unwrap();
        let metadata = HashMap::from([(MARK.to_string(), header.clone())]);
        let whole = safetensors::serialize([("w", view)], Some(metadata)).unwrap();
        assert!(message(&whole).contains("element type I64"), "{}", message(&whole));
    }

    #[test]
    fn a_shape_that_does_not_fit_is_not_written() {
        let mut wrong = example();
        wrong.tensors.insert("w", vec![3], &[1.0, 2.0]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("m.posterior");
        assert!(wrong.write(&path).unwrap_err().to_string().contains("[3] is not the shape of 2 values"));
        assert!(!path.exists());
    }

    #[test]
    fn what_could_not_be_read_again_replaces_nothing() {
        #[derive(Debug, Serialize, Deserialize)]
        struct Header {
            score: f64,
            best: Option<f64>,
            #[serde(serialize_with = "as_text")]
            count: u64,
        }
        fn as_text<S: serde::Serializer>(count: &u64, out: S) -> Result<S::Ok, S::Error> {
            if *count > 9 { out.serialize_str("many") } else { out.serialize_u64(*count) }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.posterior");
        let write = |score, best, count, weight: f64| {
            let mut tensors = Tensors::default();
            tensors.insert_vector("w", &[0.0, weight]);
            Container { header: Header { score, best, count }, tensors }.write(&path)
        };
        write(1.0, None, 1, 2.0).unwrap();
        let old = std::fs::read(&path).unwrap();
        for (problem, written) in [
            ("`score` is Infinity", write(f64::INFINITY, None, 1, 2.0)),
            ("`best` is NaN", write(1.0, Some(f64::NAN), 1, 2.0)),
            ("tensor `w` has NaN at position 1", write(1.0, None, 1, f64::NAN)),
            ("cannot be read again: invalid type: string \"many\"", write(1.0, None, 10, 2.0)),
        ] {
            let text = written.unwrap_err().to_string();
            assert!(text.contains(problem) && text.contains("m.posterior"), "{text}");
            assert_eq!(std::fs::read(&path).unwrap(), old);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file may remain");
        }
    }

    #[test]
    fn a_huge_declared_header_is_refused_without_allocation() {
        let mut bytes = vec![0xff; 7];
        bytes.push(0x7f);
        bytes.extend_from_slice(b"{}");
        assert!(message(&bytes).contains("cut off"));
    }
}
