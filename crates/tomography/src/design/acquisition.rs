//! **What an angle is worth**, from the covariance `Σ` of its measurements (without the noise, n x n), or from m draws of them (`Σ ≈ Y Yᵀ / m`).
//!
//! | | score | |
//! |---|---|---|
//! | [`Acquisition::Information`] | `½ log det (I + Σ / σ²)` | EIG: the mutual information of the image and the measurements, in nats; D-optimal |
//! | [`Acquisition::DiagonalInformation`] | `½ Σ_l log(1 + Σ_ll / σ²)` | the same without correlations: never less (Hadamard's inequality) |
//! | [`Acquisition::Variance`] | `tr Σ` | ESE: the expected squared error of predicting the measurements, less the noise; A-optimal |
//!
//! Source: Antorán (2024), equations 7.15 to 7.17, with the factor ½ and the size of the identity set right (fix F8) and with constants left out in which angles do not differ. For n = 1 all three rank
//! alike. From samples, the variance is unbiased; the two logarithms are too low on average, by `n (n + 1) / 4m` nats at most to first order for the information.

use faer::Accum;
use faer::linalg::matmul::matmul;
use faer::{Mat, MatRef, Par};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use serde::{Deserialize, Serialize};

/// How angles are compared; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Acquisition {
    /// Sum of the variances of what it would measure (ESE)
    ///
    /// The expected squared error.
    Variance,
    /// Information about the picture (EIG)
    ///
    /// The expected information gain.
    Information,
    /// The same without correlations of detector elements
    ///
    /// The information gain of detector elements that were independent.
    DiagonalInformation,
}

impl Acquisition {
    /// Of a covariance (n x n; the lower triangle is read) and a noise variance. Cost: `n³/3` flops for the information, n otherwise.
    ///
    /// # Errors
    /// [`CholeskyError`] when the covariance is not semidefinite, or not finite.
    pub fn of_covariance(self, covariance: MatRef<'_, f64>, noise: f64) -> Result<f64, CholeskyError> {
        let n = covariance.nrows();
        Ok(match self {
            Self::Variance => (0..n).map(|i| covariance[(i, i)]).sum(),
            Self::DiagonalInformation => (0..n).map(|i| 0.5 * (covariance[(i, i)] / noise).ln_1p()).sum(),
            Self::Information => {
                let relative = Mat::from_fn(n, n, |i, j| {
                    let entry = if i >= j { covariance[(i, j)] } else { 0.0 };
                    entry / noise + if i == j { 1.0 } else { 0.0 }
                });
                0.5 * Cholesky::of(relative.as_ref(), JitterPolicy::NONE)?.log_determinant()
            }
        })
    }

    /// Of m draws of the measurements without noise, one a column (n x m), of zero mean. Cost: `n²m` flops for the information, `nm` otherwise.
    ///
    /// # Errors
    /// As [`Self::of_covariance`].
    pub fn of_samples(self, draws: MatRef<'_, f64>, noise: f64) -> Result<f64, CholeskyError> {
        let (n, m) = draws.shape();
        let mean_square = |i: usize| draws.row(i).squared_norm_l2() / m as f64;
        Ok(match self {
            Self::Variance => draws.squared_norm_l2() / m as f64,
            Self::DiagonalInformation => (0..n).map(|i| 0.5 * (mean_square(i) / noise).ln_1p()).sum(),
            Self::Information => {
                let mut covariance = Mat::zeros(n, n);
                // Angles are shared out among threads, not one angle's product.
                matmul(
                    covariance.as_mut(),
                    Accum::Replace,
                    draws,
                    draws.transpose(),
                    1.0 / m as f64,
                    Par::Seq,
                );
                return self.of_covariance(covariance.as_ref(), noise);
            }
        })
    }
}
