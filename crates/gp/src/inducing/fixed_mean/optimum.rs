//! **The best L in closed form** where the likelihood is its quadratic approximation at the given mean: with `B_n` its curvature there and `G = Σ k_n B_n k_nᵀ`, `k_n = k(Z, x_n)`,
//! `S = K⁻¹ - (K + G)⁻¹`, which for Gaussian noise is the optimum of the lower bound (spec `valla`, sections 5 and 6.8).
//!
//! With `K = R Rᵀ` and `R⁻¹ G R⁻ᵀ = Q Λ Qᵀ`, `W = (Λ / (I + Λ))^½ Qᵀ R⁻¹` is a root of S, and `Λ^½ Qᵀ R⁻¹`, made triangular by reflections, one of `A = L Lᵀ`: nothing is subtracted.

use super::{FixedMeanData, FixedMeanError, FixedMeanModel, SparseCovariance};
use crate::inducing::DEFAULT_JITTER;
use faer::linalg::matmul::triangular::BlockStructure::Rectangular;
use faer::{Mat, MatRef, Scale};
use posterior_kernels::LearnedBlockKernel;
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::{Eigen, eigen, qr};
use posterior_linalg::symmetric::{average_with_transpose, mirror_lower};
use posterior_linalg::tiles::pieces;
use posterior_linalg::triangular::add_lower_product;
use posterior_optim::Signal;

/// What the posterior is conditioned on: `Σ k_n B_n k_nᵀ` under the kernel without its amplitude, which is so chosen afterwards.
#[derive(Clone, Debug)]
pub struct ProjectedCurvature {
    sum: Mat<f64>,
}

/// The optimum under one amplitude.
#[derive(Clone, Debug)]
pub struct ClosedForm {
    /// The posterior.
    pub covariance: SparseCovariance<f64>,
    /// The divergence from the prior.
    pub divergence: f64,
    /// `log det(I + K A)`.
    pub log_determinant: f64,
    /// What was added to the diagonal of `K_z`, relative to its mean.
    pub jitter: f64,
}

/// What a pass has summed over the first rows: another goes on from there with the same numbers, if it has the same model, data and pieces.
#[derive(Clone, Debug)]
pub struct CurvatureSoFar {
    /// Rows that are in it.
    pub rows: usize,
    /// Its lower triangle, M x M.
    pub sum: Mat<f64>,
}

impl ProjectedCurvature {
    /// One pass over the rows in pieces of `block` or as many as the kernel takes at one time, on from what an `earlier` pass over them had summed; after each the observer is shown what could be gone on from, and told all rows. Cost `n S M²` flops, S the width of the likelihood's root, and the
    /// kernel between all rows and the inducing points; memory one piece and two matrices of M x M.
    ///
    /// # Errors
    /// Rows or points that do not fit, a likelihood without curvature; `Ok(None)` when the observer stops it.
    pub fn new<K: LearnedBlockKernel>(
        model: &FixedMeanModel<K>,
        data: FixedMeanData<'_, K::Points>,
        block: usize,
        earlier: Option<CurvatureSoFar>,
        observer: &mut dyn FnMut(&CurvatureSoFar, usize) -> Signal,
    ) -> Result<Option<Self>, FixedMeanError> {
        data.check(model)?;
        model.likelihood.check_curvature()?;
        let (m, c, width) = (model.inducing(), model.outputs(), model.likelihood.root_width());
        let z = model.prepare()?;
        let (n, target_width) = (data.rows(), model.likelihood.target_width());
        let mut so_far = earlier.unwrap_or_else(|| CurvatureSoFar { rows: 0, sum: Mat::zeros(m, m) });
        FixedMeanError::same("inducing points of an earlier pass", m, so_far.sum.nrows())?;
        let rows: Vec<usize> = (0..n).collect();
        // Half as many as the kernel would take: a tile may copy them.
        for range in pieces(n, block.min(model.kernel.points_at_once(2 * width)).max(1)) {
            if range.start < so_far.rows {
                continue;
            }
            let (points, means, targets) = data.gather(&rows[range.clone()]);
            let mut directions = Mat::<f64>::zeros(range.len() * width, c);
            let mut root = vec![0.0; c * width];
            for i in 0..range.len() {
                let y = &targets[i * target_width..(i + 1) * target_width];
                model.likelihood.root(y, &means[i * c..(i + 1) * c], &mut root);
                if root.iter().any(|r| !r.is_finite()) {
                    let what = "the curvature of the likelihood";
                    return Err(FixedMeanError::NotFinite { what, row: range.start + i });
                }
                (0..c * width).for_each(|k| directions[(i * width + k % width, k / width)] = root[k]);
            }
            let along = Some(directions.as_ref());
            let x = model.kernel.prepare(&points, 0..range.len(), along).map_err(FixedMeanError::kernel)?;
            let seen = model.kernel.tile(&z, &x);
            let (left, right) = ((seen.as_ref(), Rectangular), (seen.transpose(), Rectangular));
            add_lower_product(&mut so_far.sum, left, right, 1.0);
            so_far.rows = range.end;
            if observer(&so_far, n) == Signal::Stop {
                return Ok(None);
            }
        }
        mirror_lower(so_far.sum.as_mut());
        Ok(Some(Self { sum: so_far.sum }))
    }

