//! What the cells of a column look like, before anyone says what they are: seen part by part, decided at the end.

use super::reading::flag;
use super::time::TimeForm;
use crate::read::{Quantity, is_absent};
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
    /// Those that are numbers with other marks or known units, and the first of them.
    marked: usize,
    first_marked: Option<Place>,
    /// The first unit, and the first cell with another one.
    unit: Option<String>,
    other_unit: Option<(Place, String)>,
    /// Those that mean a missing one among numbers and dates.
    absent: usize,
    /// The first that is none of these.
    other: Option<Place>,
    /// The first that no form of dates reads.
    no_time: Option<Place>,
    /// Whether any time has hours.
    hours: bool,
    /// The first and the last day.
    days: [f64; 2],
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
            marked: 0,
            first_marked: None,
            unit: None,
            other_unit: None,
            absent: 0,
            other: None,
            no_time: None,
            hours: false,
            days: [f64::INFINITY, f64::NEG_INFINITY],
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

    /// Cells that are not missing.
    pub(crate) fn present(&self) -> usize {
        self.present
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
            Err(_) if is_absent(text) => self.absent += 1,
            Err(_) => match Quantity::read_any(text).filter(Quantity::is_known) {
                Some(found) => self.see_marked(found.unit, &place),
                None if self.other.is_none() => self.other = Some(place()),
                None => {}
            },
        }
        if let Some(value) = flag(text) {
            self.flag_mean.add(value);
        }
        let days = TimeForm::ALL.map(|form| form.days(text));
        for (mean, days) in self.time_means.iter_mut().zip(days) {
            days.into_iter().for_each(|days| mean.add(days));
        }
        match days.into_iter().flatten().next() {
            Some(days) => {
                self.hours |= days.fract() != 0.0;
                self.days = [self.days[0].min(days), self.days[1].max(days)];
            }
            None if self.no_time.is_none() && !is_absent(text) => self.no_time = Some(place()),
            None => {}
        }
        if self.prints.insert(self.hasher.hash_one(text)) && self.texts.len() <= MOST_CATEGORIES {
            self.texts.insert(text.into());
        }
    }

    /// Takes a number in another form than a plain one into account.
    fn see_marked(&mut self, unit: String, place: &impl Fn() -> Place) {
        self.marked += 1;
        if self.first_marked.is_none() {
            self.first_marked = Some(place());
        }
        match &self.unit {
            None => self.unit = Some(unit),
            Some(first) if *first != unit && self.other_unit.is_none() => {
                self.other_unit = Some((place(), unit));
            }
            Some(_) => {}
        }
    }

    /// Whether it is to be categories in any case.
    pub(crate) fn takes_texts(&self) -> bool {
        self.categories
    }

    /// Whether some parts of it had numbers only and others text, so that the cells must be read again, as text.
    pub(crate) fn mixed(&self) -> bool {
        self.as_numbers > 0 && self.as_text > 0
    }

    /// What it is taken for.
    ///
    /// # Errors
    /// [`DataError::NotANumber`] for numbers with some text among them; [`DataError::NotADate`] for dates likewise; [`DataError::SeveralUnits`];
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
        let present = self.as_text - self.absent;
        if let Some(place) = self.other.clone().filter(|_| 2 * (self.numbers + self.marked) >= present) {
            let Place { path, row, text } = place;
            return Err(DataError::NotANumber { path, row, column: column(), text });
        }
        if self.other.is_none() && self.marked > 0 {
            return self.not_one_number(name);
        }
        if self.other.is_none() && present > 0 {
            return Ok(ColumnKind::Number);
        }
        if self.flag_mean.count == present && present > 0 {
            return Ok(ColumnKind::Flag);
        }
        if let Some(kind) = self.time(name, source, order)? {
            return Ok(kind);
        }
        let distinct = self.prints.len();
        let kind = self.texts_kind();
        if kind == ColumnKind::Categories && distinct > MOST_CATEGORIES {
            let examples = self.texts.iter().take(2).cloned().collect();
            let path = source.into();
            return Err(DataError::ManyCategories { path, column: column(), distinct, examples });
        }
        Ok(kind)
    }

    /// A column of numbers that the reader could not make numbers of: they have several units, or marks that contradict each other. Letters behind numbers may be names.
    fn not_one_number(&self, name: &str) -> Result<ColumnKind, DataError> {
        let column = name.to_string();
        let letter = |unit: &str| unit.len() == 1 && unit.starts_with(char::is_alphabetic);
        match (self.first_marked.clone(), self.other_unit.clone(), &self.unit) {
            (_, Some((place, unit)), Some(first)) if !letter(&unit) || !letter(first) => {
                let Place { path, row, text } = place;
                Err(DataError::SeveralUnits { path, row, column, text, units: [first.clone(), unit].into() })
            }
            (Some(Place { path, row, text }), None, _) => {
                Err(DataError::NotANumber { path, row, column, text })
            }
            _ => Ok(self.texts_kind()),
        }
    }

    /// Names of rows, or categories.
    fn texts_kind(&self) -> ColumnKind {
        let distinct = self.prints.len();
        let names = self.as_text >= LEAST_IDENTIFIED && 10 * distinct >= 9 * self.as_text;
        if names { ColumnKind::Identifier(distinct) } else { ColumnKind::Categories }
    }

    /// Whether all cells are dates that may begin with the day or with the month; one of them.
    pub(crate) fn open_order(&self) -> Option<&str> {
        let count = |form: TimeForm| self.time_means[form as usize].count;
        let both = [TimeForm::DayFirst, TimeForm::MonthFirst].map(count) == [self.as_text - self.absent; 2];
        self.texts.iter().find(|text| both && !is_absent(text)).map(String::as_str)
    }

    /// The form of dates that all cells have; day or month first where both fit is as `order` says, or failing that as it is usual behind the mark between them.
    fn time(
        &self,
        name: &str,
        source: &Path,
        order: Option<TimeForm>,
    ) -> Result<Option<ColumnKind>, DataError> {
        let present = self.as_text - self.absent;
        let count = |form: TimeForm| self.time_means[form as usize].count;
        let whole = |form: &TimeForm| present > 0 && count(*form) == present;
        let forms: Vec<TimeForm> = TimeForm::ALL.into_iter().filter(whole).collect();
        let chosen = match (self.open_order(), &forms[..]) {
            (Some(text), _) => Some(order.filter(whole).unwrap_or_else(|| usual_order(text))),
            (None, forms) => forms.first().copied(),
        };
        if chosen.is_some() {
            return Ok(chosen.map(ColumnKind::Time));
        }
        let most = TimeForm::ALL.into_iter().map(count).max().unwrap_or(0);
        match self.no_time.clone() {
            Some(Place { path, row, text }) if 2 * most >= present => {
                Err(DataError::NotADate { path, row, column: name.into(), text })
            }
            Some(_) => Ok(None),
            None if present == 0 => Ok(None),
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

    /// Whether its dates are months or quarters of two years at least: seasons come back then.
    pub(crate) fn is_seasonal(&self, form: TimeForm) -> bool {
        let [first, last] = self.days;
        matches!(form, TimeForm::Month | TimeForm::Quarter) && last - first >= 2.0 * 365.0 - 92.0
    }

    /// Cells that are missing in a column of this kind.
    pub(crate) fn missing(&self, kind: &ColumnKind) -> usize {
        let texts = matches!(kind, ColumnKind::Categories | ColumnKind::Identifier(_));
        self.missing + if texts { 0 } else { self.absent }
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

/// What dates begin with where nothing decides: the month before a slash, the day elsewhere.
fn usual_order(text: &str) -> TimeForm {
    if text.contains('/') { TimeForm::MonthFirst } else { TimeForm::DayFirst }
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
