//! Lines as rows of a table.

use crate::read::{Delimiter, Dialect, Header, read_numbers};
use crate::{Column, DataError, Table, TextEncoding, TextOptions, Values};
use csv::ByteRecord;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// Cells with commas between
    #[default]
    Csv,
    /// Cells with tabs between
    Tsv,
    /// A JSON object: names and cells
    Jsonl,
}

/// How lines become rows: what they are, and the columns in the order of their cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFormat {
    /// What a line is.
    pub kind: RowKind,
    /// How cells are separated, numbers written and characters encoded; the usual of its kind where it is not said, since lines that are still to come tell nothing.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub text: TextOptions,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The column that names the rows, where the first had no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// Whether nothing is said of a text.
fn is_usual(text: &TextOptions) -> bool {
    *text == TextOptions::default()
}

impl RowFormat {
    /// Lines of this kind and text, of columns that are not known yet.
    pub fn of(kind: RowKind, text: TextOptions) -> Self {
        Self { kind, text, columns: Vec::new(), index: None }
    }

    /// Refuses what lines cannot be.
    ///
    /// # Errors
    /// What is wrong, in words: UTF-16, whose lines do not end with one byte; a delimiter or a decimal mark of JSON.
    pub fn check(&self) -> Result<(), String> {
        let TextOptions { delimiter, decimal, encoding, .. } = self.text;
        if matches!(encoding, Some(TextEncoding::Utf16Le | TextEncoding::Utf16Be)) {
            return Err(
                "lines of UTF-16 cannot be read as they arrive: convert them (iconv -f UTF-16 -t UTF-8)"
                    .into(),
            );
        }
        if self.kind == RowKind::Jsonl && (delimiter.is_some() || decimal.is_some()) {
            return Err(
                "--set text.delimiter and --set text.decimal are for lines of cells, and these are JSON"
                    .into(),
            );
        }
        Ok(())
    }

    /// How cells are told apart and read.
    fn dialect(&self) -> Dialect {
        let usual = if self.kind == RowKind::Tsv { Delimiter::Tab } else { Delimiter::Comma };
        Dialect::said(&self.text, usual)
    }

