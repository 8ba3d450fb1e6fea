//! Which column plays which role: chosen by the user, learned on the training rows, applied to every later table.
//!
//! | file | idea |
//! |---|---|
//! | `sketch` | what a column looks like: numbers, true and false, dates, categories, names of rows |
//! | `learn` | roles and sketches become a [`Schema`], from a whole table or from its parts |
//! | `reading`, `time`, `words` | cells as numbers: [`Reading`], [`TimeForm`] |
//! | `seen` | dates of a column for people: [`ColumnDates`] |
//! | `extract` | rows as a model sees them: [`Extracted`] |
//! | `notes` | what was found and done: [`Notes`] |

mod extract;
mod hints;
mod learn;
mod notes;
mod reading;
mod seen;
mod sketch;
mod time;
mod words;

pub use extract::Extracted;
pub(crate) use learn::{Learned, Learner, table_order};
pub use notes::Notes;
pub(crate) use notes::{Described, describe};
pub use reading::Reading;
pub(crate) use reading::numbers;
pub use seen::{ColumnDates, dates_of};
pub(crate) use sketch::ColumnSketch;
pub use time::{Cycle, TimeForm, Wave};

use crate::{DataError, DecimalMark, Table, TextOptions};
use faer::MatRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What to do with missing cells of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// An error that names the cell
    #[default]
    Error,
    /// The row is left out, and counted
    Drop,
    /// Numbers become the mean of the training rows, categories none of the known ones
    Mean,
    /// Missing is a category; a missing number is an error
    Category,
    /// Missing is a category; numbers become the mean, with a 0/1 feature beside them
    Indicator,
}

/// What to do with rows that have no target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MissingTarget {
    /// They are left out, and can be predicted
    #[default]
    LeaveOut,
    /// An error that names the row
    Error,
}

/// What to do with categories that the training rows did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// They are none of the known categories
    #[default]
    Other,
    /// An error that names the cell
    Error,
}

/// What the user asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Selection {
    /// Column to predict, by name or number (from 1)
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub target: String,
    /// Columns to predict from [default: all without another role]
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    pub features: Option<Vec<String>>,
    /// Columns that are no features
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Column that names the rows, and is no feature [default: the first, where it has no name]
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    #[serde(default)]
    pub index: Option<String>,
    /// Column of known noise variances, in squared units of the target; or `heteroscedastic`, to learn noise that varies with the features
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL|heteroscedastic"))]
    pub noise: Option<String>,
    /// Column of exposures (time, area, people) of counts, whose rates are learned
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub exposure: Option<String>,
    /// Columns of categories, one 0/1 feature for each [default: text columns of at most 100 values]
    #[cfg_attr(
        feature = "clap",
        arg(long, visible_alias = "one-hot", value_name = "A,B", value_delimiter = ',')
    )]
    #[serde(default)]
    pub categories: Vec<String>,
    /// Columns of dates that also give the time of year, of week and (with hours) of day
    #[cfg_attr(feature = "clap", arg(long, value_name = "A,B", value_delimiter = ','))]
    #[serde(default)]
    pub calendar: Vec<String>,
    /// Column of groups (patients, houses): rows of one are kept together wherever some are left out, and new groups are expected. Unless features are named it is a feature of its own kind, categories of which new rows may have others, or not have the column at all.
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// Column of times: rows that are left out are newer than all that train
    #[cfg_attr(feature = "clap", arg(skip))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Order of dates such as 3/4/2021, where no cell tells
    #[cfg_attr(feature = "clap", arg(long, value_enum, value_name = "FORM"))]
    #[serde(default)]
    pub date_order: Option<TimeForm>,
    /// What to do with missing cells of features
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub missing: Missing,
    /// What to do with rows that have no target
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    #[serde(default)]
    pub missing_target: MissingTarget,
    /// What to do with categories of new rows that no training row has
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    #[serde(default)]
    pub unseen: Unseen,
}

/// One column of the model's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Feature {
    /// The numbers of a column.
    Number {
        /// The column.
        column: String,
        /// How its cells are numbers.
        #[serde(default, skip_serializing_if = "Reading::is_plain")]
        reading: Reading,
        /// What stands for a missing cell under [`Missing::Mean`] and [`Missing::Indicator`]: the mean over the training rows; of a place on a circle its centre.
        mean: f64,
    },
    /// 1 where the column has this category, 0 elsewhere.
    Category {
        /// The column.
        column: String,
        /// The category.
        category: String,
    },
    /// 1 where the column's cell is missing, 0 elsewhere.
    Absent {
        /// The column.
        column: String,
    },
}

/// Roles and everything learned about columns; part of the model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The target column.
    pub target: String,
    /// Further columns that are predicted together with it, by models of several outputs. A row that lacks one of them lacks a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_targets: Vec<String>,
    /// The model's inputs, in order: those of one column side by side.
    pub features: Vec<Feature>,
    /// The column of known noise variances.
    pub noise: Option<String>,
    /// The column of the exposures in which counts were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<String>,
    /// The column of groups, where it is a feature: a new table may have others or lack the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<String>,
    /// What to do with missing cells of features.
    pub missing: Missing,
    /// What to do with rows that have no target.
    pub missing_target: MissingTarget,
    /// What to do with categories that training had not.
    pub unseen: Unseen,
    /// How dates such as 3/4/2021 are meant, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_order: Option<TimeForm>,
    /// The decimal mark of the training's texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// The units of columns whose cells have one. Cells with another are refused, cells without any are taken as they stand.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// What columns were taken for, where nobody had said it, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Selection {
    /// The flags about columns that say something, but for the target: what has no columns, or has a schema already, refuses them.
    pub fn given(&self) -> Vec<&'static str> {
        let none = Self::default();
        let flags = [
            (self.features.is_some(), "--features"),
            (!self.exclude.is_empty(), "--exclude"),
            (self.index.is_some(), "--index"),
            (self.noise.is_some(), "--noise"),
            (self.exposure.is_some(), "--exposure"),
            (!self.categories.is_empty(), "--categories"),
            (!self.calendar.is_empty(), "--calendar"),
            (self.groups.is_some(), "--groups"),
            (self.time.is_some(), "--time"),
            (self.date_order.is_some(), "--date-order"),
            (self.missing != none.missing, "--missing"),
            (self.missing_target != none.missing_target, "--missing-target"),
            (self.unseen != none.unseen, "--unseen"),
        ];
        flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag).collect()
    }
}

