//! `K_ZZ = L Lᵀ`, features `A = L⁻¹ k(Z, x)`, and how adjoints of A reach kernel and inducing inputs.
//!
//! Everything that inducing points can say about x is in its whitened features a(x), m numbers with prior covariance I. All bounds
//! are functions of features; this file is the only place that knows how they depend on kernel and Z.
//!
//! Let D be the adjoint of A. With `δA = L⁻¹ δK_ZX - L⁻¹ δL A` the adjoint of `K_ZX` is `L⁻ᵀ D`, and that of `K_ZZ` is
//! `-½ L⁻ᵀ S L⁻¹`, S the symmetric matrix with the lower triangle of `D Aᵀ` (the reverse of a Cholesky factorisation, Murray 2016,
//! *Differentiation of the Cholesky decomposition*, whose product `Lᵀ·` cancels here). Only the m x m matrix `D Aᵀ` has to be
//! known for all points together.

use crate::{Adjoints, Kernel, Request, cross_into, gram_lower_into, pullback, pullback_gram};
use faer::prelude::ReborrowMut;
use faer::{Mat, MatMut, MatRef};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::symmetric::{average_with_transpose, mirror_lower};
use std::ops::Range;

/// The factor of `K_ZZ` plus `relative_jitter` times the mean of its diagonal.
#[derive(Clone, Debug)]
pub struct Whitening {
    /// L.
    pub cholesky: Cholesky,
    /// Everything that was added to the diagonal, over the mean of the diagonal.
    pub relative_jitter: f64,
}

impl Whitening {
    /// Factors with `jitter` times the mean of the diagonal added, and more as `policy` allows. Cost `m³/3`.
    ///
    /// # Errors
    /// When the matrix cannot be factored under the policy.
    pub fn new(
        kernel: &dyn Kernel<f64>,
        z: MatRef<'_, f64>,
        jitter: f64,
        policy: JitterPolicy,
    ) -> Result<Self, CholeskyError> {
        let m = z.nrows();
        let mut mean_diagonal = 0.0;
        let cholesky = Cholesky::factor_with(Mat::zeros(m, m), policy, |mut out| {
            gram_lower_into(kernel, z, out.rb_mut());
            mean_diagonal = (0..m).map(|i| out[(i, i)]).sum::<f64>() / m as f64;
            for i in 0..m {
                out[(i, i)] += jitter * mean_diagonal;
            }
        })?;
        let relative_jitter = jitter + cholesky.info().jitter / mean_diagonal;
        Ok(Self { cholesky, relative_jitter })
    }

    /// Features of the rows of x, m x n. Cost `n m²` flops besides the kernel.
    pub fn features(&self, kernel: &dyn Kernel<f64>, z: MatRef<'_, f64>, x: MatRef<'_, f64>) -> Mat<f64> {
        let mut features = Mat::zeros(z.nrows(), x.nrows());
        self.features_into(kernel, z, x, features.as_mut());
        features
    }

    /// The same, written to `out` (m x n).
    pub fn features_into(
        &self,
        kernel: &dyn Kernel<f64>,
        z: MatRef<'_, f64>,
        x: MatRef<'_, f64>,
        mut out: MatMut<'_, f64>,
    ) {
        cross_into(kernel, z, x, out.rb_mut());
        self.cholesky.solve_factor_in_place(out);
    }

    /// What the adjoint of the features of x (m x n, overwritten) contributes through `k(Z, x)`: parameters, and Z as the
    /// first points. Cost `n m²` flops besides the kernel.
    pub fn pull_back_features(
        &self,
        kernel: &dyn Kernel<f64>,
        z: MatRef<'_, f64>,
        x: MatRef<'_, f64>,
        adjoint: &mut Mat<f64>,
        inducing: bool,
    ) -> Adjoints<f64> {
        self.cholesky.solve_factor_transpose_in_place(adjoint.as_mut());
        pullback(kernel, z, x, adjoint.as_ref(), Request { parameters: true, x: inducing, z: false })
    }

    /// What they contribute through `K_ZZ`, given `D Aᵀ` summed over all points (m x m, overwritten; its lower triangle is read).
    /// Cost `2m³` flops besides the kernel.
    pub fn pull_back_factor(
        &self,
        kernel: &dyn Kernel<f64>,
        z: MatRef<'_, f64>,
        mut outer: Mat<f64>,
        inducing: bool,
    ) -> Adjoints<f64> {
        let m = z.nrows();
        mirror_lower(outer.as_mut());
        self.cholesky.solve_factor_transpose_in_place(outer.as_mut());
        self.cholesky.solve_factor_transpose_in_place(outer.as_mut().transpose_mut());
        // The two solves leave rounding that is not symmetric; what they approximate is.
        average_with_transpose(outer.as_mut());
        // The jitter is a multiple of the mean of the diagonal, so the diagonal also matters through it.
        let trace: f64 = (0..m).map(|i| -0.5 * outer[(i, i)]).sum();
        let through_jitter = self.relative_jitter * trace / m as f64;
        let fill = |rows: Range<usize>, columns: Range<usize>, mut tile: MatMut<'_, f64>| {
            for (b, j) in columns.enumerate() {
                let source = &outer.col_as_slice(j)[rows.clone()];
                tile.as_mut().col_mut(b).iter_mut().zip(source).for_each(|(t, o)| *t = -0.5 * o);
                if rows.contains(&j) {
                    tile[(j - rows.start, b)] += through_jitter;
                }
            }
        };
        pullback_gram(kernel, z, &fill, Request { parameters: true, x: inducing, z: false })
    }
}
