//! Several files as one table.
//!
//! The first file says what the columns are called and in which order they stand; the others have the same, in any order. A column that is text in one file is text in all of them,
//! with the cells as they stand, so that the result is that of one file with all rows.

use super::{DecimalMark, NumberMark, ReadOptions, read_table, read_with_text};
use crate::error::listed;
use crate::table::TableFile;
use crate::{Column, DataError, Table, Values};
use std::path::{Path, PathBuf};

/// Reads tables of the same columns (by name) one behind the other. Rows are counted through; errors name file and row.
///
/// Memory: the cells of all, and while a file is added to the others, the content of it and a copy of the largest column.
///
/// # Errors
/// As [`read_table`]; [`DataError::DoNotMatch`] for a file of other columns, by name; [`DataError::Argument`] for no file at all.
pub fn read_tables(files: &[PathBuf], options: &ReadOptions) -> Result<Table, DataError> {
    match files {
        [] => Err(no_files()),
        [path] => read_table(path, options),
        _ => {
            let (mut options, mut text) = (*options, Vec::new());
            loop {
                match put_together(files, &options, &text)? {
                    CombinedFiles::Table(table) => return Ok(table),
                    CombinedFiles::Mixed(columns) if text.is_empty() => text = columns,
                    CombinedFiles::Unlike(mark) if options.text.trained.is_none() => {
                        options.text.trained = Some(mark);
                    }
                    // Every column that is text anywhere was read as text, every number under one mark.
                    CombinedFiles::Mixed(_) | CombinedFiles::Unlike(_) => {
                        return Err(DataError::DoNotMatch {
                            path: source_of(files),
                            reason: "they changed while they were read; begin again".into(),
                        });
                    }
                }
            }
        }
    }
}

pub(crate) fn no_files() -> DataError {
    DataError::Argument {
        argument: "data",
        value: "an empty list".into(),
        reason: "name at least one file".into(),
    }
}

/// What tables of several files are called in messages.
pub fn source_of(files: &[PathBuf]) -> PathBuf {
    match files {
        [] => PathBuf::new(),
        [path] => path.clone(),
        [first, rest @ ..] => {
            let mut name = first.clone().into_os_string();
            name.push(format!(" and {} more", rest.len()));
            name.into()
        }
    }
}

/// The columns of a file in the order of the first file's names.
///
/// # Errors
/// [`DataError::DoNotMatch`] naming what is missing and what is too much.
pub(crate) fn aligned(
    columns: Vec<Column>,
    names: &[String],
    (path, first): (&Path, &Path),
) -> Result<Vec<Column>, DataError> {
    if columns.iter().map(|c| &c.name).eq(names) {
        return Ok(columns);
    }
    let mut own: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
    let (mut out, mut missing) = (Vec::with_capacity(names.len()), Vec::new());
    for name in names {
        let place = own.iter().position(|c| c.as_ref().is_some_and(|c| c.name == *name));
        match place.and_then(|place| own[place].take()) {
            Some(column) => out.push(column),
            None => missing.push(name.clone()),
        }
    }
    let extra: Vec<String> = own.into_iter().flatten().map(|c| c.name).collect();
    if missing.is_empty() && extra.is_empty() {
        return Ok(out);
    }
    let short = |names: &[String]| listed(&names[..names.len().min(3)]);
    let more = |names: &[String]| if names.len() > 3 { ", ..." } else { "" };
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(format!("it has no column {}{}", short(&missing), more(&missing)));
    }
    if !extra.is_empty() {
        problems.push(format!("{}{} is not in {}", short(&extra), more(&extra), first.display()));
    }
    let reason =
        format!("{}; files of one table have the same columns, in any order", problems.join(", and "));
    Err(DataError::DoNotMatch { path: path.into(), reason })
}

enum CombinedFiles {
    Table(Table),
    /// Columns that are text in some files only.
    Mixed(Vec<String>),
    /// The decimal mark that some files decide and others leave open.
    Unlike(DecimalMark),
}

