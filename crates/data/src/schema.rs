//! Which column plays which role: chosen by the user, learned on the training rows, applied to every later table.

use crate::{Column, DataError, Table, Values};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

/// What to do with rows in which a cell is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// An error that names the cell.
    #[default]
    Error,
    /// The row is left out, and counted.
    Drop,
    /// A missing feature becomes the mean of its column over the training rows (a missing category: all of its
    /// columns 0); a missing target is still an error.
    Mean,
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
    /// Column of known noise variances, in squared units of the target
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub noise: Option<String>,
    /// Column of exposures (time, area, people) in which counts were counted: rates are learned, and counts predicted in the exposure of their row
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL"))]
    pub exposure: Option<String>,
    /// Text column to turn into one 0/1 feature for each category; may be repeated
    #[cfg_attr(feature = "clap", arg(long, value_name = "COL", value_delimiter = ','))]
    pub one_hot: Vec<String>,
    /// What to do with missing cells
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub missing: Missing,
}

/// One column of the model's input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Feature {
    /// The numbers of a column.
    Number {
        /// The column.
        column: String,
        /// Its mean over the training rows, for [`Missing::Mean`].
        mean: f64,
    },
    /// 1 where the column has this category, 0 elsewhere.
    Category {
        /// The column.
        column: String,
        /// The category.
        category: String,
    },
}

/// Roles and everything learned about columns; part of the model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The target column.
    pub target: String,
    /// The model's inputs, in order.
    pub features: Vec<Feature>,
    /// The column of known noise variances.
    pub noise: Option<String>,
    /// The column of the exposures in which counts were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposure: Option<String>,
    /// What to do with missing cells.
    pub missing: Missing,
}

/// Rows ready for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// Inputs, n x D.
    pub x: Mat<f64>,
    /// Targets (n), if they were asked for.
    pub y: Option<Vec<f64>>,
    /// Known noise variances (n), if the schema has such a column and targets were asked for.
    pub noise: Option<Vec<f64>>,
    /// Exposures (n), if the schema has such a column: predictions of counts need them as well.
    pub exposures: Option<Vec<f64>>,
    /// Index in the table of each row, counted from 0.
    pub rows: Vec<usize>,
    /// What was found and done.
    pub notes: Notes,
}

/// What was found in the data and done about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Rows left out because of missing or infinite cells.
    pub dropped_rows: usize,
    /// Cells filled in.
    pub filled_cells: usize,
    /// Features that do not vary.
    pub constant_features: Vec<String>,
    /// Rows whose inputs repeat those of an earlier row.
    pub duplicate_rows: usize,
    /// The target does not vary.
    pub constant_target: bool,
    /// Fewer rows than features.
    pub fewer_rows_than_features: bool,
}

impl Notes {
    /// As sentences, for people; empty when there is nothing to say.
    pub fn sentences(&self) -> Vec<String> {
        let plural = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let mut out = Vec::new();
        if self.dropped_rows > 0 {
            out.push(format!("{} with missing or infinite cells left out", plural(self.dropped_rows, "row")));
        }
        if self.filled_cells > 0 {
            out.push(format!("{} filled with the training mean", plural(self.filled_cells, "missing cell")));
        }
        if !self.constant_features.is_empty() {
            out.push(format!("constant, hence without influence: {}", self.constant_features.join(", ")));
        }
        if self.duplicate_rows > 0 {
            out.push(format!("{} repeat the inputs of an earlier row", plural(self.duplicate_rows, "row")));
        }
        if self.constant_target {
            out.push("the target does not vary".into());
        }
        if self.fewer_rows_than_features {
            out.push("fewer rows than features: expect wide intervals".into());
        }
        out
    }
}

impl Feature {
    /// The column of the table that it comes from.
    pub fn column(&self) -> &str {
        match self {
            Self::Number { column, .. } | Self::Category { column, .. } => column,
        }
    }
}

