//! Reading tables. Nothing in a file is believed before it is checked: every declared size is compared with the bytes that
//! are there, decompression stops at the memory limit, and a panic inside a decoder becomes an error.

pub(crate) mod cells;
pub(crate) mod csv;
pub(crate) mod numpy;
pub(crate) mod parquet;
mod plan;
mod several;

pub(crate) use plan::text_cell;
pub(crate) use several::{aligned, as_text, no_files};
pub use several::{read_tables, source_of};

use crate::{DataError, Table};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Limits for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most bytes that reading may take: the content, as it is and decompressed, with the cells that are made of it. What would take more is refused before it is allocated.
    pub memory_limit: u64,
}

impl Default for ReadOptions {
    /// 4 GiB.
    fn default() -> Self {
        Self { memory_limit: 4 << 30 }
    }
}

impl ReadOptions {
    /// The limit for numeric arrays and images, 8 GiB: they are read once and kept as they are, so the same memory carries more.
    pub fn for_arrays() -> Self {
        Self { memory_limit: 8 << 30 }
    }
}

/// Reads the table in `path`: `.csv`, `.tsv`, `.txt` (also `.gz`), `.parquet`, `.npy`, `.npz`. One array of several in an NPZ file is
/// named after a colon, `FILE.npz:NAME`.
///
/// # Errors
/// A [`DataError`] naming the file and, where there is one, the row and column.
pub fn read_table(path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    read_with_text(path, options, &[])
}

/// [`read_table`], whatever the cells of some columns look like: they are text, as they stand, where the file says nothing else of them.
fn read_with_text(path: &Path, options: &ReadOptions, text_columns: &[String]) -> Result<Table, DataError> {
    let (file, array) = split_array_name(path);
    let failed = |source| DataError::Read { path: file.clone(), source };
    let length = std::fs::metadata(&file).map_err(failed)?.len();
    if length > options.memory_limit {
        return Err(DataError::TooLarge { path: file, limit: options.memory_limit });
    }
    let bytes = std::fs::read(&file).map_err(failed)?;
    parse_with_text(bytes, &file, array.as_deref(), (options, text_columns))
}

/// As [`read_table`] for the bytes of a file; its format follows from the name of `path`.
///
/// # Errors
/// As [`read_table`].
pub fn parse_table(
    bytes: Vec<u8>,
    path: &Path,
    array: Option<&str>,
    options: &ReadOptions,
) -> Result<Table, DataError> {
    parse_with_text(bytes, path, array, (options, &[]))
}

fn parse_with_text(
    bytes: Vec<u8>,
    path: &Path,
    array: Option<&str>,
    (options, text_columns): (&ReadOptions, &[String]),
) -> Result<Table, DataError> {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (stem, bytes) = match name.strip_suffix(".gz") {
        Some(stem) => {
            let plain = gunzip(&bytes, path, options)?;
            // The packed bytes are not needed any more.
            drop(bytes);
            (stem.to_string(), plain)
        }
        None => (name, bytes),
    };
    let extension = stem.rsplit('.').next().unwrap_or_default();
    let table = match extension {
        "csv" | "txt" => csv::parse(&bytes, path, b',', options, text_columns),
        "tsv" => csv::parse(&bytes, path, b'\t', options, text_columns),
        "parquet" | "pq" => guarded(path, "Parquet", || parquet::parse(bytes, path, options)),
        "npy" => numpy::parse_npy(&bytes, path, options),
        "npz" => guarded(path, "NPZ", || numpy::parse_npz(&bytes, path, array, options)),
        _ => Err(DataError::UnknownFormat { path: path.into() }),
    }?;
    if table.rows() == 0 {
        return Err(DataError::NoRows { path: path.into() });
    }
    Ok(table)
}

/// `FILE.npz:NAME -> (FILE.npz, NAME)`
pub(crate) fn split_array_name(path: &Path) -> (PathBuf, Option<String>) {
    let text = path.to_string_lossy();
    match text.rsplit_once(".npz:") {
        Some((stem, name)) => (PathBuf::from(format!("{stem}.npz")), Some(name.to_string())),
        None => (path.to_path_buf(), None),
    }
}

fn gunzip(bytes: &[u8], path: &Path, options: &ReadOptions) -> Result<Vec<u8>, DataError> {
    let decoder = flate2::read::MultiGzDecoder::new(bytes);
    read_limited(decoder, path, "gzip", options)
}

/// Reads to the end, but no further than the memory limit.
pub(crate) fn read_limited(
    reader: impl Read,
    path: &Path,
    format: &'static str,
    options: &ReadOptions,
) -> Result<Vec<u8>, DataError> {
    let mut out = Vec::new();
    let count = reader
        .take(options.memory_limit.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|e| DataError::Malformed { path: path.into(), format, reason: e.to_string() })?;
    if count as u64 > options.memory_limit {
        return Err(DataError::TooLarge { path: path.into(), limit: options.memory_limit });
    }
    Ok(out)
}

/// Runs a third-party decoder, turning a panic on corrupt input into an error. The decoders hold no state that outlives the
/// call, so nothing inconsistent can be seen afterwards.
pub(crate) fn guarded<T>(
    path: &Path,
    format: &'static str,
    work: impl FnOnce() -> Result<T, DataError>,
) -> Result<T, DataError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(DataError::Malformed {
            path: path.into(),
            format,
            reason: "the content contradicts itself".into(),
        })
    })
}
