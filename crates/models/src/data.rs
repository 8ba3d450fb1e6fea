//! What a model is asked about.

use crate::ModelError;
use posterior_data::{ArrayValues, Column, Notes, NumericArray, ReadOptions, Table, Values, Written};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// What came true.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// Classes from 0.
    Classes(Vec<usize>),
    /// Numbers `[examples, width]` in the target's own units; events are 0 and 1.
    Values {
        /// Row by row.
        values: Vec<f64>,
        /// How many for each example.
        width: usize,
    },
}

impl Truth {
    /// Number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Values { values, width } => values.len() / (*width).max(1),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of an example.
    pub(crate) fn of(&self, example: usize) -> Vec<f64> {
        match self {
            Self::Classes(classes) => vec![classes[example] as f64],
            Self::Values { values, width } => values[example * width..(example + 1) * width].to_vec(),
        }
    }

    /// Whether events happened; nothing where these are classes.
    pub fn events(&self) -> Vec<bool> {
        match self {
            Self::Classes(_) => Vec::new(),
            Self::Values { values, .. } => values.iter().map(|v| *v > 0.5).collect(),
        }
    }
}

/// What a model is asked about: inputs in their own units, with truths where there are some.
#[derive(Clone, Debug)]
pub struct ModelData {
    /// What they are called, for messages.
    pub name: String,
    /// `[examples, ...]`: images as bytes, columns before standardisation, features as they are; of no width where the family takes rows of the table as they stand.
    pub inputs: NumericArray,
    /// What came true, where it was asked for.
    pub truth: Option<Truth>,
    /// The table they came from, with the rows that could be used.
    pub table: Option<(Arc<Table>, Vec<usize>)>,
    /// The first row, in its file, of a part of a large table.
    pub part: Option<usize>,
    /// Whether only some examples were picked.
    pub picked: bool,
    /// What was dropped or filled.
    pub notes: Vec<String>,
    /// The same in numbers, where the table is read before the model is asked.
    pub found: Notes,
}

impl ModelData {
    /// Inputs in memory.
    pub fn new(name: impl Into<String>, inputs: NumericArray, truth: Option<Truth>) -> Self {
        let (name, found) = (name.into(), Notes::default());
        Self { name, inputs, truth, table: None, part: None, picked: false, notes: Vec::new(), found }
    }

