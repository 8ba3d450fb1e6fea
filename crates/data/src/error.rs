//! What can be wrong with data, where, and what to do about it.

use crate::{StoreError, Table};
use posterior_notes::fixes::{
    CATEGORIES, DECIMAL_COMMA, EXCLUDE, LIKELIHOOD_GAUSSIAN, LIKELIHOOD_STUDENT_T, MEMORY, MISSING_DROP,
    MISSING_INDICATOR, MISSING_MEAN, MISSING_TARGET, STREAM, UNSEEN_OTHER,
};
use std::path::PathBuf;

/// Why a table or an array could not be read or used. Rows and records are counted from 1, a header not included.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file cannot be written, or is in use.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The place of an output cannot be used; found out before the work.
    #[error("{path} cannot be written: {reason}")]
    Destination {
        /// The output.
        path: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// The file of prepared rows cannot be written or read.
    #[error("the file of prepared rows in {path} cannot be written or read: {source}")]
    Scratch {
        /// Its folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A disk that is too full for prepared rows.
    #[error(
        "{path} has room for {room} bytes, and a fit from disk writes {bytes} bytes of prepared rows there: free some, write the model (--output) to a larger disk, or give enough --memory to do without"
    )]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Bytes that are needed.
        bytes: u64,
        /// Bytes that are free.
        room: u64,
    },
    /// The extension is not one that is read.
    #[error(
        "{path} has a format that is not known: use .csv, .tsv, .txt, .jsonl (text also as .gz), .parquet, .xlsx, .npy or .npz; a name without an ending leaves it to the content"
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The content is not what the format promises.
    #[error("{path} is not a valid {format} file: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// CSV, Parquet, ...
        format: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// More data than is allowed.
    #[error(
        "{path} holds more than {limit} bytes of data, the memory limit for reading; raise the limit ({}) or use a part of it",
        MEMORY
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A table whose cells take more memory than is allowed.
    #[error(
        "{path} has {rows} rows of {columns} columns, which take {bytes} bytes as they are read, above the memory limit of {limit} bytes: allow more ({}) or use a part of it; \
         `fit` and `predict` also read CSV and Parquet files part by part ({})",
        MEMORY,
        STREAM
    )]
    TableTooLarge {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Bytes that reading it would take.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A line with more or fewer cells than the header.
    #[error("{path}, row {row}: {found} cells, but the header has {expected}")]
    RaggedRow {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// Cells in that row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// No rows at all.
    #[error("{path} has no rows of data")]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// Columns that do not exist.
    #[error("{path} has no column {}; its columns are: {}", quoted(missing), listed(known))]
    NoSuchColumn {
        /// The file.
        path: PathBuf,
        /// All that are missing.
        missing: Vec<String>,
        /// Those that exist.
        known: Vec<String>,
    },
    /// A column is used in two roles or named twice.
    #[error(
        "column `{column}` is {role}",
        column = short(column)
    )]
    Role {
        /// The column.
        column: String,
        /// What is wrong with its roles.
        role: String,
    },
    /// Text where a number is needed.
    #[error(
        "{path}, row {row}, column `{column}`: `{text}` is not a number{}; correct it, leave the column out ({} {column}), or take it as categories ({})",
        nearly(text), EXCLUDE, CATEGORIES, column = short(column), text = short(text)
    )]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// Text where training had something else.
    #[error("{path}, row {row}, column `{column}`: `{}` is not {expected}; correct it", short(text), column = short(column))]
    NotAsInTraining {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// What it should be.
        expected: String,
    },
    /// Text in a target whose other cells are numbers.
    #[error(
        "{path}, row {row}, column `{column}`: `{}` is not a number, and nearly all of the target are; correct it, or empty the cell: rows without a target are left out",
        short(text), column = short(column)
    )]
    TargetNotANumber {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// Cells that are measured in different units.
    #[error(
        "{path}, row {row}, column `{column}`: `{}` is in {}, and cells before it are in {}; write all of them in one unit, leave the column out ({} {column}), or take it as categories ({})",
        short(text), units[1], units[0], EXCLUDE, CATEGORIES, column = short(column)
    )]
    SeveralUnits {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// The unit of cells before it, and its own.
        units: Box<[String; 2]>,
    },
    /// Text among dates.
    #[error(
        "{path}, row {row}, column `{column}`: `{}` is no date, and most of the column are; correct it, leave the column out ({} {column}), or take it as categories ({})",
        short(text), EXCLUDE, CATEGORIES, column = short(column)
    )]
    NotADate {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
    },
    /// Dates that no one way reads.
    #[error(
        "{path}, column `{column}`: its dates are written in several ways; write all of them as 2021-03-04, or leave the column out ({} {column})",
        EXCLUDE, column = short(column)
    )]
    SeveralForms {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// Text with many different cells.
    #[error(
        "{path}, column `{column}`: {distinct} different texts{}, more than become categories by themselves; leave it out ({} {column}), or take them all the same ({})",
        examples_of(examples), EXCLUDE, CATEGORIES, column = short(column)
    )]
    ManyCategories {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// How many there are.
        distinct: usize,
        /// Some of them.
        examples: Vec<String>,
    },
    /// An empty cell.
    #[error(
        "{path}, row {row}, column `{column}`: the cell is missing; drop such rows ({}), fill in means ({}) or let the model know where cells are missing ({})",
        MISSING_DROP, MISSING_MEAN, MISSING_INDICATOR, column = short(column)
    )]
    MissingCell {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
    },
    /// A target that is missing where it cannot be guessed.
    #[error(
        "{path}, row {row}: the target `{column}` is missing; targets are never made up: leave such rows out ({})",
        MISSING_TARGET, column = short(column)
    )]
    MissingTarget {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
    },
    /// An infinite number.
    #[error(
        "{path}, row {row}, column `{column}`: {value} is not a finite number; correct it, or drop such rows ({})",
        MISSING_DROP, column = short(column)
    )]
    Infinite {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
    /// A category that the training rows did not have.
    #[error(
        "{path}, row {row}, column `{column}`: the category `{}` did not occur in training ({} predicts such rows all the same); known: {}",
        short(text), UNSEEN_OTHER, listed(known), column = short(column)
    )]
    UnknownCategory {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// The categories of the training rows.
        known: Vec<String>,
    },
    /// A row that is none of those that a model was trained on.
    #[error(
        "{path}, row {row}: the model was not trained on this row (its inputs, target or noise differ), and --leave-one-out predicts training rows from the others; leave it out, or predict without --leave-one-out"
    )]
    NotTrainedOn {
        /// The file.
        path: PathBuf,
        /// The row, counted from 1.
        row: usize,
    },
    /// A label that the training rows did not have.
    #[error(
        "{path}, row {row}: the label `{text}` of `{column}` did not occur in training{known}",
        column = short(column), text = short(text)
    )]
    UnknownLabel {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        text: String,
        /// The classes of the training rows in words, first the one that differs in case or spaces only.
        known: String,
    },
    /// Fewer rows with a target than a fit needs.
    #[error(
        "{path}: the target `{column}` is there in {found} of the rows to learn from, and a fit needs {needed}; add rows",
        column = short(column)
    )]
    TooFewTargets {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Rows with a target.
        found: usize,
        /// The fewest that there must be.
        needed: usize,
    },
    /// Numbers that are all the same, of which no scale can be learned.
    #[error(
        "{path}: all {rows} targets `{column}` are {value}, which tells nothing of their scale; add rows of other targets, or take another target",
        column = short(column), value = brief(value)
    )]
    EqualTargets {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Rows with a target.
        rows: usize,
        /// The target of all of them.
        value: f64,
    },
    /// A target of one class.
    #[error(
        "{path}: the target `{column}` is `{label}` in every row: with only one class there is nothing to tell apart; give rows of other classes, or another target",
        column = short(column), label = short(label)
    )]
    OneClass {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The label of all rows.
        label: String,
    },
    /// A number that counts nothing.
    #[error(
        "{path}, row {row}: {value} in `{column}` is no count; counts are whole numbers from 0, other numbers want {} or {:-}",
        LIKELIHOOD_GAUSSIAN, LIKELIHOOD_STUDENT_T, column = short(column), value = brief(value)
    )]
    NotACount {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
    /// A noise variance or an exposure that is not positive.
    #[error(
        "{path}, row {row}, column `{column}`: {value} is no {what}; {what}s are positive",
        column = short(column), value = brief(value)
    )]
    NotPositive {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
        /// What it should be.
        what: &'static str,
    },
    /// A negative number where the kernel takes counts.
    #[error(
        "{path}, row {row}, column `{column}`: {value} is negative, and the kernel `tanimoto` compares counts; correct it, or name in `tanimoto(COLUMN, ...)` the columns that hold counts",
        column = short(column), value = brief(value)
    )]
    NegativeCount {
        /// The file.
        path: PathBuf,
        /// Row, counted from 1.
        row: usize,
        /// The column.
        column: String,
        /// The value.
        value: f64,
    },
    /// Nothing is left to learn from.
    #[error("{path}: no rows are left after {why}")]
    NothingLeft {
        /// The file.
        path: PathBuf,
        /// What removed them.
        why: String,
    },
    /// The folds do not fit the table.
    #[error("{path}: {reason}")]
    Folds {
        /// The file of folds.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A numeric array or image file in none of the formats that are read.
    #[error(
        "{path} is not an array that can be read: {reason}; NPY and NPZ (NumPy), IDX (MNIST) and CIFAR binary files are, each but NPZ also gzipped"
    )]
    UnknownArrayFormat {
        /// The file.
        path: PathBuf,
        /// What its content looks like.
        reason: String,
    },
    /// An NPZ file with several arrays, or none, where one is needed.
    #[error("{path} holds {} arrays; name one as {path}:NAME, with NAME one of: {}", known.len(), listed(known))]
    WhichArray {
        /// The file.
        path: PathBuf,
        /// The arrays that it holds.
        known: Vec<String>,
    },
    /// An NPZ file without the array that was asked for.
    #[error("{path} has no array `{wanted}`; its arrays are: {}", listed(known))]
    NoSuchArray {
        /// The file.
        path: PathBuf,
        /// The name that was asked for.
        wanted: String,
        /// The arrays that it holds.
        known: Vec<String>,
    },
    /// A workbook without the sheet that was asked for.
    #[error("{path} has no sheet `{}`; its sheets are: {}", short(wanted), listed(known))]
    NoSuchSheet {
        /// The file.
        path: PathBuf,
        /// The name that was asked for.
        wanted: String,
        /// The sheets that it has.
        known: Vec<String>,
    },
    /// A file that declares more values than may be read.
    #[error(
        "{path} declares {shape} values, {bytes} bytes in memory, but the memory limit for reading is {limit} bytes; raise the limit or use a part of it"
    )]
    DeclaredTooLarge {
        /// The file.
        path: PathBuf,
        /// Its dimensions, as `A x B x C`.
        shape: String,
        /// Bytes that its values would take.
        bytes: u128,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system has no memory for the values.
    #[error(
        "{path} needs {bytes} bytes more than the system can give; close other programs or use a part of it"
    )]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// Bytes asked for.
        bytes: u64,
    },
    /// A shape and values that do not belong together.
    #[error("an array of shape {shape:?} does not hold {values} values; shape and values must agree")]
    Shape {
        /// The dimensions.
        shape: Vec<usize>,
        /// How many values there are.
        values: usize,
    },
    /// An infinite or undefined number in an array.
    #[error(
        "{path}: the value at position {position:?}, counted from 0, is {value}; only finite numbers can be used"
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// One index for each dimension, from 0.
        position: Vec<usize>,
        /// The value.
        value: f64,
    },
    /// Files that cannot be put together, such as images of two sizes.
    #[error("{path}: {reason}")]
    DoNotMatch {
        /// The file that does not fit the ones before it.
        path: PathBuf,
        /// What differs, and what to do.
        reason: String,
    },
    /// A setting that cannot be used.
    #[error("`{argument}` is {value}: {reason}")]
    Argument {
        /// The name of the setting.
        argument: &'static str,
        /// What it was, or what was found in it.
        value: String,
        /// What it must be, or what to do.
        reason: String,
    },
    /// An array that would be too large.
    #[error(
        "the {what} would be an array of shape {shape:?}, {bytes} bytes, but at most {limit} bytes are made; ask for less"
    )]
    Oversized {
        /// What was to be made.
        what: &'static str,
        /// Its dimensions.
        shape: Vec<usize>,
        /// Bytes that it would take.
        bytes: u128,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A label that is no class.
    #[error("{path}, record {record}: {reason}")]
    Label {
        /// The file.
        path: PathBuf,
        /// Record, counted from 1.
        record: usize,
        /// What is wrong with its label.
        reason: String,
    },
}

