//! Sheets of Excel workbooks. A sheet is read twice: once to see where cells are and which columns hold text, once to fill the columns, so that what it says of its own
//! size is never believed.

use super::ReadOptions;
use super::csv::is_missing;
use super::dialect::{Delimiter, Dialect};
use super::header::Header;
use super::plan::{NUMBER, ReadPlan, TEXT, room, text_cell};
use super::workbook::checked;
use crate::error::short;
use crate::{Column, DataError, Table, Values};
use calamine::{CellErrorType, DataRef, ExcelDateTime, Reader, SheetType, Xlsx};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// Cells are numbers as texts of CSV are.
const POINT: Dialect = Dialect::of(Delimiter::Comma);

/// Rows and columns of the largest sheet there is.
const MOST: (u32, u32) = (1 << 20, 1 << 14);

/// The table of a sheet, the first one unless another is `wanted`: its first row with cells is the header, empty rows and columns before it and empty rows at the end are left out. Dates are
/// texts as `2021-03-04` or `2021-03-04T05:06:07`, times of day and durations as `05:06:07`, truth values `true` and `false`; the value of merged cells is that of the first, the others are missing.
///
/// # Errors
/// [`DataError::Malformed`] naming the cell; [`DataError::NoSuchSheet`].
pub(super) fn parse(
    bytes: &[u8],
    path: &Path,
    wanted: Option<&str>,
    options: &ReadOptions,
    text_columns: &[String],
) -> Result<Table, DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "Excel", reason };
    let held = checked(bytes, path, options)?;
    let plan = ReadPlan::new(path, options, held.saturating_add(bytes.len() as u64));
    let mut book: Xlsx<_> =
        Xlsx::new(Cursor::new(bytes)).map_err(|e| malformed(short_reason(&e.to_string())))?;
    let sheets: Vec<String> = book
        .sheets_metadata()
        .iter()
        .filter(|sheet| sheet.typ == SheetType::WorkSheet)
        .map(|sheet| sheet.name.clone())
        .collect();
    let sheet =
        match wanted {
            Some(wanted) => sheets.iter().find(|name| *name == wanted).ok_or_else(|| {
                DataError::NoSuchSheet { path: path.into(), wanted: wanted.into(), known: sheets.clone() }
            })?,
            None => sheets.first().ok_or_else(|| malformed("it has no sheets".into()))?,
        };
    let mut extent = Extent::default();
    each_cell(&mut book, sheet, path, |row, column, cell| {
        extent.see(row, column, cell);
        Ok(())
    })?;
    let Some((first, last)) = extent.rows else { return Err(DataError::NoRows { path: path.into() }) };
    let (from, to) = extent.columns_from_to();
    let width = (to - from + 1) as usize;
    let mut names = vec![String::new(); width];
    plan.check(1, width, 0)?;
    each_cell(&mut book, sheet, path, |row, column, cell| {
        if row == first && !cell.is_empty() {
            names[(column - from) as usize] = cell.text().unwrap_or_default();
        }
        Ok(())
    })?;
    let mut header = Header::of(names, |name| POINT.is_number(name), "Excel", path)?;
    let start = if header.is_row { first } else { first + 1 };
    let rows = (u64::from(last) + 1).saturating_sub(u64::from(start)) as usize;
    let seen: Vec<ColumnContents> = (from..=to)
        .zip(&header.names)
        .map(|(column, name)| {
            let seen = extent.columns.get(&column).copied().unwrap_or_default();
            let numbers = seen.texts == u64::from(seen.header_is_text && !header.is_row);
            ColumnContents { is_text: !numbers || text_columns.contains(name), ..seen }
        })
        .collect();
    let cells = seen.iter().fold(0u64, |all, seen| {
        let each = if seen.is_text { TEXT } else { NUMBER };
        let texts = if seen.is_text { seen.bytes } else { 0 };
        all.saturating_add((rows as u64).saturating_mul(each)).saturating_add(texts)
    });
    plan.check(rows, width, cells)?;
    let mut values = Vec::with_capacity(width);
    for seen in &seen {
        values.push(if seen.is_text {
            let mut texts = room(rows, path)?;
            texts.resize(rows, None);
            Values::Text(texts)
        } else {
            let mut numbers = room(rows, path)?;
            numbers.resize(rows, f64::NAN);
            Values::Numeric(numbers)
        });
    }
    each_cell(&mut book, sheet, path, |row, column, cell| {
        if row >= start && !cell.is_empty() {
            let at = (row - start) as usize;
            match &mut values[(column - from) as usize] {
                Values::Numeric(numbers) => numbers[at] = cell.number().unwrap_or(f64::NAN),
                Values::Text(texts) => texts[at] = cell.text().filter(|text| !is_missing(text)),
            }
        }
        Ok(())
    })?;
    if header.may_count()
        && let Some(Values::Numeric(numbers)) = values.first()
    {
        header = header.with_unnamed(numbers.iter().map(|v| Some(*v)));
    }
    let mut notes = Vec::new();
    if wanted.is_none() && sheets.len() > 1 {
        let (path, sheet) = (path.display(), short(sheet));
        notes.push(format!(
            "{path}: sheet `{sheet}` is read, the first of {} ({path}:SHEET is another)",
            sheets.len()
        ));
    }
    notes.extend(header.notes(path));
    let Header { names, index, .. } = header;
    let columns = names.into_iter().zip(values).map(|(name, values)| Column { name, values }).collect();
    Ok(Table { notes, index, ..Table::new(path, columns) })
}

