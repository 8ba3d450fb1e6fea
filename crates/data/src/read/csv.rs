//! Delimited text. Numbers are parsed in one pass; only columns that turn out to hold text are visited again.

use crate::{Column, DataError, Table, Values};
use csv::{ByteRecord, Reader, ReaderBuilder};
use std::path::Path;

/// Cells that mean "missing".
const MISSING: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "?"];

pub(super) fn parse(bytes: &[u8], path: &Path, delimiter: u8) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "CSV", reason };
    // A byte-order mark is not part of the first name.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = reader(bytes, delimiter);
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))? {
        return Err(DataError::NoRows { path: path.into() });
    }
    let first: Vec<String> =
        record.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_string()).collect();
    let (names, headerless) = header(&first, path)?;
    let mut numbers: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    let mut is_text = vec![false; names.len()];
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
        more = reader.read_byte_record(&mut record).map_err(|e| malformed(e.to_string()))?;
    }
    let texts = if is_text.contains(&true) {
        texts(bytes, delimiter, &is_text, !headerless, path)?
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
    let mut table = Table::new(path, columns);
    if headerless {
        table.notes.push(format!("{} has no header: columns are named x1, x2, ...", path.display()));
    }
    Ok(table)
}

fn reader(bytes: &[u8], delimiter: u8) -> Reader<&[u8]> {
    ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(bytes)
}

/// The names, and whether they had to be made up because the first line is data (all of it numbers).
pub(crate) fn header(first: &[String], path: &Path) -> Result<(Vec<String>, bool), DataError> {
    if first.iter().all(|cell| cell.parse::<f64>().is_ok()) {
        return Ok(((1..=first.len()).map(|i| format!("x{i}")).collect(), true));
    }
    let mut seen = std::collections::HashSet::new();
    for (j, name) in first.iter().enumerate() {
        let reason = if name.is_empty() {
            format!("column {} has no name in the header", j + 1)
        } else if !seen.insert(name) {
            format!("two columns are called `{name}`")
        } else {
            continue;
        };
        return Err(DataError::Malformed { path: path.into(), format: "CSV", reason });
    }
    Ok((first.to_vec(), false))
}

/// A number, NaN for a missing cell, `None` for anything else.
pub(crate) fn number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok()?.trim();
    text.parse().ok().or_else(|| is_missing(text).then_some(f64::NAN))
}

/// Whether a cell's text means "missing".
pub(crate) fn is_missing(text: &str) -> bool {
    MISSING.contains(&text)
}

/// The cells of the columns that hold text.
fn texts(
    bytes: &[u8],
    delimiter: u8,
    is_text: &[bool],
    skip_header: bool,
    path: &Path,
) -> Result<Vec<Vec<Option<String>>>, DataError> {
    let chosen: Vec<usize> = (0..is_text.len()).filter(|&j| is_text[j]).collect();
    let mut out = vec![Vec::new(); chosen.len()];
    for (i, record) in reader(bytes, delimiter).into_byte_records().enumerate() {
        let record = record.map_err(|e| DataError::Malformed {
            path: path.into(),
            format: "CSV",
            reason: e.to_string(),
        })?;
        if i == 0 && skip_header {
            continue;
        }
        for (column, &j) in out.iter_mut().zip(&chosen) {
            let text = String::from_utf8_lossy(record.get(j).unwrap_or_default()).trim().to_string();
            column.push((!is_missing(&text)).then_some(text));
        }
    }
    Ok(out)
}