impl DataError {
    /// The same error for a part of a table that begins at row `first` (from 0): its rows become those of the table.
    pub fn in_part(mut self, first: usize) -> Self {
        if let Some((_, row)) = self.place() {
            *row += first;
        }
        self
    }

    /// The same error about some rows of a table: `rows` are their numbers there, from 0.
    pub fn in_selection(mut self, rows: &[usize]) -> Self {
        if let Some((_, row)) = self.place()
            && let Some(own) = row.checked_sub(1).and_then(|place| rows.get(place))
        {
            *row = own + 1;
        }
        self
    }

    /// The same error about rows of a table in memory, by the file that the row is from and its number there.
    pub fn in_table(mut self, table: &Table) -> Self {
        if let Some((path, row)) = self.place()
            && *path == table.source
        {
            let (file, own) = table.place(row.saturating_sub(1));
            (*path, *row) = (file.into(), own + 1);
        }
        self
    }

    /// The file and the row (from 1) that it is about, where there is one.
    pub(crate) fn place(&mut self) -> Option<(&mut PathBuf, &mut usize)> {
        match self {
            Self::RaggedRow { path, row, .. }
            | Self::NotANumber { path, row, .. }
            | Self::NotAsInTraining { path, row, .. }
            | Self::TargetNotANumber { path, row, .. }
            | Self::SeveralUnits { path, row, .. }
            | Self::NotADate { path, row, .. }
            | Self::MissingCell { path, row, .. }
            | Self::MissingTarget { path, row, .. }
            | Self::Infinite { path, row, .. }
            | Self::UnknownCategory { path, row, .. }
            | Self::NotTrainedOn { path, row }
            | Self::UnknownLabel { path, row, .. }
            | Self::NotACount { path, row, .. }
            | Self::NotPositive { path, row, .. }
            | Self::NegativeCount { path, row, .. } => Some((path, row)),
            _ => None,
        }
    }
}

