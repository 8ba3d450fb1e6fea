//! What the rows of training teach about columns, all at once or part by part.

use super::reading::Reading;
use super::seen::{open_date, open_dates};
use super::sketch::{ColumnKind, ColumnSketch};
use super::time::{Cycle, TimeForm, Wave};
use super::{Feature, Missing, MissingTarget, Schema, Selection};
use crate::error::{first_items, listed, short};
use crate::read::is_absent;
use crate::{Column, DataError, DecimalMark, Table, Values};
use posterior_notes::fixes::{CATEGORIES, CATEGORIES_COLUMN, EXCLUDE_COLUMN};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Cells of 0 and 1 that groups may become, 8 bytes each; more groups are no feature.
const MOST_GROUP_CELLS: usize = 4_000_000;

/// What was learned.
pub(crate) enum Learned {
    Schema(Schema),
    /// These columns are numbers in some parts and text in others: read all parts again, with them as text.
    Again(Vec<String>),
}

/// Roles, and what was seen of the columns so far.
pub(crate) struct Learner<'a> {
    selection: &'a Selection,
    source: PathBuf,
    target: String,
    noise: Option<String>,
    exposure: Option<String>,
    groups: Option<String>,
    calendar: Vec<String>,
    columns: Vec<(String, ColumnSketch)>,
    decimal: Option<DecimalMark>,
    units: BTreeMap<String, String>,
    /// What dates of any column begin with where their cells decide.
    orders: BTreeSet<TimeForm>,
}

