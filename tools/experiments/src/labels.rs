//! Tables of classes, what Gaussian pseudo-targets make of them, and scores of predicted probabilities.

use super::error::{ExperimentError, Result, refused};
use super::tables::{columns, finite};
use faer::{Mat, MatRef};
use posterior_data::Values;
use posterior_data::synthetic::smooth_classes;
use posterior_gp::Observations;
use posterior_gp::exact::SeveralObservations;
use posterior_gp::gaussianised::GaussianLabels;
use posterior_kernels::{Kernel, KernelExpression};
use posterior_likelihoods::gaussianised::{Gaussianised, Matching};
use posterior_likelihoods::{Categorical, Likelihood, OutputLikelihood, Prediction};
use posterior_linalg::random::Streams;
use posterior_metrics::Classes;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The matchings that there are for classes, in the order of the tables.
pub(crate) const MATCHINGS: [Matching; 4] =
    [Matching::MomentOriginal, Matching::Moment, Matching::Laplace, Matching::Variational];

/// Rows with a class each.
#[derive(Clone, Debug)]
pub(crate) struct Labelled {
    /// Inputs, n x D.
    pub(crate) x: Mat<f64>,
    /// Classes from 0.
    pub(crate) y: Vec<usize>,
    /// Number of classes.
    pub(crate) classes: usize,
}

