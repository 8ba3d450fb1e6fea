//! What a column of dates holds, for people.

use super::learn::{OPEN, table_order};
use super::{ColumnSketch, Reading, TimeForm};
use crate::read::{is_absent, times};
use crate::{Column, Table, Values};
use posterior_notes::fixes::{DAY_FIRST, MONTH_FIRST};

/// The dates of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDates {
    /// `date`, `date-time` or, without a date, `time`.
    pub kind: &'static str,
    /// How they are written.
    pub form: TimeForm,
    /// The first and the last of them in the form of ISO 8601.
    pub range: [String; 2],
    /// Cells without one.
    pub missing: usize,
    /// What is to be said where nothing decides whether they begin with the day or with the month.
    pub note: Option<String>,
}

/// The dates of a column of text; None where it holds something else.
pub fn dates_of(table: &Table, column: &Column) -> Option<ColumnDates> {
    let Values::Text(cells) = &column.values else { return None };
    // A first cell that is none tells it quickly.
    let first = cells.iter().flatten().find(|text| !is_absent(text))?;
    TimeForm::ALL.into_iter().find(|form| form.days(first).is_some())?;
    let rows: Vec<usize> = (0..column.len()).collect();
    let mut sketch = ColumnSketch::new(false);
    sketch.see(column, &rows, (&table.source, 0));
    let order = sketch.open_order().and_then(|_| table_order(table));
    let form = sketch.time_form(&column.name, &table.source, order).ok()??;
    let reading = Reading::Time { form };
    let days = reading.numbers(table, column, &rows, &vec![true; rows.len()]).ok()?;
    let present = || days.iter().copied().filter(|days| !days.is_nan());
    let kind = match form {
        TimeForm::Clock => "time",
        _ if sketch.hours() => "date-time",
        _ => "date",
    };
    let iso = |days: f64| {
        // Whole microseconds: a double of days holds no more.
        let nanos = 1000 * (days * 86_400e6).round() as i128;
        match kind {
            "time" => times::time(nanos),
            "date-time" => times::instant(nanos),
            _ => times::date(days as i32),
        }
    };
    let range = [iso(present().fold(f64::INFINITY, f64::min))?, iso(present().fold(f64::MIN, f64::max))?];
    let open = sketch.open_order().filter(|_| order.is_none());
    let note = open.map(|text| open_dates(&[open_date(text, &column.name, form)]));
    Some(ColumnDates { kind, form, range, missing: days.len() - present().count(), note })
}

/// A date that may begin with the day or with the month.
pub(super) fn open_date(text: &str, column: &str, form: TimeForm) -> String {
    format!("`{text}` in column `{column}` as {}", form.name())
}

/// What is said of such dates.
pub(super) fn open_dates(dates: &[String]) -> String {
    format!("{} ({DAY_FIRST} or {MONTH_FIRST:-} says which): {}", OPEN[0], crate::error::first_items(dates))
}