impl<'a> Learner<'a> {
    /// Resolves the roles by the columns of a table, or of a part of it.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`] listing all missing columns at once, [`DataError::Role`].
    pub(crate) fn new(table: &Table, selection: &'a Selection) -> Result<Self, DataError> {
        let Selection {
            features, noise, exposure, categories, exclude, index, calendar, groups, time, ..
        } = selection;
        let asked = std::iter::once(&selection.target).chain(features.iter().flatten());
        let asked = asked.chain(noise).chain(exposure).chain(categories).chain(groups).chain(time);
        let asked = asked.chain(exclude).chain(index).chain(calendar);
        let missing: Vec<String> = asked.filter(|n| table.column(n).is_err()).cloned().collect();
        if !missing.is_empty() {
            return Err(DataError::NoSuchColumn {
                path: table.source.clone(),
                missing,
                known: table.names(),
            });
        }
        let resolve = |name: &String| table.column(name).map(|c| c.name.clone());
        let all = |names: &[String]| names.iter().map(resolve).collect::<Result<Vec<_>, _>>();
        let target = resolve(&selection.target)?;
        let noise = noise.as_ref().map(resolve).transpose()?;
        let exposure = exposure.as_ref().map(resolve).transpose()?;
        let index = index.as_ref().map(resolve).transpose()?;
        let groups = groups.as_ref().map(resolve).transpose()?;
        let (categories, exclude, calendar) = (all(categories)?, all(exclude)?, all(calendar)?);
        let role =
            |column: &String, role: &str| DataError::Role { column: column.clone(), role: role.into() };
        let aside = |name: &String| exclude.contains(name) || index.as_ref() == Some(name);
        for column in [Some(&target), noise.as_ref(), exposure.as_ref()].into_iter().flatten() {
            if aside(column) {
                return Err(role(
                    column,
                    "left out (--exclude, --index, --groups or --folds), and needed: it has another role",
                ));
            }
        }
        let chosen = match features {
            Some(names) => all(names)?,
            None => {
                let sides = [Some(&target), noise.as_ref(), exposure.as_ref()];
                let side =
                    |n: &String| sides.contains(&Some(n)) || aside(n) || table.index.as_ref() == Some(n);
                table.names().into_iter().filter(|n| !side(n)).collect()
            }
        };
        for (i, column) in chosen.iter().enumerate() {
            if *column == target {
                return Err(role(column, "both a feature and the target"));
            }
            if chosen[..i].contains(column) {
                return Err(role(column, "named twice among the features"));
            }
            if aside(column) {
                return Err(role(column, "both a feature and left out (--exclude or --index)"));
            }
        }
        if let Some(column) = exposure.as_ref().filter(|column| **column == target) {
            return Err(role(column, "both the exposure and the target"));
        }
        for (names, flag) in [(&categories, "--categories"), (&calendar, "--calendar")] {
            if let Some(column) = names.iter().find(|c| !chosen.contains(c)) {
                return Err(role(column, &format!("named in {flag}, but is not a feature")));
            }
        }
        if let Some(column) = calendar.iter().find(|c| categories.contains(c)) {
            return Err(role(column, "named in --calendar and in --categories; it is one of them"));
        }
        if chosen.is_empty() {
            return Err(role(&target, "the only column; a model needs at least one feature"));
        }
        let sketch = |name: String| {
            let sketch = ColumnSketch::new(categories.contains(&name) || groups.as_ref() == Some(&name));
            (name, sketch)
        };
        let columns = chosen.into_iter().map(sketch).collect();
        let (source, decimal) = (table.source.clone(), table.mark.map(|mark| mark.decimal));
        let (units, orders) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self {
            selection,
            source,
            target,
            noise,
            exposure,
            groups,
            calendar,
            columns,
            decimal,
            units,
            orders,
        })
    }

    /// Takes rows of a part into account, whose first row is the `first_row`-th of its file, from 0.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`], [`DataError::SeveralUnits`].
    pub(crate) fn see(&mut self, table: &Table, rows: &[usize], first_row: usize) -> Result<(), DataError> {
        // Rows that are left out teach nothing.
        let target = table.column(&self.target)?;
        let leave_out = self.selection.missing_target == MissingTarget::LeaveOut;
        let rows: Vec<usize> =
            rows.iter().copied().filter(|row| !leave_out || !target.is_missing(*row)).collect();
        let columns =
            self.columns.iter().map(|(name, _)| table.column(name)).collect::<Result<Vec<_>, _>>()?;
        let drop = self.selection.missing == Missing::Drop;
        let rows: Vec<usize> =
            rows.into_iter().filter(|row| !drop || columns.iter().all(|c| !c.is_missing(*row))).collect();
        for ((_, sketch), column) in self.columns.iter_mut().zip(columns) {
            // Categories are told apart by all that stands in their cells.
            let column = if sketch.takes_texts() { table.as_written(column) } else { Cow::Borrowed(column) };
            sketch.see(&column, &rows, (&table.source, first_row));
        }
        if self.columns.iter().any(|(_, sketch)| sketch.open_order().is_some()) {
            self.orders.extend(table.columns.iter().filter_map(date_order));
        }
        self.see_units(table, first_row)
    }

    /// Takes the units of the columns that have a role into account.
    fn see_units(&mut self, table: &Table, first_row: usize) -> Result<(), DataError> {
        let features = self.columns.iter().filter(|(_, sketch)| !sketch.takes_texts()).map(|(name, _)| name);
        let sides = [Some(&self.target), self.noise.as_ref(), self.exposure.as_ref()];
        for name in features.chain(sides.into_iter().flatten()) {
            let Some(written) = table.written.get(name) else { continue };
            let unit = self.units.entry(name.clone()).or_insert_with(|| written.unit.clone());
            if *unit != written.unit {
                let (row, text) = written.first();
                let units = [unit.clone(), written.unit.clone()].into();
                let (path, column) = (table.source.clone(), name.clone());
                return Err(DataError::SeveralUnits { path, row: first_row + row, column, text, units });
            }
        }
        Ok(())
    }

    /// What the columns are.
    ///
    /// # Errors
    /// [`DataError::NotANumber`], [`DataError::NotADate`], [`DataError::SeveralUnits`], [`DataError::SeveralForms`], [`DataError::ManyCategories`]; [`DataError::Role`] where no feature is left.
    pub(crate) fn finish(self) -> Result<Learned, DataError> {
        let mixed = self.columns.iter().filter(|(_, sketch)| sketch.mixed());
        let mixed: Vec<String> = mixed.map(|(name, _)| name.clone()).collect();
        if !mixed.is_empty() {
            return Ok(Learned::Again(mixed));
        }
        let missing = self.selection.missing;
        let mut features = Vec::new();
        let mut said = Said::default();
        let only = self.columns.len() == 1 || self.selection.features.is_some();
        let decided = self.orders.first().copied().filter(|_| self.orders.len() == 1);
        let order = self.selection.date_order.or(decided);
        let mut date_order = order;
        for (column, sketch) in &self.columns {
            let kind = sketch.kind(column, &self.source, order)?;
            let missing_cells = sketch.missing(&kind);
            if let (Some(text), ColumnKind::Time(form)) = (sketch.open_order(), &kind) {
                if order.is_none() {
                    said.open_dates.push(open_date(&short(text), column, *form));
                }
                date_order = Some(*form);
            }
            let mean = sketch.mean(&kind);
            let number =
                |reading: Reading, mean: f64| Feature::Number { column: column.clone(), reading, mean };
            let calendar = self.calendar.contains(column);
            if calendar && !matches!(kind, ColumnKind::Time(_)) {
                let (column, role) = (column.clone(), "named in --calendar, but holds no dates".into());
                return Err(DataError::Role { column, role });
            }
            match kind {
                ColumnKind::Number => {
                    if self.selection.features.is_none() && !only && sketch.numbers_rows(column) {
                        said.row_numbers.push(column.clone());
                    }
                    features.push(number(Reading::Plain, mean));
                }
                ColumnKind::Flag => {
                    said.flags.push(column.clone());
                    features.push(number(Reading::Flag, mean));
                }
                ColumnKind::Time(form) => {
                    let seasonal = sketch.is_seasonal(form);
                    let place = if seasonal { ", with seasons" } else { "" };
                    said.times.push(format!("{} ({}{place})", short(column), form.name()));
                    features.push(number(Reading::Time { form }, mean));
                    let cycles = Cycle::ALL.into_iter().filter(|cycle| match form {
                        TimeForm::Clock => calendar && *cycle == Cycle::Day,
                        TimeForm::Month | TimeForm::Quarter => {
                            (calendar || seasonal) && *cycle == Cycle::Year
                        }
                        _ => calendar && (*cycle != Cycle::Day || sketch.hours()),
                    });
                    // The centre of the circle is as far from every time as from any other.
                    let waves =
                        |cycle| Wave::ALL.map(|wave| number(Reading::Cycle { form, cycle, wave }, 0.0));
                    features.extend(cycles.flat_map(waves));
                }
                ColumnKind::Identifier(distinct) if !only => {
                    said.identifiers.push(format!("{column} ({distinct} different texts)"));
                    continue;
                }
                ColumnKind::Identifier(distinct) => {
                    let (path, column, examples) = (self.source.clone(), column.clone(), Vec::new());
                    return Err(DataError::ManyCategories { path, column, distinct, examples });
                }
                ColumnKind::Categories => {
                    let categories = sketch.categories();
                    let of_groups = self.groups.as_ref() == Some(column);
                    if of_groups && categories.len() * sketch.present() > MOST_GROUP_CELLS {
                        continue;
                    }
                    if !self.selection.categories.contains(column) && !of_groups {
                        said.categories.push(format!("{column} ({})", categories.len()));
                    }
                    let feature = |category| Feature::Category { column: column.clone(), category };
                    features.extend(categories.into_iter().map(feature));
                    if missing_cells > 0 && matches!(missing, Missing::Category | Missing::Indicator) {
                        features.push(Feature::Absent { column: column.clone() });
                    }
                    continue;
                }
            }
            if missing_cells > 0 && missing == Missing::Indicator {
                features.push(Feature::Absent { column: column.clone() });
            }
        }
        if features.is_empty() && !said.identifiers.is_empty() {
            let role = format!(
                "to be predicted from columns of text that is another in nearly every row, and no other is left; name some ({CATEGORIES})"
            );
            return Err(DataError::Role { column: self.target, role });
        }
        let mut names: Vec<String> = features.iter().map(Feature::name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let role = "the name of two features, one of them made of another column's cells; rename it";
            return Err(DataError::Role { column: pair[0].clone(), role: role.into() });
        }
        let Selection { missing_target, unseen, .. } = *self.selection;
        let Self { target, noise, exposure, groups, decimal, units, .. } = self;
        let groups = groups.filter(|own| features.iter().any(|feature| feature.column() == own));
        let notes = said.sentences();
        Ok(Learned::Schema(Schema {
            target,
            further_targets: Vec::new(),
            features,
            noise,
            exposure,
            groups,
            missing,
            missing_target,
            unseen,
            date_order,
            decimal,
            units,
            notes,
        }))
    }
}