impl Labelled {
    /// A CSV file of numbers whose last column is the class.
    ///
    /// # Errors
    /// [`ExperimentError::MissingData`] where it is not there; a column that holds something else than finite numbers.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let remedy = "write it with benches/peers/keel_tables.py, or change `folder` in the experiment (--quick makes data up)";
        let mut inputs = columns(path, remedy)?;
        let Some(class) = inputs.pop() else {
            return refused(format!("{}: it has no columns", path.display()));
        };
        let names: Vec<String> = match class.values {
            Values::Text(cells) => cells.into_iter().map(Option::unwrap_or_default).collect(),
            Values::Numeric(cells) => cells.iter().map(f64::to_string).collect(),
        };
        let mut known = names.clone();
        known.sort();
        known.dedup();
        let y: Vec<usize> = names.iter().map(|n| known.binary_search(n).unwrap_or(0)).collect();
        let numbers = finite(path, inputs)?;
        let x = Mat::from_fn(y.len(), numbers.len(), |i, j| numbers[j][i]);
        Ok(Self { x, y, classes: known.len() })
    }

    /// Made up: classes drawn from the softmax of smooth functions.
    ///
    /// # Errors
    /// Sizes that there cannot be.
    pub(crate) fn made_up(made: &MadeUp, streams: Streams) -> Result<Self> {
        let MadeUp { rows, columns, classes, lengthscale, amplitude } = *made;
        let found = smooth_classes(rows, columns, classes, (lengthscale, amplitude), streams)?;
        let x = Mat::from_fn(rows, columns, |i, j| found.inputs[i * columns + j]);
        Ok(Self { x, y: found.targets.iter().map(|y| *y as usize).collect(), classes })
    }

    /// The given rows.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let x = Mat::from_fn(rows.len(), self.x.ncols(), |i, j| self.x[(rows[i], j)]);
        Self { x, y: rows.iter().map(|&i| self.y[i]).collect(), classes: self.classes }
    }

    /// The last `test` rows of a random order, and the first `train` of it.
    ///
    /// # Errors
    /// When there are not so many rows.
    pub(crate) fn split(&self, (train, test): (usize, usize), streams: Streams) -> Result<(Self, Self)> {
        let n = self.y.len();
        if train == 0 || test == 0 || train + test > n {
            return refused(format!("{train} rows for training and {test} for tests of a table of {n}"));
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut streams.stream("experiment/split"));
        Ok((self.select(&order[..train]), self.select(&order[n - test..])))
    }

    /// Inputs of both scaled to [-1, 1] by the lowest and highest of this one's.
    pub(crate) fn scale_with(&mut self, other: &mut Self) {
        for j in 0..self.x.ncols() {
            let column = self.x.col_as_slice(j);
            let low = column.iter().copied().fold(f64::INFINITY, f64::min);
            let high = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let width = if high > low { high - low } else { 1.0 };
            for x in [&mut self.x, &mut other.x] {
                x.col_as_slice_mut(j).iter_mut().for_each(|v| *v = 2.0 * (*v - low) / width - 1.0);
            }
        }
    }

    /// As a process under the likelihood of classes learns from them.
    pub(crate) fn observations(&self) -> Result<Observations> {
        let targets = Mat::from_fn(self.y.len(), 1, |i, _| self.y[i] as f64);
        Ok(Observations::new(self.x.clone(), targets, None)?)
    }

    /// The likelihood of its classes.
    pub(crate) fn likelihood(&self) -> Result<OutputLikelihood> {
        Ok(OutputLikelihood::Categorical(Categorical::new(self.classes)?))
    }

    /// What regression learns from: pseudo-targets less prior means, with those means.
    pub(crate) fn gaussian_labels(
        &self,
        matching: Matching,
        pseudo_count: f64,
    ) -> Result<(SeveralObservations, Vec<f64>)> {
        let data = self.observations()?;
        let made =
            Gaussianised::new(matching, pseudo_count).map_err(|e| ExperimentError::Setting(e.to_string()))?;
        let GaussianLabels { mut targets, variances } =
            GaussianLabels::of(&self.likelihood()?, &made, &data)?;
        let means = self.prior_means(targets.as_ref());
        for (k, mean) in means.iter().enumerate() {
            targets.col_as_slice_mut(k).iter_mut().for_each(|t| *t -= mean);
        }
        Ok((SeveralObservations::new(self.x.clone(), targets, variances)?, means))
    }

    /// Logarithms of the classes' shares, moved so that they are right on average (spec `likelihood_approximations`, section 6.2).
    fn prior_means(&self, targets: MatRef<'_, f64>) -> Vec<f64> {
        let n = self.y.len() as f64;
        let count = |k: usize| self.y.iter().filter(|y| **y == k).count() as f64;
        let mut means: Vec<f64> = (0..self.classes).map(|k| (count(k).max(0.5) / n).ln()).collect();
        let own = |k: usize| targets.col(k).iter().sum::<f64>() / n - means[k];
        let shift = (0..self.classes).map(own).sum::<f64>() / self.classes as f64;
        means.iter_mut().for_each(|m| *m += shift);
        means
    }

    /// Scores of class probabilities for its rows, row by row.
    pub(crate) fn scores(&self, probabilities: &[f64]) -> Result<ClassScores> {
        let found = Classes::new(probabilities, self.classes, &self.y)?;
        let scores = found.scores();
        Ok(ClassScores {
            error: 100.0 * (1.0 - scores.accuracy),
            nll: scores.nll,
            ece: found.expected_calibration_error(BINS)?,
            ece_midpoint: found.midpoint_calibration_error(BINS)?,
        })
    }
}

/// Bins of calibration errors.
const BINS: usize = 10;

/// Scores of predicted classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClassScores {
    /// Per cent.
    pub(crate) error: f64,
    /// Nats.
    pub(crate) nll: f64,
    /// Against mean confidences.
    pub(crate) ece: f64,
    /// Against the middles of the bins.
    pub(crate) ece_midpoint: f64,
}

/// A table that is made up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MadeUp {
    /// Rows.
    pub(crate) rows: usize,
    /// Columns.
    pub(crate) columns: usize,
    /// Classes.
    pub(crate) classes: usize,
    /// Of the functions, in standard deviations of the inputs.
    pub(crate) lengthscale: f64,
    /// Of the functions: the larger, the less classes overlap.
    pub(crate) amplitude: f64,
}

