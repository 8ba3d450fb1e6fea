//! Parts of a table.

use super::csv::CsvParts;
use super::parquet::ParquetParts;
use crate::read::{
    Format, Named, aligned, as_text, is_standard_input, no_files, read_numbers, source_of, texts_mark, unlike,
};
use crate::{Column, DataError, DecimalMark, Delimiter, NumberMark, Table, TextOptions};
use std::path::{Path, PathBuf};

/// How a file is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Most bytes that one part may take in memory: decides how many rows a part has.
    pub part_bytes: usize,
    /// Columns that are text whatever their cells look like (categories). Others are numbers in a part if all their cells there are.
    pub text_columns: Vec<String>,
    /// How delimited text is read.
    pub text: TextOptions,
}

impl Default for StreamOptions {
    /// Parts of 32 MB; texts are what they look like.
    fn default() -> Self {
        Self { part_bytes: 32 << 20, text_columns: Vec::new(), text: TextOptions::default() }
    }
}

/// Consecutive rows, all of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Number of the first row, from 0, counted through all files.
    pub first_row: usize,
    /// Its number in its own file, from 0.
    pub row_in_file: usize,
    /// The rows, with the columns in the order of the first file.
    pub table: Table,
}

impl Part {
    /// An error about rows of this part, by their numbers in its file.
    pub(super) fn locate(&self, error: DataError) -> DataError {
        error.in_part(self.row_in_file)
    }
}

/// The parts of a table of one file or several, in order. After an error there are no more.
pub struct TableParts {
    files: Vec<PathBuf>,
    options: StreamOptions,
    /// The columns of the first file.
    names: Vec<String>,
    /// Its index.
    index: Option<String>,
    /// Whether files that declare types stand beside files that do not.
    mixed: bool,
    /// Which file is read.
    file: usize,
    inner: Inner,
    /// The decimal mark of texts in files that declare kinds.
    decimal: Option<DecimalMark>,
    next_row: usize,
    row_in_file: usize,
}

enum Inner {
    Csv(Box<CsvParts>),
    Parquet(Box<ParquetParts>),
    Ended,
}

/// Whether a file can be read part by part: by its name, and because it can be read more than once, as standard input and pipes cannot.
pub fn is_streamable(path: &Path) -> bool {
    let once = || is_standard_input(path) || std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    streamed(path).is_some() && !once()
}

enum Streamed {
    Csv { usual: Delimiter, gzip: bool },
    Parquet,
}

fn streamed(path: &Path) -> Option<Streamed> {
    match Format::named(path) {
        Named::As(Format::Delimited(usual), gzip) => Some(Streamed::Csv { usual, gzip }),
        Named::As(Format::Parquet, false) => Some(Streamed::Parquet),
        _ => None,
    }
}

impl Inner {
    fn open(path: &Path, options: &StreamOptions) -> Result<Self, DataError> {
        match streamed(path) {
            Some(Streamed::Csv { usual, gzip }) => {
                Ok(Self::Csv(Box::new(CsvParts::open(path, usual, gzip, options)?)))
            }
            Some(Streamed::Parquet) => Ok(Self::Parquet(Box::new(ParquetParts::open(path, options)?))),
            None => Err(DataError::UnknownFormat { path: path.into() }),
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Csv(parts) => parts.names().to_vec(),
            Self::Parquet(parts) => parts.names(),
            Self::Ended => Vec::new(),
        }
    }

    /// The decimal mark of a text.
    fn mark(&self) -> Option<NumberMark> {
        match self {
            Self::Csv(parts) => parts.mark(),
            Self::Parquet(_) | Self::Ended => None,
        }
    }

    fn index(&self) -> Option<String> {
        match self {
            Self::Csv(parts) => parts.index(),
            Self::Parquet(parts) => parts.index(),
            Self::Ended => None,
        }
    }

    fn next_part(&mut self) -> Result<Option<Table>, DataError> {
        match self {
            Self::Csv(parts) => parts.next_part(),
            Self::Parquet(parts) => parts.next_part(),
            Self::Ended => Ok(None),
        }
    }
}

