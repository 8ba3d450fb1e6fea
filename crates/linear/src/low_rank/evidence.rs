//! The exact evidence of a model of m features in one pass over its rows, and its gradient in a second one.
//!
//! With noise variances s, residuals `r = y - prior mean`, scaled features `V = A diag(s)^{-1/2}` (m x n), `W = I + V Vᵀ` and the prior variances v of the functions, for each of T targets
//!
//! ```text
//! log p(y) = -½ Σ log 2πs - ½ log det W - ½ Σ r²/s + ½ pᵀ W⁻¹ p        p = V diag(s)^{-1/2} r
//! penalty  = -½ λ Σ (vᵢ - aᵢᵀaᵢ)/sᵢ                                    λ: the trace weight
//! ```
//!
//! By Jensen's inequality the sum with λ = 1 is below the evidence of any process whose covariance is that of the features plus one with the diagonal `v - diag(AᵀA)`: the collapsed bound of inducing points, and the variance
//! correction of learned features. Weights are `N(W⁻¹p, W⁻¹)`. Gradients follow from two adjoints, `Γ = ½ T (λ I - W⁻¹) - ½ C Cᵀ` of `Ψ = V Vᵀ` and `C = W⁻¹ P` of P; that of the features of row i is
//! `(2 Γ vᵢ + C r̃ᵢ) / √sᵢ = (T (λ vᵢ - W⁻¹ vᵢ) + C (r̃ᵢ - Cᵀvᵢ)) / √sᵢ`, whose outer product with them sums to `2 Γ Ψ + C Pᵀ`. Blocks of rows take the second form, with `W⁻¹ = L⁻ᵀ L⁻¹` of the factor L in two products: a leverage
//! `vᵢᵀ W⁻¹ vᵢ = |L⁻¹vᵢ|²` is below 1 however large W is, while in W⁻¹ itself it has lost as many digits as W has.
//!
//! Ψ squares what the features' condition is; where its rounding swallows the identity in W, [`TriangularSums`](super::TriangularSums) go without.
//!
//! Nothing of the size of the data is kept: rows pass in blocks, `2 n m²` flops for the value and `4 n m²` more for the gradient.
//!
//! Sources: spec `deep_kernel_decomposition`, sections 3 and 6; Titsias (2009), *Variational learning of inducing variables in sparse Gaussian processes*.

use super::WeightDistribution;
use crate::LinearError;
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, Mat, MatRef};
use posterior_linalg::cholesky::{Cholesky, CholeskyError, JitterPolicy};
use posterior_linalg::dense::{multiply_into, parallelism, qr};
use posterior_linalg::symmetric::mirror_lower;
use posterior_linalg::triangular::{add_lower_product, inverse_of_lower};

/// A block of rows, ready to be summed: divided by the roots of their noise variances.
#[derive(Clone, Debug)]
pub struct ScaledRows {
    /// V of these rows, m x b.
    pub features: Mat<f64>,
    /// `r / √s`, b x T.
    pub residuals: Mat<f64>,
    /// s, b numbers.
    pub noise: Vec<f64>,
    /// v, b numbers.
    pub variances: Vec<f64>,
}

impl ScaledRows {
    /// Features (m x b), residuals (b x T), noise variances and prior variances (b each).
    ///
    /// # Panics
    /// When sizes differ.
    pub fn new(
        mut features: Mat<f64>,
        mut residuals: Mat<f64>,
        noise: Vec<f64>,
        variances: Vec<f64>,
    ) -> Self {
        let b = features.ncols();
        assert_eq!((residuals.nrows(), noise.len(), variances.len()), (b, b, b), "one of each for every row");
        for (i, s) in noise.iter().enumerate() {
            let scale = 1.0 / s.sqrt();
            features.col_as_slice_mut(i).iter_mut().for_each(|v| *v *= scale);
            residuals.row_mut(i).iter_mut().for_each(|r| *r *= scale);
        }
        Self { features, residuals, noise, variances }
    }
}

