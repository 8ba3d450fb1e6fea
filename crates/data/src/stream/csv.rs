//! Delimited text, a few thousand lines at a time.

use super::StreamOptions;
use crate::read::csv::header_of;
use crate::read::{Decoded, Dialect, GuessedDialect, HEAD, Header, decoded_stream, not_utf8, other_bytes};
use crate::{Column, DataError, Delimiter, NumberMark, Table, Values};
use csv::{ByteRecord, Reader};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Longest line that is believed to be one: an unclosed quotation mark would otherwise swallow the file.
const LONGEST_LINE: usize = 64 << 20;

pub(super) struct CsvParts {
    reader: Reader<Box<dyn Read>>,
    path: PathBuf,
    dialect: Dialect,
    mark: Option<NumberMark>,
    /// Whether rows may hold what is no UTF-8.
    unsure: bool,
    names: Vec<String>,
    index: Option<String>,
    forced_text: Vec<bool>,
    /// The first line, where it is data.
    waiting: Option<ByteRecord>,
    notes: Vec<String>,
    rows: usize,
    part_bytes: usize,
}

impl CsvParts {
    pub(super) fn open(
        path: &Path,
        usual: Delimiter,
        gzip: bool,
        options: &StreamOptions,
    ) -> Result<Self, DataError> {
        let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "CSV", reason };
        let open = || opened(path, gzip, options);
        let Decoded { mut text, note, unsure } = open()?;
        let mut head = Vec::new();
        let read = text.by_ref().take(HEAD as u64).read_to_end(&mut head);
        read.map_err(|e| malformed(e.to_string()))?;
        let guessed = Dialect::guess(&head, usual, &options.text, path, || Ok(open()?.text))?;
        let GuessedDialect { dialect, mark, notes: guessed } = guessed;
        let whole: Box<dyn Read> = Box::new(Cursor::new(head.clone()).chain(text));
        let mut reader = dialect.reader(whole);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))? {
            return Err(DataError::NoRows { path: path.into() });
        }
        let header = header_of(&record, &head, dialect, path)?;
        let notes = note.into_iter().chain(guessed).chain(header.notes(path)).collect();
        let Header { names, is_row, index } = header;
        let forced_text = names.iter().map(|n| options.text_columns.contains(n)).collect();
        Ok(Self {
            reader,
            path: path.into(),
            dialect,
            mark,
            unsure,
            names,
            index,
            forced_text,
            waiting: is_row.then_some(record),
            notes,
            rows: 0,
            part_bytes: options.part_bytes,
        })
    }

    /// The next line, checked; None at the end.
    fn line(&mut self, record: &mut ByteRecord) -> Result<bool, DataError> {
        let malformed =
            |reason: String| DataError::Malformed { path: self.path.clone(), format: "CSV", reason };
        if let Some(first) = self.waiting.take() {
            *record = first;
        } else if !self.reader.read_byte_record(record).map_err(|e| malformed(e.to_string()))? {
            return Ok(false);
        }
        self.rows += 1;
        if record.len() != self.names.len() {
            return Err(DataError::RaggedRow {
                path: self.path.clone(),
                row: self.rows,
                found: record.len(),
                expected: self.names.len(),
            });
        }
        if self.unsure
            && let Some(j) = not_utf8(record)
        {
            return Err(other_bytes(&self.path, self.rows, &self.names[j]));
        }
        if record.as_slice().len() > LONGEST_LINE {
            return Err(malformed(format!(
                "row {} has {} bytes: a quotation mark is not closed",
                self.rows,
                record.as_slice().len()
            )));
        }
        Ok(true)
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn mark(&self) -> Option<NumberMark> {
        self.mark
    }

    pub(super) fn index(&self) -> Option<String> {
        self.index.clone()
    }

    pub(super) fn count(mut self) -> Result<usize, DataError> {
        let mut record = ByteRecord::new();
        while self.line(&mut record)? {}
        Ok(self.rows)
    }

    pub(super) fn next_part(&mut self) -> Result<Option<Table>, DataError> {
        let width = self.names.len();
        let mut numbers: Vec<Vec<f64>> = vec![Vec::new(); width];
        // The cells of a part are kept until its columns are known to be numbers.
        let mut texts: Vec<Vec<Option<String>>> = vec![Vec::new(); width];
        let mut is_text = self.forced_text.clone();
        let mut cells: Vec<ByteRecord> = Vec::new();
        let (mut bytes, mut record) = (0, ByteRecord::new());
        while bytes < self.part_bytes && self.line(&mut record)? {
            for (j, cell) in record.iter().enumerate() {
                if is_text[j] {
                    continue;
                }
                match self.dialect.number(cell) {
                    Some(value) => numbers[j].push(value),
                    None => {
                        is_text[j] = true;
                        numbers[j] = Vec::new();
                    }
                }
            }
            // Cells, their ends, and the numbers.
            bytes += record.as_slice().len() + 16 * width + 64;
            cells.push(record.clone());
        }
        if cells.is_empty() {
            return Ok(None);
        }
        for record in &cells {
            for (j, cell) in record.iter().enumerate().filter(|(j, _)| is_text[*j]) {
                texts[j].push(Dialect::text(cell));
            }
        }
        let columns = self
            .names
            .iter()
            .zip(numbers)
            .zip(texts)
            .zip(is_text)
            .map(|(((name, numbers), texts), is_text)| Column {
                name: name.clone(),
                values: if is_text { Values::Text(texts) } else { Values::Numeric(numbers) },
            })
            .collect();
        let mut table = Table::new(&self.path, columns);
        table.notes = std::mem::take(&mut self.notes);
        table.mark = self.mark;
        Ok(Some(table))
    }
}

/// The text of a file.
fn opened(path: &Path, gzip: bool, options: &StreamOptions) -> Result<Decoded<Box<dyn Read>>, DataError> {
    let file = File::open(path).map_err(|source| DataError::Read { path: path.into(), source })?;
    let file = BufReader::with_capacity(1 << 20, file);
    let plain: Box<dyn Read> = if gzip {
        let decoder = flate2::bufread::MultiGzDecoder::new(file);
        Box::new(BufReader::with_capacity(1 << 20, decoder))
    } else {
        Box::new(file)
    };
    let malformed =
        |e: std::io::Error| DataError::Malformed { path: path.into(), format: "CSV", reason: e.to_string() };
    decoded_stream(plain, path, options.text.encoding).map_err(malformed)
}