impl Feature {
    /// A column of numbers as they stand, with its mean over the training rows.
    pub fn number(column: impl Into<String>, mean: f64) -> Self {
        Self::Number { column: column.into(), reading: Reading::Plain, mean }
    }

    /// The column of the table that it comes from.
    pub fn column(&self) -> &str {
        match self {
            Self::Number { column, .. } | Self::Category { column, .. } | Self::Absent { column } => column,
        }
    }

    /// The column, with what the feature is of it: `COLUMN=CATEGORY`, `COLUMN=(missing)`, `COLUMN.year.sine`.
    pub fn name(&self) -> String {
        match self {
            Self::Number { column, reading, .. } => format!("{column}{}", reading.suffix()),
            Self::Category { column, category } => format!("{column}={category}"),
            Self::Absent { column } => format!("{column}=(missing)"),
        }
    }
}

impl Schema {
    /// Of a target and features, every other setting as it is without being said.
    pub fn of(target: impl Into<String>, features: Vec<Feature>) -> Self {
        Self {
            target: target.into(),
            further_targets: Vec::new(),
            features,
            noise: None,
            exposure: None,
            groups: None,
            missing: Missing::default(),
            missing_target: MissingTarget::default(),
            unseen: Unseen::default(),
            date_order: None,
            decimal: None,
            units: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Resolves the roles and learns from the given rows of the table what its columns are: numbers and their means, dates, categories. Rows without a target teach nothing where they are left out.
    ///
    /// A column of text is taken for true and false, for dates, or for categories where at most 100 texts differ; names of rows (of 20 or more, nine in ten differ) are left out. What was taken for what is in [`Schema::notes`].
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`] listing all missing columns at once, [`DataError::Role`]; [`DataError::NotANumber`] and [`DataError::NotADate`] for text among numbers or dates;
    /// [`DataError::SeveralUnits`], [`DataError::SeveralForms`], [`DataError::ManyCategories`] for columns that nobody but the user can tell.
    pub fn learn(table: &Table, selection: &Selection, rows: &[usize]) -> Result<Self, DataError> {
        let mut learner = Learner::new(table, selection)?;
        learner.see(table, rows, 0)?;
        match learner.finish()? {
            Learned::Schema(schema) => Ok(schema),
            // A whole table has one kind of cells in a column.
            Learned::Again(columns) => {
                let role = "numbers and text in one table";
                Err(DataError::Role { column: columns.join(", "), role: role.into() })
            }
        }
    }

    /// How texts of new rows are read: as is said, or as those of training where their cells are not certain.
    pub fn reading(&self, said: TextOptions) -> TextOptions {
        TextOptions { trained: said.trained.or(self.decimal), ..said }
    }

    /// Notes on what only the user knows: columns that were left out, dates that can be read in two ways.
    pub fn open_questions(&self) -> impl Iterator<Item = &String> {
        self.notes.iter().filter(|note| learn::OPEN.iter().any(|begin| note.starts_with(begin)))
    }

    /// Columns that are categories by name, not by number: a reader of parts must take them as text in every part.
    pub fn text_columns(&self) -> Vec<String> {
        let named = |feature: &Feature| match feature {
            Feature::Category { column, category } if category.parse::<f64>().is_err() => {
                Some(column.clone())
            }
            _ => None,
        };
        self.features.iter().filter_map(named).collect()
    }

    /// The inputs (numbers from 0) that say whether a cell is a category, or missing. They stay 0 and 1 where others are standardised: in units of its deviation the column of a rare category puts its
    /// rows far from all others.
    pub fn indicators(&self) -> Vec<usize> {
        let of_cells = |j: &usize| !matches!(self.features[*j], Feature::Number { .. });
        (0..self.features.len()).filter(of_cells).collect()
    }

    /// Names of the model's inputs ([`Feature::name`]).
    pub fn feature_names(&self) -> Vec<String> {
        self.features.iter().map(Feature::name).collect()
    }

    /// Checks that the given features (indices) of extracted rows are counts, which have no sign.
    ///
    /// # Errors
    /// [`DataError::NegativeCount`] naming the cell; `path` is where the rows are from.
    pub fn check_counts(
        &self,
        path: &Path,
        features: &[usize],
        x: MatRef<'_, f64>,
        rows: &[usize],
    ) -> Result<(), DataError> {
        for (i, &row) in rows.iter().enumerate() {
            if let Some(&j) = features.iter().find(|j| x[(i, **j)] < 0.0) {
                let column = self.feature_names().swap_remove(j);
                let (path, value) = (path.to_path_buf(), x[(i, j)]);
                return Err(DataError::NegativeCount { path, row: row + 1, column, value });
            }
        }
        Ok(())
    }
}
