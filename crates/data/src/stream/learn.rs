//! Schema and numbers from parts.

use super::{Part, StreamOptions, TableParts};
use crate::error::quoted;
use crate::read::source_of;
use crate::schema::{Described, Learned, Learner, describe};
use crate::{DataError, Extracted, Notes, RowFile, RowWriter, Schema, Selection, Table};
use faer::Mat;
use std::path::{Path, PathBuf};

/// [`Schema::learn`] from files that are read part by part: means over all given rows, categories of all of them.
///
/// `rows` are counted through all files, and in ascending order. The files are read once, and once more where a column is numbers in some parts and text in others.
///
/// # Errors
/// As [`Schema::learn`], with the file and its row.
pub fn learn_schema(
    files: &[PathBuf],
    selection: &Selection,
    rows: &[usize],
    options: &StreamOptions,
) -> Result<Schema, DataError> {
    let mut text = selection.categories.clone();
    loop {
        let mut learner: Option<Learner<'_>> = None;
        for part in parts(files, &text, options)? {
            let part = part?;
            let local: Vec<usize> = rows_of(&part, rows).iter().map(|r| r - part.first_row).collect();
            let learner = match &mut learner {
                Some(learner) => learner,
                none => none.insert(Learner::new(&part.table, selection)?),
            };
            learner.see(&part.table, &local, part.row_in_file)?;
        }
        let Some(learner) = learner else { return Err(DataError::NoRows { path: source_of(files) }) };
        match learner.finish()? {
            Learned::Schema(schema) => return Ok(schema),
            Learned::Again(mixed) if mixed.iter().any(|name| !text.contains(name)) => text.extend(mixed),
            Learned::Again(mixed) => {
                let reason = format!("{} changed while the files were read; begin again", quoted(&mixed));
                return Err(DataError::DoNotMatch { path: source_of(files), reason });
            }
        }
    }
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
    let mut further = vec![Vec::new(); schema.further_targets.len()];
    let (mut y, mut noise, mut exposures, mut kept) =
        (Vec::with_capacity(rows.len()), Vec::new(), Vec::new(), Vec::with_capacity(rows.len()));
    let mut notes = each_extracted(files, schema, rows, options, |part, extracted| {
        for (j, column) in columns.iter_mut().enumerate() {
            column.extend(extracted.x.col(j).iter());
        }
        y.extend(extracted.y.unwrap_or_default());
        further.iter_mut().zip(extracted.further).for_each(|(all, own)| all.extend(own));
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
    describe(&mut notes, x.as_ref(), Some(&y), &schema.feature_names());
    let noise = schema.noise.as_ref().map(|_| noise);
    let exposures = schema.exposure.as_ref().map(|_| exposures);
    Ok(Extracted { x, y: Some(y), further, noise, exposures, rows: kept, notes })
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
    let mut notes = Notes { columns: schema.notes.clone(), ..Notes::default() };
    for part in parts(files, &schema.text_columns(), options)? {
        let part = part?;
        let local: Vec<usize> = rows_of(&part, rows).iter().map(|r| r - part.first_row).collect();
        let extracted = schema.extract_some(&part.table, &local, true).map_err(|e| part.locate(e))?;
        notes.count(&extracted.notes);
        if !extracted.rows.is_empty() {
            see(&part, extracted)?;
        }
    }
    Ok(notes)
}

fn nothing_left(files: &[PathBuf], rows: &[usize]) -> DataError {
    let why = if rows.is_empty() { "splitting" } else { "dropping those with missing cells" };
    DataError::NothingLeft { path: source_of(files), why: why.into() }
}

fn parts(files: &[PathBuf], text: &[String], options: &StreamOptions) -> Result<TableParts, DataError> {
    let mut options = options.clone();
    options.text_columns.extend(text.iter().cloned());
    TableParts::open(files, &options)
}

/// The given rows that lie in a part.
fn rows_of<'a>(part: &Part, rows: &'a [usize]) -> &'a [usize] {
    let from = rows.partition_point(|r| *r < part.first_row);
    let to = rows.partition_point(|r| *r < part.first_row + Table::rows(&part.table));
    &rows[from..to]
}
