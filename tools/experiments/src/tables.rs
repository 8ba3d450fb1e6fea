//! Tables in standard folds, as experiments on regression read them, and tables that are made up in their place.

use super::error::{ExperimentError, Result, refused};
use super::gaussian::{Covariance, check_names, normals};
use super::splits::{FOLDS, InputScale, Rows, ScaledBy, shuffle};
use faer::Mat;
use posterior_data::{Column, ReadOptions, Values, read_table};
use posterior_gp::Observations;
use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;
use serde::Deserialize;
use std::path::Path;

/// A data set with its hyperparameters, in standard units.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SetSettings {
    /// Its name.
    pub(crate) name: String,
    /// The table that it stands for, as in the names of its files: several sets of one table differ in their hyperparameters. Its own name if absent.
    pub(crate) table: Option<String>,
    /// Standard deviation of the noise.
    pub(crate) noise: f64,
    /// Standard deviation of the function.
    pub(crate) signal: f64,
    /// One for each column.
    pub(crate) lengthscales: Vec<f64>,
    /// Whether its folds are drawn by chance instead of read from a file: for tables that come without. Rows that are made up have folds anyway.
    #[serde(default)]
    pub(crate) draw_folds: bool,
    /// Whether its rows are drawn from its prior although others are tables of a folder.
    #[serde(default)]
    pub(crate) made_up: bool,
    /// Most training rows of it; as many as of the others if absent.
    pub(crate) rows: Option<usize>,
}

impl SetSettings {
    /// The name of its table.
    pub(crate) fn table(&self) -> &str {
        self.table.as_deref().unwrap_or(&self.name)
    }

    /// The first set of the same table, with its place: it says which rows there are, so that sets of one table differ in hyperparameters only.
    pub(crate) fn first_of_table<'a>(&'a self, sets: &'a [Self]) -> (usize, &'a Self) {
        sets.iter().enumerate().find(|other| other.1.table() == self.table()).unwrap_or((0, self))
    }

    /// Its prior covariance, Matérn-3/2.
    pub(crate) fn covariance(&self) -> Result<Covariance> {
        Covariance::matern32(self.signal, &self.lengthscales)
    }
}

/// Refuses sets and folds that cannot be run; `rows` are those that are made up where `folder` is empty.
pub(crate) fn check_tables(
    sets: &[SetSettings],
    folds: &[usize],
    folder: &Path,
    rows: Option<usize>,
) -> Result<()> {
    let wrong = |problem: &str| refused(problem);
    check_names("set", sets.iter().map(|s| s.name.as_str()))?;
    if sets.iter().any(|s| !(s.noise > 0.0 && s.noise.is_finite())) {
        return wrong("[[set]]: `noise` must be positive");
    }
    if sets.iter().any(|s| s.first_of_table(sets).1.lengthscales.len() != s.lengthscales.len()) {
        return wrong("[[set]]: sets of one `table` have as many `lengthscales`, one for each column");
    }
    if folds.is_empty() || folds.iter().any(|f| *f > 9) {
        return wrong("`folds` are numbers from 0 to 9, at least one");
    }
    if rows.is_some_and(|r| r < 10) {
        return wrong("`rows` must be at least 10");
    }
    for set in sets {
        if set.rows.is_some_and(|r| r < 10) {
            return wrong("[[set]]: `rows` must be at least 10");
        }
        let own = set.rows.or(rows);
        if set.made_up && own.is_none_or(|r| r > 100_000) {
            return wrong("[[set]]: data that are made up need `rows`, at most 100000");
        }
    }
    if folder.as_os_str().is_empty() && rows.is_none_or(|r| r > 100_000) {
        return wrong("data that are made up need `rows`, at most 100000");
    }
    Ok(())
}

/// Standardised training and test rows.
pub(crate) struct Fold {
    /// Training rows.
    pub(crate) train: Observations,
    /// Test inputs.
    pub(crate) test: Mat<f64>,
    /// Test targets, in units of the training targets' standard deviation.
    pub(crate) truth: Vec<f64>,
}

/// The columns of a table in a file.
///
/// # Errors
/// [`ExperimentError::MissingData`] with what to do about it.
pub(crate) fn columns(path: &Path, remedy: &str) -> Result<Vec<Column>> {
    if !path.exists() {
        return Err(ExperimentError::MissingData { path: path.into(), remedy: remedy.into() });
    }
    Ok(read_table(path, &ReadOptions::default())?.columns)
}

/// The numbers of some columns of a file.
///
/// # Errors
/// A column of something else than finite numbers.
pub(crate) fn finite(path: &Path, columns: Vec<Column>) -> Result<Vec<Vec<f64>>> {
    let numeric = columns.into_iter().map(|column| match column.values {
        Values::Numeric(values) if values.iter().all(|v| v.is_finite()) => Ok(values),
        _ => refused(format!(
            "{}: column `{}` holds something else than finite numbers",
            path.display(),
            column.name
        )),
    });
    numeric.collect()
}

/// All numbers of a table, by columns.
pub(crate) fn numbers(path: &Path) -> Result<Vec<Vec<f64>>> {
    let remedy =
        "put the table and its folds there, or change `folder` in the experiment (--quick makes data up)";
    finite(path, columns(path, remedy)?)
}

/// Every fold of one set.
pub(crate) struct Source {
    rows: Rows,
    /// Most training rows, where its set says so.
    most: Option<usize>,
}