    /// A line as UTF-8.
    fn decoded<'a>(&self, line: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        match self.text.encoding {
            None => Ok(Cow::Borrowed(line)),
            Some(encoding) => match encoding.decoded_line(line)? {
                Cow::Borrowed(text) => Ok(Cow::Borrowed(text.as_bytes())),
                Cow::Owned(text) => Ok(Cow::Owned(text.into_bytes())),
            },
        }
    }

    /// From the first line: a header, or an object whose keys are the columns. Whether it is a row itself comes with it: objects are, and lines of CSV that are all numbers, whose columns are called x1, x2, ...
    ///
    /// # Errors
    /// [`DataError::Malformed`] for a line that cannot be either.
    pub fn of_first(
        kind: RowKind,
        text: TextOptions,
        line: &[u8],
        source: &Path,
    ) -> Result<(Self, bool), DataError> {
        let malformed = |reason: String| DataError::Malformed {
            path: source.into(),
            format: if kind == RowKind::Jsonl { "JSON lines" } else { "CSV" },
            reason: format!("its first line: {reason}"),
        };
        if kind == RowKind::Jsonl {
            let object = Self::of(kind, text).object(line).map_err(malformed)?;
            let columns: Vec<String> = object.into_iter().map(|(name, _)| name).collect();
            return Ok((Self { columns, ..Self::of(kind, text) }, true));
        }
        let own = Self::of(kind, text);
        let first = own.split(line).map_err(malformed)?;
        let first: Vec<String> =
            first.iter().map(|c| String::from_utf8_lossy(c).trim().to_string()).collect();
        let header = own.names(first, source)?;
        Ok((Self { columns: header.names, index: header.index, ..own }, header.is_row))
    }

    /// Whether a line is a header for these columns, in any order, which it then gives back. Lines of JSON have none.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`] for a header of other columns: some of its cells are names of these, and some of `needed` are not there.
    pub fn header(&self, line: &[u8], needed: &[String], source: &Path) -> Result<Option<Self>, DataError> {
        if self.kind == RowKind::Jsonl {
            return Ok(None);
        }
        let Ok(cells) = self.split(line) else { return Ok(None) };
        let cells: Vec<String> =
            cells.iter().map(|c| String::from_utf8_lossy(c).trim().to_string()).collect();
        let known = cells.iter().filter(|c| self.columns.contains(c)).count();
        // A label may be called as a column is.
        if known == 0 || cells.iter().any(|c| self.dialect().is_number(c)) {
            return Ok(None);
        }
        // Counted before the cells become names.
        let width = cells.len();
        let columns = self.names(cells, source)?.names;
        let missing: Vec<String> = needed.iter().filter(|n| !columns.contains(n)).cloned().collect();
        if missing.is_empty() {
            return Ok(Some(Self { columns, ..self.clone() }));
        }
        // One name among cells that are none is a row of text.
        if 2 * known < width {
            return Ok(None);
        }
        Err(DataError::NoSuchColumn { path: source.into(), missing, known: columns })
    }

    /// The cells of a line, in the order of the columns. Of JSON those named in `optional` may be absent, others may be null; keys that are no columns are passed over.
    ///
    /// # Errors
    /// What is wrong with the line, in words.
    pub fn cells(&self, line: &[u8], optional: &[String]) -> Result<ByteRecord, String> {
        if self.kind != RowKind::Jsonl {
            let cells = self.split(line)?;
            return match cells.len() == self.columns.len() {
                true => Ok(cells),
                false => Err(format!(
                    "it has {} cells, and there are {} columns: {}",
                    cells.len(),
                    self.columns.len(),
                    crate::error::listed(&self.columns)
                )),
            };
        }
        let object = self.object(line)?;
        let mut cells = ByteRecord::new();
        for name in &self.columns {
            let cell = match object.get(name) {
                Some(serde_json::Value::String(text)) => text.clone(),
                Some(serde_json::Value::Null) => String::new(),
                Some(value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_))) => {
                    value.to_string()
                }
                Some(_) => return Err(format!("`{name}` is no number or text")),
                None if optional.contains(name) => String::new(),
                None => return Err(format!("it has no `{name}`")),
            };
            cells.push_field(cell.as_bytes());
        }
        Ok(cells)
    }

    /// Rows as a table of the columns that are `wanted` (all of them where None is said); those in `text` are text, others are numbers if all their cells are.
    pub fn table(
        &self,
        rows: &[ByteRecord],
        wanted: Option<&[String]>,
        text: &[String],
        source: &Path,
    ) -> Table {
        // Cells of JSON are as it has them.
        let dialect = self.dialect();
        let columns = self.columns.iter().enumerate();
        let columns = columns.filter(|(_, name)| wanted.is_none_or(|wanted| wanted.contains(name)));
        let column = |(j, name): (usize, &String)| {
            let numbers: Option<Vec<f64>> = match text.contains(name) {
                true => None,
                false => rows.iter().map(|row| dialect.number(&row[j])).collect(),
            };
            let values = match numbers {
                Some(numbers) => Values::Numeric(numbers),
                None => Values::Text(rows.iter().map(|row| Dialect::text(&row[j])).collect()),
            };
            Column { name: name.clone(), values }
        };
        let mut table = Table::new(source, columns.map(column).collect());
        table.index.clone_from(&self.index);
        table.mark = TextOptions { decimal: self.text.decimal.or(self.text.trained), ..self.text }.mark();
        read_numbers(&mut table, text);
        table
    }

    /// The cells of a line of CSV.
    fn split(&self, line: &[u8]) -> Result<ByteRecord, String> {
        let line = &*self.decoded(line)?;
        if line.iter().filter(|b| **b == b'"').count() % 2 == 1 {
            return Err("a quotation mark is not closed (a cell of a stream holds no end of line)".into());
        }
        // A byte-order mark is not part of the first name.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let mut builder = self.dialect().builder();
        let mut reader = builder.buffer_capacity(line.len().max(16)).from_reader(line);
        let mut cells = ByteRecord::new();
        reader.read_byte_record(&mut cells).map_err(|e| e.to_string())?;
        Ok(cells)
    }

    /// Names of columns from the cells of a first line.
    fn names(&self, first: Vec<String>, source: &Path) -> Result<Header, DataError> {
        Header::of(first, |cell| self.dialect().is_number(cell), "CSV", source)
    }

    fn object(&self, line: &[u8]) -> Result<serde_json::Map<String, serde_json::Value>, String> {
        serde_json::from_slice(&self.decoded(line)?).map_err(|e| format!("it is no JSON object: {e}"))
    }
}
