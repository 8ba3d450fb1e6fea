//! Parquet: numbers, booleans, text, dates and times in flat columns.

use super::ReadOptions;
use super::cells::{Meaning, push};
use super::header::{LEVEL, index_note};
use super::parquet_schema::check_schema;
use super::plan::{NUMBER, ReadPlan, TEXT, room, text_cell};
use crate::{Column, DataError, Table, Values};
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use std::path::{Path, PathBuf};

fn malformed(path: &Path, reason: impl ToString) -> DataError {
    DataError::Malformed { path: path.into(), format: "Parquet", reason: reason.to_string() }
}

pub(super) fn parse(bytes: Vec<u8>, path: &Path, options: &ReadOptions) -> Result<Table, DataError> {
    let length = bytes.len() as u64;
    let mut file = ParquetRows::open(bytes::Bytes::from(bytes), length, path, options)?;
    let (rows, mut columns) = (file.rows(), file.empty_columns());
    let texts = columns.iter().filter(|c| matches!(c.values, Values::Text(_))).count();
    let (batch, decoded) =
        batch_rows(file.metadata(), columns.len(), file.texts_of_any_length(), options.memory_limit);
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
    let width = columns.len();
    while file.next(batch, &mut columns, &mut |texts| {
        cells += texts.iter().map(|length| text_cell(*length) - TEXT).sum::<u64>();
        plan.check(rows, width, cells)
    })? > 0
    {}
    let index = file.index();
    let notes = index.iter().map(|name| index_note(path, name)).collect();
    Ok(Table { notes, index, ..Table::new(path, columns) })
}

/// Hears the lengths of texts before they are copied; an error ends the reading.
pub(crate) type TextObserver<'a> = &'a mut dyn FnMut(&[Option<usize>]) -> Result<(), DataError>;

/// The rows of a file, some at a time, in order.
pub(crate) struct ParquetRows<R: ChunkReader + 'static> {
    reader: SerializedFileReader<R>,
    path: PathBuf,
    names: Vec<String>,
    meanings: Vec<Meaning>,
    rows: usize,
    next_group: usize,
    /// Of the group of rows that is being read.
    columns: Vec<ColumnReader>,
    /// Rows of it that were not read.
    left: usize,
}

