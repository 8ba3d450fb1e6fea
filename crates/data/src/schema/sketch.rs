//! What the cells of a column look like, before anyone says what they are: seen part by part, decided at the end.

use super::reading::flag;
use super::time::TimeForm;
use crate::{Column, DataError, Values};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

/// Different texts that become categories without being asked for.
pub(crate) const MOST_CATEGORIES: usize = 100;

/// A column of text of at least so many cells, nearly all of them different, tells rows apart and not what they are like.
const LEAST_IDENTIFIED: usize = 20;

/// What a column is taken for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ColumnKind {
    Number,
    Flag,
    Time(TimeForm),
    Categories,
    /// Names of rows, of which so many differ.
    Identifier(usize),
}

/// A cell, for messages.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    row: usize,
    text: String,
}

/// What was seen of a column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnSketch {
    /// Whether it is to be categories in any case, all of which are kept.
    categories: bool,
    mean: RunningMean,
    rise: WholeRise,
    flag_mean: RunningMean,
    time_means: [RunningMean; TimeForm::ALL.len()],
    present: usize,
    missing: usize,
    /// Cells of parts in which all were numbers.
    as_numbers: usize,
    /// Cells of parts with text.
    as_text: usize,
    /// Of these, those that are numbers all the same.
    numbers: usize,
    /// The first that is none.
    other: Option<Place>,
    /// The first that no form of dates reads.
    no_time: Option<Place>,
    /// Whether any time has hours.
    hours: bool,
    texts: BTreeSet<String>,
    /// Of all texts, where they are more than are kept.
    prints: HashSet<u64>,
    hasher: RandomState,
}

