//! What can be wrong with data, where, and what to do about it.

use crate::{StoreError, Table};
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
        "{path} has room for {room} bytes, and a fit from disk writes {bytes} bytes of prepared rows there: free some, write the model (--out) to a larger disk, or give enough --memory to do without"
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
        "{path} has a format that is not known: use .csv, .tsv, .parquet, .npy or .npz (text also as .gz)"
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
        "{path} holds more than {limit} bytes of data, the memory limit for reading; raise the limit (--memory GB) or use a part of it"
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A table whose cells take more memory than is allowed.
    #[error(
        "{path} has {rows} rows of {columns} columns, which take {bytes} bytes as they are read, above the memory limit of {limit} bytes: allow more (--memory GB) or use a part of it; \
         `fit gp` and `predict` also read CSV and Parquet files part by part (--stream)"
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
    #[error("column `{column}` is {role}")]
    Role {
        /// The column.
        column: String,
        /// What is wrong with its roles.
        role: String,
    },
    /// Text where a number is needed.
    #[error(
        "{path}, row {row}, column `{column}`: `{text}` is not a number; correct it, leave the column out (--features), or make it categories (--one-hot {column})"
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
    /// An empty cell.
    #[error(
        "{path}, row {row}, column `{column}`: the cell is missing; drop such rows (--missing drop) or fill in the column's mean (--missing mean)"
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
        "{path}, row {row}: the target `{column}` is missing; targets are never made up: drop such rows (--missing drop)"
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
        "{path}, row {row}, column `{column}`: {value} is not a finite number; correct it, or drop such rows (--missing drop)"
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
    #[error("{path}, row {row}, column `{column}`: the category `{text}` did not occur in training; known: {}", known.join(", "))]
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
    /// A label that the training rows did not have.
    #[error("{path}, row {row}: the label `{text}` of `{column}` did not occur in training{known}")]
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
    /// A target of one class.
    #[error(
        "{path}: the target `{column}` is `{label}` in every row: with only one class there is nothing to tell apart; give rows of other classes, or another target"
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
        "{path}, row {row}: {value} in `{column}` is no count; counts are whole numbers from 0, other numbers want --likelihood gaussian or student-t"
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
    #[error("{path}, row {row}, column `{column}`: {value} is no {what}; {what}s are positive")]
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
        "{path}, row {row}, column `{column}`: {value} is negative, and the kernel `tanimoto` compares counts; correct it, or name in `tanimoto(COLUMN, ...)` the columns that hold counts"
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
            | Self::MissingCell { path, row, .. }
            | Self::MissingTarget { path, row, .. }
            | Self::Infinite { path, row, .. }
            | Self::UnknownCategory { path, row, .. }
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
        format!("; did you mean `{name}`? Labels are told apart by case and spaces")
    });
    format!("{meant}; known: {}", listed(known))
}

pub(crate) fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// The first names of a list that may be very long.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}
