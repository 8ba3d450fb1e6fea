//! Delimited text. Numbers are parsed in one pass; only columns that turn out to hold text are visited again.

use super::ReadOptions;
use super::dialect::{Delimiter, Dialect, GuessedDialect};
use super::encoding::{Decoded, HEAD, decoded, not_utf8, other_bytes};
use super::header::Header;
use super::plan::{NUMBER, ReadPlan, room, text_cell};
use crate::{Column, DataError, Table, Values};
use csv::ByteRecord;
use std::path::Path;

/// Cells that mean "missing".
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"];

/// Longest line that is believed to be one. A line of many cells takes some twenty times its bytes.
const LONGEST_LINE: usize = 64 << 20;

/// The table in the bytes of a file whose name promises the delimiter `usual`.
pub(super) fn parse(
    bytes: Vec<u8>,
    path: &Path,
    usual: Delimiter,
    options: &ReadOptions,
    text_columns: &[String],
) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "CSV", reason };
    let Decoded { text, note, unsure } = decoded(bytes, path, options)?;
    let bytes = &text[..];
    let plan = ReadPlan::new(path, options, bytes.len() as u64);
    let lines = Lines::of(bytes);
    if lines.longest > LONGEST_LINE {
        return Err(malformed(format!("a line has {} bytes; a table has shorter ones", lines.longest)));
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    let guessed = Dialect::guess(head, usual, &options.text, path, || Ok(bytes))?;
    let GuessedDialect { dialect, mark, notes: guessed } = guessed;
    let mut reader = dialect.reader(bytes);
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))? {
        return Err(DataError::NoRows { path: path.into() });
    }
    let header = header_of(&record, head, dialect, path)?;
    let notes = note.into_iter().chain(guessed).chain(header.notes(path)).collect();
    let Header { names, is_row: headerless, index } = header;
    let expected = expected_rows(bytes, dialect, (lines, headerless), &plan)?;
    let mut numbers: Vec<Vec<f64>> = names.iter().map(|_| room(expected, path)).collect::<Result<_, _>>()?;
    let mut is_text: Vec<bool> = names.iter().map(|name| text_columns.contains(name)).collect();
    let mut rows = 0;
    let mut more =
        headerless || reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))?;
    while more {
        rows += 1;
        if record.len() != names.len() {
            return Err(DataError::RaggedRow {
                path: path.into(),
                row: rows,
                found: record.len(),
                expected: names.len(),
            });
        }
        if unsure && let Some(j) = not_utf8(&record) {
            return Err(other_bytes(path, rows, &names[j]));
        }
        for (j, cell) in record.iter().enumerate() {
            if is_text[j] {
                continue;
            }
            match dialect.number(cell) {
                Some(value) => numbers[j].push(value),
                None => {
                    is_text[j] = true;
                    numbers[j] = Vec::new();
                }
            }
        }
        more = reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))?;
    }
    let texts = if is_text.contains(&true) {
        let kept: u64 = numbers.iter().map(|n| NUMBER * n.capacity() as u64).sum();
        check_texts(bytes, dialect, &is_text, rows, kept, &plan)?;
        texts(bytes, dialect, &is_text, !headerless, rows, path)?
    } else {
        Vec::new()
    };
    let mut texts = texts.into_iter();
    let columns = names
        .into_iter()
        .zip(numbers)
        .zip(is_text)
        .map(|((name, numbers), is_text)| {
            let values = if is_text {
                Values::Text(texts.next().unwrap_or_default())
            } else {
                Values::Numeric(numbers)
            };
            Column { name, values }
        })
        .collect();
    Ok(Table { notes, index, mark, ..Table::new(path, columns) })
}

/// The header that a first record is; whether its first column is an index, the first bytes of the text say.
pub(crate) fn header_of(
    first: &ByteRecord,
    head: &[u8],
    dialect: Dialect,
    path: &Path,
) -> Result<Header, DataError> {
    let names = first.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_string()).collect();
    let header = Header::of(names, |cell| dialect.is_number(cell), "CSV", path)?;
    if !header.may_count() {
        return Ok(header);
    }
    let records = dialect.first_records(head);
    let cells = records.iter().skip(1).map(|record| record.get(0).and_then(|cell| dialect.number(cell)));
    Ok(header.with_unnamed(cells))
}

