//! All covariances `Σ_β = T_β K_{x|y} T_βᵀ`, exactly.
//!
//! With the factor L of C, the whitened cross covariances `W = L⁻¹ T K T_allᵀ` (c x R, R rows of all angles) give `Σ_β = T_β K T_βᵀ - W_βᵀ W_β`. A new angle appends rows to the factor and to W:
//!
//! ```text
//! L₂₁ᵀ = W_⋆,   L₂₂ L₂₂ᵀ = Σ_⋆ + σ² I,   W_new = L₂₂⁻¹ (T_⋆ K T_allᵀ - L₂₁ W)
//! ```
//!
//! so that neither `T_all K T_allᵀ` (R x R) nor L itself is ever there.

use super::{Acquisition, DesignError, Scanner};
use crate::measured::covariance_times;
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::multiply_into;
use posterior_linalg::operator::LinearOperator;
use posterior_linalg::parallel;
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::pieces;

/// What is known of every angle.
pub(super) struct ExactCovariances {
    /// `Σ_β`, one for each angle of the scanner.
    covariances: Vec<Mat<f64>>,
    /// The rows of W, `per_angle x R` for each angle added.
    whitened: Vec<Mat<f64>>,
}

impl ExactCovariances {
    /// Of the prior. Cost: all R rows through the root and back.
    pub(super) fn prior(scanner: &dyn Scanner, root: &dyn LinearOperator<f64>) -> Self {
        let (per_angle, mut covariances) = (scanner.per_angle(), Vec::new());
        let group = (crate::measured::BLOCK / per_angle).max(1);
        for angles in pieces(scanner.angles(), group) {
            let angles: Vec<usize> = angles.collect();
            let operator = scanner.at(&angles);
            let rows = operator.shape().0;
            let images = covariance_times(
                root,
                operator.multiply_transpose(Mat::identity(rows, rows).as_ref()).as_ref(),
            );
            let between = operator.multiply(images.as_ref());
            for index in 0..angles.len() {
                let start = index * per_angle;
                let mut own = between.submatrix(start, start, per_angle, per_angle).to_owned();
                mirror_lower(own.as_mut());
                covariances.push(own);
            }
        }
        Self { covariances, whitened: Vec::new() }
    }

    /// The mean variance of the measurements of some angles.
    pub(super) fn mean_variance(&self, angles: &[usize]) -> f64 {
        let traces: f64 = angles.iter().map(|&angle| trace(&self.covariances[angle])).sum();
        let rows: usize = angles.iter().map(|&angle| self.covariances[angle].nrows()).sum();
        traces / rows.max(1) as f64
    }

    /// Conditions on the measurements of an angle. Cost: `per_angle` products with K, `2 per_angle c R` flops.
    pub(super) fn add(
        &mut self,
        scanner: &dyn Scanner,
        root: &dyn LinearOperator<f64>,
        angle: usize,
        noise: f64,
    ) -> Result<(), DesignError> {
        let per_angle = scanner.per_angle();
        let mut own = self.covariances[angle].clone();
        (0..per_angle).for_each(|i| own[(i, i)] += noise);
        let factor = Cholesky::of(own.as_ref(), JitterPolicy::NONE)
            .map_err(|source| DesignError::Cholesky { angle, source })?;
        let unit = Mat::identity(per_angle, per_angle);
        let images = covariance_times(root, scanner.at(&[angle]).multiply_transpose(unit.as_ref()).as_ref());
        let all: Vec<usize> = (0..scanner.angles()).collect();
        let mut rows = scanner.at(&all).multiply(images.as_ref()).transpose().to_owned();
        for earlier in &self.whitened {
            let beside = earlier.as_ref().subcols(angle * per_angle, per_angle).transpose();
            multiply_into(rows.as_mut(), Accum::Add, beside, earlier.as_ref(), -1.0);
        }
        factor.solve_factor_in_place(rows.as_mut());
        parallel::chunks(&mut self.covariances, 1, 1, |angle, covariance| {
            let seen = rows.as_ref().subcols(angle * per_angle, per_angle);
            // Threads have angles of their own.
            matmul(covariance[0].as_mut(), Accum::Add, seen.transpose(), seen, -1.0, Par::Seq);
        });
        self.whitened.push(rows);
        Ok(())
    }

    /// The scores of some angles.
    pub(super) fn scores(
        &self,
        angles: &[usize],
        acquisition: Acquisition,
        noise: f64,
    ) -> Result<Vec<f64>, DesignError> {
        let score = |index: usize| {
            let angle = angles[index];
            acquisition
                .of_covariance(self.covariances[angle].as_ref(), noise)
                .map_err(|source| DesignError::Cholesky { angle, source })
        };
        parallel::map(angles.len(), 1, score).into_iter().collect()
    }
}

fn trace(matrix: &Mat<f64>) -> f64 {
    (0..matrix.nrows()).map(|i| matrix[(i, i)]).sum()
}
