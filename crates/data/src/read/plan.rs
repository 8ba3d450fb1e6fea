//! The memory of a table, counted before it is taken: a cell takes more than the text that it stands in, however little that is.

use super::ReadOptions;
use crate::DataError;
use std::path::Path;

/// Bytes of a number.
pub(crate) const NUMBER: u64 = 8;

/// Bytes of a cell of text beside what the allocator gives it: an optional string.
pub(crate) const TEXT: u64 = 24;

/// Least bytes that an allocator gives out.
const LEAST_CHUNK: u64 = 32;

/// Bytes of a name of a column: the string, its copies for checks, the column's own fields.
const NAME: u64 = 256;

/// Bytes of a text cell of so many bytes; none where it is missing.
pub(crate) fn text_cell(length: Option<usize>) -> u64 {
    // What is given out is a multiple of 16 with a few bytes of its own.
    TEXT + length.filter(|l| *l > 0).map_or(0, |l| (l as u64 + 24).max(LEAST_CHUNK))
}

/// What reading one table takes.
#[derive(Clone, Copy)]
pub(crate) struct ReadPlan<'a> {
    pub(crate) path: &'a Path,
    /// Most bytes in all.
    pub(crate) limit: u64,
    /// Bytes of the file's content, unpacked and as it is read, which are there with the cells.
    pub(crate) content: u64,
}

impl<'a> ReadPlan<'a> {
    pub(crate) fn new(path: &'a Path, options: &ReadOptions, content: u64) -> Self {
        Self { path, limit: options.memory_limit, content }
    }

    /// Whether so many bytes of cells fit.
    pub(crate) fn fits(&self, columns: usize, cells: u64) -> bool {
        self.all(columns, cells) <= self.limit
    }

    /// Refuses a table whose cells take more than is left.
    pub(crate) fn check(&self, rows: usize, columns: usize, cells: u64) -> Result<(), DataError> {
        if self.fits(columns, cells) {
            return Ok(());
        }
        Err(DataError::TableTooLarge {
            path: self.path.into(),
            rows,
            columns,
            bytes: self.all(columns, cells),
            limit: self.limit,
        })
    }

    fn all(&self, columns: usize, cells: u64) -> u64 {
        self.content.saturating_add(NAME * columns as u64).saturating_add(cells)
    }
}

/// Room for so many values, or the error that the system has none.
pub(crate) fn room<T>(count: usize, path: &Path) -> Result<Vec<T>, DataError> {
    let mut out = Vec::new();
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    out.try_reserve_exact(count).map_err(|_| DataError::OutOfMemory { path: path.into(), bytes })?;
    Ok(out)
}