/// The lines of a text.
#[derive(Clone, Copy)]
struct Lines {
    /// At least as many as there are records.
    count: usize,
    /// Bytes of the longest.
    longest: usize,
}

impl Lines {
    fn of(bytes: &[u8]) -> Self {
        let (mut count, mut longest, mut from) = (1, 0, 0);
        for (i, byte) in bytes.iter().enumerate() {
            let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(i + 1) != Some(&b'\n');
            if ends {
                count += usize::from(i + 1 < bytes.len());
                longest = longest.max(i - from);
                from = i + 1;
            }
        }
        Self { count, longest: longest.max(bytes.len() - from) }
    }
}

/// Room that each column needs: the number of lines where that fits the memory, the number of records where only that does. Blank lines are no records, and
/// quotation marks may hold ends of lines.
fn expected_rows(
    bytes: &[u8],
    dialect: Dialect,
    (lines, headerless): (Lines, bool),
    plan: &ReadPlan<'_>,
) -> Result<usize, DataError> {
    let malformed =
        |e: csv::Error| DataError::Malformed { path: plan.path.into(), format: "CSV", reason: e.to_string() };
    let mut records = dialect.reader(bytes);
    let mut record = ByteRecord::new();
    records.read_byte_record(&mut record).map_err(malformed)?;
    let columns = record.len();
    let cells = |rows: usize| NUMBER.saturating_mul(rows as u64).saturating_mul(columns as u64);
    if plan.fits(columns, cells(lines.count)) {
        return Ok(lines.count);
    }
    let mut rows = usize::from(headerless);
    while records.read_byte_record(&mut record).map_err(malformed)? {
        rows += 1;
    }
    plan.check(rows, columns, cells(rows))?;
    Ok(rows)
}

/// That the cells of the columns that hold text fit beside the numbers, `kept` bytes.
fn check_texts(
    bytes: &[u8],
    dialect: Dialect,
    is_text: &[bool],
    rows: usize,
    kept: u64,
    plan: &ReadPlan<'_>,
) -> Result<(), DataError> {
    let columns = is_text.iter().filter(|t| **t).count() as u64;
    // No cell has more than its text beside what the smallest one has.
    let bound = (rows as u64).saturating_mul(columns).saturating_mul(text_cell(Some(1)) + 24);
    if plan.fits(is_text.len(), kept.saturating_add(bound).saturating_add(bytes.len() as u64)) {
        return Ok(());
    }
    let mut needed = kept;
    let (mut records, mut record) = (dialect.reader(bytes), ByteRecord::new());
    // Lines that cannot be read were refused before.
    while records.read_byte_record(&mut record).unwrap_or(false) {
        for (cell, _) in record.iter().zip(is_text).filter(|(_, t)| **t) {
            needed = needed.saturating_add(text_cell(Some(cell.len())));
        }
    }
    plan.check(rows, is_text.len(), needed)
}

/// Whether a cell's text means "missing".
pub(crate) fn is_missing(text: &str) -> bool {
    MISSING.contains(&text)
}

/// The cells of the columns that hold text.
fn texts(
    bytes: &[u8],
    dialect: Dialect,
    is_text: &[bool],
    skip_header: bool,
    rows: usize,
    path: &Path,
) -> Result<Vec<Vec<Option<String>>>, DataError> {
    let chosen: Vec<usize> = (0..is_text.len()).filter(|&j| is_text[j]).collect();
    let mut out: Vec<Vec<Option<String>>> =
        chosen.iter().map(|_| room(rows, path)).collect::<Result<_, _>>()?;
    for (i, record) in dialect.reader(bytes).into_byte_records().enumerate() {
        let record = record.map_err(|e| DataError::Malformed {
            path: path.into(),
            format: "CSV",
            reason: e.to_string(),
        })?;
        if i == 0 && skip_header {
            continue;
        }
        for (column, &j) in out.iter_mut().zip(&chosen) {
            column.push(Dialect::text(record.get(j).unwrap_or_default()));
        }
    }
    Ok(out)
}
