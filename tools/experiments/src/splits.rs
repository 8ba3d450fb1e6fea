//! Tables in random parts or standard folds: rows to learn from and rows to test on, in published units.

use super::error::{Result, refused};
use super::tables::{Fold, numbers};
use faer::{Mat, MatRef};
use posterior_data::{Standardisation, Values, synthetic};
use posterior_gp::Observations;
use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;
use serde::Deserialize;
use std::path::Path;

/// How inputs are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InputScale {
    /// Smallest to -1, largest to 1.
    #[default]
    Interval,
    /// Mean to 0, standard deviation to 1, as `posterior fit` does.
    Deviation,
}

/// Which rows say how numbers are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScaledBy {
    /// Those that are learned from.
    #[default]
    Training,
    /// All of them, before they are parted: tests then know a little of their own rows.
    All,
}

/// Units of inputs and target.
struct Units {
    /// Of each column: what becomes 0, and what becomes 1 more.
    inputs: Vec<(f64, f64)>,
    target: Standardisation,
}

impl Units {
    fn learn(x: MatRef<'_, f64>, y: &[f64], scale: InputScale) -> Self {
        let target = Standardisation::learn(x, y);
        let column = |j: usize| match scale {
            InputScale::Deviation => (target.feature_means[j], target.feature_scales[j]),
            InputScale::Interval => {
                let least = x.col(j).iter().copied().fold(f64::INFINITY, f64::min);
                let most = x.col(j).iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let half = 0.5 * most - 0.5 * least;
                // A column that says nothing becomes 0.
                (0.5 * most + 0.5 * least, if half > 0.0 { half } else { 1.0 })
            }
        };
        Self { inputs: (0..x.ncols()).map(column).collect(), target }
    }
}

/// A random order of the rows outside a fold.
pub(crate) fn shuffle(rows: &mut [usize], fold: usize, streams: Streams) {
    rows.shuffle(&mut streams.child("experiment/fold", fold as u64).stream("experiment/rows"));
}

/// All rows of a table whose last column is the target.
pub(crate) struct Rows {
    /// Inputs, n x D.
    pub(crate) x: Mat<f64>,
    /// Targets.
    pub(crate) y: Vec<f64>,
    /// The standard fold of each row; none where they were not read.
    folds: Vec<usize>,
}

/// Standard folds of a table.
pub(crate) const FOLDS: usize = 10;

impl Rows {
    /// Rows without folds.
    pub(crate) fn new(x: Mat<f64>, y: Vec<f64>) -> Self {
        Self { x, y, folds: Vec::new() }
    }

    /// From `TABLE.csv.gz` in a folder.
    ///
    /// # Errors
    /// [`crate::ExperimentError::MissingData`], and cells that are no finite numbers.
    pub(crate) fn read(folder: &Path, name: &str) -> Result<Self> {
        Self::of(&folder.join(format!("{name}.csv.gz")))
    }

    /// The same with the standard fold of each row, from `TABLE.fold.csv.gz`.
    ///
    /// # Errors
    /// As [`Self::read`], and folds that are not those of the rows.
    pub(crate) fn read_folded(folder: &Path, name: &str) -> Result<Self> {
        let own = Self::read(folder, name)?;
        let path = folder.join(format!("{name}.fold.csv.gz"));
        let column = numbers(&path)?;
        let folds: Vec<usize> = column.first().into_iter().flatten().map(|fold| *fold as usize).collect();
        if column.len() != 1 || folds.len() != own.y.len() || folds.iter().any(|fold| *fold >= FOLDS) {
            return refused(format!(
                "{}: one column with a fold from 0 to {} for each of {} rows is needed",
                path.display(),
                FOLDS - 1,
                own.y.len()
            ));
        }
        Ok(own.folded(folds))
    }