/// What the dates of a column begin with, where all its cells are dates and some cell decides.
fn date_order(column: &Column) -> Option<TimeForm> {
    let Values::Text(cells) = &column.values else { return None };
    let mut fits = [true; 2];
    for text in cells.iter().flatten().filter(|text| !is_absent(text)) {
        let own = TimeForm::orders(text);
        fits = [fits[0] && own[0], fits[1] && own[1]];
        if fits == [false; 2] {
            return None;
        }
    }
    match fits {
        [true, false] => Some(TimeForm::DayFirst),
        [false, true] => Some(TimeForm::MonthFirst),
        _ => None,
    }
}

/// What dates of a table begin with where cells of some column decide, and those of no other contradict.
pub(crate) fn table_order(table: &Table) -> Option<TimeForm> {
    let orders: BTreeSet<TimeForm> = table.columns.iter().filter_map(date_order).collect();
    orders.first().copied().filter(|_| orders.len() == 1)
}

/// How notes begin on what only the user knows.
pub(super) const OPEN: [&str; 2] = [
    "dates may begin with the day or with the month, and no cell decides",
    "left out, as nearly every row has another text",
];

/// What columns were taken for, where nobody had said it.
#[derive(Default)]
struct Said {
    categories: Vec<String>,
    flags: Vec<String>,
    times: Vec<String>,
    /// Dates of which nothing said whether they begin with the day or with the month.
    open_dates: Vec<String>,
    identifiers: Vec<String>,
    row_numbers: Vec<String>,
}

impl Said {
    fn sentences(&self) -> Vec<String> {
        let sentence =
            |names: &[String], what: &str| (!names.is_empty()).then(|| format!("{what}{}", listed(names)));
        [
            sentence(&self.categories, "text taken as categories: "),
            sentence(&self.flags, "true and false taken as 1 and 0: "),
            (!self.times.is_empty())
                .then(|| format!("dates and times taken as days since 1970: {}", first_items(&self.times))),
            (!self.open_dates.is_empty()).then(|| open_dates(&self.open_dates)),
            sentence(
                &self.identifiers,
                &format!("{} ({CATEGORIES_COLUMN} keeps one): ", OPEN[1]),
            ),
            sentence(
                &self.row_numbers,
                &format!(
                    "taken as numbers, though they look like names or numbers of rows ({EXCLUDE_COLUMN} leaves one out): "
                ),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
