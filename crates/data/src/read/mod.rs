//! Reading tables. Nothing in a file is believed before it is checked: every declared size is compared with the bytes that
//! are there, decompression stops at the memory limit, and a panic inside a decoder becomes an error.

pub(crate) mod cells;
pub(crate) mod csv;
mod dialect;
mod encoding;
mod format;
mod header;
mod json_lines;
mod marks;
pub(crate) mod npy_header;
mod numbers;
mod numpy;
pub(crate) mod parquet;
mod parquet_schema;
mod plan;
mod quantity;
mod several;
pub(crate) mod times;
mod workbook;
mod xlsx;

pub use dialect::{DecimalMark, Delimiter, TextOptions};
pub(crate) use dialect::{Dialect, GuessedDialect};
pub use encoding::TextEncoding;
pub(crate) use encoding::{Decoded, HEAD, decoded_stream, not_utf8, other_bytes};
pub(crate) use format::{Format, Named, is_standard_input, split_array_name};
pub use format::{is_table_name, split_part_name};
pub(crate) use header::{Header, index_note};
pub use marks::NumberMark;
pub(crate) use numbers::{is_absent, read_numbers, texts_mark};
pub(crate) use plan::text_cell;
pub(crate) use quantity::Quantity;
pub(crate) use several::{aligned, as_text, no_files, unlike};
pub use several::{read_tables, source_of};

use crate::{DataError, Table};
use std::io::Read;
use std::path::Path;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Most bytes that reading may take: the content, as it is and decompressed, with the cells that are made of it. What would take more is refused before it is allocated.
    pub memory_limit: u64,
    /// How delimited text is read.
    pub text: TextOptions,
}

impl Default for ReadOptions {
    /// 4 GiB, and texts are what they look like.
    fn default() -> Self {
        Self::limited(4 << 30)
    }
}

impl ReadOptions {
    /// At most so many bytes; texts are what they look like.
    pub fn limited(memory_limit: u64) -> Self {
        Self { memory_limit, text: TextOptions::default() }
    }

    /// The limit for numeric arrays and images, 8 GiB: they are read once and kept as they are, so the same memory carries more.
    pub fn for_arrays() -> Self {
        Self::limited(8 << 30)
    }
}

/// Reads the table in `path`: delimited text as `.csv`, `.tsv` and `.txt` or JSON lines as `.jsonl` and `.ndjson` (also `.gz`), `.parquet`, `.xlsx` and `.xlsm`, `.npy`, `.npz`. One array of several in
/// an NPZ file is named after a colon, `FILE.npz:NAME`, and so is a sheet, `FILE.xlsx:SHEET`.
///
/// `-` is standard input. It and files without an ending, pipes among them, are whatever their content looks like.
///
/// # Errors
/// A [`DataError`] naming the file and, where there is one, the row and column.
pub fn read_table(path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    read_with_text(path, options, &[])
}

/// [`read_table`], whatever the cells of some columns look like: they are text, as they stand, where the file says nothing else of them.
fn read_with_text(path: &Path, options: &ReadOptions, text_columns: &[String]) -> Result<Table, DataError> {
    if is_standard_input(path) {
        let path = Path::new("standard input");
        let bytes = read_to_end(std::io::stdin().lock(), path, options)?;
        return parse_as(Named::Nothing, bytes, path, None, (options, text_columns));
    }
    let (file, part) = split_part_name(path);
    let failed = |source| DataError::Read { path: file.clone(), source };
    let metadata = std::fs::metadata(&file).map_err(failed)?;
    let mut named = Format::named(&file);
    let bytes = if metadata.is_file() {
        if metadata.len() > options.memory_limit {
            return Err(DataError::TooLarge { path: file, limit: options.memory_limit });
        }
        std::fs::read(&file).map_err(failed)?
    } else {
        // A pipe has no length, and may be called anything.
        if named == Named::Unknown {
            named = Named::Nothing;
        }
        read_to_end(std::fs::File::open(&file).map_err(failed)?, &file, options)?
    };
    parse_as(named, bytes, &file, part.as_deref(), (options, text_columns))
}

/// As [`read_table`] for the bytes of a file; its format follows from the name of `path` or, where that has no ending, from the bytes. `part` is the array or the sheet.
///
/// # Errors
/// As [`read_table`].
pub fn parse_table(
    bytes: Vec<u8>,
    path: &Path,
    part: Option<&str>,
    options: &ReadOptions,
) -> Result<Table, DataError> {
    parse_as(Format::named(path), bytes, path, part, (options, &[]))
}

fn parse_as(
    named: Named,
    mut bytes: Vec<u8>,
    path: &Path,
    part: Option<&str>,
    (options, text_columns): (&ReadOptions, &[String]),
) -> Result<Table, DataError> {
    let gzip = match named {
        Named::As(_, gzip) => gzip,
        Named::Nothing => format::is_gzip(&bytes),
        Named::Unknown => return Err(DataError::UnknownFormat { path: path.into() }),
    };
    if gzip {
        // The packed bytes are not needed any more.
        bytes = gunzip(&bytes, path, options)?;
    }
    let format = if let Named::As(format, _) = named { format } else { Format::of_content(&bytes) };
    let mut table = match format {
        Format::Delimited(usual) => csv::parse(bytes, path, usual, options, text_columns),
        Format::JsonLines => json_lines::parse(bytes, path, options, text_columns),
        Format::Parquet => guarded(path, "Parquet", || parquet::parse(bytes, path, options)),
        Format::Excel => guarded(path, "Excel", || xlsx::parse(&bytes, path, part, options, text_columns)),
        Format::Npy => numpy::parse_npy(&bytes, path, options),
        Format::Npz => guarded(path, "NPZ", || numpy::parse_npz(&bytes, path, part, options)),
    }?;
    if table.rows() == 0 {
        return Err(DataError::NoRows { path: path.into() });
    }
    // Files of kinds of their own have numbers in texts only where someone wrote them so.
    if !matches!(format, Format::Delimited(_)) {
        texts_mark(&mut table, text_columns, &options.text);
    }
    read_numbers(&mut table, text_columns);
    Ok(table)
}

/// The content of what has no length, no more than the limit.
fn read_to_end(reader: impl Read, path: &Path, options: &ReadOptions) -> Result<Vec<u8>, DataError> {
    let mut out = Vec::new();
    let read = reader.take(options.memory_limit.saturating_add(1)).read_to_end(&mut out);
    read.map_err(|source| DataError::Read { path: path.into(), source })?;
    if out.len() as u64 > options.memory_limit {
        return Err(DataError::TooLarge { path: path.into(), limit: options.memory_limit });
    }
    Ok(out)
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
