//! Schema and numbers from parts.

use super::{Part, StreamOptions, TableParts};
use crate::read::source_of;
use crate::schema::{Described, RunningMean, describe, numbers};
use crate::{DataError, Extracted, Feature, Notes, RowFile, RowWriter, Schema, Selection, Table};
use faer::Mat;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// [`Schema::learn`] from files that are read part by part: means over all given rows, categories of all of them.
///
/// `rows` are counted through all files, and in ascending order.
///
/// # Errors
/// As [`Schema::learn`], with the file and its row.
pub fn learn_schema(
    files: &[PathBuf],
    selection: &Selection,
    rows: &[usize],
    options: &StreamOptions,
) -> Result<Schema, DataError> {
    let mut whole: Option<Schema> = None;
    // For each numeric column: the mean of its finite cells; for each column of categories: those found.
    let mut means: Vec<RunningMean> = Vec::new();
    let mut categories: Vec<(String, BTreeSet<String>)> = Vec::new();
    for part in parts(files, &selection.one_hot, options)? {
        let part = part?;
        let own = rows_of(&part, rows);
        let local: Vec<usize> = own.iter().map(|r| r - part.first_row).collect();
        let learned = Schema::learn(&part.table, selection, &local).map_err(|e| part.locate(e))?;
        let mut numeric = 0;
        for feature in &learned.features {
            match feature {
                Feature::Number { column, .. } => {
                    let values =
                        numbers(&part.table, part.table.column(column)?).map_err(|e| part.locate(e))?;
                    if means.len() == numeric {
                        means.push(RunningMean::default());
                    }
                    local.iter().for_each(|&r| means[numeric].add(values[r]));
                    numeric += 1;
                }
                Feature::Category { column, category } => {
                    if categories.iter().all(|(c, _)| c != column) {
                        categories.push((column.clone(), BTreeSet::new()));
                    }
                    if let Some((_, found)) = categories.iter_mut().find(|(c, _)| c == column) {
                        found.insert(category.clone());
                    }
                }
            }
        }
        whole.get_or_insert(learned);
    }
    let Some(mut schema) = whole else { return Err(DataError::NoRows { path: source_of(files) }) };
    schema.features = merged(&schema, selection, files, &means, &categories, options)?;
    Ok(schema)
}

/// The features in the order of the file, with means and categories of all parts.
fn merged(
    first: &Schema,
    selection: &Selection,
    files: &[PathBuf],
    means: &[RunningMean],
    categories: &[(String, BTreeSet<String>)],
    options: &StreamOptions,
) -> Result<Vec<Feature>, DataError> {
    // The order of the columns: a part without any category of a column has no feature for it, so the header is asked.
    let header = match parts(files, &selection.one_hot, options)?.next() {
        Some(part) => part?.table,
        None => return Ok(Vec::new()),
    };
    let chosen: Vec<String> = match &selection.features {
        Some(names) => {
            names.iter().map(|n| header.column(n).map(|c| c.name.clone())).collect::<Result<_, _>>()?
        }
        None => header
            .names()
            .into_iter()
            .filter(|n| *n != first.target && ![&first.noise, &first.exposure].contains(&&Some(n.clone())))
            .collect(),
    };
    let one_hot: Vec<String> = selection
        .one_hot
        .iter()
        .map(|n| header.column(n).map(|c| c.name.clone()))
        .collect::<Result<_, _>>()?;
    // A column of numbers throughout is one in a whole table, and its categories are then written as numbers are.
    let written = |found: &BTreeSet<String>| -> BTreeSet<String> {
        let numbers: Option<BTreeSet<String>> =
            found.iter().map(|c| c.parse::<f64>().ok().map(|v| v.to_string())).collect();
        numbers.unwrap_or_else(|| found.clone())
    };
    let mut means = means.iter();
    let mut features = Vec::new();
    for column in chosen {
        if one_hot.contains(&column) {
            let found = categories.iter().find(|(c, _)| *c == column).map(|(_, found)| written(found));
            features.extend(
                found
                    .into_iter()
                    .flatten()
                    .map(|category| Feature::Category { column: column.clone(), category }),
            );
        } else {
            let mean = means.next().copied().unwrap_or_default().value();
            features.push(Feature::Number { column, mean });
        }
    }
    Ok(features)
}