impl TableParts {
    /// Opens the files of a table and checks their headers: each has the columns of the first, by name.
    ///
    /// # Errors
    /// [`DataError::UnknownFormat`] for files that are not read part by part, [`DataError::Read`], [`DataError::Malformed`], [`DataError::NoRows`],
    /// [`DataError::DoNotMatch`] for a file of other columns, [`DataError::Argument`] for no file.
    pub fn open(files: &[PathBuf], options: &StreamOptions) -> Result<Self, DataError> {
        let [first, rest @ ..] = files else { return Err(no_files()) };
        let mut inner = Inner::open(first, options)?;
        let (names, index) = (inner.names(), inner.index());
        let mut marks = Vec::from_iter(inner.mark());
        for path in rest {
            let opened = Inner::open(path, options)?;
            marks.extend(opened.mark());
            let own = opened.names();
            let empty = own.into_iter().map(|name| Column::numeric(name, Vec::new())).collect();
            aligned(empty, &names, (path, first))?;
        }
        let declares = |path: &PathBuf| matches!(streamed(path), Some(Streamed::Parquet));
        let mixed = files.iter().any(declares) && !files.iter().all(declares);
        let (files, mut options) = (files.to_vec(), options.clone());
        // A file in which nothing decides follows one in which something does.
        if let Some(mark) = unlike(&marks) {
            options.text.trained = Some(mark);
            inner = Inner::open(&files[0], &options)?;
        }
        let (file, decimal, next_row, row_in_file) = (0, None, 0, 0);
        Ok(Self { files, options, names, index, mixed, file, inner, decimal, next_row, row_in_file })
    }

    /// The next part of this file or of those behind it.
    fn next_part(&mut self) -> Result<Option<Part>, DataError> {
        loop {
            let path = &self.files[self.file];
            if let Some(mut table) = self.inner.next_part()? {
                table.columns = aligned(table.columns, &self.names, (path, &self.files[0]))?;
                // What is text beside other files is text here, too; a file of declared types alone keeps them.
                if self.mixed {
                    let text = &self.options.text_columns;
                    table.columns.iter_mut().filter(|c| text.contains(&c.name)).for_each(as_text);
                }
                if let Inner::Parquet(_) = self.inner {
                    let TextOptions { decimal, trained, .. } = self.options.text;
                    let decimal = decimal.or(trained).or(self.decimal);
                    let text = TextOptions { decimal, ..self.options.text };
                    texts_mark(&mut table, &self.options.text_columns, &text);
                    self.decimal = table.mark.map(|mark| mark.decimal);
                }
                read_numbers(&mut table, &self.options.text_columns);
                if self.row_in_file > 0 {
                    // Said of the first part.
                    table.notes.clear();
                }
                table.index.clone_from(&self.index);
                let (first_row, row_in_file) = (self.next_row, self.row_in_file);
                self.next_row += table.rows();
                self.row_in_file += table.rows();
                return Ok(Some(Part { first_row, row_in_file, table }));
            }
            if self.row_in_file == 0 {
                return Err(DataError::NoRows { path: path.clone() });
            }
            if self.file + 1 == self.files.len() {
                return Ok(None);
            }
            self.file += 1;
            self.row_in_file = 0;
            self.inner = Inner::open(&self.files[self.file], &self.options)?;
        }
    }
}

impl Iterator for TableParts {
    type Item = Result<Part, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.inner, Inner::Ended) {
            return None;
        }
        let next = self.next_part().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.inner = Inner::Ended;
        }
        next
    }
}

/// Rows of the files of a table: from the metadata of Parquet, by reading text once.
///
/// # Errors
/// As [`TableParts::open`]; lines of the wrong width.
pub fn count_rows(files: &[PathBuf], text: &TextOptions) -> Result<usize, DataError> {
    if files.is_empty() {
        return Err(no_files());
    }
    files.iter().map(|path| rows_of_file(path, text)).sum()
}

fn rows_of_file(path: &Path, text: &TextOptions) -> Result<usize, DataError> {
    let options = StreamOptions { text: *text, ..StreamOptions::default() };
    let rows = match Inner::open(path, &options)? {
        Inner::Csv(parts) => parts.count()?,
        Inner::Parquet(parts) => parts.rows(),
        Inner::Ended => 0,
    };
    if rows == 0 {
        return Err(DataError::NoRows { path: path.into() });
    }
    Ok(rows)
}

/// An error about a row (counted through) of several files, by the file that the row is from and its number there. Reads text files once more.
pub fn locate(files: &[PathBuf], text: &TextOptions, mut error: DataError) -> DataError {
    let source = source_of(files);
    let Some((path, row)) = error.place() else { return error };
    if *path != source || files.len() < 2 {
        return error;
    }
    for file in files {
        // Files that were read before; where one is gone, the row stays counted through.
        let Ok(rows) = rows_of_file(file, text) else { break };
        if *row <= rows {
            *path = file.clone();
            break;
        }
        *row -= rows;
    }
    error
}
