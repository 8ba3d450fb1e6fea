//! Parts of a table.

use super::csv::CsvParts;
use super::parquet::ParquetParts;
use crate::{DataError, Table};
use std::path::Path;

/// How a file is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Most bytes that one part may take in memory: decides how many rows a part has.
    pub part_bytes: usize,
    /// Columns that are text whatever their cells look like (categories). Others are numbers in a part if all their cells there are.
    pub text_columns: Vec<String>,
}

impl Default for StreamOptions {
    /// Parts of 32 MB.
    fn default() -> Self {
        Self { part_bytes: 32 << 20, text_columns: Vec::new() }
    }
}

/// Consecutive rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Number of the first row, from 0.
    pub first_row: usize,
    /// The rows.
    pub table: Table,
}

/// The parts of a file, in order. After an error there are no more.
pub struct TableParts {
    inner: Inner,
    next_row: usize,
}

enum Inner {
    Csv(Box<CsvParts>),
    Parquet(Box<ParquetParts>),
    Ended,
}

/// Whether a file of this name can be read part by part.
pub fn is_streamable(path: &Path) -> bool {
    format(path).is_some()
}

enum Format {
    Csv { delimiter: u8, gzip: bool },
    Parquet,
}

fn format(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let (stem, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |stem| (stem, true));
    match (stem.rsplit_once('.')?.1, gzip) {
        ("csv" | "txt", gzip) => Some(Format::Csv { delimiter: b',', gzip }),
        ("tsv", gzip) => Some(Format::Csv { delimiter: b'\t', gzip }),
        ("parquet" | "pq", false) => Some(Format::Parquet),
        _ => None,
    }
}

impl TableParts {
    /// Opens a file and checks its header.
    ///
    /// # Errors
    /// [`DataError::UnknownFormat`] for files that are not read part by part, [`DataError::Read`], [`DataError::Malformed`], [`DataError::NoRows`].
    pub fn open(path: &Path, options: &StreamOptions) -> Result<Self, DataError> {
        let inner = match format(path) {
            Some(Format::Csv { delimiter, gzip }) => {
                Inner::Csv(Box::new(CsvParts::open(path, delimiter, gzip, options)?))
            }
            Some(Format::Parquet) => Inner::Parquet(Box::new(ParquetParts::open(path, options)?)),
            None => return Err(DataError::UnknownFormat { path: path.into() }),
        };
        Ok(Self { inner, next_row: 0 })
    }
}

impl Iterator for TableParts {
    type Item = Result<Part, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match &mut self.inner {
            Inner::Csv(parts) => parts.next_part(),
            Inner::Parquet(parts) => parts.next_part(),
            Inner::Ended => return None,
        };
        match read {
            Ok(Some(table)) => {
                let first_row = self.next_row;
                self.next_row += table.rows();
                Some(Ok(Part { first_row, table }))
            }
            Ok(None) => {
                self.inner = Inner::Ended;
                None
            }
            Err(error) => {
                self.inner = Inner::Ended;
                Some(Err(error))
            }
        }
    }
}

/// Rows of a file: from the metadata of Parquet, by reading CSV once.
///
/// # Errors
/// As [`TableParts::open`]; lines of the wrong width.
pub fn count_rows(path: &Path) -> Result<usize, DataError> {
    let rows = match format(path) {
        Some(Format::Csv { delimiter, gzip }) => {
            CsvParts::open(path, delimiter, gzip, &StreamOptions::default())?.count()?
        }
        Some(Format::Parquet) => ParquetParts::open(path, &StreamOptions::default())?.rows(),
        None => return Err(DataError::UnknownFormat { path: path.into() }),
    };
    if rows == 0 {
        return Err(DataError::NoRows { path: path.into() });
    }
    Ok(rows)
}
