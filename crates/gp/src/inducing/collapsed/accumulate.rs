//! One pass over the data in blocks of rows: what of them the bound and the posterior need.

use super::CollapsedGp;
use crate::inducing::distribution::add_lower_product;
use crate::inducing::plan::block_rows;
use crate::inducing::whitening::Whitening;
use crate::{GpError, Observations};
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Accum, Mat};
use posterior_kernels::diagonal;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::multiply_into;
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::tiles::pieces;
use std::ops::Range;

/// Sums over all rows.
pub(super) struct Accumulated {
    pub(super) whitening: Whitening,
    /// `Ψ = V Vᵀ`, m x m, both triangles.
    pub(super) psi: Mat<f64>,
    /// `W = I + Ψ`, factored.
    pub(super) w: Cholesky,
    /// `P = V diag(s)^{-1/2} r`, m x T.
    pub(super) projected: Mat<f64>,
    /// `C = W⁻¹ P`, m x T: the mean of the whitened inducing values.
    pub(super) weights: Mat<f64>,
    /// The bound, summed over targets.
    pub(super) bound: f64,
}

/// A block of rows.
pub(super) struct Block {
    pub(super) rows: Range<usize>,
    /// V of these rows, m x b.
    pub(super) scaled: Mat<f64>,
    /// `r / √s`, b x T.
    pub(super) residuals: Mat<f64>,
    /// s, b numbers.
    pub(super) noise: Vec<f64>,
    /// `k(x_i, x_i)`, b numbers.
    pub(super) variances: Vec<f64>,
}

impl CollapsedGp {
    pub(super) fn blocks(&self, data: &Observations) -> impl Iterator<Item = Range<usize>> + use<> {
        pieces(data.rows(), block_rows(self.inducing.nrows()))
    }

    pub(super) fn block(&self, data: &Observations, whitening: &Whitening, rows: Range<usize>) -> Block {
        let x = data.inputs().subrows(rows.start, rows.len());
        let noise: Vec<f64> = rows
            .clone()
            .map(|i| self.likelihood.noise_variance() + data.noise_variances().map_or(0.0, |v| v[i]))
            .collect();
        let mut scaled = whitening.features(self.kernel(), self.inducing(), x);
        let mut residuals = data.targets().subrows(rows.start, rows.len()) - self.mean.evaluate(x);
        for (i, s) in noise.iter().enumerate() {
            let scale = 1.0 / s.sqrt();
            scaled.col_as_slice_mut(i).iter_mut().for_each(|v| *v *= scale);
            residuals.row_mut(i).iter_mut().for_each(|r| *r *= scale);
        }
        Block { variances: diagonal(self.kernel(), x), rows, scaled, residuals, noise }
    }

    /// `2 n m²` flops besides the kernel.
    pub(super) fn accumulate(&self, data: &Observations) -> Result<Accumulated, GpError> {
        self.check_widths(data)?;
        let (m, targets) = (self.inducing.nrows(), data.targets().ncols());
        let whitening = Whitening::new(self.kernel(), self.inducing(), self.jitter, self.policy)?;
        let mut psi = Mat::zeros(m, m);
        let mut projected = Mat::zeros(m, targets);
        // Σ log 2πs, Σ k/s, Σ r²/s.
        let (mut log_noise, mut variances, mut squares) = (0.0, 0.0, 0.0);
        for rows in self.blocks(data) {
            let block = self.block(data, &whitening, rows);
            let v = block.scaled.as_ref();
            add_lower_product(&mut psi, (v, Rectangular), (v.transpose(), Rectangular), 1.0);
            multiply_into(projected.as_mut(), Accum::Add, v, block.residuals.as_ref(), 1.0);
            log_noise += block.noise.iter().map(|s| (2.0 * std::f64::consts::PI * s).ln()).sum::<f64>();
            variances += block.variances.iter().zip(&block.noise).map(|(k, s)| k / s).sum::<f64>();
            squares += block.residuals.squared_norm_l2();
        }
        mirror_lower(psi.as_mut());
        let w = Cholesky::factor_with(Mat::zeros(m, m), JitterPolicy::NONE, |mut out| {
            out.copy_from(&psi);
            for i in 0..m {
                out[(i, i)] += 1.0;
            }
        })?;
        let mut white = projected.clone();
        w.solve_factor_in_place(white.as_mut());
        let explained = white.squared_norm_l2();
        w.solve_factor_transpose_in_place(white.as_mut());
        let captured: f64 = (0..m).map(|i| psi[(i, i)]).sum();
        let of_each = log_noise + w.log_determinant() + variances - captured;
        let bound = -0.5 * (targets as f64 * of_each + squares - explained);
        Ok(Accumulated { whitening, psi, w, projected, weights: white, bound })
    }
}
