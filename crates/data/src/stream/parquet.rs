//! Parquet, one batch of a row group at a time.

use super::StreamOptions;
use crate::read::cells::push;
use crate::read::guarded;
use crate::read::parquet::{check_sizes, empty_columns};
use crate::{DataError, ReadOptions, Table};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use std::fs::File;
use std::path::{Path, PathBuf};

pub(super) struct ParquetParts {
    reader: ParquetRecordBatchReader,
    path: PathBuf,
    empty: Table,
    rows: usize,
}

impl ParquetParts {
    pub(super) fn open(path: &Path, options: &StreamOptions) -> Result<Self, DataError> {
        let failed = |source| DataError::Read { path: path.into(), source };
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        guarded(path, "Parquet", || {
            let malformed = |e: parquet::errors::ParquetError| DataError::Malformed {
                path: path.into(),
                format: "Parquet",
                reason: e.to_string(),
            };
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(malformed)?;
            // Nothing is collected here: the limit is that of a page, not of the file.
            check_sizes(builder.metadata(), length, path, &ReadOptions { memory_limit: u64::MAX })?;
            let empty = Table::new(path, empty_columns(builder.schema().fields(), path)?);
            let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
            let width = empty.columns.len().max(1);
            let batch = (options.part_bytes / (16 * width)).clamp(64, 1 << 20);
            let reader = builder.with_batch_size(batch).build().map_err(malformed)?;
            Ok(Self { reader, path: path.into(), empty, rows })
        })
    }

    /// Rows that the metadata declares, the same for the file and for its row groups together.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn next_part(&mut self) -> Result<Option<Table>, DataError> {
        let Self { reader, path, empty, .. } = self;
        guarded(path, "Parquet", || {
            let malformed =
                |reason: String| DataError::Malformed { path: path.clone(), format: "Parquet", reason };
            let Some(batch) = reader.next() else { return Ok(None) };
            let batch = batch.map_err(|e| malformed(e.to_string()))?;
            let mut table = empty.clone();
            for (column, array) in table.columns.iter_mut().zip(batch.columns()) {
                push(&mut column.values, array).map_err(malformed)?;
            }
            Ok(Some(table))
        })
    }
}

/// Names of the columns, from the metadata.
pub(crate) fn column_names(path: &Path) -> Result<Vec<String>, DataError> {
    Ok(ParquetParts::open(path, &StreamOptions::default())?.empty.names())
}