/// The classes that there are, for a label that is none of them.
pub(crate) fn known_labels(known: &[String], alike: Option<&str>) -> String {
    let meant = alike.map_or_else(String::new, |name| {
        format!("; did you mean `{}`? Labels are told apart by case and spaces", short(name))
    });
    format!("{meant}; known: {}", listed(known))
}

fn examples_of(examples: &[String]) -> String {
    if examples.is_empty() {
        return String::new();
    }
    let cells: Vec<String> = examples.iter().map(|text| format!("`{}`", short(text))).collect();
    format!(" ({}, ...)", cells.join(", "))
}

/// Names in quotation, the first of many.
pub(crate) fn quoted(names: &[String]) -> String {
    shown(names.iter().map(|n| format!("`{}`", short(n))), names.len(), 60)
}

/// The first names of a list that may be very long, as may be the names.
pub(crate) fn listed(names: &[String]) -> String {
    shown(names.iter().map(|n| short(n)), names.len(), 120)
}

/// The first items of a list that may be very long.
pub(crate) fn first_items(items: &[String]) -> String {
    shown(items.iter().cloned(), items.len(), 300)
}

/// At least one of `count` names, and more as long as all have no more than so many characters.
fn shown(names: impl Iterator<Item = String>, count: usize, most: usize) -> String {
    const SHOWN: usize = 20;
    let (mut out, mut taken) = (String::new(), 0);
    for name in names.take(SHOWN) {
        if taken > 0 && out.chars().count() + name.chars().count() > most {
            break;
        }
        if taken > 0 {
            out.push_str(", ");
        }
        out.push_str(&name);
        taken += 1;
    }
    if count > taken { format!("{out} and {} more", count - taken) } else { out }
}

