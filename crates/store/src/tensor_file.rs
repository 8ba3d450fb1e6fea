//! The format: eight bytes of length, a JSON header that says what stands where, numbers. Read one array at a time, and trusted in nothing: every declared size is compared with the
//! real length of the file before memory is taken for it.

use crate::{Links, Numbers, StoreError, TensorValues, create_checked};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of the header at most, as in the format's own library.
const LONGEST_HEADER: u64 = 100_000_000;

/// Key of the header that cannot be the name of a tensor.
const METADATA: &str = "__metadata__";

/// Numbers that are turned into bytes together.
const PIECE: usize = 1 << 13;

/// An open file whose header is consistent with its length.
#[derive(Debug)]
pub struct TensorFile<R = File> {
    path: PathBuf,
    source: R,
    header: Metadata,
    /// Where the numbers begin.
    start: u64,
}

impl TensorFile {
    /// Opens a file and checks its header: sizes, offsets without gaps, and the length of the file.
    ///
    /// # Errors
    /// [`StoreError::Read`]; [`StoreError::Foreign`] for files of other kinds, [`StoreError::Corrupt`] for what is cut off or damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Read { path: path.into(), source };
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(StoreError::Foreign {
                path: path.into(),
                reason: "it is not an ordinary file".into(),
            });
        }
        Self::new(file, path)
    }
}

impl<R: Read + Seek> TensorFile<R> {
    /// As [`TensorFile::open`] for bytes from anywhere; `path` is for messages only.
    ///
    /// # Errors
    /// As [`TensorFile::open`].
    pub fn new(mut source: R, path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Read { path: path.into(), source };
        let foreign = |reason: String| StoreError::Foreign { path: path.into(), reason };
        let corrupt = |reason: String| StoreError::Corrupt { path: path.into(), reason };
        let length =
            source.seek(SeekFrom::End(0)).and_then(|n| source.rewind().map(|()| n)).map_err(failed)?;
        let mut first = [0; 8];
        if length < 8 {
            return Err(foreign(format!("it has only {length} bytes")));
        }
        source.read_exact(&mut first).map_err(failed)?;
        let declared = u64::from_le_bytes(first);
        let mut header = Vec::new();
        let available = declared.min(length - 8).min(LONGEST_HEADER);
        source.by_ref().take(available).read_to_end(&mut header).map_err(failed)?;
        if header.first().is_some_and(|b| *b != b'{') {
            return Err(foreign(
                "it does not begin like a safetensors file: it is of another kind, its header is no JSON object".into(),
            ));
        }
        if declared > length - 8 {
            return Err(corrupt(format!(
                "its header should have {declared} bytes, but only {} follow: it was cut off or is of another kind",
                length - 8
            )));
        }
        if declared > LONGEST_HEADER {
            return Err(corrupt(format!("a header of {declared} bytes is longer than {LONGEST_HEADER}")));
        }
        let header: Metadata =
            serde_json::from_slice(&header).map_err(|e| corrupt(format!("its header is damaged: {e}")))?;
        let numbers = length - 8 - declared;
        if header.data_len() as u64 != numbers {
            return Err(corrupt(format!(
                "its header describes {} bytes of numbers, but {numbers} follow: it was cut off or joined with something",
                header.data_len()
            )));
        }
        Ok(Self { path: path.into(), source, header, start: 8 + declared })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    /// Type and shape of a tensor.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.info(name)
    }

    /// Text that stands beside the tensors.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        self.header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The bytes of one tensor; none where there is no such tensor.
    ///
    /// # Errors
    /// [`StoreError::Read`].
    pub fn bytes(&mut self, name: &str) -> Result<Vec<u8>, StoreError> {
        let Some(info) = self.header.info(name) else { return Ok(Vec::new()) };
        let (begin, end) = info.data_offsets;
        let mut bytes = vec![0; end - begin];
        self.source
            .seek(SeekFrom::Start(self.start + begin as u64))
            .and_then(|_| self.source.read_exact(&mut bytes))
            .map_err(|source| StoreError::Read { path: self.path.clone(), source })?;
        Ok(bytes)
    }

    /// The numbers of one tensor, all of which must be finite.
    ///
    /// # Errors
    /// As [`Self::bytes`]; [`StoreError::Corrupt`] for other types than F64 and F32, NaN and infinity.
    pub fn values(&mut self, name: &str) -> Result<TensorValues, StoreError> {
        let corrupt = |reason: String| StoreError::Corrupt { path: self.path.clone(), reason };
        let dtype = self.header.info(name).map(|info| info.dtype);
        if !matches!(dtype, Some(Dtype::F64 | Dtype::F32)) {
            return Err(corrupt(match dtype {
                Some(other) => format!("tensor `{name}` has element type {other:?} instead of F64 or F32"),
                None => format!("tensor `{name}` is missing"),
            }));
        }
        let bytes = self.bytes(name)?;
        let corrupt = |reason: String| StoreError::Corrupt { path: self.path.clone(), reason };
        let refuse = |i: usize, value: f64| corrupt(format!("tensor `{name}` has {value} at position {i}"));
        if dtype == Some(Dtype::F64) {
            let values: Vec<f64> = bytes.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c)).collect();
            return match values.iter().position(|v| !v.is_finite()) {
                Some(i) => Err(refuse(i, values[i])),
                None => Ok(TensorValues::F64(values)),
            };
        }
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(|c| f32::from_le_bytes(*c)).collect();
        match values.iter().position(|v| !v.is_finite()) {
            Some(i) => Err(refuse(i, f64::from(values[i]))),
            None => Ok(TensorValues::F32(values)),
        }
    }
}