/// Class probabilities under independent Gaussian latent values, m x C each; row by row.
pub(crate) fn probabilities(mean: MatRef<'_, f64>, variance: MatRef<'_, f64>) -> Result<Vec<f64>> {
    let classes = mean.ncols();
    let likelihood = Categorical::new(classes)?;
    let row = |i: usize| {
        let of = |m: MatRef<'_, f64>| m.row(i).iter().copied().collect::<Vec<f64>>();
        match likelihood.predict(&of(mean), &of(variance)) {
            Prediction::Classes(p) => p,
            _ => vec![f64::NAN; classes],
        }
    };
    let rows: Vec<Vec<f64>> = (0..mean.nrows()).into_par_iter().with_min_len(16).map(row).collect();
    Ok(rows.into_iter().flatten().collect())
}

/// A squared exponential kernel with one lengthscale.
pub(crate) fn squared_exponential(
    variance: f64,
    lengthscale: f64,
    columns: usize,
) -> Result<Box<dyn Kernel<f64>>> {
    let names: Vec<String> = (0..columns).map(|j| format!("x{j}")).collect();
    let text = format!("se(variance={variance}, lengthscale={lengthscale})");
    Ok(text.parse::<KernelExpression>()?.build(&names)?)
}

/// Refuses pseudo-counts that are none, and matchings that are named twice.
pub(crate) fn check_gaussian_labels(matchings: &[Matching], pseudo_counts: &[f64]) -> Result<()> {
    if matchings.is_empty() || matchings.iter().enumerate().any(|(i, m)| matchings[..i].contains(m)) {
        return refused("`matchings` are some of moment-original, moment, laplace, variational, each once");
    }
    if pseudo_counts.is_empty() || pseudo_counts.iter().any(|a| !(*a > 0.0 && a.is_finite())) {
        return refused("pseudo-counts are positive numbers, at least one");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_classes_are_read_and_scaled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "x1,x2,class\n0,5,b\n10,5,a\n5,5,b\n2,5,c\n").unwrap();
        let mut table = Labelled::read(&path).unwrap();
        assert_eq!((table.classes, &table.y[..]), (3, &[1, 0, 1, 2][..]));
        let mut other = table.select(&[1, 3]);
        other.x[(0, 0)] = 20.0;
        table.scale_with(&mut other);
        let column: Vec<f64> = table.x.col_as_slice(0).to_vec();
        assert_eq!(column, [-1.0, 1.0, 0.0, -0.6]);
        assert_eq!((other.x[(0, 0)], table.x[(2, 1)]), (3.0, -1.0));
        let (train, test) = table.split((2, 2), Streams::new(1)).unwrap();
        let mut all: Vec<usize> = train.y.iter().chain(&test.y).copied().collect();
        all.sort();
        assert_eq!(all, [0, 1, 1, 2]);
        assert!(table.split((3, 2), Streams::new(1)).is_err());
        let missing = Labelled::read(&folder.path().join("none.csv")).unwrap_err().to_string();
        assert!(missing.contains("keel_tables.py"), "{missing}");
        std::fs::write(&path, "x1,class\n,b\n1,a\n").unwrap();
        assert!(Labelled::read(&path).unwrap_err().to_string().contains("`x1`"));
    }

    /// Means of all pseudo-targets and of all prior means agree, and differences are those of log shares.
    #[test]
    fn prior_means_are_those_of_the_classes_shares() {
        let table = Labelled { x: Mat::from_fn(4, 1, |i, _| i as f64), y: vec![0, 1, 1, 1], classes: 2 };
        let (data, means) = table.gaussian_labels(Matching::Laplace, 0.1).unwrap();
        assert!((means[1] - means[0] - 3f64.ln()).abs() < 1e-12);
        // Log shapes 1.1 of own classes and 0.1 of others: four of each.
        let average = 0.5 * (1.1f64.ln() + 0.1f64.ln());
        let log_shares = 0.5 * (0.25f64.ln() + 0.75f64.ln());
        assert!((means[0] - (0.25f64.ln() + average - log_shares)).abs() < 1e-12);
        assert!((data.noise(0, 0) - 1.0 / 1.1).abs() < 1e-12 && (data.noise(0, 1) - 10.0).abs() < 1e-12);
    }
}