impl Schema {
    /// Resolves the roles and learns means and categories from the given rows of the table.
    ///
    /// # Errors
    /// [`DataError::NoSuchColumn`] listing all missing columns at once, [`DataError::Role`], [`DataError::NotANumber`] for text that
    /// is not one-hot encoded.
    pub fn learn(table: &Table, selection: &Selection, rows: &[usize]) -> Result<Self, DataError> {
        let asked = std::iter::once(&selection.target)
            .chain(selection.features.iter().flatten())
            .chain(&selection.noise)
            .chain(&selection.exposure)
            .chain(&selection.one_hot);
        let missing: Vec<String> = asked.filter(|n| table.column(n).is_err()).cloned().collect();
        if !missing.is_empty() {
            return Err(DataError::NoSuchColumn {
                path: table.source.clone(),
                missing,
                known: table.names(),
            });
        }
        let resolve = |name: &String| table.column(name).map(|c| c.name.clone());
        let target = resolve(&selection.target)?;
        let noise = selection.noise.as_ref().map(resolve).transpose()?;
        let exposure = selection.exposure.as_ref().map(resolve).transpose()?;
        let one_hot = selection.one_hot.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let chosen = match &selection.features {
            Some(names) => names.iter().map(resolve).collect::<Result<Vec<_>, _>>()?,
            None => {
                let sides = [Some(&target), noise.as_ref(), exposure.as_ref()];
                table.names().into_iter().filter(|n| !sides.contains(&Some(n))).collect()
            }
        };
        let role =
            |column: &String, role: &str| DataError::Role { column: column.clone(), role: role.into() };
        for (i, column) in chosen.iter().enumerate() {
            if *column == target {
                return Err(role(column, "both a feature and the target"));
            }
            if chosen[..i].contains(column) {
                return Err(role(column, "named twice among the features"));
            }
        }
        if let Some(column) = exposure.as_ref().filter(|column| **column == target) {
            return Err(role(column, "both the exposure and the target"));
        }
        if let Some(column) = one_hot.iter().find(|c| !chosen.contains(c)) {
            return Err(role(column, "named in --one-hot, but is not a feature"));
        }
        if chosen.is_empty() {
            return Err(role(&target, "the only column; a model needs at least one feature"));
        }
        let mut features = Vec::new();
        for name in chosen {
            let column = table.column(&name)?;
            if one_hot.contains(&name) {
                features.extend(
                    categories(column, rows)
                        .into_iter()
                        .map(|category| Feature::Category { column: name.clone(), category }),
                );
            } else {
                let values = numbers(table, column)?;
                let mut mean = RunningMean::default();
                rows.iter().for_each(|&r| mean.add(values[r]));
                features.push(Feature::Number { column: name, mean: mean.value() });
            }
        }
        Ok(Self { target, features, noise, exposure, missing: selection.missing })
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

    /// Names of the model's inputs: the column, or `COLUMN=CATEGORY`.
    pub fn feature_names(&self) -> Vec<String> {
        let name = |f: &Feature| match f {
            Feature::Number { column, .. } => column.clone(),
            Feature::Category { column, category } => format!("{column}={category}"),
        };
        self.features.iter().map(name).collect()
    }

    /// The given rows of a table as the model sees them, with targets when `with_target`. Other columns are ignored.
    ///
    /// # Errors
    /// [`DataError`] naming the cell; [`DataError::NothingLeft`] when every row was dropped.
    pub fn extract(&self, table: &Table, rows: &[usize], with_target: bool) -> Result<Extracted, DataError> {
        self.require_columns(table, with_target)?;
        let path = || table.source.clone();
        let mut notes = Notes::default();
        let mut keep = vec![true; rows.len()];
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(self.features.len());
        for feature in &self.features {
            columns.push(match feature {
                Feature::Number { column, mean } => {
                    let values = numbers(table, table.column(column)?)?;
                    self.finite_cells(table, column, values, rows, Some(*mean), &mut keep, &mut notes)?
                }
                Feature::Category { column, category } => {
                    self.indicator(table, column, category, rows, &mut keep, &mut notes)?
                }
            });
        }
        let mut side = |column: &String| -> Result<Vec<f64>, DataError> {
            let values = numbers(table, table.column(column)?)?;
            self.finite_cells(table, column, values, rows, None, &mut keep, &mut notes)
        };
        let y = if with_target { Some(side(&self.target)?) } else { None };
        let noise = match &self.noise {
            Some(column) if with_target => Some(side(column)?),
            _ => None,
        };
        let exposures = self.exposure.as_ref().map(&mut side).transpose()?;
        let kept: Vec<usize> = (0..rows.len()).filter(|&i| keep[i]).collect();
        notes.dropped_rows = rows.len() - kept.len();
        if kept.is_empty() {
            let why = if rows.is_empty() { "splitting" } else { "dropping those with missing cells" };
            return Err(DataError::NothingLeft { path: path(), why: why.into() });
        }
        let pick = |values: Vec<f64>| -> Vec<f64> { kept.iter().map(|&i| values[i]).collect() };
        let x = Mat::from_fn(kept.len(), columns.len(), |i, j| columns[j][kept[i]]);
        let (y, noise, exposures) = (y.map(pick), noise.map(pick), exposures.map(pick));
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
        describe(&mut notes, &x, y.as_deref(), &self.feature_names());
        Ok(Extracted { x, y, noise, exposures, rows, notes })
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

    fn require_columns(&self, table: &Table, with_target: bool) -> Result<(), DataError> {
        let features = self.features.iter().map(Feature::column);
        let sides = std::iter::once(&self.target).chain(&self.noise).filter(|_| with_target);
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

    /// The cells of a numeric column, with missing ones treated as the schema says. `fill` is `None` for targets and noise.
    fn finite_cells(
        &self,
        table: &Table,
        column: &str,
        values: &[f64],
        rows: &[usize],
        fill: Option<f64>,
        keep: &mut [bool],
        notes: &mut Notes,
    ) -> Result<Vec<f64>, DataError> {
        let mut out = Vec::with_capacity(rows.len());
        for (i, &row) in rows.iter().enumerate() {
            let value = values[row];
            let (path, column, row) = (|| table.source.clone(), column.to_string(), row + 1);
            let kept = match (value.is_finite(), self.missing, fill) {
                (true, _, _) => value,
                (false, Missing::Drop, _) => {
                    keep[i] = false;
                    0.0
                }
                (false, Missing::Mean, Some(mean)) if value.is_nan() => {
                    notes.filled_cells += 1;
                    mean
                }
                _ if !value.is_nan() => return Err(DataError::Infinite { path: path(), row, column, value }),
                (false, Missing::Mean, None) => {
                    return Err(DataError::MissingTarget { path: path(), row, column });
                }
                _ => return Err(DataError::MissingCell { path: path(), row, column }),
            };
            out.push(kept);
        }
        Ok(out)
    }

    /// 1 where the cell is the category; a category that no feature stands for is an error.
    fn indicator(
        &self,
        table: &Table,
        name: &str,
        wanted: &str,
        rows: &[usize],
        keep: &mut [bool],
        notes: &mut Notes,
    ) -> Result<Vec<f64>, DataError> {
        let column = table.column(name)?;
        let known: Vec<String> = self
            .features
            .iter()
            .filter_map(|f| match f {
                Feature::Category { column, category } if column == name => Some(category.clone()),
                _ => None,
            })
            .collect();
        let first = known.first().is_some_and(|k| k == wanted);
        let mut out = Vec::with_capacity(rows.len());
        for (i, &row) in rows.iter().enumerate() {
            let text = column.cell(row);
            if text.is_empty() {
                match self.missing {
                    Missing::Error => {
                        let path = table.source.clone();
                        return Err(DataError::MissingCell { path, row: row + 1, column: name.into() });
                    }
                    Missing::Drop => keep[i] = false,
                    Missing::Mean => notes.filled_cells += usize::from(first),
                }
            } else if !known.contains(&text) {
                let path = table.source.clone();
                return Err(DataError::UnknownCategory {
                    path,
                    row: row + 1,
                    column: name.into(),
                    text,
                    known,
                });
            }
            out.push(f64::from(u8::from(text == wanted)));
        }
        Ok(out)
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

/// The distinct cells of a column in the given rows, sorted.
fn categories(column: &Column, rows: &[usize]) -> Vec<String> {
    let mut out: Vec<String> = rows.iter().map(|&r| column.cell(r)).filter(|c| !c.is_empty()).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The numbers of a column, or the error that names its first cell that is not one.
pub(crate) fn numbers<'a>(table: &Table, column: &'a Column) -> Result<&'a [f64], DataError> {
    match &column.values {
        Values::Numeric(values) => Ok(values),
        Values::Text(texts) => {
            let bad =
                texts.iter().position(|t| t.as_ref().is_some_and(|t| t.parse::<f64>().is_err())).unwrap_or(0);
            let text = texts.get(bad).cloned().flatten().unwrap_or_default();
            Err(DataError::NotANumber {
                path: table.source.clone(),
                row: bad + 1,
                column: column.name.clone(),
                text,
            })
        }
    }
}

pub(crate) fn describe(notes: &mut Notes, x: &Mat<f64>, y: Option<&[f64]>, names: &[String]) {
    let mut seen = Described::new(x.nrows(), x.ncols());
    let mut row = vec![0.0; x.ncols()];
    for i in 0..x.nrows() {
        row.iter_mut().zip(x.row(i).iter()).for_each(|(v, x)| *v = *x);
        seen.see(&row, y.map(|y| y[i]));
    }
    seen.note(notes, names);
}

/// What is odd about rows, one after the other.
pub(crate) struct Described {
    rows: usize,
    /// The first row, and whether each column has been like it.
    first: Vec<f64>,
    constant: Vec<bool>,
    target: Option<f64>,
    constant_target: bool,
    hashers: [RandomState; 2],
    /// 128 bits of each row instead of the row: a million rows collide by chance with a probability of 1e-27.
    seen: HashSet<[u64; 2]>,
    repeated: usize,
}

impl Described {
    /// For so many rows and inputs.
    pub(crate) fn new(rows: usize, inputs: usize) -> Self {
        Self {
            rows: 0,
            first: Vec::new(),
            constant: vec![true; inputs],
            target: None,
            constant_target: true,
            hashers: [RandomState::new(), RandomState::new()],
            seen: HashSet::with_capacity(rows),
            repeated: 0,
        }
    }

    /// Takes a row of inputs with its target into account.
    pub(crate) fn see(&mut self, inputs: &[f64], target: Option<f64>) {
        if self.rows == 0 {
            self.first = inputs.to_vec();
            self.target = target;
        }
        self.rows += 1;
        for ((constant, v), first) in self.constant.iter_mut().zip(inputs).zip(&self.first) {
            *constant &= v == first;
        }
        self.constant_target &= target == self.target;
        let key = self.hashers.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            // Adding 0 makes -0 and 0 one key.
            inputs.iter().for_each(|v| hasher.write_u64((v + 0.0).to_bits()));
            hasher.finish()
        });
        self.repeated += usize::from(!self.seen.insert(key));
    }

    pub(crate) fn note(self, notes: &mut Notes, names: &[String]) {
        let constant = self.constant.iter().zip(names).filter(|(constant, _)| **constant);
        notes.constant_features = constant.map(|(_, name)| name.clone()).collect();
        notes.constant_target = self.target.is_some() && self.constant_target;
        notes.fewer_rows_than_features = self.rows < self.constant.len();
        notes.duplicate_rows = self.repeated;
    }
}
