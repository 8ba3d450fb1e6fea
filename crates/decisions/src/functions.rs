//! Functions that can be evaluated and differentiated anywhere.

use crate::DecisionError;
use faer::{Mat, MatRef};
use posterior_gp::iterative::PathwisePosterior;
use posterior_linalg::Real;

/// s functions on points of dimension D: draws from a posterior, most often.
pub trait Functions: Send + Sync {
    /// s.
    fn count(&self) -> usize;

    /// D.
    fn dimension(&self) -> usize;

    /// All functions at all points: m x s for `x` of m x D.
    ///
    /// # Errors
    /// Those of the posterior.
    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, DecisionError>;

    /// At point i, the value and the gradient of the function `which[i]` alone: m values, m x D slopes.
    ///
    /// # Errors
    /// Those of the posterior.
    fn values_and_gradients_of(
        &self,
        x: MatRef<'_, f64>,
        which: &[usize],
    ) -> Result<(Vec<f64>, Mat<f64>), DecisionError>;
}

/// The samples of a posterior's first target.
impl<T: Real> Functions for PathwisePosterior<T> {
    fn count(&self) -> usize {
        self.settings().samples
    }

    fn dimension(&self) -> usize {
        self.data().inputs().ncols()
    }

    fn values(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>, DecisionError> {
        Ok(self.samples(x, 0)?)
    }

    fn values_and_gradients_of(
        &self,
        x: MatRef<'_, f64>,
        which: &[usize],
    ) -> Result<(Vec<f64>, Mat<f64>), DecisionError> {
        Ok((self.samples_of(x, 0, which)?, self.sample_gradients(x, 0, which)?))
    }
}