/// [`Schema::extract`] with targets from files that are read part by part. `rows` are counted through all files, and in ascending order.
///
/// Memory: n x D numbers twice for a moment, and one part.
///
/// # Errors
/// As [`Schema::extract`], with the file and its row.
pub fn extract(
    files: &[PathBuf],
    schema: &Schema,
    rows: &[usize],
    options: &StreamOptions,
) -> Result<Extracted, DataError> {
    let width = schema.features.len();
    let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(rows.len()); width];
    let (mut y, mut noise, mut exposures, mut kept) =
        (Vec::with_capacity(rows.len()), Vec::new(), Vec::new(), Vec::with_capacity(rows.len()));
    let mut notes = each_extracted(files, schema, rows, options, |part, extracted| {
        for (j, column) in columns.iter_mut().enumerate() {
            column.extend(extracted.x.col(j).iter());
        }
        y.extend(extracted.y.unwrap_or_default());
        noise.extend(extracted.noise.unwrap_or_default());
        exposures.extend(extracted.exposures.unwrap_or_default());
        kept.extend(extracted.rows.iter().map(|r| r + part.first_row));
        Ok(())
    })?;
    if kept.is_empty() {
        return Err(nothing_left(files, rows));
    }
    let mut x = Mat::zeros(kept.len(), width);
    for (j, column) in columns.iter_mut().enumerate() {
        // Given back as it is copied.
        let column = std::mem::take(column);
        x.col_mut(j).iter_mut().zip(column).for_each(|(place, v)| *place = v);
    }
    describe(&mut notes, &x, Some(&y), &schema.feature_names());
    let noise = schema.noise.as_ref().map(|_| noise);
    let exposures = schema.exposure.as_ref().map(|_| exposures);
    Ok(Extracted { x, y: Some(y), noise, exposures, rows: kept, notes })
}

/// As [`extract`], with the rows in a file in `folder` instead of in memory: inputs, target and, where the schema has such a column, the noise variance. `counts` are the features that must be counts.
///
/// Memory: one part, and some 40 bytes for each row while repeated ones are looked for.
///
/// # Errors
/// As [`extract`]; [`DataError::NegativeCount`]; [`DataError::NoRoom`] before anything is written.
pub fn extract_to_file(
    files: &[PathBuf],
    (schema, counts): (&Schema, &[usize]),
    rows: &[usize],
    options: &StreamOptions,
    folder: &Path,
) -> Result<(RowFile, Notes), DataError> {
    let inputs = schema.features.len();
    let width = inputs + 1 + usize::from(schema.noise.is_some());
    let mut writer = RowWriter::create(folder, rows.len(), width)?;
    let mut seen = Described::new(rows.len(), inputs);
    let mut row = vec![0.0; inputs];
    let mut notes = each_extracted(files, schema, rows, options, |part, extracted| {
        let x = extracted.x.as_ref();
        schema.check_counts(&part.table.source, counts, x, &extracted.rows).map_err(|e| part.locate(e))?;
        let y = extracted.y.unwrap_or_default();
        for i in 0..x.nrows() {
            let noise = extracted.noise.as_ref().map(|noise| noise[i]);
            row.iter_mut().zip(x.row(i).iter()).for_each(|(v, x)| *v = *x);
            writer.push(row.iter().copied().chain([y[i]]).chain(noise))?;
            seen.see(&row, Some(y[i]));
        }
        Ok(())
    })?;
    let file = writer.finish()?;
    if file.rows() == 0 {
        return Err(nothing_left(files, rows));
    }
    seen.note(&mut notes, &schema.feature_names());
    Ok((file, notes))
}

/// Shows the numbers of the given rows, part by part; returns what was dropped and filled in all of them.
fn each_extracted(
    files: &[PathBuf],
    schema: &Schema,
    rows: &[usize],
    options: &StreamOptions,
    mut see: impl FnMut(&Part, Extracted) -> Result<(), DataError>,
) -> Result<Notes, DataError> {
    let mut notes = Notes::default();
    for part in parts(files, &schema.text_columns(), options)? {
        let part = part?;
        let local: Vec<usize> = rows_of(&part, rows).iter().map(|r| r - part.first_row).collect();
        match schema.extract(&part.table, &local, true) {
            // Other parts may have rows.
            Err(DataError::NothingLeft { .. }) => notes.dropped_rows += local.len(),
            Err(error) => return Err(part.locate(error)),
            Ok(extracted) => {
                notes.dropped_rows += extracted.notes.dropped_rows;
                notes.filled_cells += extracted.notes.filled_cells;
                see(&part, extracted)?;
            }
        }
    }
    Ok(notes)
}

fn nothing_left(files: &[PathBuf], rows: &[usize]) -> DataError {
    let why = if rows.is_empty() { "splitting" } else { "dropping those with missing cells" };
    DataError::NothingLeft { path: source_of(files), why: why.into() }
}

fn parts(files: &[PathBuf], one_hot: &[String], options: &StreamOptions) -> Result<TableParts, DataError> {
    let mut options = options.clone();
    options.text_columns.extend(one_hot.iter().cloned());
    TableParts::open(files, &options)
}

/// The given rows that lie in a part.
fn rows_of<'a>(part: &Part, rows: &'a [usize]) -> &'a [usize] {
    let from = rows.partition_point(|r| *r < part.first_row);
    let to = rows.partition_point(|r| *r < part.first_row + Table::rows(&part.table));
    &rows[from..to]
}