    /// From a table in a file.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match Self::of_columns(numbers(path)?) {
            Some(rows) => Ok(rows),
            None => refused(format!("{}: columns of inputs and one target are needed", path.display())),
        }
    }

    /// Columns of inputs and, behind them, one of targets.
    fn of_columns(mut columns: Vec<Vec<f64>>) -> Option<Self> {
        let y = columns.pop().filter(|_| !columns.is_empty())?;
        Some(Self::new(Mat::from_fn(y.len(), columns.len(), |i, j| columns[j][i]), y))
    }

    /// The same rows with a fold each.
    pub(crate) fn folded(self, folds: Vec<usize>) -> Self {
        Self { folds, ..self }
    }

    /// Friedman's problem: ten inputs of which five matter. Rows are dealt out to the folds.
    pub(crate) fn made_up(rows: usize, streams: Streams) -> Self {
        let columns = synthetic::friedman(rows, streams).columns.into_iter();
        let numeric = columns.filter_map(|column| match column.values {
            Values::Numeric(values) => Some(values),
            _ => None,
        });
        let made = Self::of_columns(numeric.collect()).unwrap_or(Self::new(Mat::zeros(0, 0), Vec::new()));
        made.folded((0..rows).map(|row| row % FOLDS).collect())
    }

    /// At most so many of them, chosen by chance.
    pub(crate) fn at_most(self, most: Option<usize>, streams: Streams) -> Self {
        let Some(most) = most.filter(|most| *most < self.y.len()) else { return self };
        let mut chosen: Vec<usize> = (0..self.y.len()).collect();
        chosen.shuffle(&mut streams.stream("experiment/most-rows"));
        chosen.truncate(most);
        let folds =
            if self.folds.is_empty() { Vec::new() } else { chosen.iter().map(|&i| self.folds[i]).collect() };
        Self { x: self.inputs(&chosen), y: self.targets(&chosen), folds }
    }

    fn inputs(&self, rows: &[usize]) -> Mat<f64> {
        Mat::from_fn(rows.len(), self.x.ncols(), |i, j| self.x[(rows[i], j)])
    }

    fn targets(&self, rows: &[usize]) -> Vec<f64> {
        rows.iter().map(|&i| self.y[i]).collect()
    }

    /// Part number `split`: a share `test` of the rows, drawn by chance, to test on, and the others (in random order, so that any number of the first ones is a
    /// random choice) to learn from.
    ///
    /// # Errors
    /// When one of the parts would be empty.
    pub(crate) fn split(
        &self,
        (split, test): (usize, f64),
        (scale, by): (InputScale, ScaledBy),
        streams: Streams,
    ) -> Result<Fold> {
        let n = self.y.len();
        let count = (test * n as f64).round() as usize;
        if count == 0 || count >= n {
            return refused(format!("a share of {test} of {n} rows for tests leaves one part empty"));
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut streams.child("experiment/split", split as u64).stream("experiment/rows"));
        let (tested, learned) = order.split_at(count);
        self.parted((learned, tested), (scale, by))
    }

    /// Standard fold number `fold` to test on, and the others, in random order, to learn from.
    ///
    /// # Errors
    /// When one of the parts would be empty.
    pub(crate) fn fold(&self, fold: usize, units: (InputScale, ScaledBy), streams: Streams) -> Result<Fold> {
        let (mut learned, tested) = self.held_out(fold)?;
        shuffle(&mut learned, fold, streams);
        self.parted((&learned, &tested), units)
    }

    /// The rows outside a standard fold, and those in it.
    ///
    /// # Errors
    /// When one of the parts would be empty.
    pub(crate) fn held_out(&self, fold: usize) -> Result<(Vec<usize>, Vec<usize>)> {
        let (tested, learned): (Vec<usize>, Vec<usize>) =
            (0..self.folds.len()).partition(|&i| self.folds[i] == fold);
        if tested.is_empty() || learned.is_empty() {
            return refused(format!("fold {fold} of {} rows leaves one part empty", self.y.len()));
        }
        Ok((learned, tested))
    }

    /// Rows to learn from and rows to test on, in the units that are asked for.
    ///
    /// # Errors
    /// Numbers that are not finite.
    pub(crate) fn parted(
        &self,
        (learned, tested): (&[usize], &[usize]),
        (scale, by): (InputScale, ScaledBy),
    ) -> Result<Fold> {
        let (x, y) = (self.inputs(learned), self.targets(learned));
        let units = match by {
            ScaledBy::Training => Units::learn(x.as_ref(), &y, scale),
            ScaledBy::All => Units::learn(self.x.as_ref(), &self.y, scale),
        };
        let scaled = |x: Mat<f64>| {
            Mat::from_fn(x.nrows(), x.ncols(), |i, j| (x[(i, j)] - units.inputs[j].0) / units.inputs[j].1)
        };
        let target = |y: &f64| units.target.target(*y);
        let y = Mat::from_fn(y.len(), 1, |i, _| target(&y[i]));
        Ok(Fold {
            train: Observations::new(scaled(x), y, None)?,
            test: scaled(self.inputs(tested)),
            truth: self.targets(tested).iter().map(target).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        // The row's number, twice it, and nothing; the target is its number, too.
        Rows {
            x: Mat::from_fn(50, 3, |i, j| [i as f64, 2.0 * i as f64, 7.0][j]),
            y: (0..50).map(f64::from).collect(),
            folds: (0..50).map(|i| (i / 5) % FOLDS).collect(),
        }
    }

    #[test]
    fn parts_are_disjoint_and_in_the_units_that_are_asked_for() {
        let (rows, streams) = (rows(), Streams::new(3));
        let split = |number, scale, by| rows.split((number, 0.2), (scale, by), streams).unwrap();
        let fold = split(0, InputScale::Interval, ScaledBy::All);
        assert_eq!((fold.train.rows(), fold.test.nrows(), fold.truth.len()), (40, 10, 10));
        // Scaled by all rows, the number of a row can be told from its inputs: every row is in exactly one part.
        let number = |x: f64| ((x + 1.0) * 24.5).round() as usize;
        let mut seen: Vec<usize> = fold.train.inputs().col(0).iter().map(|x| number(*x)).collect();
        seen.extend(fold.test.col(0).iter().map(|x| number(*x)));
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
        for i in 0..10 {
            assert!((fold.test[(i, 0)] - fold.test[(i, 1)]).abs() < 1e-12 && fold.test[(i, 2)] == 0.0);
            assert!(fold.test[(i, 0)].abs() <= 1.0);
        }
        // The target of all rows has mean 0 and deviation 1: the variance of 0, ..., 49 is (50² - 1) / 12.
        let deviation = (2499.0_f64 / 12.0).sqrt();
        for (i, y) in fold.truth.iter().enumerate() {
            assert!((y - (number(fold.test[(i, 0)]) as f64 - 24.5) / deviation).abs() < 1e-12);
        }
        let trained = split(0, InputScale::Deviation, ScaledBy::Training).train;
        let column: Vec<f64> = trained.inputs().col(0).iter().copied().collect();
        let (mean, square) = (column.iter().sum::<f64>() / 40.0, column.iter().map(|v| v * v).sum::<f64>());
        assert!(mean.abs() < 1e-12 && (square / 40.0 - 1.0).abs() < 1e-12);
        for i in 0..40 {
            assert!((trained.inputs()[(i, 0)] - trained.targets()[(i, 0)]).abs() < 1e-12);
        }
        let again = split(0, InputScale::Interval, ScaledBy::All);
        assert_eq!(again.truth, fold.truth);
        assert_ne!(split(1, InputScale::Interval, ScaledBy::All).truth, fold.truth);
        assert!(rows.split((0, 0.001), Default::default(), streams).is_err());
        assert!(rows.split((0, 0.999), Default::default(), streams).is_err());
    }

    #[test]
    fn standard_folds_are_test_rows_in_turn() {
        let (rows, streams) = (rows(), Streams::new(3));
        let fold = |number| rows.fold(number, (InputScale::Interval, ScaledBy::All), streams);
        let number = |x: f64| ((x + 1.0) * 24.5).round() as usize;
        let third = fold(3).unwrap();
        let tested: Vec<usize> = third.test.col(0).iter().map(|x| number(*x)).collect();
        assert_eq!(tested, [15, 16, 17, 18, 19]);
        assert_eq!(third.train.rows(), 45);
        assert!(third.train.inputs().col(0).iter().all(|x| !tested.contains(&number(*x))));
        assert!(fold(10).is_err());
        let few = Rows { folds: vec![1; 8], ..rows.at_most(Some(8), Streams::new(1)) };
        assert!(few.fold(1, Default::default(), streams).is_err());
    }

    #[test]
    fn few_rows_are_a_choice_of_all() {
        let few = rows().at_most(Some(8), Streams::new(1));
        assert_eq!((few.y.len(), few.x.nrows()), (8, 8));
        for (i, y) in few.y.iter().enumerate() {
            assert_eq!((few.x[(i, 0)], few.folds[i]), (*y, (*y as usize / 5) % FOLDS));
        }
        assert!(few.y.windows(2).any(|w| w[0] > w[1]), "{:?}", few.y);
        assert_eq!(rows().at_most(Some(50), Streams::new(1)).y, rows().y);
        assert_eq!(Rows::made_up(30, Streams::new(0)).x.ncols(), 10);
    }
}
