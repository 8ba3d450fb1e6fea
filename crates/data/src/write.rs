//! Writing tables: CSV or Parquet, in one atomic step.

use crate::{Column, DataError, Table, Values, create_atomically, within_range};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Most rows of a group in a Parquet file.
const GROUP: usize = 1 << 20;

/// Cells of text that are put together before they are encoded.
const TEXTS: usize = 1 << 14;

/// How text is written in CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CsvOptions {
    /// Put an apostrophe before CSV text that spreadsheets would run as a formula
    #[cfg_attr(feature = "clap", arg(long))]
    pub csv_safe: bool,
}

impl CsvOptions {
    /// A name or a cell as it is written. Spreadsheets take text for a formula that begins with `=`, `+`, `-`, `@`, a tab or a carriage return; numbers
    /// are none.
    pub fn written(self, text: String) -> String {
        let formula = self.csv_safe
            && text.starts_with(['=', '+', '-', '@', '\t', '\r'])
            && text.parse::<f64>().is_err();
        if formula { format!("'{text}") } else { text }
    }
}

/// Writes `table` as Parquet when the name ends in `.parquet`, as CSV otherwise. Numbers read back to the same bits.
///
/// # Errors
/// [`StoreError::Write`](crate::StoreError::Write).
pub fn write_table(table: &Table, path: &Path) -> Result<(), DataError> {
    write_table_as(table, path, CsvOptions::default())
}

/// [`write_table`] with options for CSV.
///
/// # Errors
/// [`StoreError::Write`](crate::StoreError::Write).
pub fn write_table_as(table: &Table, path: &Path, csv: CsvOptions) -> Result<(), DataError> {
    create_atomically(path, |out| {
        let mut writer = TableWriter::new(path, csv, out);
        writer.write(table)?;
        writer.finish()
    })?;
    Ok(())
}