fn put_together(
    files: &[PathBuf],
    options: &ReadOptions,
    text_columns: &[String],
) -> Result<CombinedFiles, DataError> {
    let mut whole: Option<Table> = None;
    let mut mixed: Vec<String> = Vec::new();
    let mut marks = Vec::new();
    for path in files {
        let held = whole.as_ref().map_or(0, Table::memory);
        // What is left; a file that is itself larger is told the limit that was given.
        let left = ReadOptions { memory_limit: options.memory_limit.saturating_sub(held), ..*options };
        let mut table = read_with_text(path, &left, text_columns).map_err(|e| of_all(e, files, options))?;
        table.columns.iter_mut().filter(|c| text_columns.contains(&c.name)).for_each(as_text);
        marks.extend(table.mark);
        let Some(all) = &mut whole else {
            table.files = vec![TableFile { path: path.clone(), first_row: 0 }];
            table.source = source_of(files);
            whole = Some(table);
            continue;
        };
        let columns = aligned(table.columns, &all.names(), (path, &files[0]))?;
        let own = Table::new(path, columns);
        let rows = all.rows() + own.rows();
        let most =
            own.columns.iter().chain(&all.columns).map(|c| Table::memory_of(c) / c.len().max(1) as u64);
        let copy = most.max().unwrap_or(0).saturating_mul(rows as u64);
        let bytes = held.saturating_add(own.memory()).saturating_add(copy);
        if bytes > options.memory_limit {
            let (path, columns, limit) = (all.source.clone(), all.columns.len(), options.memory_limit);
            return Err(DataError::TableTooLarge { path, rows, columns, bytes, limit });
        }
        all.files.push(TableFile { path: path.clone(), first_row: all.rows() });
        all.notes.extend(table.notes);
        all.mark = all.mark.or(table.mark);
        all.join_written(table.written, &own)?;
        for (column, more) in all.columns.iter_mut().zip(own.columns) {
            match (&mut column.values, more.values) {
                (Values::Numeric(values), Values::Numeric(more)) => values.extend(more),
                (Values::Text(values), Values::Text(more)) => values.extend(more),
                // Read again as text; until then only the number of rows counts.
                (values, more) => {
                    if !mixed.contains(&column.name) {
                        mixed.push(column.name.clone());
                    }
                    let rows = match values {
                        Values::Numeric(values) => values.len(),
                        Values::Text(values) => values.len(),
                    };
                    let more = match more {
                        Values::Numeric(more) => more.len(),
                        Values::Text(more) => more.len(),
                    };
                    *values = Values::Numeric(vec![f64::NAN; rows + more]);
                }
            }
        }
    }
    if let Some(mark) = unlike(&marks) {
        return Ok(CombinedFiles::Unlike(mark));
    }
    match whole {
        Some(table) if mixed.is_empty() => Ok(CombinedFiles::Table(table)),
        Some(_) => Ok(CombinedFiles::Mixed(mixed)),
        None => Err(no_files()),
    }
}

/// The decimal mark that some files decide, where others could be read in either way.
pub(crate) fn unlike(marks: &[NumberMark]) -> Option<DecimalMark> {
    let decided = marks.iter().find(|mark| mark.decided)?;
    marks.iter().any(|mark| !mark.decided).then_some(decided.decimal)
}

/// Numbers of a file that declares them as such, written as numbers are.
pub(crate) fn as_text(column: &mut Column) {
    if let Values::Numeric(values) = &column.values {
        let cell = |row: usize| Some(column.cell(row)).filter(|text| !text.is_empty());
        column.values = Values::Text((0..values.len()).map(cell).collect());
    }
}

/// An error about the limit that is left beside other files, with the limit of all.
fn of_all(error: DataError, files: &[PathBuf], options: &ReadOptions) -> DataError {
    let all = options.memory_limit;
    match error {
        DataError::TooLarge { limit, .. } if limit < all => {
            DataError::TooLarge { path: source_of(files), limit: all }
        }
        DataError::TableTooLarge { rows, columns, bytes, limit, .. } if limit < all => {
            let bytes = bytes.saturating_add(all - limit);
            DataError::TableTooLarge { path: source_of(files), rows, columns, bytes, limit: all }
        }
        other => other,
    }
}
