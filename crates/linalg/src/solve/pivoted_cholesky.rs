//! `K ≈ L Lᵀ` from a few columns of K, each chosen where the approximation is worst.

use super::SolveError;
use super::error::same_size;
use crate::Real;
use crate::operator::RowAccess;
use faer::linalg::matmul::matmul;
use faer::{Accum, Col, Mat, MatRef, Par};

/// A partial Cholesky factorisation with diagonal pivoting of a positive semidefinite matrix.
///
/// Source: Harbrecht, Peters and Schneider (2012), algorithm 1; spec `stochastic_gaussian_processes`, section 12. Nothing is added to
/// the diagonal: even modest jitter makes the preconditioner worse than none.
#[derive(Clone, Debug)]
pub struct PivotedCholesky<T> {
    factor: Mat<T>,
    pivots: Vec<usize>,
    remainder: f64,
}

impl<T: Real> PivotedCholesky<T> {
    /// At most `rank` pivots, fewer once the trace of `K - L Lᵀ` is at most `relative_tolerance` times that of K, or nothing
    /// but rounding is left. Cost: `rank` columns of K, `n rank²` flops, `n rank` numbers.
    ///
    /// # Errors
    /// [`SolveError::Shape`] when K is not square, [`SolveError::NotFinite`] when its diagonal, or a column that was needed, is not.
    pub fn new(matrix: &dyn RowAccess<T>, rank: usize, relative_tolerance: f64) -> Result<Self, SolveError> {
        let n = matrix.shape().0;
        same_size("columns of a symmetric matrix", n, matrix.shape().1)?;
        let rank = rank.min(n);
        let mut diagonal: Vec<f64> = matrix.diagonal().iter().map(|v| v.to_f64()).collect();
        if let Some((row, &value)) = diagonal.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(SolveError::NotFinite { what: "the diagonal", row, column: row, value });
        }
        let total: f64 = diagonal.iter().sum();
        let floor = total / n.max(1) as f64 * T::EPSILON.to_f64() * 16.0;
        let mut factor = Mat::<T>::zeros(n, rank);
        let mut pivots = Vec::with_capacity(rank);
        let mut column = Mat::<T>::zeros(n, 1);
        while pivots.len() < rank {
            let Some((pivot, &largest)) = diagonal.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))
            else {
                break;
            };
            if diagonal.iter().sum::<f64>() <= relative_tolerance * total || largest <= floor {
                break;
            }
            let k = pivots.len();
            matrix.columns_into(&[pivot], column.as_mut());
            // l = (K[:, p] - L L[p, :]ᵀ) / √d_p
            let row = Col::<T>::from_fn(k, |j| factor[(pivot, j)]);
            matmul(column.as_mut(), Accum::Add, factor.get(.., ..k), row.as_mat(), -T::ONE, Par::Seq);
            let scale = T::from_f64(1.0 / largest.sqrt());
            let target = factor.col_as_slice_mut(k);
            for (i, &value) in column.col_as_slice(0).iter().enumerate() {
                let entry = value * scale;
                if !Real::is_finite(entry) {
                    let value = value.to_f64();
                    return Err(SolveError::NotFinite { what: "the matrix", row: i, column: pivot, value });
                }
                target[i] = entry;
            }
            pivots.push(pivot);
            // Rows of earlier pivots are exact: what rounding left there would only do harm.
            for &p in &pivots[..k] {
                target[p] = T::ZERO;
            }
            target[pivot] = T::from_f64(largest.sqrt());
            for (d, &l) in diagonal.iter_mut().zip(target.iter()) {
                *d = (*d - l.to_f64() * l.to_f64()).max(0.0);
            }
            diagonal[pivot] = 0.0;
        }
        if pivots.len() < rank {
            factor = factor.get(.., ..pivots.len()).to_owned();
        }
        Ok(Self { factor, pivots, remainder: diagonal.iter().sum() })
    }

    /// L, n x R.
    pub fn factor(&self) -> MatRef<'_, T> {
        self.factor.as_ref()
    }

    /// L, given away.
    pub fn into_factor(self) -> Mat<T> {
        self.factor
    }

    /// The chosen rows, in the order they were chosen: a greedy set of points that explains the others best.
    pub fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// `tr(K - L Lᵀ)`, which is not negative and bounds the error in every unitarily invariant norm.
    pub fn remainder(&self) -> f64 {
        self.remainder
    }
}
