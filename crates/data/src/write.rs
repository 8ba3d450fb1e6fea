//! Writing tables: CSV or Parquet, in one atomic step.

use crate::{Column, DataError, Table, Values, create_atomically};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Writes `table` as Parquet when the name ends in `.parquet`, as CSV otherwise. Numbers read back to the same bits.
///
/// # Errors
/// [`StoreError::Write`](crate::StoreError::Write).
pub fn write_table(table: &Table, path: &Path) -> Result<(), DataError> {
    create_atomically(path, |out| {
        let mut writer = TableWriter::new(path, out);
        writer.write(table)?;
        writer.finish()
    })?;
    Ok(())
}

/// Writes tables of the same columns one behind the other, as [`write_table`] would write them as one, until there is none. An error leaves an older
/// file as it was. Memory: one table.
///
/// # Errors
/// Those of `next`; [`StoreError::Write`](crate::StoreError::Write), also when the columns of two tables differ in name, or in kind where the file is Parquet.
pub fn write_parts<E: From<DataError>>(
    path: &Path,
    mut next: impl FnMut() -> Result<Option<Table>, E>,
) -> Result<(), E> {
    let mut failed = None;
    let written = create_atomically(path, |out| {
        let mut writer = TableWriter::new(path, out);
        loop {
            match next() {
                Ok(Some(table)) => writer.write(&table)?,
                Ok(None) => return writer.finish(),
                Err(error) => {
                    failed = Some(error);
                    return Err(std::io::Error::other("there is no next part"));
                }
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(written.map_err(DataError::from)?),
    }
}

/// Writes tables one behind the other.
enum TableWriter<W: Write + Send> {
    Csv { writer: csv::Writer<W>, names: Option<Vec<String>> },
    Parquet { out: Option<W>, writer: Option<ArrowWriter<W>> },
}

impl<W: Write + Send> TableWriter<W> {
    fn new(path: &Path, out: W) -> Self {
        match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet")) {
            true => Self::Parquet { out: Some(out), writer: None },
            false => Self::Csv { writer: csv::Writer::from_writer(out), names: None },
        }
    }

    fn write(&mut self, table: &Table) -> std::io::Result<()> {
        match self {
            Self::Csv { writer, names } => {
                let own = table.names();
                match names {
                    None => {
                        writer.write_record(&own)?;
                        *names = Some(own);
                    }
                    Some(first) if *first == own => {}
                    Some(_) => return Err(std::io::Error::other("the columns of two parts differ")),
                }
                for row in 0..table.rows() {
                    writer.write_record(table.columns.iter().map(|c| c.cell(row)))?;
                }
                Ok(())
            }
            Self::Parquet { out, writer } => {
                let columns = table.columns.iter().map(|c| (c.name.as_str(), array(c), true));
                let batch =
                    RecordBatch::try_from_iter_with_nullable(columns).map_err(std::io::Error::other)?;
                if let Some(out) = out.take() {
                    let new = ArrowWriter::try_new(out, batch.schema(), None);
                    *writer = Some(new.map_err(std::io::Error::other)?);
                }
                let Some(writer) = writer else { return Ok(()) };
                writer.write(&batch).map_err(|e| {
                    let advice = "a column has numbers in one part and text in another, which .csv can hold";
                    std::io::Error::other(format!("{e}; where {advice}"))
                })?;
                // A group of rows for each part: none is held back for a larger one.
                writer.flush().map_err(std::io::Error::other)
            }
        }
    }

    fn finish(self) -> std::io::Result<()> {
        match self {
            Self::Csv { mut writer, .. } => writer.flush(),
            Self::Parquet { writer: Some(writer), .. } => {
                writer.close().map(|_| ()).map_err(std::io::Error::other)
            }
            Self::Parquet { .. } => Err(std::io::Error::other("there is nothing to write")),
        }
    }
}

fn array(column: &Column) -> ArrayRef {
    match &column.values {
        Values::Numeric(values) => {
            Arc::new(values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect::<Float64Array>())
        }
        Values::Text(values) => Arc::new(values.iter().map(|v| v.as_deref()).collect::<StringArray>()),
    }
}
