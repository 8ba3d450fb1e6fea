//! Rows of a table as a model sees them.

use super::notes::describe;
use super::{Feature, Missing, MissingTarget, Notes, Reading, Schema, Unseen};
use crate::read::is_absent;
use crate::{Column, DataError, Table};
use faer::Mat;
use std::collections::HashMap;

/// Rows ready for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// Inputs, n x D.
    pub x: Mat<f64>,
    /// Targets (n), if they were asked for.
    pub y: Option<Vec<f64>>,
    /// Those of further targets (n each), if targets were asked for.
    pub further: Vec<Vec<f64>>,
    /// Known noise variances (n), if the schema has such a column and targets were asked for.
    pub noise: Option<Vec<f64>>,
    /// Exposures (n), if the schema has such a column: predictions of counts need them as well.
    pub exposures: Option<Vec<f64>>,
    /// Index in the table of each row, counted from 0.
    pub rows: Vec<usize>,
    /// What was found and done.
    pub notes: Notes,
}

/// The rows that are looked at, and what becomes of them.
struct Rows<'a> {
    table: &'a Table,
    rows: &'a [usize],
    keep: Vec<bool>,
    notes: Notes,
}

/// What a missing number becomes.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    /// This number.
    Fill(f64),
    /// Its row is left out.
    Drop,
    /// The row is left out, because the target is missing.
    LeaveOut,
    /// An error about the cell.
    Refuse,
    /// An error about the target.
    RefuseTarget,
}

impl Schema {
    /// The given rows of a table as the model sees them, with targets when `with_target`. Other columns are ignored.
    ///
    /// # Errors
    /// [`DataError`] naming the cell; [`DataError::NothingLeft`] when every row was dropped.
    pub fn extract(&self, table: &Table, rows: &[usize], with_target: bool) -> Result<Extracted, DataError> {
        let extracted = self.extract_some(table, rows, with_target)?;
        if extracted.rows.is_empty() {
            let why = if rows.is_empty() { "splitting" } else { "dropping those with missing cells" };
            return Err(DataError::NothingLeft { path: table.source.clone(), why: why.into() });
        }
        Ok(extracted)
    }