/// Sums over rows: filled by [`Self::add`], or by who has them for less.
#[derive(Clone, Debug)]
pub struct EvidenceSums {
    /// Ψ, m x m; its lower triangle.
    pub psi: Mat<f64>,
    /// P, m x T.
    pub projected: Mat<f64>,
    /// `Σ log 2πs`.
    pub log_noise: f64,
    /// `Σ v/s`.
    pub variances: f64,
    /// `Σ r²/s`, over all targets.
    pub squares: f64,
    /// How many.
    pub rows: usize,
}

impl EvidenceSums {
    /// Of no rows, for m features and T targets.
    pub fn new(rank: usize, targets: usize) -> Self {
        let (psi, projected) = (Mat::zeros(rank, rank), Mat::zeros(rank, targets));
        Self { psi, projected, log_noise: 0.0, variances: 0.0, squares: 0.0, rows: 0 }
    }

    /// Adds rows. Cost `b m²` flops.
    pub fn add(&mut self, rows: &ScaledRows) {
        let v = rows.features.as_ref();
        add_lower_product(&mut self.psi, (v, Rectangular), (v.transpose(), Rectangular), 1.0);
        multiply_into(self.projected.as_mut(), Accum::Add, v, rows.residuals.as_ref(), 1.0);
        self.log_noise += rows.noise.iter().map(|s| (2.0 * std::f64::consts::PI * s).ln()).sum::<f64>();
        self.variances += rows.variances.iter().zip(&rows.noise).map(|(v, s)| v / s).sum::<f64>();
        self.squares += rows.residuals.squared_norm_l2();
        self.rows += rows.noise.len();
    }

    /// The evidence with its penalty of weight λ. Cost `m³/3` flops.
    ///
    /// # Errors
    /// When W cannot be factored under the policy: its condition is about the largest eigenvalue of Ψ. [`TriangularSums`](super::TriangularSums) do without Ψ.
    pub fn solve(mut self, trace_weight: f64, policy: JitterPolicy) -> Result<SolvedEvidence, CholeskyError> {
        let (m, targets) = (self.psi.nrows(), self.projected.ncols());
        mirror_lower(self.psi.as_mut());
        let psi = &self.psi;
        let w = Cholesky::factor_with(Mat::zeros(m, m), policy, |mut out| {
            out.copy_from(psi);
            (0..m).for_each(|i| out[(i, i)] += 1.0);
        })?;
        let mut weights = self.projected.clone();
        w.solve_factor_in_place(weights.as_mut());
        let explained = weights.squared_norm_l2();
        w.solve_factor_transpose_in_place(weights.as_mut());
        let captured: f64 = (0..m).map(|i| self.psi[(i, i)]).sum();
        let penalty = trace_weight * (self.variances - captured);
        let of_each = self.log_noise + w.log_determinant() + penalty;
        let value = -0.5 * (targets as f64 * of_each + self.squares - explained);
        Ok(SolvedEvidence {
            psi: self.psi,
            w,
            projected: self.projected,
            weights,
            value,
            trace_weight,
            log_noise: self.log_noise,
            by_triangles: false,
        })
    }
}

/// The evidence at some features and noise.
#[derive(Clone, Debug)]
pub struct SolvedEvidence {
    /// Ψ, both triangles.
    pub(super) psi: Mat<f64>,
    pub(super) w: Cholesky,
    pub(super) projected: Mat<f64>,
    pub(super) weights: Mat<f64>,
    /// Evidence and penalty, in nats, summed over targets.
    pub value: f64,
    pub(super) trace_weight: f64,
    pub(super) log_noise: f64,
    pub(super) by_triangles: bool,
}

/// The least that the diagonal of a triangle (of Ψ: its square) may be of what it is left of, the length of its column (the diagonal entry): it is a difference of numbers of that size, and has three digits here.
pub(super) const LEAST_SHARE: f64 = 1024.0 * f64::EPSILON;