/// Writes tables of the same columns one behind the other, as [`write_table_as`] would write them as one, until there is none. An error leaves an older
/// file as it was. Memory: one table.
///
/// # Errors
/// Those of `next`; [`StoreError::Write`](crate::StoreError::Write), also when the columns of two tables differ in name, or in kind where the file is Parquet.
pub fn write_parts<E: From<DataError>>(
    path: &Path,
    csv: CsvOptions,
    mut next: impl FnMut() -> Result<Option<Table>, E>,
) -> Result<(), E> {
    let mut failed = None;
    let written = create_atomically(path, |out| {
        let mut writer = TableWriter::new(path, csv, out);
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
    Csv { writer: csv::Writer<W>, options: CsvOptions, names: Option<Vec<String>> },
    Parquet { out: Option<W>, writer: Option<SerializedFileWriter<W>> },
}

impl<W: Write + Send> TableWriter<W> {
    fn new(path: &Path, options: CsvOptions, out: W) -> Self {
        match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet")) {
            true => Self::Parquet { out: Some(out), writer: None },
            false => Self::Csv { writer: csv::Writer::from_writer(out), options, names: None },
        }
    }

    fn write(&mut self, table: &Table) -> std::io::Result<()> {
        match self {
            Self::Csv { writer, options, names } => {
                let own = table.names();
                match names {
                    None => {
                        writer.write_record(own.iter().map(|name| options.written(name.clone())))?;
                        *names = Some(own);
                    }
                    Some(first) if *first == own => {}
                    Some(_) => return Err(std::io::Error::other("the columns of two parts differ")),
                }
                for row in 0..table.rows() {
                    writer.write_record(table.columns.iter().map(|c| options.written(c.cell(row))))?;
                }
                Ok(())
            }
            Self::Parquet { out, writer } => {
                let schema = schema(table).map_err(std::io::Error::other)?;
                if let Some(out) = out.take() {
                    let new = SerializedFileWriter::new(out, schema.clone(), Arc::default());
                    *writer = Some(new.map_err(std::io::Error::other)?);
                }
                let Some(writer) = writer else { return Ok(()) };
                if writer.schema_descr().root_schema() != &*schema {
                    let advice = "a column has numbers in one part and text in another, which .csv can hold";
                    let problem = format!("the columns of two parts differ in name or kind; where {advice}");
                    return Err(std::io::Error::other(problem));
                }
                // Groups of rows end with a part: no rows are held back for a larger one.
                for first in (0..table.rows()).step_by(GROUP) {
                    let rows = first..table.rows().min(first + GROUP);
                    write_group(writer, table, rows).map_err(std::io::Error::other)?;
                }
                Ok(())
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

/// The columns of a table: doubles and text, any of which may be missing.
fn schema(table: &Table) -> ParquetResult<TypePtr> {
    let field = |column: &Column| {
        let (physical, logical) = match &column.values {
            Values::Numeric(_) => (Physical::DOUBLE, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, physical).with_logical_type(logical);
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<ParquetResult<Vec<_>>>()?;
    if fields.is_empty() {
        return Err(ParquetError::General("a table without columns has no Parquet file".into()));
    }
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?))
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    table: &Table,
    rows: Range<usize>,
) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for column in &table.columns {
        let Some(mut out) = group.next_column()? else { break };
        match &column.values {
            Values::Numeric(values) => write_numbers(&mut out, &values[rows.clone()])?,
            Values::Text(values) => {
                values[rows.clone()].chunks(TEXTS).try_for_each(|cells| write_texts(&mut out, cells))?;
            }
        }
        out.close()?;
    }
    group.close().map(|_| ())
}

fn write_numbers(out: &mut SerializedColumnWriter<'_>, cells: &[f64]) -> ParquetResult<()> {
    let present: Vec<i16> = cells.iter().map(|v| i16::from(!v.is_nan())).collect();
    let values: Vec<f64> = cells.iter().copied().filter(|v| !v.is_nan()).map(within_range).collect();
    out.typed::<DoubleType>().write_batch(&values, Some(&present), None).map(|_| ())
}

fn write_texts(out: &mut SerializedColumnWriter<'_>, cells: &[Option<String>]) -> ParquetResult<()> {
    let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    // One allocation for all of them.
    let all = bytes::Bytes::from(cells.iter().flatten().map(String::as_str).collect::<String>());
    let mut end = 0;
    let one = |text: &String| {
        end += text.len();
        ByteArray::from(all.slice(end - text.len()..end))
    };
    let values: Vec<ByteArray> = cells.iter().flatten().map(one).collect();
    out.typed::<ByteArrayType>().write_batch(&values, Some(&present), None).map(|_| ())
}

/// Rows as text to be added to a file: CSV, the names first where `names` says so, or an object of JSON in each line. Cells that are missing are empty, or null.
pub fn lines_of(table: &Table, csv: CsvOptions, names: bool, objects: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if objects {
        for row in 0..table.rows() {
            let cell = |column: &Column| match &column.values {
                Values::Numeric(values) => serde_json::Value::from(within_range(values[row])),
                Values::Text(values) => serde_json::Value::from(values[row].clone()),
            };
            let object: serde_json::Map<String, serde_json::Value> =
                table.columns.iter().map(|column| (column.name.clone(), cell(column))).collect();
            out.extend(serde_json::Value::Object(object).to_string().into_bytes());
            out.push(b'\n');
        }
        return out;
    }
    let mut writer = csv::Writer::from_writer(&mut out);
    // Memory can be written to.
    if names {
        let _ = writer.write_record(table.names().into_iter().map(|name| csv.written(name)));
    }
    for row in 0..table.rows() {
        let _ = writer.write_record(table.columns.iter().map(|c| csv.written(c.cell(row))));
    }
    let _ = writer.flush();
    drop(writer);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of formulas gets an apostrophe in CSV, whether written whole, in parts or in lines. Numbers, and other formats, stay as they are.
    #[test]
    fn formulas_become_text_where_asked() {
        let texts =
            ["=1+1", "+x", "-2", "-a", "@b", "\tc", "\rd", "e=f", ""].map(|text| Some(text.to_string()));
        let kept = Column { name: "=name".into(), values: Values::Text(texts.to_vec()) };
        let table = Table::new("t", vec![kept, Column::numeric("-n", vec![-1.5; 9])]);
        let safe = "'=name,'-n\n'=1+1,-1.5\n'+x,-1.5\n-2,-1.5\n'-a,-1.5\n'@b,-1.5\n'\tc,-1.5\n\"'\rd\",-1.5\ne=f,-1.5\n,-1.5\n";
        let plain = safe.replace('\'', "");
        let folder = tempfile::tempdir().unwrap();
        for (csv, expected) in
            [(CsvOptions { csv_safe: true }, safe), (CsvOptions::default(), plain.as_str())]
        {
            let [whole, parts] = ["whole.csv", "parts.csv"].map(|name| folder.path().join(name));
            write_table_as(&table, &whole, csv).unwrap();
            let mut next = Some(table.clone());
            write_parts::<DataError>(&parts, csv, || Ok(next.take())).unwrap();
            let lines = String::from_utf8(lines_of(&table, csv, true, false)).unwrap();
            let read = |path| std::fs::read_to_string(path).unwrap();
            assert_eq!([read(whole), read(parts), lines], [expected; 3]);
        }
        let objects = lines_of(&table, CsvOptions { csv_safe: true }, true, true);
        assert_eq!(objects, lines_of(&table, CsvOptions::default(), true, true));
    }
}
