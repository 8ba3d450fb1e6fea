//! Lines in, predictions out, and what was learned of them.

use super::state::{StreamCounts, StreamState};
use crate::{Answer, ModelError};
use posterior_data::arriving::{Cells, Line, RowFormat};
use posterior_data::{Column, DataError, Table, Values};
use std::path::Path;
use std::sync::Arc;

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Its number in the stream, from 1.
    pub row: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What became of some lines.
#[derive(Clone, Debug)]
pub struct TakenRows {
    /// The rows that were predicted, in their order: number, target as it came, predictions. None without a row.
    pub predictions: Option<Table>,
    /// Rows that cannot be used.
    pub bad: Vec<BadRow>,
    /// Whether the first of these ended it: it and the lines behind it are not counted.
    pub stopped: bool,
}

/// Lines as rows, and those that are none.
pub struct ParsedRows {
    /// Cells by the columns of the format.
    pub rows: Vec<Cells>,
    /// Number of each in the stream.
    pub numbers: Vec<u64>,
    /// The others.
    pub bad: Vec<BadRow>,
}

impl ParsedRows {
    /// Splits lines, the first of which has the number `first`.
    pub fn of(format: &RowFormat, lines: &[Line], optional: &[String], first: u64) -> Self {
        let mut out = Self { rows: Vec::new(), numbers: Vec::new(), bad: Vec::new() };
        for (row, line) in (first..).zip(lines) {
            let cells = match line.cut {
                true => Err(format!("it is longer than {} bytes", line.text.len())),
                false => format.cells(&line.text, optional),
            };
            match cells {
                Ok(cells) => {
                    out.rows.push(cells);
                    out.numbers.push(row);
                }
                Err(reason) => out.bad.push(BadRow { row, reason }),
            }
        }
        out
    }
}

impl StreamState {
    /// Predicts rows, scores those that have a target, then learns these. With `skip` bad rows are passed over, else the first of them ends it after the rows before it. The state is not written.
    ///
    /// # Errors
    /// [`ModelError`] where a row that looked right cannot be learned; the state is as before then.
    pub fn take(&mut self, lines: &[Line], skip: bool, source: &Path) -> Result<TakenRows, ModelError> {
        let (needed, target) = self.model.columns();
        let first = self.counts.rows + 1;
        let optional = std::slice::from_ref(&target);
        let ParsedRows { mut rows, mut numbers, mut bad } =
            ParsedRows::of(&self.input.format, lines, optional, first);
        let wanted: Vec<String> = needed.into_iter().chain([target.clone()]).collect();
        let text = self.model.text_columns();
        let format = &self.input.format;
        let table_of = |rows: &[Cells]| format.table(rows, Some(&wanted), &text, source);
        let mut table = table_of(&rows);
        let mut kinds = Kinds::of(&table, &target);
        if self.check(&table, &kinds).is_err() {
            // A cell that is no number makes its column text: each row is looked at alone.
            let reasons: Vec<Option<String>> = rows
                .iter()
                .zip(&numbers)
                .map(|(row, number)| {
                    let alone = table_of(std::slice::from_ref(row));
                    let error = self.check(&alone, &Kinds::of(&alone, &target)).err()?;
                    Some(match error {
                        ModelError::Data(error) => error.in_part(*number as usize - 1).to_string(),
                        other => other.to_string(),
                    })
                })
                .collect();
            let found = numbers.iter().zip(&reasons);
            bad.extend(found.filter_map(|(row, reason)| Some(BadRow { row: *row, reason: reason.clone()? })));
        }
        bad.sort_by_key(|b| b.row);
        let stopped = !skip && !bad.is_empty();
        let until = if stopped { bad[0].row } else { first + lines.len() as u64 };
        if !bad.is_empty() {
            let good = |number: u64| number < until && bad.binary_search_by_key(&number, |b| b.row).is_err();
            let kept = std::mem::take(&mut rows).into_iter().zip(std::mem::take(&mut numbers));
            (rows, numbers) = kept.filter(|(_, number)| good(*number)).unzip();
            table = table_of(&rows);
            kinds = Kinds::of(&table, &target);
        }
        let Kinds { labelled, unlabelled } = kinds;
        let table = Arc::new(table);
        let mut score = self.score;
        let mut counts = StreamCounts { rows: until - 1, ..self.counts };
        let mut parts: Vec<(Vec<usize>, Vec<Column>)> = Vec::new();
        for (rows, truth) in [(&labelled, true), (&unlabelled, false)] {
            if !rows.is_empty() {
                let answer: Answer = self.model.answer(&table, rows, truth, &mut score)?;
                counts.clipped += answer.clipped as u64;
                counts.filled_cells += answer.data.filled_cells as u64;
                counts.unseen_categories += answer.data.unseen_categories as u64;
                parts.push((rows.clone(), answer.columns));
            }
        }
        if !labelled.is_empty() {
            self.model.learn(&table, &labelled)?;
            counts.batches += 1;
        }
        counts.learned += labelled.len() as u64;
        counts.unlabelled += unlabelled.len() as u64;
        if skip {
            counts.skipped += bad.len() as u64;
        }
        if let Some(last) = (until - first).checked_sub(1).and_then(|i| lines.get(i as usize)) {
            self.input.offset = last.end;
        }
        (self.counts, self.score) = (counts, score);
        let predictions = (!parts.is_empty()).then(|| merged(&table, &target, &numbers, &parts));
        Ok(TakenRows { predictions, bad, stopped })
    }

