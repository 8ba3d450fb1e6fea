//! Partial dependence: what the function is on average over some rows as the cells of one column move.

use super::maps::even;
use super::sources::{Part, Source};
use crate::{ModelError, Process};
use faer::{Mat, MatRef};
use posterior_data::{Cycle, Feature, Reading, Schema, Standardisation, TimeForm};
use serde::Serialize;

/// Places of a curve at most; of numbers that take fewer values these.
pub(crate) const PLACES: usize = 25;

/// Settings of a part of a column at most: places, and a gap.
pub(crate) const SETTINGS: usize = PLACES + 1;

/// Categories that are shown, the most frequent ones.
const MOST_CATEGORIES: usize = 12;

/// Share of the rows beyond either end of a curve.
const TAIL: f64 = 0.01;

/// A cell that a column was set to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Place {
    /// A number, in the unit of the curve ([`PlaceUnit`]).
    Number(f64),
    /// A category, `true` or `false`, or `(missing)`.
    Category(String),
}

/// What the numbers of places are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceUnit {
    /// As they stand in the column.
    Column,
    /// Days from the beginning of 1970.
    Days,
    /// Hours of a day.
    HoursOfDay,
    /// Months that have passed of a year, all as long as each other.
    MonthsOfYear,
    /// Days that have passed of a week, from Monday on.
    DaysOfWeek,
}

/// How an average moves with a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dependence {
    /// The column, as the table has it.
    pub column: String,
    /// What the numbers of its places are. Of a date its place in a cycle moves while the date itself stays, and the other way round.
    pub unit: PlaceUnit,
    /// Where it was set to: numbers in ascending order, then categories, the most frequent first.
    pub at: Vec<Place>,
    /// Categories that are less frequent and not shown.
    pub categories_left_out: usize,
    /// One for each number that is observed.
    pub outputs: Vec<Averaged>,
}

/// One average along the places, in the unit of the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Averaged {
    /// What it is of.
    pub name: String,
    /// Its centre.
    pub mean: Vec<f64>,
    /// The lower end of a central 95 % interval of the average of the noiseless function.
    pub lower: Vec<f64>,
    /// The upper end.
    pub upper: Vec<f64>,
}

/// A cell with what it makes of features: their places and standardised values.
struct Setting {
    place: Place,
    values: Vec<(usize, f64)>,
}

/// What cells are in standard units.
struct Units<'a> {
    schema: &'a Schema,
    standard: &'a Standardisation,
}

