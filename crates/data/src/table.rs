//! Named columns, as they stand in the file.

use crate::read::text_cell;
use crate::{DataError, NumberMark};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers; NaN where a cell is missing.
    Numeric(Vec<f64>),
    /// Text; `None` where a cell is missing. A column of numbers in which any cell is not one is text, too.
    Text(Vec<Option<String>>),
}

impl Values {
    /// No cells of the same kind.
    pub(crate) fn emptied(&self) -> Self {
        match self {
            Self::Numeric(_) => Self::Numeric(Vec::new()),
            Self::Text(_) => Self::Text(Vec::new()),
        }
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its cells.
    pub values: Values,
}

/// A table: columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Where it came from, for messages.
    pub source: PathBuf,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// What the reader decided on its own (a header that was not there, say).
    pub notes: Vec<String>,
    /// The files that its rows come from, in order; none where they are all of `source`.
    pub files: Vec<TableFile>,
    /// The column that counts or names rows and is no feature unless someone says so: a first column without a name (as pandas writes it), or one called `Unnamed: 0` that counts.
    pub index: Option<String>,
    /// The decimal mark of its texts, where they have marks or someone said it.
    pub mark: Option<NumberMark>,
    /// Columns of numbers whose cells have a unit, by name, as they stand in the file.
    pub written: BTreeMap<String, Written>,
}

/// Cells with a unit, which their column of numbers lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The unit: `kg`, `$`, `%`.
    pub unit: String,
    /// The cells.
    pub cells: Vec<Option<String>>,
}

impl Written {
    /// The first cell, and its row counted from 1.
    pub(crate) fn first(&self) -> (usize, String) {
        let row = self.cells.iter().position(Option::is_some).unwrap_or(0);
        (row + 1, self.cells.get(row).cloned().flatten().unwrap_or_default())
    }
}

/// A file of a table of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// Its first row in the table, from 0.
    pub first_row: usize,
}

impl Column {
    /// A column of numbers.
    pub fn numeric(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values: Values::Numeric(values) }
    }

    /// Number of cells.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Numeric(values) => values.len(),
            Values::Text(values) => values.len(),
        }
    }

    /// Whether a cell is missing.
    pub fn is_missing(&self, row: usize) -> bool {
        match &self.values {
            Values::Numeric(values) => values[row].is_nan(),
            Values::Text(values) => values[row].is_none(),
        }
    }

    /// The cell as text, empty when missing. Numbers are written with the digits that read back to the same bits, infinite ones as the largest that there is.
    pub fn cell(&self, row: usize) -> String {
        match &self.values {
            Values::Numeric(values) if values[row].is_nan() => String::new(),
            Values::Numeric(values) => within_range(values[row]).to_string(),
            Values::Text(values) => values[row].clone().unwrap_or_default(),
        }
    }
}

/// A number that files can hold: the largest that there is for one beyond it, which none of them could be read with again. NaN, a missing cell, stays.
pub fn within_range(value: f64) -> f64 {
    value.clamp(-f64::MAX, f64::MAX)
}

