//! **The squared 2-Wasserstein distance from two batches** B and S: with non-symmetric eigenvalues,
//!
//! ```text
//! W² ≈ (1/n_B) Σ_b (Δ_b² + k_bb + r_bb) - 2/√(n_B n_S) Σ_s √λ_s(R_SB K_BS)
//! d√λ/dA = (w̄ vᵀ/wᴴv)/(2 √λ),   A v = λ v,  wᴴ A = λ wᴴ
//! ```
//!
//! The product of two matrices between different points is not symmetric: eigenvalues may be negative or complex, the estimate is noisy and may be negative (erratum E14). On one batch it is [`same_batch`](super::same_batch) without jitter, which is to be preferred.
//! Source: spec `generalised_variational_inference`, section 10, (5.11).

use super::wasserstein::{check_normals, of_means};
use super::{BatchDistance, DivergenceError, Normals};
use faer::{Mat, MatRef, Scale};
use posterior_linalg::dense::{UnsymmetricEigen, eigen_unsymmetric, product};
use posterior_linalg::vectorised::dot;

/// The estimate from two batches, with slopes. `prior` and `posterior` are marginals at the points of B (n_B); `prior_between` is K_BS (n_B x n_S), `posterior_between` R_SB (n_S x n_B).
///
/// Negative real parts count as 0 and imaginary parts are dropped; both are counted. The slopes are those of what is computed, as long as eigenvalues are distinct; those that are below their own rounding error have a root of no slope that could be known, and are left out of it.
///
/// Cost about `30 min(n_B, n_S)³` flops; measured on two cores, 6 ms for 100 points and 160 ms for 400. The same bits on any number of threads.
///
/// # Errors
/// Sizes that differ, no points in either batch, numbers that are not finite.
pub fn two_batches(
    prior: Normals<'_>,
    posterior: Normals<'_>,
    prior_between: MatRef<'_, f64>,
    posterior_between: MatRef<'_, f64>,
) -> Result<BatchDistance, DivergenceError> {
    let (n, others) = (posterior.means.len(), prior_between.ncols());
    check_normals(prior, posterior)?;
    DivergenceError::same("rows of the prior's covariance", n, prior_between.nrows())?;
    DivergenceError::same("rows of the posterior's covariance", others, posterior_between.nrows())?;
    DivergenceError::same("columns of the posterior's covariance", n, posterior_between.ncols())?;
    if others == 0 {
        return Err(DivergenceError::Empty { what: "the second batch" });
    }
    DivergenceError::finite("the mean of the prior", prior.means)?;
    DivergenceError::finite("the mean of the posterior", posterior.means)?;
    DivergenceError::finite("the variance of the prior", prior.variances)?;
    DivergenceError::finite("the variance of the posterior", posterior.variances)?;
    DivergenceError::finite_matrix("the prior's covariance", prior_between, |_| 0..n)?;
    DivergenceError::finite_matrix("the posterior's covariance", posterior_between, |_| 0..others)?;
    // Both products have the same eigenvalues but for zeros.
    let small = others <= n;
    let matrix = if small {
        product(posterior_between, prior_between)
    } else {
        product(prior_between, posterior_between)
    };
    let found = eigen_unsymmetric(matrix.as_ref())
        .map_err(|_| DivergenceError::Decomposition { what: "the product of both covariances" })?;
    let fidelity: f64 = found.real.iter().map(|r| r.max(0.0).sqrt()).sum();
    let (toward_product, unresolved) = slopes(found.clone(), matrix.norm_l2());
    let (count, scale) = (n as f64, 2.0 / (n as f64 * others as f64).sqrt());
    let mut covariance = if small {
        product(toward_product.as_ref(), prior_between.transpose())
    } else {
        product(prior_between.transpose(), toward_product.as_ref())
    };
    covariance *= Scale(-scale);
    let (squares, means) = of_means(prior.means, posterior.means);
    let traces = prior.variances.iter().sum::<f64>() + posterior.variances.iter().sum::<f64>();
    Ok(BatchDistance {
        value: squares + traces / count - scale * fidelity,
        fidelity,
        means,
        variances: vec![1.0 / count; n],
        covariance,
        prior_jitter: 0.0,
        posterior_jitter: 0.0,
        clipped: found.real.iter().filter(|r| **r < 0.0).count(),
        complex: found.imaginary.iter().filter(|i| **i != 0.0).count(),
        unresolved,
    })
}

/// The derivative of `Σ √max(Re λ, 0)` in the matrix, and of how many positive real parts there is none. For a pair `w = a + ib`, `v = c + id`, `wᴴv = s + it` both eigenvalues have the real part of
/// `w̄ vᵀ/wᴴv`, which is `(a (sc + td)ᵀ + b (sd - tc)ᵀ)/(s² + t²)`: so all is one product of the left vectors with what replaces the right ones here.
fn slopes(found: UnsymmetricEigen, size: f64) -> (Mat<f64>, usize) {
    let UnsymmetricEigen { real, imaginary, left, mut right } = found;
    let n = real.len();
    let rounding = n as f64 * f64::EPSILON * size;
    let mut unresolved = 0;
    let mut j = 0;
    while j < n {
        let width = if imaginary[j] == 0.0 || j + 1 == n { 1 } else { 2 };
        let inner = |a: usize, b: usize| dot(left.col_as_slice(a), right.col_as_slice(b));
        let (s, t) = if width == 1 {
            (inner(j, j), 0.0)
        } else {
            (inner(j, j) + inner(j + 1, j + 1), inner(j, j + 1) - inner(j + 1, j))
        };
        let norm = |matrix: &Mat<f64>| matrix.subcols(j, width).norm_l2();
        // How far rounding moves an eigenvalue: the more, the closer its vectors are to orthogonal.
        let error = rounding * norm(&left) * norm(&right) / s.hypot(t);
        let resolved = real[j] > error;
        unresolved += if real[j] > 0.0 && !resolved { width } else { 0 };
        let scale = if resolved { width as f64 * 0.5 / real[j].sqrt() / (s * s + t * t) } else { 0.0 };
        for i in 0..n {
            if width == 1 {
                right[(i, j)] *= scale * s;
            } else {
                let (c, d) = (right[(i, j)], right[(i, j + 1)]);
                (right[(i, j)], right[(i, j + 1)]) = (scale * (s * c + t * d), scale * (s * d - t * c));
            }
        }
        j += width;
    }
    (product(left.as_ref(), right.transpose()), unresolved)
}