/// A cell or a name, cut where it is long: a message is to be read.
pub(crate) fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// What a text that looks like a number lacks to be one.
fn nearly(text: &str) -> String {
    if text.parse::<f64>().is_ok() {
        " but text in this file".into()
    } else if text.matches(',').count() == 1 && text.replacen(',', ".", 1).parse::<f64>().is_ok() {
        format!(" (unless its comma is a decimal mark: {DECIMAL_COMMA})")
    } else {
        String::new()
    }
}

/// A number with an exponent where it would otherwise be a long row of digits.
fn brief(value: &f64) -> String {
    let plain = value.to_string();
    if plain.len() > 24 { format!("{value:e}") } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_the_beginning_of_what_is_long() {
        let names = |count: usize| (0..count).map(|i| format!("name {i}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(3)), "name 0, name 1, name 2");
        assert_eq!(listed(&[]), "");
        let many = listed(&names(10_000));
        assert!(
            many.starts_with("name 0, name 1, ") && many.ends_with(" more") && many.len() < 150,
            "{many}"
        );
        // One is always shown, and all are counted.
        assert_eq!(
            listed(&["é".repeat(50), "b".repeat(90)]),
            format!("{}..., {}...", "é".repeat(40), "b".repeat(40))
        );
        assert_eq!(quoted(&["a".repeat(70), "b".repeat(70)]), format!("`{}...` and 1 more", "a".repeat(40)));
        assert_eq!(
            (short("é"), brief(&-1.0), brief(&1e308), brief(&0.1)),
            ("é".into(), "-1".into(), "1e308".into(), "0.1".into())
        );
    }

    #[test]
    fn a_number_in_another_way_of_writing_is_told_apart() {
        let message = |text: &str| {
            let (path, column) = ("t.csv".into(), "a".into());
            DataError::NotANumber { path, row: 1, column, text: text.into() }.to_string()
        };
        assert!(message("3,14").contains(
            "`3,14` is not a number (unless its comma is a decimal mark: --set text.decimal=,); correct"
        ));
        assert!(message("007").contains("`007` is not a number but text in this file; correct"));
        assert!(message("red").contains("`red` is not a number; correct"));
    }
}