impl SolvedEvidence {
    /// `C = W⁻¹P`, m x T: the posterior means of the weights.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.weights.as_ref()
    }

    /// The factor of W, with what was added to its diagonal.
    pub fn factor(&self) -> &Cholesky {
        &self.w
    }

    /// Whether the factor is that of [`TriangularSums`](super::TriangularSums).
    pub fn by_triangles(&self) -> bool {
        self.by_triangles
    }

    /// Whether the factor is one of W: nothing was added to its diagonal, and the identity in W, without which some pivots were 0, was not lost in the rounding of Ψ. Always by triangles, which are checked before.
    pub fn is_sound(&self) -> bool {
        let l = self.w.factor();
        let entry = |i: usize| l.row(i).subcols(0, i + 1).squared_norm_l2();
        let kept = |i: usize| l[(i, i)].powi(2) >= LEAST_SHARE * entry(i);
        self.by_triangles || self.w.info().jitter == 0.0 && (0..l.nrows()).all(kept)
    }

    /// The posterior of the weights, `N(C, W⁻¹)` with one root for all targets, from the factor that the evidence has. Cost about `3m³` flops.
    ///
    /// # Errors
    /// [`LinearError::NotFinite`] when the factor is so ill-conditioned that its inverse overflows.
    pub fn posterior(&self) -> Result<WeightDistribution, LinearError> {
        WeightDistribution::new(self.weights.clone(), vec![root_of_covariance(self.w.factor())])
    }

    /// The value without its cancellation of numbers of the size of `Σ r²/s`, given the sum over rows of `‖r̃ - VᵀC‖²` that a second pass has ([`EvidenceGradient::block`]); without penalty.
    pub fn stable_value(&self, residual_squares: f64) -> f64 {
        let targets = self.weights.ncols() as f64;
        let fit = residual_squares + self.weights.squared_norm_l2();
        -0.5 * (targets * (self.log_noise + self.w.log_determinant()) + fit)
    }

    /// What the second pass needs. Cost `4m³/3` flops.
    pub fn gradient(self) -> EvidenceGradient {
        let Self { psi, w, projected, weights, trace_weight, .. } = self;
        let (m, targets) = (psi.nrows(), weights.ncols() as f64);
        let c = weights.as_ref();
        let inverse = inverse_of_lower(w.factor());
        let mut gamma = Mat::zeros(m, m);
        let squared = (inverse.transpose(), TriangularUpper);
        add_lower_product(&mut gamma, squared, (inverse.as_ref(), TriangularLower), -0.5 * targets);
        (0..m).for_each(|j| gamma[(j, j)] += 0.5 * targets * trace_weight);
        add_lower_product(&mut gamma, (c, Rectangular), (c.transpose(), Rectangular), -0.5);
        mirror_lower(gamma.as_mut());
        EvidenceGradient { psi, inverse, gamma, projected, weights, trace_weight }
    }
}

/// The lower-triangular root R of `(L Lᵀ)⁻¹` with a positive diagonal: `Lᵀ = Q M` with a lower-triangular M by reflections, from the last column to the first, and `R = M⁻¹`. Unlike a second factorisation of `L Lᵀ` from its
/// other end it cannot fail where the first did not, and squares nothing.
fn root_of_covariance(l: MatRef<'_, f64>) -> Mat<f64> {
    let m = l.nrows();
    // Rows and columns in reverse order make an upper triangle a lower one, and back.
    let reversed = Mat::from_fn(m, m, |i, j| if i >= j { l[(m - 1 - j, m - 1 - i)] } else { 0.0 });
    let triangle = qr(reversed.as_ref()).1;
    let lower = Mat::from_fn(m, m, |i, j| {
        let row = m - 1 - i;
        if i >= j { triangle[(row, row)].signum() * triangle[(row, m - 1 - j)] } else { 0.0 }
    });
    inverse_of_lower(lower.as_ref())
}

/// Γ, C, and the inverse of the factor of W.
#[derive(Clone, Debug)]
pub struct EvidenceGradient {
    psi: Mat<f64>,
    /// `L⁻¹`.
    inverse: Mat<f64>,
    gamma: Mat<f64>,
    projected: Mat<f64>,
    weights: Mat<f64>,
    trace_weight: f64,
}

