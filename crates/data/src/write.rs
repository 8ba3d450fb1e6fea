//! Writing tables: CSV or Parquet, in one atomic step.

use crate::{Column, DataError, Table, Values};
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Writes a file through a hidden temporary one beside it, renamed when complete: readers see all of it or nothing, and an
/// error leaves an older file as it was.
///
/// # Errors
/// [`DataError::Write`].
pub fn create_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<(), DataError> {
    let failed = |source| DataError::Write { path: path.into(), source };
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".posterior-").tempfile_in(directory).map_err(failed)?;
    let mut writer = BufWriter::new(file.as_file());
    fill(&mut writer).and_then(|()| writer.flush()).map_err(failed)?;
    drop(writer);
    file.as_file().sync_all().map_err(failed)?;
    set_ordinary_permissions(file.as_file()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Temporary files are private to their owner; results are ordinary files.
#[cfg(unix)]
fn set_ordinary_permissions(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_ordinary_permissions(_: &File) -> std::io::Result<()> {
    Ok(())
}

/// Writes `table` as Parquet when the name ends in `.parquet`, as CSV otherwise. Numbers read back to the same bits.
///
/// # Errors
/// [`DataError::Write`].
pub fn write_table(table: &Table, path: &Path) -> Result<(), DataError> {
    let parquet = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet"));
    create_atomically(
        path,
        |writer| if parquet { write_parquet(table, writer) } else { write_csv(table, writer) },
    )
}

fn write_csv(table: &Table, out: &mut impl Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns.iter().map(|c| &c.name))?;
    for row in 0..table.rows() {
        writer.write_record(table.columns.iter().map(|c| c.cell(row)))?;
    }
    writer.flush()
}

fn write_parquet(table: &Table, out: &mut (impl Write + Send)) -> std::io::Result<()> {
    let array = |column: &Column| -> ArrayRef {
        match &column.values {
            Values::Numeric(values) => {
                Arc::new(values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect::<Float64Array>())
            }
            Values::Text(values) => Arc::new(values.iter().map(|v| v.as_deref()).collect::<StringArray>()),
        }
    };
    let columns = table.columns.iter().map(|c| (c.name.as_str(), array(c), true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).map_err(std::io::Error::other)?;
    let mut writer = ArrowWriter::try_new(out, batch.schema(), None).map_err(std::io::Error::other)?;
    writer.write(&batch).map_err(std::io::Error::other)?;
    writer.close().map_err(std::io::Error::other)?;
    Ok(())
}