impl Table {
    /// A table from columns.
    ///
    /// # Panics
    /// When their lengths differ.
    pub fn new(source: impl Into<PathBuf>, columns: Vec<Column>) -> Self {
        assert!(columns.windows(2).all(|w| w[0].len() == w[1].len()), "columns have one length");
        Self {
            source: source.into(),
            columns,
            notes: Vec::new(),
            files: Vec::new(),
            index: None,
            mark: None,
            written: BTreeMap::new(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// Where a row (from 0) stands: its file, and its number there from 0.
    pub fn place(&self, row: usize) -> (&Path, usize) {
        match self.files.iter().rev().find(|file| file.first_row <= row) {
            Some(file) => (&file.path, row - file.first_row),
            None => (&self.source, row),
        }
    }

    /// Bytes that its cells take in memory, with what an allocator adds to texts.
    pub fn memory(&self) -> u64 {
        let written = self.written.values().flat_map(|written| &written.cells);
        let written: u64 = written.map(|v| text_cell(v.as_ref().map(String::len))).sum();
        written + self.columns.iter().map(Self::memory_of).sum::<u64>()
    }

    /// Bytes of the cells of one column.
    pub(crate) fn memory_of(column: &Column) -> u64 {
        match &column.values {
            Values::Numeric(values) => (values.capacity() * size_of::<f64>()) as u64,
            Values::Text(values) => values.iter().map(|v| text_cell(v.as_ref().map(String::len))).sum(),
        }
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|c| c.name.clone()).collect()
    }

    /// The column called `name`; failing that, the one whose number, counted from 1, is `name`.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`].
    pub fn column(&self, name: &str) -> Result<&Column, DataError> {
        let by_number =
            || name.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).and_then(|n| self.columns.get(n));
        self.columns.iter().find(|c| c.name == name).or_else(by_number).ok_or_else(|| {
            DataError::NoSuchColumn {
                path: self.source.clone(),
                missing: vec![name.into()],
                known: self.names(),
            }
        })
    }

    /// A column as it stands in the file: text where its numbers have a unit.
    pub fn as_written<'a>(&self, column: &'a Column) -> Cow<'a, Column> {
        match self.written.get(&column.name) {
            Some(Written { cells, .. }) => {
                let (name, values) = (column.name.clone(), Values::Text(cells.clone()));
                Cow::Owned(Column { name, values })
            }
            None => Cow::Borrowed(column),
        }
    }

    /// Takes the cells with units of rows into account that are about to be added, those of a file of the same columns.
    ///
    /// # Errors
    /// [`DataError::SeveralUnits`].
    pub(crate) fn join_written(
        &mut self,
        mut more: BTreeMap<String, Written>,
        added: &Self,
    ) -> Result<(), DataError> {
        for (own, other) in self.columns.iter().zip(&added.columns) {
            let name = &own.name;
            let (before, behind) = (self.written.remove(name), more.remove(name));
            if let (Some(before), Some(behind)) = (&before, &behind)
                && before.unit != behind.unit
            {
                let (row, text) = behind.first();
                let units = [before.unit.clone(), behind.unit.clone()].into();
                let (path, column) = (added.source.clone(), name.clone());
                return Err(DataError::SeveralUnits { path, row, column, text, units });
            }
            let Some(unit) = before.as_ref().or(behind.as_ref()).map(|written| written.unit.clone()) else {
                continue;
            };
            let cells = |written: Option<Written>, column: &Column| match written {
                Some(written) => written.cells,
                None => {
                    (0..column.len()).map(|row| Some(column.cell(row)).filter(|c| !c.is_empty())).collect()
                }
            };
            let cells = [cells(before, own), cells(behind, other)].concat();
            self.written.insert(name.clone(), Written { unit, cells });
        }
        Ok(())
    }

    /// The rows with the given indices, in that order. Which files they are from is forgotten.
    pub fn select(&self, rows: &[usize]) -> Self {
        let pick = |column: &Column| Column {
            name: column.name.clone(),
            values: match &column.values {
                Values::Numeric(v) => Values::Numeric(rows.iter().map(|&r| v[r]).collect()),
                Values::Text(v) => Values::Text(rows.iter().map(|&r| v[r].clone()).collect()),
            },
        };
        let written = self.written.iter().map(|(name, Written { unit, cells })| {
            let cells = rows.iter().map(|&r| cells[r].clone()).collect();
            (name.clone(), Written { unit: unit.clone(), cells })
        });
        Self {
            source: self.source.clone(),
            columns: self.columns.iter().map(pick).collect(),
            notes: self.notes.clone(),
            files: Vec::new(),
            index: self.index.clone(),
            mark: self.mark,
            written: written.collect(),
        }
    }
}
