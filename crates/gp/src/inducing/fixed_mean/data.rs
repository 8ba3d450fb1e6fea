//! Training rows, a few at a time.

use super::{FixedMeanError, FixedMeanModel};
use faer::MatRef;
use posterior_kernels::LearnedBlockKernel;

/// All training rows: points by number, the given mean and the targets.
pub struct FixedMeanData<'a, P> {
    /// The points of some rows, in the order of their numbers.
    pub points: &'a (dyn Fn(&[usize]) -> P + 'a),
    /// `g(x_n)` of all rows, n x C.
    pub means: MatRef<'a, f64>,
    /// Targets, n x width.
    pub targets: MatRef<'a, f64>,
}

/// Rows that the loss is estimated from.
pub struct Batch<'a, P> {
    /// r points.
    pub points: &'a P,
    /// `g` there, row after row (r x C).
    pub means: &'a [f64],
    /// Targets, row after row (r x width).
    pub targets: &'a [f64],
    /// Rows of the whole data, n: the batch's sum is multiplied by n/r.
    pub rows: usize,
}

// By hand: derived, both would want points that are copied.
impl<P> Clone for FixedMeanData<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for FixedMeanData<'_, P> {}

impl<P> Clone for Batch<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Batch<'_, P> {}

impl<P> FixedMeanData<'_, P> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.means.nrows()
    }

    /// Points, means and targets of some rows; means and targets row after row.
    pub fn gather(&self, rows: &[usize]) -> (P, Vec<f64>, Vec<f64>) {
        let by_rows = |from: MatRef<'_, f64>| -> Vec<f64> {
            rows.iter().flat_map(|&i| (0..from.ncols()).map(move |j| from[(i, j)])).collect()
        };
        ((self.points)(rows), by_rows(self.means), by_rows(self.targets))
    }

    /// Whether the rows fit a model; looks at each once.
    ///
    /// # Errors
    /// Sizes, numbers that are none, targets that the likelihood cannot produce, more inducing points than rows.
    pub fn check<K: LearnedBlockKernel<Points = P>>(
        &self,
        model: &FixedMeanModel<K>,
    ) -> Result<(), FixedMeanError> {
        FixedMeanError::same("columns of the given mean", model.outputs(), self.means.ncols())?;
        FixedMeanError::same("rows of the targets", self.rows(), self.targets.nrows())?;
        let width = model.likelihood.target_width();
        FixedMeanError::same("columns of the targets", width, self.targets.ncols())?;
        if model.inducing() > self.rows() {
            return Err(FixedMeanError::Option {
                option: "inducing_points",
                value: format!("{} with {} training rows", model.inducing(), self.rows()),
                remedy: "give no more inducing points than there are rows",
            });
        }
        let mut target = vec![0.0; width];
        for row in 0..self.rows() {
            if (0..self.means.ncols()).any(|c| !self.means[(row, c)].is_finite()) {
                return Err(FixedMeanError::NotFinite { what: "the given mean", row });
            }
            target.iter_mut().enumerate().for_each(|(j, t)| *t = self.targets[(row, j)]);
            model.likelihood.check_target(&target)?;
        }
        Ok(())
    }
}