    /// A table in memory, all rows of it as they stand.
    ///
    /// # Errors
    /// None, as far as is known.
    pub fn of_table(table: Table) -> Result<Self, ModelError> {
        let rows: Vec<usize> = (0..table.rows()).collect();
        let name = table.source.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let inputs = NumericArray::new(vec![rows.len(), 0], ArrayValues::U8(Vec::new()))?;
        let notes = table.notes.clone();
        Ok(Self { notes, table: Some((Arc::new(table), rows)), ..Self::new(name, inputs, None) })
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.inputs.examples()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Only the given examples, in this order.
    ///
    /// # Errors
    /// [`ModelError::Request`] for one that does not exist.
    pub fn selected(&self, examples: &[usize]) -> Result<Self, ModelError> {
        if let Some(bad) = examples.iter().find(|i| **i >= self.len()) {
            return Err(ModelError::Request(format!("there is no example {bad} among {}", self.len())));
        }
        let truth = self.truth.as_ref().map(|truth| match truth {
            Truth::Classes(classes) => Truth::Classes(examples.iter().map(|&i| classes[i]).collect()),
            Truth::Values { values, width } => Truth::Values {
                values: examples
                    .iter()
                    .flat_map(|&i| values[i * width..(i + 1) * width].iter().copied())
                    .collect(),
                width: *width,
            },
        });
        let table =
            self.table.as_ref().map(|(t, rows)| (t.clone(), examples.iter().map(|&i| rows[i]).collect()));
        let inputs = rows(&self.inputs, examples.iter().copied())?;
        let (name, notes) = (self.name.clone(), self.notes.clone());
        Ok(Self {
            name,
            inputs,
            truth,
            table,
            part: self.part,
            picked: true,
            notes,
            found: self.found.clone(),
        })
    }

    /// Rows of what predictions are written beside: the whole table, or the examples that were picked.
    pub fn length(&self) -> usize {
        match &self.table {
            Some((table, _)) if !self.picked => table.rows(),
            _ => self.len(),
        }
    }

    /// Which examples stand in these rows of the table.
    pub fn examples_of(&self, rows: &[usize]) -> Vec<usize> {
        let wanted: HashSet<usize> = rows.iter().copied().collect();
        let own = self.table.iter().flat_map(|(_, own)| own).enumerate();
        own.filter(|(_, row)| wanted.contains(row)).map(|(example, _)| example).collect()
    }

    /// Where an example stands in new columns.
    pub(crate) fn place(&self, example: usize) -> usize {
        match &self.table {
            Some((_, rows)) if !self.picked => rows[example],
            _ => example,
        }
    }

    /// A new column of [`Self::length`] rows with values for these examples, in order; NaN, an empty cell, elsewhere.
    pub(crate) fn numeric(
        &self,
        name: String,
        rows: &[usize],
        values: impl IntoIterator<Item = f64>,
    ) -> Column {
        let mut out = vec![f64::NAN; self.length()];
        rows.iter().zip(values).for_each(|(&row, v)| out[row] = v);
        Column::numeric(name, out)
    }

    /// The same of text.
    pub(crate) fn text(
        &self,
        name: &str,
        rows: &[usize],
        values: impl IntoIterator<Item = String>,
    ) -> Column {
        let mut out = vec![None; self.length()];
        rows.iter().zip(values).for_each(|(&row, v)| out[row] = Some(v));
        Column { name: name.into(), values: Values::Text(out) }
    }

    /// The table with new columns in the place of older ones of the same names; of the new columns alone where there is no table. A whole table keeps its rows, of others those that were picked.
    pub fn with_columns(self, columns: Vec<Column>) -> Table {
        let Some((table, rows)) = self.table else { return Table::new("predictions", columns) };
        let mut table = if self.picked { table.select(&rows) } else { Arc::unwrap_or_clone(table) };
        table.columns.retain(|c| !columns.iter().any(|new| new.name == c.name));
        // Cells stay as they stand in the file.
        for column in &mut table.columns {
            if let Some(Written { cells, .. }) = table.written.remove(&column.name) {
                column.values = Values::Text(cells);
            }
        }
        table.columns.extend(columns);
        table
    }

    /// Bytes that it holds.
    pub fn memory(&self) -> u64 {
        self.copied_bytes() + self.table.as_ref().map_or(0, |(table, _)| table.memory())
    }

    /// Bytes of them that another selection of all examples would hold as well: a table is shared.
    pub fn copied_bytes(&self) -> u64 {
        let truth = match &self.truth {
            None => 0,
            Some(Truth::Classes(classes)) => classes.len() as u64 * 8,
            Some(Truth::Values { values, .. }) => values.len() as u64 * 8,
        };
        let rows = self.table.as_ref().map_or(0, |(_, rows)| rows.len() as u64 * 8);
        self.inputs.values().memory() + truth + rows
    }
}

/// Some examples of an array.
fn rows(array: &NumericArray, examples: impl Iterator<Item = usize>) -> Result<NumericArray, ModelError> {
    let size: usize = array.example_shape().iter().product();
    fn pick<T: Copy>(values: &[T], size: usize, examples: &[usize]) -> Vec<T> {
        examples.iter().flat_map(|&i| values[i * size..(i + 1) * size].iter().copied()).collect()
    }
    let examples: Vec<usize> = examples.collect();
    let values = match array.values() {
        ArrayValues::F32(v) => ArrayValues::F32(pick(v, size, &examples)),
        ArrayValues::F64(v) => ArrayValues::F64(pick(v, size, &examples)),
        ArrayValues::I64(v) => ArrayValues::I64(pick(v, size, &examples)),
        ArrayValues::U8(v) => ArrayValues::U8(pick(v, size, &examples)),
    };
    Ok(NumericArray::new([&[examples.len()], array.example_shape()].concat(), values)?)
}

/// Files to ask a model about.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Files of one table; for networks also arrays, images or features, several of which are put together (but one table).
    pub data: &'a [PathBuf],
    /// Which inputs of a network these are, one by one; empty where they are put together.
    pub inputs: &'a [String],
    /// Truths of data that hold none.
    pub labels: &'a [PathBuf],
    /// Whether truths are wanted.
    pub truth: bool,
    /// Bytes that a file may take, and how texts are read.
    pub reading: ReadOptions,
}