/// What a column holds.
#[derive(Clone, Copy, Default)]
struct ColumnContents {
    /// Cells that are no numbers.
    texts: u64,
    /// Bytes of all its cells as texts beside what each cell takes.
    bytes: u64,
    header_is_text: bool,
    is_text: bool,
}

/// Where cells are that are not empty.
#[derive(Default)]
struct Extent {
    /// The first and the last row.
    rows: Option<(u32, u32)>,
    columns: BTreeMap<u32, ColumnContents>,
}

impl Extent {
    fn see(&mut self, row: u32, column: u32, cell: &Cell<'_>) {
        if cell.is_empty() {
            return;
        }
        let before = self.rows;
        let (first, last) = before.unwrap_or((row, row));
        self.rows = Some((first.min(row), last.max(row)));
        // Rows come in order but in files that are made to deceive.
        if row < first {
            self.columns.values_mut().for_each(|seen| seen.header_is_text = false);
        }
        let is_text = cell.number().is_none();
        let seen = self.columns.entry(column).or_default();
        seen.texts += u64::from(is_text);
        if row <= first {
            seen.header_is_text = is_text;
        }
        seen.bytes = seen.bytes.saturating_add(text_cell(Some(cell.length())) - TEXT);
    }

    fn columns_from_to(&self) -> (u32, u32) {
        let mut keys = self.columns.keys().copied();
        let first = keys.next().unwrap_or(0);
        (first, keys.next_back().unwrap_or(first))
    }
}

