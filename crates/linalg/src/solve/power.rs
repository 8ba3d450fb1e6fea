//! The largest eigenvalue, for step sizes.

use super::SolveError;
use super::vectors::column_norms;
use crate::Real;
use crate::operator::{Dense, LinearOperator, RowAccess};
use crate::random::Streams;
use faer::Mat;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

/// `‖A v‖` after `iterations` of power iteration from a random unit vector: a lower bound of the largest eigenvalue of a positive
/// semidefinite matrix, 1 to 3 per cent low after 30 iterations on kernel matrices. Cost: `iterations + 1` products.
///
/// # Errors
/// [`SolveError::NotFinite`] when a product is not finite.
#[inline(never)]
pub fn largest_eigenvalue<T: Real>(
    matrix: &dyn LinearOperator<T>,
    iterations: usize,
    seed: u64,
) -> Result<f64, SolveError> {
    let mut rng = Streams::new(seed).stream("linalg/power");
    let n = matrix.shape().1;
    let mut vector = Mat::<T>::from_fn(n, 1, |_, _| {
        let draw: f64 = StandardNormal.sample(&mut rng);
        T::from_f64(draw)
    });
    let mut eigenvalue = 0.0;
    for _ in 0..=iterations {
        let norm = column_norms(&vector)[0];
        if norm == 0.0 {
            return Ok(0.0);
        }
        let scale = T::from_f64(1.0 / norm);
        vector.col_as_slice_mut(0).iter_mut().for_each(|v| *v *= scale);
        vector = matrix.multiply(vector.as_ref());
        eigenvalue = column_norms(&vector)[0];
        if !eigenvalue.is_finite() {
            return Err(SolveError::NotFinite {
                what: "a product with the matrix",
                row: 0,
                column: 0,
                value: eigenvalue,
            });
        }
    }
    Ok(eigenvalue)
}

/// The largest eigenvalue of an n x n kernel matrix from `subset` of its rows: `λ₁(K) ≈ (n / subset) λ₁(K_SS)`, S a uniform sample
/// without replacement and 30 power iterations. 2 to 4 per cent off with 500 rows (spec `stochastic_gaussian_processes`, section 15.4).
/// Cost: `subset²` entries of K.
///
/// # Errors
/// As [`largest_eigenvalue`].
pub fn largest_eigenvalue_from_subset<T: Real>(
    matrix: &dyn RowAccess<T>,
    subset: usize,
    seed: u64,
) -> Result<f64, SolveError> {
    let n = matrix.shape().0;
    let size = subset.clamp(1, n.max(1)).min(n);
    if size == 0 {
        return Ok(0.0);
    }
    let mut rng = Streams::new(seed).stream("linalg/power/subset");
    let mut rows = index::sample(&mut rng, n, size).into_vec();
    rows.sort_unstable();
    let mut principal = Mat::<T>::zeros(size, size);
    matrix.principal_into(&rows, principal.as_mut());
    Ok(largest_eigenvalue(&Dense::new(principal), 30, seed)? * n as f64 / size as f64)
}
