//! Parquet: numbers, booleans, strings and dictionaries of strings in flat columns.

use super::ReadOptions;
use super::cells::{each_text, is_flat, is_text, push};
use super::plan::{NUMBER, ReadPlan, TEXT, room, text_cell};
use crate::{Column, DataError, Table, Values};
use arrow_schema::{FieldRef, Fields};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;

pub(super) fn parse(bytes: Vec<u8>, path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "Parquet", reason };
    let length = bytes.len() as u64;
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
        .map_err(|e| malformed(e.to_string()))?;
    check_sizes(builder.metadata(), length, path, options)?;
    let mut columns = empty_columns(builder.schema().fields(), path)?;
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(usize::MAX);
    let texts = columns.iter().filter(|c| matches!(c.values, Values::Text(_))).count();
    let (batch, decoded) = batch_rows(builder.metadata(), columns.len(), texts, options.memory_limit);
    let plan = ReadPlan::new(path, options, length.saturating_add(decoded));
    let mut cells = [(columns.len() - texts, NUMBER), (texts, TEXT)]
        .iter()
        .fold(0u64, |all, (n, each)| all.saturating_add((rows as u64).saturating_mul(*n as u64 * each)));
    plan.check(rows, columns.len(), cells)?;
    for column in &mut columns {
        match &mut column.values {
            Values::Numeric(values) => *values = room(rows, path)?,
            Values::Text(values) => *values = room(rows, path)?,
        }
    }
    let reader = builder.with_batch_size(batch).build().map_err(|e| malformed(e.to_string()))?;
    for batch in reader {
        let batch = batch.map_err(|e| malformed(e.to_string()))?;
        for (column, array) in columns.iter_mut().zip(batch.columns()) {
            // A dictionary makes much text of few bytes: counted before it is copied.
            if let Values::Text(_) = &column.values {
                each_text(array, &mut |text| cells += text_cell(text.map(str::len)) - TEXT)
                    .map_err(malformed)?;
                plan.check(rows, batch.num_columns(), cells)?;
            }
            push(&mut column.values, array).map_err(malformed)?;
        }
    }
    Ok(Table::new(path, columns))
}

/// Columns without cells for the fields of a file.
pub(crate) fn empty_columns(fields: &Fields, path: &Path) -> Result<Vec<Column>, DataError> {
    let column = |field: &FieldRef| {
        if !is_flat(field.data_type()) {
            return Err(DataError::Malformed {
                path: path.into(),
                format: "Parquet",
                reason: format!(
                    "column `{}` has type {}, which is no table cell",
                    field.name(),
                    field.data_type()
                ),
            });
        }
        let values =
            if is_text(field.data_type()) { Values::Text(Vec::new()) } else { Values::Numeric(Vec::new()) };
        Ok(Column { name: field.name().clone(), values })
    };
    fields.iter().map(column).collect()
}

/// Declared sizes against the file's real length and the memory limit, before any page is decoded.
pub(crate) fn check_sizes(
    metadata: &parquet::file::metadata::ParquetMetaData,
    length: u64,
    path: &Path,
    options: &ReadOptions,
) -> Result<(), DataError> {
    let malformed =
        |reason: &str| DataError::Malformed { path: path.into(), format: "Parquet", reason: reason.into() };
    let too_large = || DataError::TooLarge { path: path.into(), limit: options.memory_limit };
    let (mut total, mut rows_of_groups) = (0u64, 0u64);
    for group in metadata.row_groups() {
        let rows = u64::try_from(group.num_rows())
            .map_err(|_| malformed("a row group has a negative number of rows"))?;
        rows_of_groups = rows_of_groups.saturating_add(rows);
        let cells = rows.saturating_mul(group.num_columns() as u64);
        total = total.saturating_add(cells.saturating_mul(8));
        for chunk in group.columns() {
            let compressed =
                u64::try_from(chunk.compressed_size()).map_err(|_| malformed("a negative size"))?;
            let plain = u64::try_from(chunk.uncompressed_size()).map_err(|_| malformed("a negative size"))?;
            if compressed > length {
                return Err(malformed("a column claims more bytes than the file has"));
            }
            // Deflate and its kin reach about 1:1,000; run-length encoding is not counted in these sizes.
            if plain / 2_000 > compressed.saturating_add(1) {
                return Err(malformed("a column claims to expand by more than two thousand times"));
            }
            if plain > options.memory_limit {
                return Err(too_large());
            }
        }
    }
    let declared = metadata.file_metadata().num_rows();
    if u64::try_from(declared) != Ok(rows_of_groups) {
        return Err(malformed(&format!(
            "it contradicts itself: it declares {declared} rows, its row groups have {rows_of_groups}; write it again"
        )));
    }
    if total > options.memory_limit {
        return Err(too_large());
    }
    Ok(())
}

/// Rows decoded at a time, and bytes that they take while they are. A dictionary may hold one long text for all rows of a batch, and how long it is the metadata do not say but for a
/// bound, all the text of a group: the batch is so small that even then a quarter of the memory suffices, with the copies of decoders, where that allows batches at all.
fn batch_rows(
    metadata: &parquet::file::metadata::ParquetMetaData,
    columns: usize,
    texts: usize,
    limit: u64,
) -> (usize, u64) {
    const MOST: u64 = 8192;
    let chunks = || metadata.row_groups().iter().flat_map(|g| g.columns());
    let longest = chunks().map(|c| u64::try_from(c.uncompressed_size()).unwrap_or(0)).max().unwrap_or(0);
    let row = 16 * columns as u64 + if texts > 0 { longest.saturating_mul(2 * texts as u64) } else { 0 };
    let batch = (limit / 4 / row.max(1)).clamp(64, MOST);
    (batch as usize, batch.saturating_mul(row).min(limit / 4))
}