    /// The same of a part of a table, of which there may be no row left.
    pub(crate) fn extract_some(
        &self,
        table: &Table,
        rows: &[usize],
        with_target: bool,
    ) -> Result<Extracted, DataError> {
        self.require_columns(table, with_target)?;
        self.check_units(table, with_target)?;
        let path = || table.source.clone();
        let mut taken = Rows { table, rows, keep: vec![true; rows.len()], notes: Notes::default() };
        // A row that is left out for want of a target may have any cells.
        let side = |taken: &mut Rows<'_>, column: &String| -> Result<Vec<f64>, DataError> {
            let values = Reading::Plain.numbers(table, table.column(column)?, rows, &taken.keep)?;
            let is_target = *column == self.target || self.further_targets.contains(column);
            let gap = match (self.missing, self.missing_target, is_target) {
                (_, MissingTarget::LeaveOut, true) => Gap::LeaveOut,
                (Missing::Drop, _, false) => Gap::Drop,
                (_, _, false) => Gap::Refuse,
                (_, _, true) => Gap::RefuseTarget,
            };
            taken.finite_cells(column, &values, gap, self.missing == Missing::Drop)
        };
        let y = if with_target { Some(side(&mut taken, &self.target)?) } else { None };
        let further = self.further_targets.iter().filter(|_| with_target);
        let further = further.map(|column| side(&mut taken, column)).collect::<Result<Vec<_>, _>>()?;
        let noise = match &self.noise {
            Some(column) if with_target => Some(side(&mut taken, column)?),
            _ => None,
        };
        let exposures = self.exposure.as_ref().map(|column| side(&mut taken, column)).transpose()?;
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(self.features.len());
        let mut from = 0;
        while let Some(feature) = self.features.get(from) {
            // Categories of a column stand side by side, and are told apart once.
            let own = |f: &&Feature| f.column() == feature.column() && !matches!(f, Feature::Number { .. });
            let indicators = self.features[from..].iter().take_while(own).count();
            if let Feature::Number { column, reading, mean } = feature {
                let cells = table.column(column)?;
                let mut values = reading.numbers(table, cells, rows, &taken.keep);
                // Ones and zeros of training may be written as words in a file without kinds.
                if values.is_err() && reading.is_plain() && (0.0..=1.0).contains(mean) {
                    values = Reading::Flag.numbers(table, cells, rows, &taken.keep).or(values);
                }
                let values = values?;
                // A cell that stands for several features is filled once.
                let first = from == 0 || self.features[from - 1].column() != column;
                let filled = taken.notes.filled_cells;
                let gap = match self.missing {
                    Missing::Drop => Gap::Drop,
                    Missing::Mean | Missing::Indicator => Gap::Fill(*mean),
                    Missing::Error | Missing::Category => Gap::Refuse,
                };
                columns.push(taken.finite_cells(column, &values, gap, self.missing == Missing::Drop)?);
                if !first {
                    taken.notes.filled_cells = filled;
                }
                from += 1;
            } else {
                columns.extend(self.indicator_columns(&mut taken, &self.features[from..from + indicators])?);
                from += indicators;
            }
        }
        let Rows { keep, mut notes, .. } = taken;
        let kept: Vec<usize> = (0..rows.len()).filter(|&i| keep[i]).collect();
        notes.dropped_rows = rows.len() - kept.len();
        let pick = |values: Vec<f64>| -> Vec<f64> { kept.iter().map(|&i| values[i]).collect() };
        let x = Mat::from_fn(kept.len(), columns.len(), |i, j| columns[j][kept[i]]);
        let (y, noise, exposures) = (y.map(pick), noise.map(pick), exposures.map(pick));
        let further = further.into_iter().map(pick).collect();
        let rows: Vec<usize> = kept.iter().map(|&i| rows[i]).collect();
        let sides = [(&noise, &self.noise, "noise variance"), (&exposures, &self.exposure, "exposure")];
        for (values, column, what) in sides {
            if let (Some(values), Some(column)) = (values, column)
                && let Some(i) = values.iter().position(|v| *v <= 0.0)
            {
                let (path, row, column, value) = (path(), rows[i] + 1, column.clone(), values[i]);
                return Err(DataError::NotPositive { path, row, column, value, what });
            }
        }
        if with_target {
            notes.columns.clone_from(&self.notes);
        }
        describe(&mut notes, x.as_ref(), y.as_deref(), &self.feature_names());
        Ok(Extracted { x, y, further, noise, exposures, rows, notes })
    }

    fn require_columns(&self, table: &Table, with_target: bool) -> Result<(), DataError> {
        let features = self.features.iter().map(Feature::column);
        let features = features.filter(|column| self.groups.as_deref() != Some(*column));
        let targets = std::iter::once(&self.target).chain(&self.further_targets);
        let sides = targets.chain(&self.noise).filter(|_| with_target);
        let sides = sides.chain(&self.exposure);
        let mut missing: Vec<String> = Vec::new();
        for name in features.chain(sides.map(String::as_str)) {
            if !table.columns.iter().any(|c| c.name == name) && !missing.iter().any(|m| m == name) {
                missing.push(name.to_string());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(DataError::NoSuchColumn { path: table.source.clone(), missing, known: table.names() })
    }

    /// Refuses cells in other units than those of training.
    fn check_units(&self, table: &Table, with_target: bool) -> Result<(), DataError> {
        let numbers =
            self.features.iter().filter(|f| matches!(f, Feature::Number { .. })).map(Feature::column);
        let targets = std::iter::once(&self.target).chain(&self.noise);
        let sides = targets.filter(|_| with_target).chain(&self.exposure).map(String::as_str);
        for name in numbers.chain(sides) {
            let known = self.units.get(name);
            let Some(written) = table.written.get(name).filter(|own| Some(&own.unit) != known) else {
                continue;
            };
            let (row, text) = written.first();
            let expected = match known {
                Some(unit) => format!("in {unit}, as in training"),
                None => "a number without a unit, as in training".into(),
            };
            let (path, column) = (table.source.clone(), name.to_string());
            return Err(DataError::NotAsInTraining { path, row, column, text, expected });
        }
        Ok(())
    }

    /// Columns of 0 and 1: whether a cell is each of the categories, or missing, where these features stand for.
    fn indicator_columns(
        &self,
        taken: &mut Rows<'_>,
        features: &[Feature],
    ) -> Result<Vec<Vec<f64>>, DataError> {
        let Some(name) = features.first().map(Feature::column) else { return Ok(Vec::new()) };
        let Ok(column) = taken.table.column(name) else {
            // Groups that nobody knows: others than those of training.
            taken.notes.unseen_categories += taken.rows.len();
            return Ok(vec![vec![0.0; taken.rows.len()]; features.len()]);
        };
        let column = &*taken.table.as_written(column);
        let absent = features.iter().position(|f| matches!(f, Feature::Absent { .. }));
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (j, feature) in features.iter().enumerate() {
            if let Feature::Category { category, .. } = feature {
                places.insert(category, j);
            }
        }
        // Categories that are numbers are those of any way to write them: a file says `1.0` in one part and `1` in another.
        let numeric = !places.is_empty() && places.keys().all(|name| name.parse::<f64>().is_ok());
        let mut out = vec![vec![0.0; taken.rows.len()]; features.len()];
        for (i, &row) in taken.rows.iter().enumerate() {
            if !taken.keep[i] {
                continue;
            }
            let mut text = column.cell(row);
            if numeric && let Ok(value) = text.parse::<f64>() {
                text = value.to_string();
            }
            let gap = text.is_empty() || places.is_empty() && is_absent(&text);
            let place = match (gap, places.get(text.as_str())) {
                (true, _) if absent.is_some() => absent,
                // Of a column of numbers these are not its only features: a gap was seen to there.
                (true, _) if places.is_empty() => None,
                (true, _) => {
                    self.no_category(taken, column, i)?;
                    None
                }
                (false, Some(place)) => Some(*place),
                (false, None) if places.is_empty() => None,
                (false, None) if self.unseen == Unseen::Other => {
                    taken.notes.unseen_categories += 1;
                    None
                }
                (false, None) => {
                    let mut known: Vec<String> = places.keys().map(|k| (*k).to_string()).collect();
                    known.sort_unstable();
                    let (path, column) = (taken.table.source.clone(), name.into());
                    return Err(DataError::UnknownCategory { path, row: row + 1, column, text, known });
                }
            };
            if let Some(place) = place {
                out[place][i] = 1.0;
            }
        }
        Ok(out)
    }

    /// A cell without a category where training had none.
    fn no_category(&self, taken: &mut Rows<'_>, column: &Column, i: usize) -> Result<(), DataError> {
        match self.missing {
            Missing::Drop => taken.keep[i] = false,
            Missing::Mean => taken.notes.filled_cells += 1,
            Missing::Category | Missing::Indicator if self.unseen == Unseen::Other => {
                taken.notes.unseen_categories += 1;
            }
            Missing::Error => {
                let (path, row) = (taken.table.source.clone(), taken.rows[i] + 1);
                return Err(DataError::MissingCell { path, row, column: column.name.clone() });
            }
            // No category is one that training had not.
            Missing::Category | Missing::Indicator => {
                let (path, row) = (taken.table.source.clone(), taken.rows[i] + 1);
                let (column, text, known) = (column.name.clone(), String::new(), Vec::new());
                return Err(DataError::UnknownCategory { path, row, column, text, known });
            }
        }
        Ok(())
    }
}

impl Rows<'_> {
    /// The numbers of a column at the rows that are looked at, with gaps as they are to be.
    fn finite_cells(
        &mut self,
        column: &str,
        values: &[f64],
        gap: Gap,
        drop_infinite: bool,
    ) -> Result<Vec<f64>, DataError> {
        let mut out = Vec::with_capacity(self.rows.len());
        for (i, &row) in self.rows.iter().enumerate() {
            let value = values[i];
            let (path, column, row) = (|| self.table.source.clone(), column.to_string(), row + 1);
            out.push(match gap {
                _ if value.is_finite() => value,
                _ if !self.keep[i] => 0.0,
                Gap::Drop => {
                    self.keep[i] = false;
                    0.0
                }
                _ if !value.is_nan() && drop_infinite => {
                    self.keep[i] = false;
                    0.0
                }
                _ if !value.is_nan() => return Err(DataError::Infinite { path: path(), row, column, value }),
                Gap::Fill(mean) => {
                    self.notes.filled_cells += 1;
                    mean
                }
                Gap::LeaveOut => {
                    self.keep[i] = false;
                    self.notes.rows_without_target += 1;
                    0.0
                }
                Gap::Refuse => return Err(DataError::MissingCell { path: path(), row, column }),
                Gap::RefuseTarget => return Err(DataError::MissingTarget { path: path(), row, column }),
            });
        }
        Ok(out)
    }
}
