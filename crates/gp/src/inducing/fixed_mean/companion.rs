//! **The companion**: an ordinary sparse process with the same kernel, inducing points and covariance but a mean of its own, `q(x) = k(x, Z) β`, `β = (K_z + ε I)⁻¹ m`, that is fitted to the same
//! targets. Alone, the kernel would be fitted to the residuals of a function that has already seen the data, and its lengthscales shrink (spec `fixed_mean_gp`, section 2).

use super::FixedMeanError;
use crate::inducing::DEFAULT_JITTER;
use faer::{Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::product;

/// The companion's mean before anything is differentiated.
pub(super) struct Companion {
    factor: Cholesky,
    /// β, M x 1.
    pub(super) weights: Mat<f64>,
    /// `½ mᵀ β`.
    pub(super) penalty: f64,
}

impl Companion {
    /// `ε` is [`DEFAULT_JITTER`] times the mean of the diagonal.
    pub(super) fn new(gram: &Mat<f64>, mean: &[f64]) -> Result<Self, FixedMeanError> {
        let m = gram.nrows();
        let ridge = DEFAULT_JITTER * trace(gram) / m as f64;
        let mut matrix = gram.clone();
        (0..m).for_each(|i| matrix[(i, i)] += ridge);
        let factor = Cholesky::of(matrix.as_ref(), JitterPolicy::default())?;
        let weights = factor.solve(MatRef::from_column_major_slice(mean, m, 1));
        let penalty = 0.5 * (0..m).map(|i| mean[i] * weights[(i, 0)]).sum::<f64>();
        Ok(Self { factor, weights, penalty })
    }

    /// What was added to the diagonal beyond ε, relative to its mean.
    pub(super) fn jitter(&self, gram: &Mat<f64>) -> f64 {
        self.factor.info().jitter * gram.nrows() as f64 / trace(gram)
    }

    /// The mean of a batch from `k(Z, x)` (M x rC), row after row.
    pub(super) fn means(&self, cross: &Mat<f64>) -> Vec<f64> {
        product(cross.transpose(), self.weights.as_ref()).col_as_slice(0).to_vec()
    }

    /// Pulls slopes in the batch's means back: adds to the adjoints of `K_z` (both triangles) and of `k(Z, x)`, and returns the gradient in m, that of the penalty included.
    pub(super) fn pullback(
        &self,
        cross: &Mat<f64>,
        slopes: &[f64],
        toward_gram: &mut Mat<f64>,
        toward_cross: &mut Mat<f64>,
    ) -> Vec<f64> {
        let m = self.weights.nrows();
        let slopes = MatRef::from_column_major_slice(slopes, slopes.len(), 1);
        let back = self.factor.solve(product(cross.as_ref(), slopes).as_ref());
        for j in 0..cross.ncols() {
            let slope = slopes[(j, 0)];
            let column = toward_cross.col_as_slice_mut(j).iter_mut();
            column.zip(self.weights.col_as_slice(0)).for_each(|(t, w)| *t += slope * w);
        }
        // β moves with -K⁻¹ dK β; the penalty with -½ βᵀ dK β.
        let (t, b) = (back.col_as_slice(0), self.weights.col_as_slice(0));
        let mut trace = 0.0;
        for j in 0..m {
            for i in 0..m {
                toward_gram[(i, j)] -= 0.5 * (t[i] * b[j] + b[i] * t[j] + b[i] * b[j]);
            }
            trace -= t[j] * b[j] + 0.5 * b[j] * b[j];
        }
        // ε grows with the mean of the diagonal.
        (0..m).for_each(|i| toward_gram[(i, i)] += DEFAULT_JITTER / m as f64 * trace);
        (0..m).map(|i| t[i] + b[i]).collect()
    }
}

fn trace(gram: &Mat<f64>) -> f64 {
    (0..gram.nrows()).map(|i| gram[(i, i)]).sum()
}