/// Shows the cells of a sheet in the order in which they stand in the file.
fn each_cell(
    book: &mut Xlsx<Cursor<&[u8]>>,
    sheet: &str,
    path: &Path,
    mut see: impl FnMut(u32, u32, &Cell<'_>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let malformed = |reason: String| DataError::Malformed { path: path.into(), format: "Excel", reason };
    let failed = |e: calamine::XlsxError| malformed(short_reason(&e.to_string()));
    let mut cells = book.worksheet_cells_reader(sheet).map_err(failed)?;
    while let Some(cell) = cells.next_cell().map_err(failed)? {
        let (row, column) = cell.get_position();
        if row >= MOST.0 || column >= MOST.1 {
            return Err(malformed(format!(
                "a cell stands in row {row}, column {column}, where no sheet has cells"
            )));
        }
        let value = Cell::of(cell.get_value()).map_err(|what| {
            let place = format!("{}{}", letters(column), u64::from(row) + 1);
            malformed(format!("cell {place} of sheet `{}` {what}", short(sheet)))
        })?;
        see(row, column, &value)?;
    }
    Ok(())
}

/// `0 -> A`, `26 -> AA`
fn letters(column: u32) -> String {
    let mut out = Vec::new();
    let mut left = column + 1;
    while left > 0 {
        out.push(b'A' + ((left - 1) % 26) as u8);
        left = (left - 1) / 26;
    }
    out.reverse();
    String::from_utf8(out).unwrap_or_default()
}

/// What a decoder says of a file may repeat half of it.
fn short_reason(reason: &str) -> String {
    match reason.char_indices().nth(120) {
        Some((end, _)) => format!("{}...", &reason[..end]),
        None => reason.into(),
    }
}

/// A cell of a sheet.
enum Cell<'a> {
    Empty,
    Missing,
    Number(f64),
    Text(&'a str),
    /// A date, a time or a truth value.
    Written(String),
}

impl<'a> Cell<'a> {
    /// What is wrong with it otherwise, in words that follow its place.
    fn of(value: &'a DataRef<'_>) -> Result<Self, String> {
        let text = |text: &'a str| if text.trim().is_empty() { Self::Empty } else { Self::Text(text.trim()) };
        Ok(match value {
            DataRef::Empty => Self::Empty,
            DataRef::Int(value) => Self::Number(*value as f64),
            DataRef::Float(value) => Self::Number(*value),
            DataRef::String(value) => text(value),
            DataRef::SharedString(value) => text(value),
            DataRef::Bool(value) => Self::Written(value.to_string()),
            DataRef::DateTime(value) => Self::Written(date(value)?),
            DataRef::DateTimeIso(value) | DataRef::DurationIso(value) => text(value),
            DataRef::Error(CellErrorType::NA) => Self::Missing,
            DataRef::Error(error) => {
                return Err(format!("holds the error {error}; correct it, or empty the cell"));
            }
        })
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// NaN where it is missing, None where it is no number. Numbers that are stored as text are numbers.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Empty | Self::Missing => Some(f64::NAN),
            Self::Number(value) => Some(*value),
            Self::Text(text) => POINT.number(text.as_bytes()),
            Self::Written(_) => None,
        }
    }

    /// As it stands in a column of text.
    fn text(&self) -> Option<String> {
        match self {
            Self::Empty | Self::Missing => None,
            Self::Number(value) if value.is_nan() => None,
            Self::Number(value) => Some(value.to_string()),
            Self::Text(text) => Some(text.to_string()),
            Self::Written(text) => Some(text.clone()),
        }
    }

    /// Bytes of that text, at most.
    fn length(&self) -> usize {
        match self {
            Self::Empty | Self::Missing => 0,
            Self::Number(value) => value.to_string().len(),
            Self::Text(text) => text.len(),
            Self::Written(text) => text.len(),
        }
    }
}

/// A date or a time in the form of ISO 8601, to the millisecond.
fn date(value: &ExcelDateTime) -> Result<String, String> {
    let days = value.as_f64();
    if value.is_duration() || (0.0..1.0).contains(&days) {
        return clock(days).ok_or_else(|| "holds a duration that is none".into());
    }
    if !(0.0..2_958_466.0).contains(&days) {
        return Err("holds a date outside of the years 1900 to 9999".into());
    }
    let (year, month, day, hour, minute, second, milli) = value.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second, milli) == (0, 0, 0, 0) {
        return Ok(date);
    }
    let whole = format!("{date}T{hour:02}:{minute:02}:{second:02}");
    Ok(with_fraction(whole, u64::from(milli)))
}

/// Hours, minutes and seconds of a number of days; more than 24 hours where it is longer.
fn clock(days: f64) -> Option<String> {
    let millis = (days * 86_400_000.0).round();
    if millis.is_nan() || millis.abs() >= 1e15 {
        return None;
    }
    let (sign, millis) = (if millis < 0.0 { "-" } else { "" }, millis.abs() as u64);
    let seconds = millis / 1000;
    let whole = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(with_fraction(whole, millis % 1000))
}

fn with_fraction(whole: String, millis: u64) -> String {
    if millis == 0 { whole } else { format!("{whole}.{millis:03}").trim_end_matches('0').to_string() }
}
