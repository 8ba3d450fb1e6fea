//! Rows, whole or by batches.

use super::super::{LearnedFeatures, ObservedRows};
use crate::LinearError;
use crate::check::{finite_matrix, same};
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use std::ops::Range;

/// Rows to learn from, or to judge by.
#[derive(Clone, Copy, Debug)]
pub struct LowRankData<'a> {
    /// n x D.
    pub inputs: MatRef<'a, f64>,
    /// What was observed at them.
    pub observed: ObservedRows<'a>,
}

impl<'a> LowRankData<'a> {
    pub(super) fn rows(&self) -> usize {
        self.inputs.nrows()
    }

    pub(super) fn slice(&self, rows: Range<usize>) -> LowRankData<'a> {
        let of = |numbers: Option<&'a [f64]>| numbers.map(|numbers| &numbers[rows.clone()]);
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        let (noise, weights, offsets) = (of(noise), of(weights), of(offsets));
        let targets = targets.subrows(rows.start, rows.len());
        let observed = ObservedRows { targets, noise, weights, offsets };
        Self { inputs: self.inputs.subrows(rows.start, rows.len()), observed }
    }

    pub(super) fn check(
        &self,
        features: &dyn LearnedFeatures,
        likelihood: &dyn Likelihood,
    ) -> Result<(), LinearError> {
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        if self.rows() == 0 {
            return Err(LinearError::Empty { what: "rows" });
        }
        same("columns of the inputs", features.inputs(), self.inputs.ncols())?;
        same("rows of the targets", self.rows(), targets.nrows())?;
        for numbers in [noise, weights, offsets].into_iter().flatten() {
            same("numbers of rows", self.rows(), numbers.len())?;
        }
        finite_matrix("an input", self.inputs)?;
        let mut y = vec![0.0; targets.ncols()];
        for example in 0..self.rows() {
            y.iter_mut().zip(targets.row(example).iter()).for_each(|(y, t)| *y = *t);
            likelihood.check_target(&y).map_err(|error| LinearError::Target { example, error })?;
        }
        Ok(())
    }
}

/// Some rows of a table, copied.
pub(super) struct Gathered {
    pub(super) inputs: Mat<f64>,
    targets: Mat<f64>,
    numbers: [Option<Vec<f64>>; 3],
}

impl Gathered {
    pub(super) fn new(data: &LowRankData<'_>, rows: &[usize]) -> Self {
        let of = |from: MatRef<'_, f64>| Mat::from_fn(rows.len(), from.ncols(), |i, j| from[(rows[i], j)]);
        let ObservedRows { targets, noise, weights, offsets } = data.observed;
        let numbers = [noise, weights, offsets].map(|n| n.map(|n| rows.iter().map(|&i| n[i]).collect()));
        Self { inputs: of(data.inputs), targets: of(targets), numbers }
    }

    pub(super) fn observed(&self) -> ObservedRows<'_> {
        let [noise, weights, offsets] = &self.numbers;
        let (noise, weights, offsets) = (noise.as_deref(), weights.as_deref(), offsets.as_deref());
        ObservedRows { targets: self.targets.as_ref(), noise, weights, offsets }
    }
}