impl<R: ChunkReader + 'static> ParquetRows<R> {
    /// Reads the metadata of a file of so many bytes, and checks all sizes that it declares.
    ///
    /// # Errors
    /// When it is malformed, declares more than it can hold or than the limit, or a column holds what is no cell.
    pub(crate) fn open(
        source: R,
        length: u64,
        path: &Path,
        options: &ReadOptions,
    ) -> Result<Self, DataError> {
        check_schema(&source, length).map_err(|e| malformed(path, e))?;
        let reader = SerializedFileReader::new(source).map_err(|e| malformed(path, e))?;
        check_sizes(reader.metadata(), length, path, options)?;
        let file = reader.metadata().file_metadata();
        let rows = usize::try_from(file.num_rows()).unwrap_or(usize::MAX);
        let (schema, mut names, mut meanings) = (file.schema_descr(), Vec::new(), Vec::new());
        let fields = schema.root_schema().get_fields();
        if fields.is_empty() {
            return Err(malformed(path, "it has no columns"));
        }
        for (i, field) in fields.iter().enumerate() {
            // No field before was refused, so that each has one column.
            let column = (i < schema.num_columns() && field.is_primitive()).then(|| schema.column(i));
            let meaning = match column {
                Some(column) if column.max_rep_level() == 0 && column.max_def_level() <= 1 => {
                    Meaning::of(&column)
                }
                _ => Err("list or group of columns".into()),
            };
            names.push(field.name().to_string());
            meanings.push(meaning.map_err(|kind| {
                malformed(path, format!("column `{}` has type {kind}, which is no table cell", field.name()))
            })?);
        }
        let path = path.into();
        Ok(Self { reader, path, names, meanings, rows, next_group: 0, columns: Vec::new(), left: 0 })
    }

    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        self.reader.metadata()
    }

    /// Rows that the metadata declares, the same for the file and for its groups of rows together.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of text as it stands in the file.
    fn texts_of_any_length(&self) -> usize {
        self.meanings.iter().filter(|meaning| **meaning == Meaning::Text).count()
    }

    /// The column that pandas keeps the index of a table in.
    pub(crate) fn index(&self) -> Option<String> {
        self.names.iter().find(|name| *name == LEVEL).cloned()
    }

    /// The columns without cells.
    pub(crate) fn empty_columns(&self) -> Vec<Column> {
        let column = |(name, meaning): (&String, &Meaning)| {
            let text = meaning.is_text();
            let values = if text { Values::Text(Vec::new()) } else { Values::Numeric(Vec::new()) };
            Column { name: name.clone(), values }
        };
        self.names.iter().zip(&self.meanings).map(column).collect()
    }

    /// Adds the next rows to columns, so many where there are as many; their number. `text` hears the lengths of texts before they are copied.
    ///
    /// # Errors
    /// When a page cannot be decoded or a column has other numbers of rows than declared; those of `text`.
    pub(crate) fn next(
        &mut self,
        most: usize,
        out: &mut [Column],
        text: TextObserver<'_>,
    ) -> Result<usize, DataError> {
        let mut added = 0;
        while added < most {
            while self.left == 0 && self.next_group < self.metadata().num_row_groups() {
                self.open_group().map_err(|e| malformed(&self.path, e))?;
            }
            let wanted = (most - added).min(self.left);
            if wanted == 0 {
                break;
            }
            self.left -= wanted;
            for ((reader, meaning), column) in self.columns.iter_mut().zip(&self.meanings).zip(&mut *out) {
                let failed = |e| match e {
                    Failed::Page(e) => malformed(&self.path, format!("column `{}`: {e}", column.name)),
                    Failed::Text(e) => e,
                };
                let values = &mut column.values;
                let mut read = 0;
                // A page may end in between.
                while read < wanted {
                    let heard = |texts: &[_]| text(texts).map_err(Failed::Text);
                    match push(reader, *meaning, wanted - read, values, heard).map_err(failed)? {
                        0 => break,
                        now => read += now,
                    }
                }
                let more = self.left == 0
                    && push(reader, *meaning, 1, &mut values.emptied(), |_| Ok(())).map_err(failed)? > 0;
                if read < wanted || more {
                    let problem = "has other numbers of rows than its group of rows declares";
                    return Err(malformed(&self.path, format!("column `{}` {problem}", column.name)));
                }
            }
            added += wanted;
        }
        Ok(added)
    }

    fn open_group(&mut self) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.next_group)?;
        self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.columns =
            (0..group.num_columns()).map(|i| group.get_column_reader(i)).collect::<Result<_, _>>()?;
        self.next_group += 1;
        if self.columns.len() == self.meanings.len() {
            return Ok(());
        }
        Err(ParquetError::General("a group of rows has other columns than the file".into()))
    }
}

/// Why cells could not be added.
enum Failed {
    Page(ParquetError),
    Text(DataError),
}

impl From<ParquetError> for Failed {
    fn from(error: ParquetError) -> Self {
        Self::Page(error)
    }
}

/// Declared sizes against the file's real length and the memory limit, before any page is decoded.
fn check_sizes(
    metadata: &ParquetMetaData,
    length: u64,
    path: &Path,
    options: &ReadOptions,
) -> Result<(), DataError> {
    let malformed = |reason: &str| malformed(path, reason);
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
fn batch_rows(metadata: &ParquetMetaData, columns: usize, texts: usize, limit: u64) -> (usize, u64) {
    const MOST: u64 = 8192;
    let chunks = || metadata.row_groups().iter().flat_map(|g| g.columns());
    let longest = chunks().map(|c| u64::try_from(c.uncompressed_size()).unwrap_or(0)).max().unwrap_or(0);
    // A date or time is a short text for a moment.
    let row = 64 * columns as u64 + if texts > 0 { longest.saturating_mul(2 * texts as u64) } else { 0 };
    let batch = (limit / 4 / row.max(1)).clamp(64, MOST);
    (batch as usize, batch.saturating_mul(row).min(limit / 4))
}