    fn check(&self, table: &Table, kinds: &Kinds) -> Result<(), ModelError> {
        self.model.check(table, &kinds.labelled, true)?;
        self.model.check(table, &kinds.unlabelled, false)
    }

    /// What the first line of an input is: a header, in which the columns may come in another order, or a row.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`] for a header of other columns.
    pub fn take_header(&mut self, line: &Line, source: &Path) -> Result<bool, DataError> {
        let (needed, target) = self.model.columns();
        // Rows that are predicted only have no target.
        let needed: Vec<String> = needed.into_iter().filter(|name| *name != target).collect();
        match self.input.format.header(&line.text, &needed, source)? {
            Some(format) => {
                self.input.format = format;
                self.input.offset = line.end;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// Rows of a table with a target, and without.
struct Kinds {
    labelled: Vec<usize>,
    unlabelled: Vec<usize>,
}

impl Kinds {
    fn of(table: &Table, target: &str) -> Self {
        let column = table.columns.iter().find(|c| c.name == target);
        let there = |row: &usize| column.is_some_and(|c| is_there(c, *row));
        let (labelled, unlabelled) = (0..table.rows()).partition(there);
        Self { labelled, unlabelled }
    }
}

fn is_there(column: &Column, row: usize) -> bool {
    match &column.values {
        Values::Numeric(values) => !values[row].is_nan(),
        Values::Text(values) => values[row].is_some(),
    }
}

/// Rows of both kinds in the order in which they came.
fn merged(table: &Table, target: &str, numbers: &[u64], parts: &[(Vec<usize>, Vec<Column>)]) -> Table {
    let mut places: Vec<(usize, usize, usize)> = parts
        .iter()
        .enumerate()
        .flat_map(|(part, (rows, _))| rows.iter().enumerate().map(move |(place, row)| (*row, part, place)))
        .collect();
    places.sort_unstable();
    let rows: Vec<f64> = places.iter().map(|(row, ..)| numbers[*row] as f64).collect();
    let mut columns = vec![Column::numeric("row", rows)];
    if let Some(truth) = table.columns.iter().find(|c| c.name == target) {
        let cell = |row: usize| Some(truth.cell(row)).filter(|cell| !cell.is_empty());
        let values = match &truth.values {
            Values::Numeric(v) => Values::Numeric(places.iter().map(|(row, ..)| v[*row]).collect()),
            Values::Text(_) => Values::Text(places.iter().map(|(row, ..)| cell(*row)).collect()),
        };
        columns.push(Column { name: target.into(), values });
    }
    // What only one kind has would come and go from batch to batch.
    let shared = |name: &str| name != "removable_entropy";
    for (j, first) in parts[0].1.iter().enumerate().filter(|(_, c)| shared(&c.name)) {
        let own = |part: usize| match part {
            0 => Some(&parts[0].1[j]),
            part => parts[part].1.iter().find(|c| c.name == first.name),
        };
        let values = match &first.values {
            Values::Numeric(_) => Values::Numeric(
                places
                    .iter()
                    .map(|(_, part, place)| match own(*part).map(|c| &c.values) {
                        Some(Values::Numeric(v)) => v[*place],
                        _ => f64::NAN,
                    })
                    .collect(),
            ),
            Values::Text(_) => Values::Text(
                places.iter().map(|(_, part, place)| own(*part).map(|c| c.cell(*place))).collect(),
            ),
        };
        columns.push(Column { name: first.name.clone(), values });
    }
    Table::new("predictions", columns)
}