    /// The sum of so many times the rows: that of all rows, estimated from a share of them.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        self.sum *= Scale(factor);
        self
    }

    /// Sets L of the model (whose amplitude may have changed since the pass) to its optimum. Cost about `20 M³` flops.
    ///
    /// # Errors
    /// A prior covariance that has no factor even with jitter.
    pub fn condition<K: LearnedBlockKernel>(
        &self,
        model: &mut FixedMeanModel<K>,
    ) -> Result<ClosedForm, FixedMeanError> {
        let m = model.inducing();
        FixedMeanError::same("inducing points", self.sum.nrows(), m)?;
        let mut raised = model.gram(&model.prepare()?);
        let mean = (0..m).map(|i| raised[(i, i)]).sum::<f64>() / m as f64;
        (0..m).for_each(|i| raised[(i, i)] += DEFAULT_JITTER * mean);
        let prior = Cholesky::of(raised.as_ref(), JitterPolicy::default())?;
        // R⁻¹ G R⁻ᵀ
        let mut half = &self.sum * Scale(model.amplitude * model.amplitude);
        prior.solve_factor_in_place(half.as_mut());
        let mut white = half.transpose().to_owned();
        prior.solve_factor_in_place(white.as_mut());
        average_with_transpose(white.as_mut());
        let not_finite = |_| FixedMeanError::NotFinite { what: "the kernel", row: 0 };
        let Eigen { values, vectors } = eigen(white.as_ref()).map_err(not_finite)?;
        let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
        // R⁻ᵀ Q, whose columns are scaled into both roots.
        let mut turned = vectors;
        prior.solve_factor_transpose_in_place(turned.as_mut());
        let scaled =
            |factor: &dyn Fn(f64) -> f64| Mat::from_fn(m, m, |k, i| factor(values[k]) * turned[(i, k)]);
        let (_, upper) = qr(scaled(&|v| v.sqrt()).as_ref());
        model.root = lower(upper.as_ref());
        let whitener = scaled(&|v| (v / (1.0 + v)).sqrt());
        let log_determinant: f64 = values.iter().map(|v| v.ln_1p()).sum();
        let trace: f64 = values.iter().map(|v| v / (1.0 + v)).sum();
        Ok(ClosedForm {
            covariance: SparseCovariance::from_parts(whitener, model.amplitude)?,
            divergence: 0.5 * (log_determinant - trace),
            log_determinant,
            jitter: DEFAULT_JITTER + prior.info().jitter / mean,
        })
    }
}

/// The transpose of an upper triangle.
fn lower(upper: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(upper.nrows(), upper.ncols(), |i, j| if j <= i { upper[(j, i)] } else { 0.0 })
}
