//! How predictions of a process depend on each other: the covariance of the noiseless function at some rows.

use super::asked::table;
use super::{ModelError, ProcessModel, VarianceMethod};
use crate::{ModelData, Question};
use posterior_data::{ArrayValues, NumericArray};
use posterior_gp::Posterior;

impl ProcessModel {
    /// Bytes of the covariance at so many rows: features of all rows or samples at them; prior, what is taken from it, their difference, and what becomes the file.
    pub(super) fn joint_bytes(&self, rows: usize) -> u64 {
        let m = rows as u64;
        let numbers = |counts: &[u64]| counts.iter().fold(8, |all: u64, c| all.saturating_mul(*c));
        let behind = match self.posterior.stored_samples() {
            Some(kept) => numbers(&[4, m, kept as u64]),
            None => numbers(&[3, m, self.support() as u64]),
        };
        behind.saturating_add(numbers(&[4, m, m]))
    }

    /// Operations of it.
    pub(super) fn joint_flops(&self, rows: usize) -> f64 {
        let (m, n) = (rows as f64, self.support() as f64);
        match self.posterior.stored_samples() {
            Some(kept) => 2.0 * m * kept as f64 * (n + m),
            None => n * n * m + 2.0 * n * m * m,
        }
    }

    /// Refuses variances that a covariance does not have.
    pub(super) fn check_joint(&self, question: &Question) -> Result<(), ModelError> {
        let other = !matches!(question.variances, None | Some(VarianceMethod::Samples));
        if question.joint && other && self.posterior.stored_samples().is_some() {
            let problem = "--joint of this model is the covariance of its samples, which is not that of --variances exact or lanczos: leave one out";
            return Err(ModelError::Usage(problem.into()));
        }
        Ok(())
    }

    /// The covariance of the noiseless function at all rows that have a prediction (m x m), in squared units of the target: symmetric, its diagonal the squares of the latent standard deviations. Of learned features it has the
    /// part that is independent from row to row on its diagonal; of solvers it is that of the samples, of their number's rank.
    ///
    /// # Errors
    /// [`ModelError::Request`] before anything is computed where it takes more than the question's memory; otherwise as [`ProcessModel::predict`].
    pub(super) fn joint_covariance(
        &self,
        data: &ModelData,
        question: &Question,
    ) -> Result<NumericArray, ModelError> {
        let (table, rows) = table(data)?;
        let needed = self.joint_bytes(rows.len());
        if needed > question.memory {
            return Err(ModelError::Request(format!(
                "the covariance of {} rows (--joint) needs {:.1} MB, above the limit of {:.1} MB: ask for fewer rows (--limit), or allow more memory (--memory GB)",
                rows.len(),
                needed as f64 / 1e6,
                question.memory as f64 / 1e6
            )));
        }
        let extracted = self.extract(table, rows, false)?;
        let x = self.header.standardisation.features(extracted.x.as_ref());
        let found = self.posterior.joint(x.as_ref())?.covariance;
        let m = found.nrows();
        let square = self.header.standardisation.variance_back(1.0);
        // Rounding leaves a matrix that is not quite symmetric, and variances that may be below 0.
        let entry = |i: usize, j: usize| match i == j {
            true => square * found[(i, i)].max(0.0),
            false => square * 0.5 * (found[(i, j)] + found[(j, i)]),
        };
        let values = (0..m * m).map(|k| entry(k / m, k % m)).collect();
        Ok(NumericArray::new(vec![m, m], ArrayValues::F64(values))?)
    }
}
