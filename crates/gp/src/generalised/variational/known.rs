//! What does not change of rows while a variational kernel is trained.

use super::super::reference::ReferenceProcess;
use faer::{Mat, MatRef};
use posterior_kernels::{diagonal, gram};
use serde::{Deserialize, Serialize};

/// What features of inducing points are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Coordinates {
    /// Uncorrelated under the prior, `L⁻¹ k(Z, x)`: as well conditioned as the data
    #[default]
    Whitened,
    /// `k(Z, x)` itself, as published
    Kernel,
}

/// Rows as variational kernels see them.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// `φ`, M x b.
    pub features: Mat<f64>,
    /// `k(x, x)` (b).
    pub prior: Vec<f64>,
    /// `q(x, x)` (b), not below zero.
    pub residual: Vec<f64>,
    /// Entries of it that rounding had made negative.
    pub clipped: usize,
}

impl Known {
    /// Of the rows of x (b x D). Cost `b M²` flops and the kernel matrix, `b M` numbers.
    pub fn of(reference: &ReferenceProcess, coordinates: Coordinates, x: MatRef<'_, f64>) -> Self {
        let (kernel, z) = (reference.kernel(), reference.inducing());
        let whitened = reference.whitening().features(kernel, z, x);
        let prior = diagonal(kernel, x);
        let mut clipped = 0;
        let residual = prior.iter().enumerate().map(|(i, k)| {
            let left = k - whitened.col(i).squared_norm_l2();
            clipped += usize::from(left < 0.0);
            // Not `f64::max`, which would turn NaN into certainty.
            if left < 0.0 { 0.0 } else { left }
        });
        let residual = residual.collect();
        let features = match coordinates {
            Coordinates::Whitened => whitened,
            Coordinates::Kernel => posterior_kernels::cross(kernel, z, x),
        };
        Self { features, prior, residual, clipped }
    }

    /// Numbers that are kept of a row.
    pub fn numbers_of_row(rank: usize) -> usize {
        rank + 2
    }

    /// Some of the rows.
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut features = Mat::zeros(self.features.nrows(), rows.len());
        for (j, &i) in rows.iter().enumerate() {
            features.col_as_slice_mut(j).copy_from_slice(self.features.col_as_slice(i));
        }
        let of = |from: &[f64]| rows.iter().map(|&i| from[i]).collect();
        Self { features, prior: of(&self.prior), residual: of(&self.residual), clipped: 0 }
    }
}

/// `q(x, x')` of all pairs of rows, b x b. Cost `b² M` and the kernel's matrices.
pub(in crate::generalised) fn residual_covariance(
    reference: &ReferenceProcess,
    x: MatRef<'_, f64>,
) -> Mat<f64> {
    let whitened = reference.whitening().features(reference.kernel(), reference.inducing(), x);
    gram(reference.kernel(), x) - whitened.transpose() * &whitened
}
