//! Feature maps of a few lines.

use super::*;
use crate::LinearError;
use faer::MatRef;
use std::any::Any;
use std::fmt;

/// Features without parameters: a closed form of the row gives them with the process's own variance.
#[derive(Clone)]
pub(super) struct Given<F> {
    inputs: usize,
    rank: usize,
    of: F,
}

impl<F> fmt::Debug for Given<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl<F: Fn(&[f64]) -> (Vec<f64>, f64) + Clone + Send + Sync + 'static> Given<F> {
    pub(super) fn new(inputs: usize, rank: usize, of: F) -> Self {
        Self { inputs, rank, of }
    }
}

/// Each row is its own features.
pub(super) fn own_rows(rank: usize) -> Box<dyn LearnedFeatures> {
    Box::new(Given::new(rank, rank, |x: &[f64]| (x.to_vec(), x.iter().map(|x| x * x).sum())))
}

struct GivenAt(FeatureValues);

impl FeaturesAt for GivenAt {
    fn values(&self) -> &FeatureValues {
        &self.0
    }

    fn pull_back(&self, _: Mat<f64>, _: &[f64], _: &mut [f64]) -> Result<(), LinearError> {
        Ok(())
    }
}

impl<F: Fn(&[f64]) -> (Vec<f64>, f64) + Clone + Send + Sync + 'static> LearnedFeatures for Given<F> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn unconstrained(&self) -> Vec<f64> {
        Vec::new()
    }

    fn set_unconstrained(&mut self, _: &[f64]) -> Result<(), LinearError> {
        Ok(())
    }

    fn decays(&self) -> Vec<bool> {
        Vec::new()
    }

    fn rows_at_once(&self) -> usize {
        5
    }

    fn bytes_of_row(&self) -> usize {
        8 * self.rank
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError> {
        let (mut features, mut variances) = (Mat::zeros(self.rank, x.nrows()), Vec::new());
        for i in 0..x.nrows() {
            let row: Vec<f64> = x.row(i).iter().copied().collect();
            let (of_row, variance) = (self.of)(&row);
            features.col_as_slice_mut(i).copy_from_slice(&of_row);
            variances.push(variance);
        }
        Ok(FeatureValues { features, variances })
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError> {
        Ok(Box::new(GivenAt(self.values(x)?)))
    }

    fn clone_box(&self) -> Box<dyn LearnedFeatures> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One layer that is learned, `a(x) = scale · tanh(A x + b)`, with the own variance `|a(x)|² + exp t`: parameters A by columns, which decay, then b and t, which do not.
#[derive(Clone, Debug)]
pub(super) struct Squashed {
    pub(super) weights: Mat<f64>,
    pub(super) shifts: Vec<f64>,
    pub(super) extra: f64,
    pub(super) scale: f64,
    pub(super) rows_at_once: usize,
}

/// Bytes that [`Squashed`] says it keeps of a row.
pub(super) const BYTES: usize = 100;

impl Squashed {
    pub(super) fn new(rank: usize, inputs: usize, rows_at_once: usize) -> Self {
        let weights = normal(rank, inputs, "weights of a layer");
        let shifts = (0..rank).map(|j| 0.3 - 0.2 * j as f64).collect();
        Self { weights, shifts, extra: -0.5, scale: 1.0, rows_at_once }
    }
}

struct SquashedAt<'a> {
    map: &'a Squashed,
    x: Mat<f64>,
    values: FeatureValues,
}

impl FeaturesAt for SquashedAt<'_> {
    fn values(&self) -> &FeatureValues {
        &self.values
    }

    fn pull_back(&self, features: Mat<f64>, variances: &[f64], out: &mut [f64]) -> Result<(), LinearError> {
        let (m, inputs, scale) = (self.map.shifts.len(), self.x.ncols(), self.map.scale);
        for (i, of_variance) in variances.iter().enumerate() {
            for j in 0..m {
                let a = self.values.features[(j, i)];
                let of_sum = (features[(j, i)] + 2.0 * of_variance * a) * (scale - a * a / scale);
                (0..inputs).for_each(|d| out[d * m + j] += of_sum * self.x[(i, d)]);
                out[inputs * m + j] += of_sum;
            }
            out[inputs * m + m] += of_variance * self.map.extra.exp();
        }
        Ok(())
    }
}

impl LearnedFeatures for Squashed {
    fn rank(&self) -> usize {
        self.weights.nrows()
    }

    fn inputs(&self) -> usize {
        self.weights.ncols()
    }

    fn unconstrained(&self) -> Vec<f64> {
        let columns = (0..self.inputs()).flat_map(|d| self.weights.col_as_slice(d).to_vec());
        columns.chain(self.shifts.clone()).chain([self.extra]).collect()
    }

    fn set_unconstrained(&mut self, numbers: &[f64]) -> Result<(), LinearError> {
        let (m, inputs) = self.weights.shape();
        let (weights, rest) = numbers.split_at(m * inputs);
        self.weights = MatRef::from_column_major_slice(weights, m, inputs).to_owned();
        self.shifts = rest[..m].to_vec();
        self.extra = rest[m];
        Ok(())
    }

    fn decays(&self) -> Vec<bool> {
        let (m, inputs) = self.weights.shape();
        (0..m * inputs + m + 1).map(|k| k < m * inputs).collect()
    }

    fn rows_at_once(&self) -> usize {
        self.rows_at_once
    }

    fn bytes_of_row(&self) -> usize {
        BYTES
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<FeatureValues, LinearError> {
        let sums = &self.weights * x.transpose();
        let (m, b) = sums.shape();
        let features = Mat::from_fn(m, b, |j, i| self.scale * (sums[(j, i)] + self.shifts[j]).tanh());
        let variances = squares(&features).iter().map(|k| k + self.extra.exp()).collect();
        Ok(FeatureValues { features, variances })
    }

    fn at<'a>(&'a self, x: MatRef<'_, f64>) -> Result<Box<dyn FeaturesAt + 'a>, LinearError> {
        Ok(Box::new(SquashedAt { map: self, x: x.to_owned(), values: self.values(x)? }))
    }

    fn clone_box(&self) -> Box<dyn LearnedFeatures> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
