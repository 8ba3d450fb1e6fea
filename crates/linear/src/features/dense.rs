//! A stored feature matrix.

use super::FeatureMap;
use crate::{LinearError, check};
use faer::{Mat, MatRef};

/// The features of `n` examples as one matrix of nC x d. A batch is a list of examples by number, repeats allowed.
#[derive(Clone, Debug)]
pub struct DenseFeatures {
    matrix: Mat<f64>,
    outputs: usize,
}

impl DenseFeatures {
    /// Features of `matrix.nrows() / outputs` examples; rows are ordered example by example.
    ///
    /// # Errors
    /// [`LinearError::Empty`] without columns or outputs, [`LinearError::Shape`] when the rows are no multiple of `outputs`,
    /// [`LinearError::NotFinite`].
    pub fn new(matrix: Mat<f64>, outputs: usize) -> Result<Self, LinearError> {
        if outputs == 0 {
            return Err(LinearError::Empty { what: "outputs" });
        }
        if matrix.ncols() == 0 {
            return Err(LinearError::Empty { what: "parameters" });
        }
        let whole = matrix.nrows() / outputs * outputs;
        check::same("rows of the feature matrix, a multiple of the outputs", whole, matrix.nrows())?;
        check::finite_matrix("feature", matrix.as_ref())?;
        Ok(Self { matrix, outputs })
    }

    /// The whole matrix, nC x d.
    pub fn whole(&self) -> MatRef<'_, f64> {
        self.matrix.as_ref()
    }

    /// Number of examples stored.
    pub fn stored(&self) -> usize {
        self.matrix.nrows() / self.outputs
    }

    fn check(&self, batch: &[usize]) -> Result<(), LinearError> {
        match batch.iter().find(|&&i| i >= self.stored()) {
            Some(&i) => {
                Err(LinearError::Shape { what: "examples stored", expected: self.stored(), found: i + 1 })
            }
            None => Ok(()),
        }
    }

    /// Whether the batch is a run of neighbours, so that its rows need no gathering.
    fn run(batch: &[usize]) -> Option<usize> {
        let first = *batch.first()?;
        batch.iter().enumerate().all(|(k, &i)| i == first + k).then_some(first)
    }

    fn gather(&self, batch: &[usize]) -> Mat<f64> {
        let c = self.outputs;
        Mat::from_fn(batch.len() * c, self.matrix.ncols(), |r, j| self.matrix[(batch[r / c] * c + r % c, j)])
    }
}

impl FeatureMap for DenseFeatures {
    type Batch = [usize];

    fn dimension(&self) -> usize {
        self.matrix.ncols()
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn examples(&self, batch: &[usize]) -> usize {
        batch.len()
    }

    /// Cost `2nCdk` flops.
    fn apply(&self, batch: &[usize], weights: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the weights", self.dimension(), weights.nrows())?;
        self.check(batch)?;
        Ok(match Self::run(batch) {
            Some(first) => {
                self.matrix.as_ref().subrows(first * self.outputs, batch.len() * self.outputs) * weights
            }
            None => self.gather(batch) * weights,
        })
    }

    /// Cost `2nCdk` flops.
    fn apply_transpose(&self, batch: &[usize], u: MatRef<'_, f64>) -> Result<Mat<f64>, LinearError> {
        check::same("rows of the cotangents", batch.len() * self.outputs, u.nrows())?;
        self.check(batch)?;
        Ok(match Self::run(batch) {
            Some(first) => {
                self.matrix.as_ref().subrows(first * self.outputs, batch.len() * self.outputs).transpose() * u
            }
            None => self.gather(batch).transpose() * u,
        })
    }

    fn matrix(&self, batch: &[usize]) -> Result<Option<Mat<f64>>, LinearError> {
        self.check(batch)?;
        let entries = batch.len().saturating_mul(self.outputs).saturating_mul(self.dimension());
        Ok((entries <= super::MATRIX_ENTRIES).then(|| self.gather(batch)))
    }
}
