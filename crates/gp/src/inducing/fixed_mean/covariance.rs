//! `H = I + Lᵀ K L`, `S = L H⁻¹ Lᵀ` and the divergence, without an inverse of K.

use super::FixedMeanError;
use faer::linalg::matmul::triangular::BlockStructure::{Rectangular, TriangularLower, TriangularUpper};
use faer::linalg::matmul::triangular::matmul;
use faer::{Accum, Mat};
use posterior_linalg::cholesky::{Cholesky, JitterPolicy};
use posterior_linalg::dense::parallelism;
use posterior_linalg::triangular::symmetric_product;
use posterior_linalg::vectorised::{dispatch, dot};

/// What L makes of the prior covariance of the inducing values.
pub(super) struct Factored {
    /// W with `S = Wᵀ W`.
    pub(super) whitener: Mat<f64>,
    /// `H⁻¹ Lᵀ`.
    pub(super) shrunk: Mat<f64>,
    /// S, both triangles.
    pub(super) s: Mat<f64>,
    /// `½ log det H - ½ tr(K S)`, never negative but for rounding.
    pub(super) divergence: f64,
    /// What was added to the diagonal of H, relative to its mean: rounding in K times a large L may make it indefinite.
    pub(super) jitter: f64,
}

/// `H = U Uᵀ`, `W = U⁻¹ Lᵀ`: `U` is at least 1 on its diagonal, so that K needs no jitter. With `trace`s by entries, `tr(K S)` keeps its relative accuracy where L is small. Cost about `5 M³` flops.
///
/// # Errors
/// When H has no factor: a number is not finite.
pub(super) fn factored(gram: &Mat<f64>, root: &Mat<f64>) -> Result<Factored, FixedMeanError> {
    let m = root.nrows();
    let par = parallelism(m, m);
    let mut product = Mat::zeros(m, m);
    let whole = product.as_mut();
    matmul(
        whole,
        Rectangular,
        Accum::Replace,
        gram.as_ref(),
        Rectangular,
        root.as_ref(),
        TriangularLower,
        1.0,
        par,
    );
    let mut h = symmetric_product((root.transpose(), TriangularUpper), (product.as_ref(), Rectangular), 1.0);
    (0..m).for_each(|i| h[(i, i)] += 1.0);
    let factor = Cholesky::of(h.as_ref(), JitterPolicy::default())?;
    let mean = (0..m).map(|i| h[(i, i)]).sum::<f64>() / m as f64;
    let mut whitener = root.transpose().to_owned();
    factor.solve_factor_in_place(whitener.as_mut());
    let mut shrunk = whitener.clone();
    factor.solve_factor_transpose_in_place(shrunk.as_mut());
    let s = symmetric_product((whitener.transpose(), Rectangular), (whitener.as_ref(), Rectangular), 1.0);
    let divergence = 0.5 * (factor.log_determinant() - inner(gram, &s));
    Ok(Factored { whitener, shrunk, s, divergence, jitter: factor.info().jitter / mean })
}

/// `Σ_ij a_ij b_ij`.
pub(super) fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let column = |j: usize| {
        dispatch(
            #[inline(always)]
            || dot(a.col_as_slice(j), b.col_as_slice(j)),
        )
    };
    (0..a.ncols()).map(column).sum()
}
