//! Cells of a column as numbers.

use super::time::{Cycle, TimeForm, Wave};
use crate::read::{Quantity, is_absent};
use crate::{Column, DataError, Table, Values};
use serde::{Deserialize, Serialize};

/// How the cells of a column become the numbers of a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "read_as")]
pub enum Reading {
    /// Numbers, as they stand.
    #[default]
    Plain,
    /// `true` as 1, `false` as 0, in any case of letters.
    Flag,
    /// A date or a time, in days from the beginning of 1970 ([`TimeForm::days`]).
    Time {
        /// How it is written.
        form: TimeForm,
    },
    /// Where in a year, a week or a day a time is, as a coordinate of a circle.
    Cycle {
        /// How the time is written.
        form: TimeForm,
        /// What comes back.
        cycle: Cycle,
        /// Which coordinate.
        wave: Wave,
    },
}

/// `true` or `false`.
pub(crate) fn flag(text: &str) -> Option<f64> {
    let text = text.trim();
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(1.0) } else { is("false").then_some(0.0) }
}

impl Reading {
    /// Whether this is [`Reading::Plain`].
    pub fn is_plain(&self) -> bool {
        *self == Self::Plain
    }

    /// A text as a number.
    pub fn number(self, text: &str) -> Option<f64> {
        match self {
            Self::Plain => text.trim().parse().ok(),
            // Numbers of 1 and 0 mean the same.
            Self::Flag => flag(text).or_else(|| text.trim().parse().ok().and_then(|v| self.of_number(v))),
            Self::Time { form } => form.days(text),
            Self::Cycle { form, cycle, wave } => form.days(text).map(|days| wave.at(cycle.phase(days))),
        }
    }

    /// What its cells must be, for messages.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Plain => "a number".into(),
            Self::Flag => "true or false".into(),
            Self::Time { form } | Self::Cycle { form, .. } => {
                format!("a date or time written {}, as in training", form.name())
            }
        }
    }

    /// Behind the column's name in that of a feature.
    pub(crate) fn suffix(self) -> String {
        match self {
            Self::Cycle { cycle, wave, .. } => format!(".{}.{}", cycle.name(), wave.name()),
            _ => String::new(),
        }
    }

    /// The numbers of a column at some rows, NaN where a cell is missing or its row is not kept: what stands in other rows is nobody's concern.
    ///
    /// # Errors
    /// [`DataError::NotANumber`] and [`DataError::NotAsInTraining`] for the first cell that is none.
    pub(crate) fn numbers(
        self,
        table: &Table,
        column: &Column,
        rows: &[usize],
        keep: &[bool],
    ) -> Result<Vec<f64>, DataError> {
        let number = |(&row, kept): (&usize, &bool)| {
            if !kept {
                return Ok(f64::NAN);
            }
            let found = match &column.values {
                Values::Numeric(values) => self.of_number(values[row]),
                Values::Text(texts) => texts[row].as_deref().map_or(Some(f64::NAN), |text| {
                    self.number(text).or_else(|| is_absent(text).then_some(f64::NAN))
                }),
            };
            found.ok_or_else(|| self.refused(table, column, row))
        };
        rows.iter().zip(keep).map(number).collect()
    }

    /// A number of a file that has kinds of its own (Parquet has true and false as 1 and 0), or of a column without any text; NaN is missing.
    fn of_number(self, value: f64) -> Option<f64> {
        match self {
            Self::Plain => Some(value),
            Self::Flag => (value.is_nan() || value == 0.0 || value == 1.0).then_some(value),
            _ => value.is_nan().then_some(value),
        }
    }

    fn refused(self, table: &Table, column: &Column, row: usize) -> DataError {
        if self.is_plain() {
            return not_a_number(table, column, row);
        }
        DataError::NotAsInTraining {
            path: table.source.clone(),
            row: row + 1,
            column: column.name.clone(),
            text: column.cell(row),
            expected: self.expected(),
        }
    }
}

/// The numbers of a column, or the error that names its first cell that is not one.
pub(crate) fn numbers<'a>(table: &Table, column: &'a Column) -> Result<&'a [f64], DataError> {
    match &column.values {
        Values::Numeric(values) => Ok(values),
        Values::Text(texts) => {
            let plain = |text: &String| text.parse::<f64>().is_ok();
            let bad = texts.iter().position(|text| text.as_ref().is_some_and(|text| !plain(text)));
            Err(not_a_number(table, column, bad.unwrap_or(0)))
        }
    }
}

/// What is wrong with a column that is text by a cell: that cell or, where it is a number with a mark or a unit, the first one that is none.
fn not_a_number(table: &Table, column: &Column, row: usize) -> DataError {
    let (path, name) = (table.source.clone(), column.name.clone());
    let odd =
        |text: &str| text.parse::<f64>().is_err() && !is_absent(text) && Quantity::read_any(text).is_none();
    let row = match &column.values {
        Values::Text(texts) => texts.iter().position(|text| text.as_deref().is_some_and(odd)).unwrap_or(row),
        Values::Numeric(_) => row,
    };
    DataError::NotANumber { path, row: row + 1, column: name, text: column.cell(row) }
}
