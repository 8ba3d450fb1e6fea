//! Rows, whole or by batches, in memory or elsewhere.

use super::super::{LearnedFeatures, ObservedRows};
use crate::LinearError;
use crate::check::{finite_matrix, same};
use faer::{Mat, MatRef};
use posterior_likelihoods::Likelihood;
use posterior_linalg::tiles::pieces;
use std::fmt::Debug;
use std::ops::Range;

/// Rows to learn from, or to judge by.
#[derive(Clone, Copy, Debug)]
pub struct LowRankData<'a> {
    /// n x D.
    pub inputs: MatRef<'a, f64>,
    /// What was observed at them.
    pub observed: ObservedRows<'a>,
}

/// Rows to learn from that need not be in memory: training asks for a batch at a time, or for all in blocks, and does not know where they are. [`LowRankData`] are rows in memory; what processes are conditioned on has the same idea one crate above, with rows of its own.
pub trait LowRankRows: Debug + Sync {
    /// Number of rows, n.
    fn row_count(&self) -> usize;

    /// Consecutive rows, some of `0..n`.
    ///
    /// # Errors
    /// [`LinearError::Rows`] where they cannot be had.
    fn rows_in(&self, rows: Range<usize>) -> Result<RowBlock<'_>, LinearError>;

    /// The given rows, in the given order: some of `0..n`.
    ///
    /// # Errors
    /// [`LinearError::Rows`] where they cannot be had.
    fn rows_at(&self, rows: &[usize]) -> Result<RowBlock<'_>, LinearError>;
}

/// Some rows of a table.
#[derive(Clone, Debug)]
pub enum RowBlock<'a> {
    /// Where they are in memory.
    View(LowRankData<'a>),
    /// Copied, or read.
    Copy(OwnedRows),
}

/// Rows with what was observed at them, as [`LowRankData`] and [`ObservedRows`] show them.
#[derive(Clone, Debug)]
pub struct OwnedRows {
    /// b x D.
    pub inputs: Mat<f64>,
    /// b x t.
    pub targets: Mat<f64>,
    /// Known noise variances, b numbers.
    pub noise: Option<Vec<f64>>,
    /// How often each row counts, b numbers.
    pub weights: Option<Vec<f64>>,
    /// What is added to latent values, b numbers.
    pub offsets: Option<Vec<f64>>,
}

impl RowBlock<'_> {
    /// The rows themselves.
    pub fn data(&self) -> LowRankData<'_> {
        match self {
            Self::View(data) => *data,
            Self::Copy(OwnedRows { inputs, targets, noise, weights, offsets }) => {
                let (noise, weights, offsets) = (noise.as_deref(), weights.as_deref(), offsets.as_deref());
                let observed = ObservedRows { targets: targets.as_ref(), noise, weights, offsets };
                LowRankData { inputs: inputs.as_ref(), observed }
            }
        }
    }
}

impl<'a> LowRankData<'a> {
    /// Consecutive rows.
    ///
    /// # Panics
    /// When there are no such rows.
    pub fn slice(&self, rows: Range<usize>) -> LowRankData<'a> {
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        let [noise, weights, offsets] = [noise, weights, offsets].map(|n| n.map(|n| &n[rows.clone()]));
        let targets = targets.subrows(rows.start, rows.len());
        let observed = ObservedRows { targets, noise, weights, offsets };
        Self { inputs: self.inputs.subrows(rows.start, rows.len()), observed }
    }

    /// A copy of the given rows, in the given order.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn owned(&self, rows: &[usize]) -> OwnedRows {
        let of = |from: MatRef<'_, f64>| Mat::from_fn(rows.len(), from.ncols(), |i, j| from[(rows[i], j)]);
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        let [noise, weights, offsets] =
            [noise, weights, offsets].map(|n| n.map(|n| rows.iter().map(|&i| n[i]).collect()));
        OwnedRows { inputs: of(self.inputs), targets: of(targets), noise, weights, offsets }
    }

    fn sized(&self) -> Result<(), LinearError> {
        let ObservedRows { targets, noise, weights, offsets } = self.observed;
        same("rows of the targets", self.inputs.nrows(), targets.nrows())?;
        [noise, weights, offsets]
            .into_iter()
            .flatten()
            .try_for_each(|numbers| same("numbers of rows", self.inputs.nrows(), numbers.len()))
    }
}

impl LowRankRows for LowRankData<'_> {
    fn row_count(&self) -> usize {
        self.inputs.nrows()
    }

    fn rows_in(&self, rows: Range<usize>) -> Result<RowBlock<'_>, LinearError> {
        self.sized()?;
        Ok(RowBlock::View(self.slice(rows)))
    }

    fn rows_at(&self, rows: &[usize]) -> Result<RowBlock<'_>, LinearError> {
        self.sized()?;
        Ok(RowBlock::Copy(self.owned(rows)))
    }
}

/// Refuses rows that these features and this likelihood cannot have, in one pass over them.
pub(super) fn check(
    data: &dyn LowRankRows,
    features: &dyn LearnedFeatures,
    likelihood: &dyn Likelihood,
) -> Result<(), LinearError> {
    if data.row_count() == 0 {
        return Err(LinearError::Empty { what: "rows" });
    }
    for rows in pieces(data.row_count(), features.rows_at_once()) {
        let (start, count) = (rows.start, rows.len());
        let block = data.rows_in(rows)?;
        let LowRankData { inputs, observed } = block.data();
        let ObservedRows { targets, noise, weights, offsets } = observed;
        same("columns of the inputs", features.inputs(), inputs.ncols())?;
        same("rows of the targets", count, targets.nrows())?;
        for numbers in [noise, weights, offsets].into_iter().flatten() {
            same("numbers of rows", count, numbers.len())?;
        }
        finite_matrix("an input", inputs).map_err(|error| match error {
            LinearError::NotFinite { what, index, value } => {
                LinearError::NotFinite { what, index: start * inputs.ncols() + index, value }
            }
            other => other,
        })?;
        let mut y = vec![0.0; targets.ncols()];
        for i in 0..count {
            y.iter_mut().zip(targets.row(i).iter()).for_each(|(y, t)| *y = *t);
            likelihood.check_target(&y).map_err(|error| LinearError::Target { example: start + i, error })?;
        }
    }
    Ok(())
}
