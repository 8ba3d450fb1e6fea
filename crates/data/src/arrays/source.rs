//! A file, gzipped or not, read as a stream whose declared sizes are checked before memory is taken.

use super::array::{ArrayValues, value_count};
use super::element::{DecodeError, Element, fill};
use crate::{DataError, ReadOptions};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes looked at to tell formats apart.
const HEAD: usize = 8;

pub(super) struct Source<'a> {
    pub(super) path: PathBuf,
    /// The first bytes of the content, as many as there are, up to [`HEAD`]; the stream still begins with them.
    pub(super) head: Vec<u8>,
    reader: Box<dyn Read + 'a>,
    /// Bytes that are left, where known: in a file that is not compressed.
    left: Option<u64>,
    /// The compressed format that the bytes come from.
    packed: Option<&'static str>,
    limit: u64,
}

impl Source<'static> {
    /// Opens a file; its content is unpacked if it begins as gzip does.
    pub(super) fn open(path: &Path, options: &ReadOptions) -> Result<Self, DataError> {
        let failed = |source| DataError::Read { path: path.into(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mut source = Self {
            path: path.into(),
            head: Vec::new(),
            reader: Box::new(BufReader::new(file)),
            // A pipe has no length to check against.
            left: metadata.is_file().then_some(metadata.len()),
            packed: None,
            limit: options.memory_limit,
        };
        source.peek()?;
        if source.head.starts_with(b"\x1f\x8b") {
            source.reader = Box::new(MultiGzDecoder::new(BufReader::new(source.reader)));
            source.left = None;
            source.packed = Some("gzip");
            source.peek()?;
        }
        Ok(source)
    }
}

impl<'a> Source<'a> {
    /// The content of an archive's member; `path` names both.
    pub(super) fn member(reader: impl Read + 'a, path: PathBuf, limit: u64) -> Result<Self, DataError> {
        let mut source =
            Self { path, head: Vec::new(), reader: Box::new(reader), left: None, packed: Some("NPZ"), limit };
        source.peek()?;
        Ok(source)
    }

    /// Whether the content comes out of gzip or an archive.
    pub(super) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    fn peek(&mut self) -> Result<(), DataError> {
        let mut head = vec![0; HEAD];
        let filled = fill(&mut self.reader, &mut head).map_err(|e| self.failed(e))?;
        head.truncate(filled);
        let rest = std::mem::replace(&mut self.reader, Box::new(std::io::empty()));
        self.reader = Box::new(Cursor::new(head.clone()).chain(rest));
        self.head = head;
        Ok(())
    }

    /// A compressed stream that fails is malformed; a plain one could not be read.
    fn failed(&self, source: std::io::Error) -> DataError {
        match self.packed {
            Some(format) => self.malformed(format, source.to_string()),
            None => DataError::Read { path: self.path.clone(), source },
        }
    }

    pub(super) fn malformed(&self, format: &'static str, reason: impl Into<String>) -> DataError {
        DataError::Malformed { path: self.path.clone(), format, reason: reason.into() }
    }

    /// The next `count` bytes of a header, or as many as there are.
    pub(super) fn header_bytes(&mut self, count: usize) -> Result<Vec<u8>, DataError> {
        let mut bytes = vec![0; count];
        let filled = fill(&mut self.reader, &mut bytes).map_err(|e| self.failed(e))?;
        bytes.truncate(filled);
        self.left = self.left.map(|n| n.saturating_sub(filled as u64));
        Ok(bytes)
    }

    /// All the content, no more than the limit.
    pub(super) fn all(self) -> Result<Vec<u8>, DataError> {
        if self.left.is_some_and(|n| n > self.limit) {
            return Err(DataError::TooLarge { path: self.path, limit: self.limit });
        }
        let mut out = Vec::new();
        if let Some(left) = self.left {
            let refused = |_| DataError::OutOfMemory { path: self.path.clone(), bytes: left };
            out.try_reserve_exact(left as usize).map_err(refused)?;
        }
        let (path, packed, limit) = (self.path, self.packed, self.limit);
        self.reader.take(limit.saturating_add(1)).read_to_end(&mut out).map_err(|source| match packed {
            Some(format) => DataError::Malformed { path: path.clone(), format, reason: source.to_string() },
            None => DataError::Read { path: path.clone(), source },
        })?;
        if out.len() as u64 > limit {
            return Err(DataError::TooLarge { path, limit });
        }
        Ok(out)
    }

    /// The values of the given shape, which must be all that is left. The declared size is checked against the length of the
    /// file where that is known and against the limit; a compressed stream is unpacked to one byte past the declared size.
    pub(super) fn values(
        &mut self,
        format: &'static str,
        element: Element,
        big_endian: bool,
        shape: &[usize],
    ) -> Result<ArrayValues, DataError> {
        let shape_text = || shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        let nonzero = shape.iter().filter(|d| **d > 0).fold(1u128, |n, d| n.saturating_mul(*d as u128));
        let in_file = nonzero.saturating_mul(element.file_size() as u128);
        let in_memory = nonzero.saturating_mul(element.memory_size().max(element.file_size()) as u128);
        let count = value_count(shape);
        let size = if count == Some(0) { 0 } else { in_file };
        let cut_off = |bytes: u64| {
            format!(
                "it declares {} values ({size} bytes), but only {bytes} bytes follow its header; it is cut off or its \
                 header is wrong",
                shape_text()
            )
        };
        let too_long =
            || format!("it declares {} values ({size} bytes), but more bytes follow", shape_text());
        if let Some(left) = self.left {
            if size > u128::from(left) {
                return Err(self.malformed(format, cut_off(left)));
            }
            if size < u128::from(left) {
                return Err(self.malformed(format, too_long()));
            }
        }
        let Some(count) = count.filter(|_| in_memory <= u128::from(self.limit)) else {
            return Err(DataError::DeclaredTooLarge {
                path: self.path.clone(),
                shape: shape_text(),
                bytes: in_memory,
                limit: self.limit,
            });
        };
        let all_there = self.left.is_some();
        let values = element.decode(&mut self.reader, count, big_endian, all_there).map_err(|e| match e {
            DecodeError::Io(source) => self.failed(source),
            DecodeError::CutOff(bytes) => self.malformed(format, cut_off(bytes)),
            DecodeError::OutOfMemory(bytes) => DataError::OutOfMemory { path: self.path.clone(), bytes },
            DecodeError::NotRepresentable(index) => {
                self.malformed(format, format!("value {} is {}", index + 1, element.refusal()))
            }
        })?;
        // Reading on to the end also has the checksum of a compressed stream verified.
        if !self.header_bytes(1)?.is_empty() {
            return Err(self.malformed(format, too_long()));
        }
        Ok(values)
    }
}
