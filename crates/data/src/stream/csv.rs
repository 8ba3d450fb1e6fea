//! Delimited text, a few thousand lines at a time.

use super::StreamOptions;
use crate::read::csv::{header, is_missing, number};
use crate::{Column, DataError, Table, Values};
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line that is believed to be one: an unclosed quotation mark would otherwise swallow the file.
const LONGEST_LINE: usize = 64 << 20;

pub(super) struct CsvParts {
    reader: Reader<Box<dyn Read>>,
    path: PathBuf,
    names: Vec<String>,
    forced_text: Vec<bool>,
    /// The first line, where it is data.
    waiting: Option<ByteRecord>,
    note: Option<String>,
    rows: usize,
    part_bytes: usize,
}

impl CsvParts {
    pub(super) fn open(
        path: &Path,
        delimiter: u8,
        gzip: bool,
        options: &StreamOptions,
    ) -> Result<Self, DataError> {
        let failed = |source| DataError::Read { path: path.into(), source };
        let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
        let mut plain: BufReader<Box<dyn Read>> = if gzip {
            BufReader::with_capacity(1 << 20, Box::new(flate2::bufread::MultiGzDecoder::new(file)))
        } else {
            BufReader::new(Box::new(file))
        };
        // A byte-order mark is not part of the first name.
        let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "CSV", reason };
        if plain.fill_buf().map_err(|e| malformed(e.to_string()))?.starts_with(b"\xef\xbb\xbf") {
            plain.consume(3);
        }
        let boxed: Box<dyn Read> = Box::new(plain);
        let mut reader =
            ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(boxed);
        let mut record = ByteRecord::new();
        if !reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))? {
            return Err(DataError::NoRows { path: path.into() });
        }
        let first: Vec<String> =
            record.iter().map(|c| String::from_utf8_lossy(c).trim().to_string()).collect();
        let (names, headerless) = header(&first, path)?;
        let forced_text = names.iter().map(|n| options.text_columns.contains(n)).collect();
        let note =
            headerless.then(|| format!("{} has no header: columns are named x1, x2, ...", path.display()));
        Ok(Self {
            reader,
            path: path.into(),
            names,
            forced_text,
            waiting: headerless.then_some(record),
            note,
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
                match number(cell) {
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
                let text = String::from_utf8_lossy(cell).trim().to_string();
                texts[j].push((!is_missing(&text)).then_some(text));
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
        table.notes.extend(self.note.take());
        Ok(Some(table))
    }
}