/// The gradient of evidence and penalty in what a block of rows was made of.
#[derive(Clone, Debug)]
pub struct BlockGradient {
    /// In the features, m x b.
    pub features: Mat<f64>,
    /// In the noise variances, b numbers.
    pub noise: Vec<f64>,
    /// In the prior variances, b numbers.
    pub variances: Vec<f64>,
    /// In the prior means, b x T.
    pub means: Mat<f64>,
    /// `‖r̃ - VᵀC‖²` of these rows.
    pub residual_squares: f64,
}

impl EvidenceGradient {
    /// Γ, the slope in Ψ, both triangles.
    pub fn of_psi(&self) -> MatRef<'_, f64> {
        self.gamma.as_ref()
    }

    /// `C = W⁻¹P`, the slope in P.
    pub fn of_projected(&self) -> MatRef<'_, f64> {
        self.weights.as_ref()
    }

    /// `2ΓΨ + C Pᵀ`: the outer product of all rows' feature gradients with their features; its lower triangle. Cost `m³` flops.
    pub fn outer(&self) -> Mat<f64> {
        let (psi, m) = (self.psi.as_ref(), self.psi.nrows());
        let mut outer = Mat::zeros(m, m);
        add_lower_product(&mut outer, (self.gamma.as_ref(), Rectangular), (psi, Rectangular), 2.0);
        let (c, p) = (self.weights.as_ref(), self.projected.transpose());
        add_lower_product(&mut outer, (c, Rectangular), (p, Rectangular), 1.0);
        outer
    }

    /// Of rows that were summed. Cost `2 b m²` flops.
    pub fn block(&self, rows: &ScaledRows) -> BlockGradient {
        let (b, c, v) = (rows.noise.len(), self.weights.as_ref(), rows.features.as_ref());
        let targets = c.ncols() as f64;
        // R̃ - VᵀC, b x T.
        let mut left = rows.residuals.clone();
        multiply_into(left.as_mut(), Accum::Add, v.transpose(), c, -1.0);
        let whitened = triangular_times((self.inverse.as_ref(), TriangularLower), v, 1.0);
        let upper = (self.inverse.transpose(), TriangularUpper);
        let mut features = triangular_times(upper, whitened.as_ref(), -targets);
        multiply_into(features.as_mut(), Accum::Add, c, left.transpose(), 1.0);
        let mut means = Mat::zeros(b, c.ncols());
        let (mut noise, mut variances) = (Vec::with_capacity(b), Vec::with_capacity(b));
        let mut residual_squares = 0.0;
        for (i, &s) in rows.noise.iter().enumerate() {
            let (leverage, own) = (whitened.col(i).squared_norm_l2(), v.col(i).squared_norm_l2());
            let squares = left.row(i).squared_norm_l2();
            residual_squares += squares;
            let penalty = self.trace_weight * (rows.variances[i] / s - own);
            noise.push(0.5 * (targets * (leverage - 1.0 + penalty) + squares) / s);
            variances.push(-0.5 * targets * self.trace_weight / s);
            let scale = 1.0 / s.sqrt();
            (0..c.ncols()).for_each(|t| means[(i, t)] = scale * left[(i, t)]);
            let pairs = features.col_as_slice_mut(i).iter_mut().zip(rows.features.col_as_slice(i));
            pairs.for_each(|(a, v)| *a = scale * (*a + targets * self.trace_weight * v));
        }
        BlockGradient { features, noise, variances, means, residual_squares }
    }
}

/// `scale · A B` for a triangular A (m x m) and B of m x b.
fn triangular_times(a: (MatRef<'_, f64>, BlockStructure), b: MatRef<'_, f64>, scale: f64) -> Mat<f64> {
    let mut out = Mat::zeros(b.nrows(), b.ncols());
    let par = parallelism(b.nrows(), b.ncols());
    matmul(out.as_mut(), Rectangular, Accum::Replace, a.0, a.1, b, Rectangular, scale, par);
    out
}