impl Source {
    /// The table of `set` in `folder`; without a folder, or where it is made up, `rows` training rows (or its own number of them) drawn from its prior with `features` random features.
    pub(crate) fn open(
        set: &SetSettings,
        folder: Option<&Path>,
        rows: Option<usize>,
        features: usize,
        streams: Streams,
    ) -> Result<Self> {
        let covariance = set.covariance()?;
        let rows = match folder.filter(|_| !set.made_up) {
            Some(folder) => Self::read(folder, set, streams)?,
            None => {
                let rows = set.rows.or(rows).unwrap_or(10);
                Self::made_up(&covariance, set.noise, rows, features, streams)?
            }
        };
        Ok(Self { rows, most: set.rows })
    }

    fn read(folder: &Path, set: &SetSettings, streams: Streams) -> Result<Rows> {
        let (name, wanted) = (set.table(), set.lengthscales.len());
        let rows = if set.draw_folds {
            let rows = Rows::read(folder, name)?;
            let mut drawn: Vec<usize> = (0..rows.y.len()).map(|i| i % FOLDS).collect();
            drawn.shuffle(&mut streams.stream("experiment/folds"));
            rows.folded(drawn)
        } else {
            Rows::read_folded(folder, name)?
        };
        match rows.x.ncols() {
            found if found == wanted => Ok(rows),
            found => refused(format!("`{name}`: {wanted} lengthscales for {found} columns")),
        }
    }

    /// A draw from the prior on normal inputs; a ninth of `train` more for testing, as in ten folds.
    fn made_up(
        covariance: &Covariance,
        noise: f64,
        train: usize,
        features: usize,
        streams: Streams,
    ) -> Result<Rows> {
        let rows = train + train.div_ceil(9);
        let x = normals(rows, covariance.dimension(), streams, "experiment/inputs");
        let function = covariance.draw::<f64>(1, features, streams.child("experiment/truth", 0))?;
        let (f, e) = (function.values(x.as_ref()), normals(rows, 1, streams, "experiment/noise"));
        let y = (0..rows).map(|i| f[(i, 0)] + noise * e[(i, 0)]).collect();
        Ok(Rows::new(x, y).folded((0..rows).map(|i| i % FOLDS).collect()))
    }

    /// Fold `fold` as test set, with at most `most` of the other rows (or as many as its set says), chosen by chance, for training.
    pub(crate) fn fold(&self, fold: usize, most: Option<usize>, streams: Streams) -> Result<Fold> {
        let (mut train, test) = self.rows.held_out(fold)?;
        if let Some(most) = self.most.or(most).filter(|m| *m < train.len()) {
            shuffle(&mut train, fold, streams);
            train.truncate(most);
        }
        self.rows.parted((&train, &test), (InputScale::Deviation, ScaledBy::Training))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_standardised_with_training_rows_only() {
        let x = Mat::from_fn(20, 2, |i, j| if j == 0 { i as f64 } else { 3.0 });
        let rows = Rows::new(x, (0..20).map(|i| 2.0 * i as f64).collect());
        let source = Source { rows: rows.folded((0..20).map(|i| i % 10).collect()), most: None };
        let fold = source.fold(1, None, Streams::new(0)).unwrap();
        assert_eq!((fold.train.rows(), fold.truth.len()), (18, 2));
        let column: Vec<f64> = fold.train.inputs().col(0).iter().copied().collect();
        let mean = column.iter().sum::<f64>() / 18.0;
        let square = column.iter().map(|v| v * v).sum::<f64>() / 18.0;
        assert!(mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12);
        // y = 2 x, so standardised inputs and targets are the same; the constant column becomes 0.
        for i in 0..2 {
            assert!((fold.test[(i, 0)] - fold.truth[i]).abs() < 1e-12 && fold.test[(i, 1)] == 0.0);
        }
        assert_eq!(source.fold(1, Some(5), Streams::new(0)).unwrap().train.rows(), 5);
        let none = Source { rows: source.rows.folded(vec![0; 20]), most: None };
        assert!(none.fold(0, None, Streams::new(0)).is_err() && none.fold(1, None, Streams::new(0)).is_err());
    }
    /// A set among tables that is drawn from its prior, with a number of rows of its own, which no table has to be there for.
    #[test]
    fn sets_that_are_made_up_stand_beside_tables() {
        let read = |more: &str| {
            let text =
                format!("name = \"smooth\"\nnoise = 0.1\nsignal = 1.0\nlengthscales = [1.0, 2.0]\n{more}");
            toml::from_str::<SetSettings>(&text).unwrap()
        };
        let (folder, streams) = (Some(Path::new("nowhere")), Streams::new(0));
        let own = read("made_up = true\nrows = 30");
        let source = Source::open(&own, folder, Some(90), 50, streams).unwrap();
        // Its own number of rows, whatever others have.
        assert_eq!(source.fold(0, Some(20), streams).unwrap().train.rows(), 30);
        assert!(Source::open(&read(""), folder, Some(90), 50, streams).is_err());
        let usual = Source::open(&read("made_up = true"), folder, Some(90), 50, streams).unwrap();
        assert_eq!(usual.fold(0, Some(90), streams).unwrap().train.rows(), 90);
        let refused = |set: SetSettings, rows| {
            check_tables(&[set], &[0], Path::new("tables"), rows).unwrap_err().to_string()
        };
        assert!(refused(read("rows = 3"), None).contains("at least 10"));
        assert!(refused(read("made_up = true"), None).contains("need `rows`"));
    }
}