/// Writes arrays (name, shape, numbers) under their names with `metadata` beside them, in one atomic step and without a second copy of the numbers. The same arrays make the same bytes:
/// wider numbers stand first, so that all are aligned, each precision in the order given.
///
/// # Errors
/// [`StoreError::Write`], also for numbers that are not finite, a shape that is not that of its numbers and a tensor called `__metadata__`; an existing file is untouched then.
pub fn write_tensors(
    path: &Path,
    metadata: &BTreeMap<String, String>,
    tensors: &[(&str, &[usize], Numbers<'_>)],
) -> Result<(), StoreError> {
    write_tensors_checked(path, Links::Follow, metadata, tensors, &|_| Ok(()))
}

/// As [`write_tensors`]; before the new file takes the place of an older one, its header is read again, and `check` may refuse the metadata.
///
/// # Errors
/// As [`write_tensors`], with what cannot be read again.
pub fn write_tensors_checked(
    path: &Path,
    links: Links,
    metadata: &BTreeMap<String, String>,
    tensors: &[(&str, &[usize], Numbers<'_>)],
    check: &dyn Fn(BTreeMap<String, String>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let arranged = Arranged::new(path, metadata, tensors)?;
    create_checked(
        path,
        links,
        |out| arranged.write(out),
        |file| {
            let read = TensorFile::new(file, path).and_then(|file| check(file.metadata()));
            read.map_err(|error| {
                let reason = match error {
                    StoreError::Corrupt { reason, .. } | StoreError::Foreign { reason, .. } => reason,
                    other => other.to_string(),
                };
                std::io::Error::other(format!("what was to be kept cannot be read again: {reason}"))
            })
        },
    )
}

/// An array by name, shape and numbers.
type Named<'a> = (&'a str, &'a [usize], Numbers<'a>);

/// Arrays in the order in which they stand in a file, behind its header.
struct Arranged<'a> {
    header: Vec<u8>,
    ordered: Vec<&'a Named<'a>>,
}

impl<'a> Arranged<'a> {
    fn new(
        path: &Path,
        metadata: &BTreeMap<String, String>,
        tensors: &'a [Named<'a>],
    ) -> Result<Self, StoreError> {
        let wrong =
            |problem: String| StoreError::Write { path: path.into(), source: std::io::Error::other(problem) };
        let wide = |t: &&Named<'_>| matches!(t.2, Numbers::F64(_));
        let ordered: Vec<_> =
            tensors.iter().filter(wide).chain(tensors.iter().filter(|t| !wide(t))).collect();
        let mut header = Map::new();
        if !metadata.is_empty() {
            header.insert(METADATA.into(), json!(metadata));
        }
        let mut start = 0;
        for (name, shape, numbers) in &ordered {
            if *name == METADATA {
                return Err(wrong(format!("no tensor of the format can be called `{METADATA}`")));
            }
            if shape.iter().product::<usize>() != numbers.len() {
                return Err(wrong(format!(
                    "tensor {name}: {shape:?} is not the shape of {} values",
                    numbers.len()
                )));
            }
            let (dtype, size) = match numbers {
                Numbers::F64(_) => ("F64", 8),
                Numbers::F32(_) => ("F32", 4),
            };
            let end = start + numbers.len() * size;
            let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] });
            header.insert((*name).into(), entry);
            start = end;
        }
        let mut header = Value::Object(header).to_string().into_bytes();
        // Numbers begin at a multiple of eight bytes.
        header.resize(header.len().next_multiple_of(8), b' ');
        Ok(Self { header, ordered })
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        out.write_all(&(self.header.len() as u64).to_le_bytes())?;
        out.write_all(&self.header)?;
        self.ordered.iter().try_for_each(|(name, _, numbers)| match numbers {
            Numbers::F64(values) => write(out, name, values, f64::to_le_bytes),
            Numbers::F32(values) => write(out, name, values, f32::to_le_bytes),
        })
    }
}

/// The bytes of the file that [`write_tensors`] writes; `path` is for messages only.
///
/// # Errors
/// As [`write_tensors`].
pub fn tensors_to_bytes(
    path: &Path,
    metadata: &BTreeMap<String, String>,
    tensors: &[(&str, &[usize], Numbers<'_>)],
) -> Result<Vec<u8>, StoreError> {
    let mut out = Vec::new();
    let written = Arranged::new(path, metadata, tensors)?.write(&mut out);
    written.map_err(|source| StoreError::Write { path: path.into(), source })?;
    Ok(out)
}

fn write<T: Copy + Into<f64>, const N: usize>(
    out: &mut impl Write,
    name: &str,
    values: &[T],
    bytes: fn(T) -> [u8; N],
) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(N * values.len().min(PIECE));
    for (k, piece) in values.chunks(PIECE).enumerate() {
        if let Some(i) = piece.iter().position(|v| !(*v).into().is_finite()) {
            let (value, position) = (piece[i].into(), k * PIECE + i);
            return Err(std::io::Error::other(format!(
                "tensor `{name}` has {value} at position {position}, and files hold finite numbers"
            )));
        }
        buffer.clear();
        piece.iter().for_each(|v| buffer.extend(bytes(*v)));
        out.write_all(&buffer)?;
    }
    Ok(())
}