impl Units<'_> {
    /// Whether a column of 0 and 1 is 1 in a row.
    fn is_set(&self, x: MatRef<'_, f64>, row: usize, feature: usize) -> bool {
        self.standard.feature_back(feature, x[(row, feature)]) > 0.5
    }

    /// The cells that a part of a column is set to, and how many categories are left out.
    fn settings(&self, part: &Part, x: MatRef<'_, f64>) -> (PlaceUnit, Vec<Setting>, usize) {
        match part {
            Part::Number { feature, reading, absent } => {
                let (unit, settings) = self.numbers(*feature, *reading, *absent, x);
                (unit, settings, 0)
            }
            Part::Cycle { cycle, waves } => {
                let (unit, length) = match cycle {
                    Cycle::Year => (PlaceUnit::MonthsOfYear, 12.0),
                    Cycle::Week => (PlaceUnit::DaysOfWeek, 7.0),
                    Cycle::Day => (PlaceUnit::HoursOfDay, 24.0),
                };
                let at = |k: usize| {
                    let phase = k as f64 / (PLACES - 1) as f64;
                    let values =
                        waves.iter().map(|(wave, j)| (*j, self.standard.feature(*j, wave.at(phase))));
                    Setting { place: Place::Number(length * phase), values: values.collect() }
                };
                (unit, (0..PLACES).map(at).collect(), 0)
            }
            Part::Categories { features } => {
                let (settings, left_out) = self.categories(features, x);
                (PlaceUnit::Column, settings, left_out)
            }
        }
    }

    fn numbers(
        &self,
        feature: usize,
        reading: Reading,
        absent: Option<usize>,
        x: MatRef<'_, f64>,
    ) -> (PlaceUnit, Vec<Setting>) {
        let present = |i: &usize| absent.is_none_or(|j| !self.is_set(x, *i, j));
        let mut seen: Vec<f64> = (0..x.nrows()).filter(present).map(|i| x[(i, feature)]).collect();
        seen.sort_unstable_by(f64::total_cmp);
        let mut places = seen.clone();
        places.dedup();
        if places.len() > PLACES {
            let quantile = |level: f64| seen[(level * (seen.len() - 1) as f64).round() as usize];
            let (low, high) = (quantile(TAIL), quantile(1.0 - TAIL));
            // Where nearly all cells are one number the ends are those of the column.
            let (low, high) = if low < high { (low, high) } else { (seen[0], seen[seen.len() - 1]) };
            places = even(low, high, PLACES);
        }
        // Dates are days from the beginning of 1970, times of day shares of one.
        let (unit, length) = match reading {
            Reading::Time { form: TimeForm::Clock } => (PlaceUnit::HoursOfDay, 24.0),
            Reading::Time { .. } => (PlaceUnit::Days, 1.0),
            _ => (PlaceUnit::Column, 1.0),
        };
        let there = absent.map(|j| (j, self.standard.feature(j, 0.0)));
        let mut out: Vec<Setting> = places
            .into_iter()
            .map(|z| {
                let value = self.standard.feature_back(feature, z);
                let place = match reading {
                    Reading::Flag => Place::Category((value > 0.5).to_string()),
                    _ => Place::Number(rounded(length * value)),
                };
                Setting { place, values: std::iter::once((feature, z)).chain(there).collect() }
            })
            .collect();
        // As a row with a gap is read.
        if let (Some(j), Feature::Number { mean, .. }) = (absent, &self.schema.features[feature]) {
            let values =
                vec![(feature, self.standard.feature(feature, *mean)), (j, self.standard.feature(j, 1.0))];
            out.push(Setting { place: Place::Category(MISSING.into()), values });
        }
        (unit, out)
    }

    fn categories(&self, features: &[usize], x: MatRef<'_, f64>) -> (Vec<Setting>, usize) {
        let count = |j: usize| (0..x.nrows()).filter(|&i| self.is_set(x, i, j)).count();
        let mut counts: Vec<(usize, usize)> = features.iter().map(|&j| (j, count(j))).collect();
        // Equally frequent ones stay in their order.
        counts.sort_by_key(|own| std::cmp::Reverse(own.1));
        let shown = counts.len().min(MOST_CATEGORIES);
        let setting = |&(chosen, _): &(usize, usize)| Setting {
            place: Place::Category(match &self.schema.features[chosen] {
                Feature::Category { category, .. } => category.clone(),
                _ => MISSING.into(),
            }),
            values: features
                .iter()
                .map(|&j| (j, self.standard.feature(j, f64::from(u8::from(j == chosen)))))
                .collect(),
        };
        (counts[..shown].iter().map(setting).collect(), counts.len() - shown)
    }
}

const MISSING: &str = "(missing)";

/// To twelve digits: what standardisation and its inverse leave of a number is no longer quite that number.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// Averages over the background rows along each part of a column that takes more than one value at the rows of x (both standardised).
///
/// # Errors
/// As averages of the model.
pub(crate) fn of_column(
    model: &Process<'_>,
    (schema, standard): (&Schema, &Standardisation),
    source: &Source<'_>,
    x: MatRef<'_, f64>,
    background: MatRef<'_, f64>,
) -> Result<Vec<Dependence>, ModelError> {
    let units = Units { schema, standard };
    let mut out = Vec::new();
    for part in &source.parts {
        let (unit, settings, categories_left_out) = units.settings(part, x);
        if settings.len() < 2 {
            continue;
        }
        let each = background.nrows();
        let mut rows = Mat::from_fn(settings.len() * each, x.ncols(), |i, j| background[(i % each, j)]);
        for (g, setting) in settings.iter().enumerate() {
            for &(j, value) in &setting.values {
                (g * each..(g + 1) * each).for_each(|i| rows[(i, j)] = value);
            }
        }
        let found = model.averages(rows.as_ref(), each)?;
        let pick = |k: usize, which: usize| found.iter().map(|run| run[k][which]).collect();
        let outputs = model.observed().into_iter().enumerate().map(|(k, name)| Averaged {
            name,
            mean: pick(k, 0),
            lower: pick(k, 1),
            upper: pick(k, 2),
        });
        out.push(Dependence {
            column: source.column.to_string(),
            unit,
            categories_left_out,
            outputs: outputs.collect(),
            at: settings.into_iter().map(|setting| setting.place).collect(),
        });
    }
    Ok(out)
}
