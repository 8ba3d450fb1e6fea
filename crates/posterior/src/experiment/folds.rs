//! Regression tables in standard folds, read or made up.

use super::ExperimentError;
use super::gaussian::{Covariance, normals};
use faer::Mat;
use posterior_data::{ReadOptions, Standardisation, Table, Values, read_table};
use posterior_gp::Observations;
use posterior_linalg::random::Streams;
use rand::seq::SliceRandom;
use std::path::Path;

/// Standardised training and test rows.
pub(crate) struct Fold {
    /// Training rows.
    pub(crate) train: Observations,
    /// Test inputs.
    pub(crate) test: Mat<f64>,
    /// Test targets.
    pub(crate) truth: Vec<f64>,
}

/// All numbers of a table, by columns.
fn numbers(path: &Path) -> Result<Vec<Vec<f64>>, ExperimentError> {
    if !path.exists() {
        let remedy =
            "put the table and its folds there, or change `folder` in the experiment (--quick makes data up)";
        return Err(ExperimentError::MissingData { path: path.into(), remedy: remedy.into() });
    }
    let Table { columns, .. } = read_table(path, &ReadOptions::default())?;
    let numeric = columns.into_iter().map(|column| match column.values {
        Values::Numeric(values) if values.iter().all(|v| v.is_finite()) => Ok(values),
        _ => Err(ExperimentError::Setting(format!(
            "{}: column `{}` holds something else than finite numbers",
            path.display(),
            column.name
        ))),
    });
    numeric.collect()
}

/// Every fold of one table.
pub(crate) struct Source {
    x: Mat<f64>,
    y: Vec<f64>,
    folds: Vec<usize>,
}

impl Source {
    /// `NAME.csv.gz` (the last column is the target) with `NAME.fold.csv.gz` in `folder`, of as many columns as asked for.
    pub(crate) fn read(folder: &Path, name: &str, columns: usize) -> Result<Self, ExperimentError> {
        let mut table = numbers(&folder.join(format!("{name}.csv.gz")))?;
        let folds = numbers(&folder.join(format!("{name}.fold.csv.gz")))?;
        let (Some(y), [folds]) = (table.pop(), &folds[..]) else {
            return Err(ExperimentError::Setting(format!(
                "`{name}`: a target and one column of folds are needed"
            )));
        };
        if table.len() != columns || folds.len() != y.len() {
            let found = table.len();
            return Err(ExperimentError::Setting(format!(
                "`{name}`: {columns} lengthscales for {found} columns, {} folds for {} rows",
                folds.len(),
                y.len()
            )));
        }
        let x = Mat::from_fn(y.len(), columns, |i, j| table[j][i]);
        Ok(Self { x, y, folds: folds.iter().map(|f| *f as usize).collect() })
    }

    /// A draw from the prior on normal inputs; a ninth of `train` more for testing, as in ten folds.
    pub(crate) fn made_up(
        covariance: &Covariance,
        noise: f64,
        train: usize,
        features: usize,
        streams: Streams,
    ) -> Result<Self, ExperimentError> {
        let rows = train + train.div_ceil(9);
        let x = normals(rows, covariance.dimension(), streams, "experiment/inputs");
        let function = covariance.draw::<f64>(1, features, streams.child("experiment/truth", 0))?;
        let (f, e) = (function.values(x.as_ref()), normals(rows, 1, streams, "experiment/noise"));
        let y = (0..rows).map(|i| f[(i, 0)] + noise * e[(i, 0)]).collect();
        Ok(Self { x, y, folds: (0..rows).map(|i| i % 10).collect() })
    }

    /// A fold's rows for testing and the others, `most` of them at most and chosen by chance, for training; in units of the training rows.
    pub(crate) fn fold(
        &self,
        fold: usize,
        most: Option<usize>,
        streams: Streams,
    ) -> Result<Fold, ExperimentError> {
        let (test, mut train): (Vec<usize>, Vec<usize>) =
            (0..self.y.len()).partition(|&i| self.folds[i] == fold);
        if test.is_empty() || train.is_empty() {
            return Err(ExperimentError::Setting(format!("fold {fold} has no rows")));
        }
        if let Some(most) = most.filter(|m| *m < train.len()) {
            train.shuffle(&mut streams.child("experiment/fold", fold as u64).stream("experiment/rows"));
            train.truncate(most);
        }
        let inputs = |rows: &[usize]| Mat::from_fn(rows.len(), self.x.ncols(), |i, j| self.x[(rows[i], j)]);
        let targets = |rows: &[usize]| rows.iter().map(|&i| self.y[i]).collect::<Vec<f64>>();
        let (x, y) = (inputs(&train), targets(&train));
        let standard = Standardisation::learn(x.as_ref(), &y);
        let y = Mat::from_fn(y.len(), 1, |i, _| standard.target(y[i]));
        Ok(Fold {
            train: Observations::new(standard.features(x.as_ref()), y, None)?,
            test: standard.features(inputs(&test).as_ref()),
            truth: targets(&test).into_iter().map(|y| standard.target(y)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_standardised_with_training_rows_only() {
        let x = Mat::from_fn(20, 2, |i, j| if j == 0 { i as f64 } else { 3.0 });
        let source = Source {
            x,
            y: (0..20).map(|i| 2.0 * i as f64).collect(),
            folds: (0..20).map(|i| i % 10).collect(),
        };
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
        let none = Source { folds: vec![0; 20], ..source };
        assert!(none.fold(0, None, Streams::new(0)).is_err() && none.fold(1, None, Streams::new(0)).is_err());
    }
}
