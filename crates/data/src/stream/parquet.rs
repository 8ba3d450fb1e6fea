//! Parquet, some rows of a group at a time.

use super::StreamOptions;
use crate::read::parquet::ParquetRows;
use crate::read::{guarded, index_note};
use crate::{DataError, ReadOptions, Table};
use std::fs::File;
use std::path::{Path, PathBuf};

pub(super) struct ParquetParts {
    file: ParquetRows<File>,
    path: PathBuf,
    empty: Table,
    part: usize,
}

impl ParquetParts {
    pub(super) fn open(path: &Path, options: &StreamOptions) -> Result<Self, DataError> {
        let failed = |source| DataError::Read { path: path.into(), source };
        let source = File::open(path).map_err(failed)?;
        let length = source.metadata().map_err(failed)?.len();
        guarded(path, "Parquet", || {
            // Nothing is collected here: the limit is that of a page, not of the file.
            let file = ParquetRows::open(source, length, path, &ReadOptions::limited(u64::MAX))?;
            let index = file.index();
            let notes = index.iter().map(|name| index_note(path, name)).collect();
            let empty = Table { notes, index, ..Table::new(path, file.empty_columns()) };
            let width = empty.columns.len().max(1);
            let part = (options.part_bytes / (16 * width)).clamp(64, 1 << 20);
            Ok(Self { file, path: path.into(), empty, part })
        })
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.empty.names()
    }

    pub(super) fn index(&self) -> Option<String> {
        self.empty.index.clone()
    }

    /// Rows that the metadata declares, the same for the file and for its row groups together.
    pub(super) fn rows(&self) -> usize {
        self.file.rows()
    }

    pub(super) fn next_part(&mut self) -> Result<Option<Table>, DataError> {
        let Self { file, path, empty, part } = self;
        guarded(path, "Parquet", || {
            let mut table = empty.clone();
            // Said of the first part.
            empty.notes.clear();
            let rows = file.next(*part, &mut table.columns, &mut |_| Ok(()))?;
            Ok((rows > 0).then_some(table))
        })
    }
}

/// Names of the columns, from the metadata.
pub(crate) fn column_names(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(ParquetParts::open(path, &StreamOptions::default())?.empty.names())
}