impl ColumnSketch {
    pub(crate) fn new(categories: bool) -> Self {
        Self {
            categories,
            mean: RunningMean::default(),
            rise: WholeRise::default(),
            flag_mean: RunningMean::default(),
            time_means: Default::default(),
            present: 0,
            missing: 0,
            as_numbers: 0,
            as_text: 0,
            numbers: 0,
            other: None,
            no_time: None,
            hours: false,
            texts: BTreeSet::new(),
            prints: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Takes the cells of some rows into account; `first_row` is the number of the table's first row in its file, from 0.
    pub(crate) fn see(&mut self, column: &Column, rows: &[usize], (path, first_row): (&Path, usize)) {
        match &column.values {
            Values::Numeric(values) => {
                for &row in rows {
                    let value = values[row];
                    self.mean.add(value);
                    self.rise.add(value);
                    self.present += usize::from(!value.is_nan());
                    self.missing += usize::from(value.is_nan());
                    self.as_numbers += usize::from(!value.is_nan());
                    if self.categories && !value.is_nan() {
                        self.texts.insert(value.to_string());
                    }
                }
            }
            Values::Text(texts) => {
                for &row in rows {
                    match &texts[row] {
                        None => self.missing += 1,
                        Some(text) => self.see_text(text, || Place {
                            path: path.into(),
                            row: first_row + row + 1,
                            text: text.clone(),
                        }),
                    }
                }
            }
        }
    }

    fn see_text(&mut self, text: &str, place: impl Fn() -> Place) {
        self.present += 1;
        self.as_text += 1;
        if self.categories {
            if !self.texts.contains(text) {
                self.texts.insert(text.into());
            }
            return;
        }
        match text.parse::<f64>() {
            Ok(value) => {
                self.numbers += 1;
                self.mean.add(value);
                self.rise.add(value);
            }
            Err(_) if self.other.is_none() => self.other = Some(place()),
            Err(_) => {}
        }
        if let Some(value) = flag(text) {
            self.flag_mean.add(value);
        }
        let days = TimeForm::ALL.map(|form| form.days(text));
        for (mean, days) in self.time_means.iter_mut().zip(days) {
            days.into_iter().for_each(|days| mean.add(days));
        }
        match days.into_iter().flatten().next() {
            Some(days) => self.hours |= days.fract() != 0.0,
            None if self.no_time.is_none() => self.no_time = Some(place()),
            None => {}
        }
        if self.prints.insert(self.hasher.hash_one(text)) && self.texts.len() <= MOST_CATEGORIES {
            self.texts.insert(text.into());
        }
    }

    /// Whether some parts of it had numbers only and others text, so that the cells must be read again, as text.
    pub(crate) fn mixed(&self) -> bool {
        self.as_numbers > 0 && self.as_text > 0
    }

    /// What it is taken for.
    ///
    /// # Errors
    /// [`DataError::NotANumber`] for numbers with some text among them; [`DataError::NotADate`] for dates likewise; [`DataError::DayOrMonth`];
    /// [`DataError::ManyCategories`].
    pub(crate) fn kind(
        &self,
        name: &str,
        source: &Path,
        order: Option<TimeForm>,
    ) -> Result<ColumnKind, DataError> {
        if self.categories {
            return Ok(ColumnKind::Categories);
        }
        if self.as_text == 0 {
            return Ok(ColumnKind::Number);
        }
        let column = || name.to_string();
        if let Some(place) = self.other.clone().filter(|_| 2 * self.numbers >= self.as_text) {
            let Place { path, row, text } = place;
            return Err(DataError::NotANumber { path, row, column: column(), text });
        }
        if self.other.is_none() {
            return Ok(ColumnKind::Number);
        }
        if self.flag_mean.count == self.as_text {
            return Ok(ColumnKind::Flag);
        }
        if let Some(kind) = self.time(name, source, order)? {
            return Ok(kind);
        }
        let distinct = self.prints.len();
        if self.as_text >= LEAST_IDENTIFIED && 10 * distinct >= 9 * self.as_text {
            return Ok(ColumnKind::Identifier(distinct));
        }
        if distinct > MOST_CATEGORIES {
            let examples = self.texts.iter().take(2).cloned().collect();
            let path = source.into();
            return Err(DataError::ManyCategories { path, column: column(), distinct, examples });
        }
        Ok(ColumnKind::Categories)
    }

    /// The form of dates that all cells have.
    fn time(
        &self,
        name: &str,
        source: &Path,
        order: Option<TimeForm>,
    ) -> Result<Option<ColumnKind>, DataError> {
        let count = |form: TimeForm| self.time_means[form as usize].count;
        let whole = |form: &TimeForm| count(*form) == self.as_text;
        let forms: Vec<TimeForm> = TimeForm::ALL.into_iter().filter(whole).collect();
        let chosen = match forms[..] {
            [] => None,
            [TimeForm::DayFirst, TimeForm::MonthFirst] => match order.filter(whole) {
                Some(form) => Some(form),
                None => {
                    let text = self.texts.first().cloned().unwrap_or_default();
                    return Err(DataError::DayOrMonth { path: source.into(), column: name.into(), text });
                }
            },
            [first, ..] => Some(first),
        };
        if chosen.is_some() {
            return Ok(chosen.map(ColumnKind::Time));
        }
        let most = TimeForm::ALL.into_iter().map(count).max().unwrap_or(0);
        match self.no_time.clone() {
            Some(Place { path, row, text }) if 2 * most >= self.as_text => {
                Err(DataError::NotADate { path, row, column: name.into(), text })
            }
            Some(_) => Ok(None),
            // Each is a date in some form.
            None => Err(DataError::SeveralForms { path: source.into(), column: name.into() }),
        }
    }

    /// The form of its dates, where it is no column of numbers and all cells are dates.
    ///
    /// # Errors
    /// As [`Self::kind`].
    pub(crate) fn time_form(
        &self,
        name: &str,
        source: &Path,
        order: Option<TimeForm>,
    ) -> Result<Option<TimeForm>, DataError> {
        match self.kind(name, source, order)? {
            ColumnKind::Time(form) => Ok(Some(form)),
            _ => Ok(None),
        }
    }

    /// Whether a column of numbers of this name looks as if it told rows apart: each row has a larger whole number than the one before it, or all are whole and the name says so.
    pub(crate) fn numbers_rows(&self, name: &str) -> bool {
        let WholeRise { count, broken, fraction, .. } = self.rise;
        count >= LEAST_IDENTIFIED && !fraction && (!broken || names_rows(name))
    }

    /// Whether times have hours.
    pub(crate) fn hours(&self) -> bool {
        self.hours
    }

    /// Cells that are missing.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// The mean of the numbers that the cells are taken for.
    pub(crate) fn mean(&self, kind: &ColumnKind) -> f64 {
        match kind {
            ColumnKind::Flag => self.flag_mean.value(),
            ColumnKind::Time(form) => self.time_means[*form as usize].value(),
            _ => self.mean.value(),
        }
    }

    /// The categories, sorted. Where all are numbers they are written as these are, so that they are the same however the file is read.
    pub(crate) fn categories(&self) -> BTreeSet<String> {
        let numbers: Option<BTreeSet<String>> =
            self.texts.iter().map(|c| c.parse::<f64>().ok().map(|v| v.to_string())).collect();
        numbers.unwrap_or_else(|| self.texts.clone())
    }
}

/// Whether the name of a column ends as those of identifiers do: `id`, `customer_id`, `CustomerID`, `userId`.
fn names_rows(name: &str) -> bool {
    let name = name.trim();
    let Some(before) =
        name.strip_suffix("id").or_else(|| name.strip_suffix("Id")).or_else(|| name.strip_suffix("ID"))
    else {
        return false;
    };
    // `paid` and `grid` are words.
    match before.chars().last() {
        Some(last) if last.is_alphabetic() => !name.ends_with("id"),
        _ => true,
    }
}

/// Whether the numbers of a column are whole, and each larger than the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct WholeRise {
    last: f64,
    count: usize,
    broken: bool,
    fraction: bool,
}

impl WholeRise {
    fn add(&mut self, value: f64) {
        self.broken |= self.count > 0 && value.partial_cmp(&self.last) != Some(Ordering::Greater);
        self.fraction |= value.is_finite() && value.fract() != 0.0;
        self.last = value;
        self.count += 1;
    }
}

/// The mean of the finite numbers of a column, which is the same whether they come at once or part by part, and never overflows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunningMean {
    mean: f64,
    count: usize,
}

impl RunningMean {
    /// Takes a cell into account; one that is missing or infinite is none.
    pub(crate) fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.count += 1;
            let n = self.count as f64;
            // A difference of the largest doubles would be infinite.
            self.mean += value / n - self.mean / n;
        }
    }

    /// 0 without any number.
    pub(crate) fn value(self) -> f64 {
        self.mean
    }
}
