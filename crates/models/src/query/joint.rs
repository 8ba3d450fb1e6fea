//! How predictions of a process depend on each other: the covariance of the noiseless function at some rows.

use super::process::table;
use crate::{ModelData, ModelError, Process, Question, VarianceMethod};
use posterior_data::{ArrayValues, NumericArray};
use posterior_notes::fixes::{LIMIT, MEMORY, SAMPLES_TO_FILE};

/// The error of a model that has no such covariance.
pub(crate) fn no_joint() -> ModelError {
    ModelError::Usage(format!(
        "--joint is the covariance of a function under Gaussian noise; of this model's functions draw some ({SAMPLES_TO_FILE})"
    ))
}

impl Process<'_> {
    /// Refuses variances that a covariance does not have.
    pub(crate) fn check_joint(&self, question: &Question) -> Result<(), ModelError> {
        let other = !matches!(question.variances, None | Some(VarianceMethod::Samples));
        if question.joint && other && self.predictor.stored_samples().is_some() {
            let problem = "--joint of this model is the covariance of its samples, which is not that of --variances exact or lanczos: leave one out";
            return Err(ModelError::Usage(problem.into()));
        }
        Ok(())
    }

    /// The covariance of the noiseless function at all rows that have a prediction (m x m), in squared units of the target: symmetric, its diagonal the squares of the latent standard deviations. Of learned features it has the
    /// part that is independent from row to row on its diagonal; of solvers it is that of the samples, of their number's rank.
    ///
    /// # Errors
    /// [`ModelError::Request`] before anything is computed where it takes more than the question's memory; otherwise as [`Process::predict`].
    pub(crate) fn joint_covariance(
        &self,
        data: &ModelData,
        question: &Question,
    ) -> Result<NumericArray, ModelError> {
        let (table, rows) = table(data)?;
        let needed = self.predictor.joint_cost(rows.len()).bytes;
        if needed > question.memory {
            return Err(ModelError::Request(format!(
                "the covariance of {} rows (--joint) needs {:.1} MB, above the limit of {:.1} MB: ask for fewer rows ({LIMIT}), or allow more memory ({MEMORY})",
                rows.len(),
                needed as f64 / 1e6,
                question.memory as f64 / 1e6
            )));
        }
        let extracted = self.extract(table, rows, false)?;
        let x = self.inputs.standard(&extracted);
        let found = self.predictor.joint(x.as_ref());
        let found = found.ok_or_else(no_joint)??.covariance;
        let m = found.nrows();
        let square = self.inputs.standardisation.variance_back(1.0);
        // Rounding leaves a matrix that is not quite symmetric, and variances that may be below 0.
        let entry = |i: usize, j: usize| match i == j {
            true => square * found[(i, i)].max(0.0),
            false => square * 0.5 * (found[(i, j)] + found[(j, i)]),
        };
        let values = (0..m * m).map(|k| entry(k / m, k % m)).collect();
        Ok(NumericArray::new(vec![m, m], ArrayValues::F64(values))?)
    }
}
